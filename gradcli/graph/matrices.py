"""Constructors of linear algebra on the last two axes: determinants, inverses, systems; triangles, cross products."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.errors import InputError
from gradcli.graph.construct import broadcast, call, concatenate, index, matmul, one_axis, reshape, sliced, stack
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import broadcast_shapes, check_size

SMALL = 3  # rows of a matrix up to which determinants and inverses are written out


def check_square(name: str, x: Node) -> None:
    """Check that a node is a square matrix, or a stack of them.

    Errors: `InputError`.
    """
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise InputError(
            f"`{name}` takes a square matrix, or a stack of them, not an array of shape {x.shape}",
            hint="an input without a value needs a shape: --shape M=2x2",
        )


def det(x: Node) -> Node:
    """Return the determinants of the matrices of a stack."""
    check_square("det", x)
    return Node("det", (x,), x.shape[:-2])


def inv(x: Node) -> Node:
    """Return the inverses of the matrices of a stack; a singular one has inf or nan in it."""
    check_square("inv", x)
    return Node("inv", (x,), x.shape)


def solve(a: Node, b: Node) -> Node:
    """Return the x of `a @ x = b`; `b` is a vector or a matrix, or a stack of them that broadcasts with that of `a`.

    It is a stack of vectors where its shape is that of `a` without the last axis, as in PyTorch.

    Errors: `InputError` when `a` is not square, and when the rows of `b` are not as many.
    """
    check_square("solve", a)
    rows = a.shape[-1]
    vectors = len(b.shape) == 1 or b.shape == a.shape[:-1]
    known = reshape(b, (*b.shape, 1)) if vectors else b
    if len(known.shape) < 2 or known.shape[-2] != rows:
        raise InputError(
            f"`solve` cannot match a matrix of shape {a.shape} with a right-hand side of shape {b.shape}",
            hint=f"it is a vector of {rows}, or a matrix of {rows} rows",
        )
    x = solution(a, known)
    return reshape(x, x.shape[:-1]) if vectors else x


def solution(a: Node, b: Node) -> Node:
    """Return the x of `a @ x = b` for matrices, or stacks of them that broadcast."""
    shape = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    return Node("solve", (a, b), check_size((*shape, *b.shape[-2:])))


def cofactors(x: Node) -> Node:
    """Return the derivatives of the determinants by each element, which singular matrices have as well."""
    check_square("cofactors", x)
    return Node("cofactors", (x,), x.shape)


def small_cofactors(x: Node) -> Node | None:
    """Return the cofactors written out, for small matrices."""
    n = x.shape[-1]
    return _written(x, lambda i, j: _cofactor(x, i, j), n) if n <= SMALL else None


def cofactors_along(x: Node, direction: Node) -> Node | None:
    """Return the derivatives of the cofactors in a direction, for small matrices."""
    n = x.shape[-1]
    if n > SMALL:
        return None
    if n == 1:
        return const(0, x.shape)
    if n == 2:
        return cofactors(direction)  # they are linear

    def element(i: int, j: int) -> Node:
        (a, b, c, d), (e, f, g, h) = _around(x, i, j), _around(direction, i, j)
        return a * h + e * d - (b * g + f * c)

    return _written(x, element, n)


def small_det(x: Node) -> Node | None:
    """Return the determinants written out, for small matrices."""
    if x.shape[-1] > SMALL:
        return None
    terms = [_element(x, 0, j) * _cofactor(x, 0, j) for j in range(x.shape[-1])]
    return sum(terms[1:], terms[0])


def small_inv(x: Node) -> Node | None:
    """Return the inverses written out, for small matrices."""
    n = x.shape[-1]
    whole = small_det(x)
    return None if whole is None else _written(x, lambda i, j: _cofactor(x, j, i) / whole, n)


def by_inverse(a: Node, b: Node) -> Node:
    """Return the solution of a system by the inverse."""
    return matmul(inv(a), b)


def _element(x: Node, i: int, j: int) -> Node:
    return index(x, (*map(range, x.shape[:-2]), i, j))


def _cofactor(x: Node, i: int, j: int) -> Node:
    """Return the cofactors of one row and column: the determinants without these, with their sign."""
    n = x.shape[-1]
    if n == 1:
        return const(1, x.shape[:-2])
    if n == 2:
        other = _element(x, 1 - i, 1 - j)
        return other if i == j else -other
    a, b, c, d = _around(x, i, j)
    return a * d - b * c


def _around(x: Node, i: int, j: int) -> list[Node]:
    """Return the 2×2 minor of a 3×3 matrix, its rows and columns in cyclic order, which gives the cofactor its sign."""
    return [_element(x, (i + r) % 3, (j + s) % 3) for r in (1, 2) for s in (1, 2)]


def _written(x: Node, element: Callable[[int, int], Node], n: int) -> Node:
    """Return the stack of matrices with these elements."""
    axis = len(x.shape) - 2
    return stack([stack([element(i, j) for j in range(n)], axis) for i in range(n)], axis)


def eigvalsh(x: Node) -> Node:
    """Return the eigenvalues of the symmetric parts `(x + x.mT)/2` of the matrices of a stack, in ascending order."""
    check_square("eigvalsh", x)
    return Node("eigvalsh", (x,), x.shape[:-1])


def eigvecsh(x: Node) -> Node:
    """Return the orthonormal eigenvectors of symmetric parts, in columns, in the order of the eigenvalues."""
    check_square("eigvecsh", x)
    return Node("eigvecsh", (x,), x.shape)


def svdvals(x: Node) -> Node:
    """Return the singular values of the matrices of a stack, in descending order."""
    return Node("svdvals", (x,), (*x.shape[:-2], min(x.shape[-2:])))


def singular_vectors(op: str, x: Node, full: bool = False) -> Node:
    """Return `svd_u`, with left singular vectors in columns, or `svd_vh`, with right ones in rows.

    There are as many as singular values or, with `full`, as make a basis.
    """
    rows, columns = x.shape[-2:]
    size = rows if op == "svd_u" else columns
    count = size if full else min(rows, columns)
    shape = (size, count) if op == "svd_u" else (count, size)
    return Node(op, (x,), (*x.shape[:-2], *shape), (full,))


def cholesky(x: Node) -> Node:
    """Return the lower triangular L with `x = L @ L.mT`, of the lower triangle of x."""
    check_square("cholesky", x)
    return Node("cholesky", (x,), x.shape)


def written_cholesky(x: Node) -> Node:
    """Return the Cholesky factor column by column: each leaves a smaller matrix to factorize.

    Source: G. Golub and C. Van Loan, "Matrix Computations", 4th edition, 4.2.5 (outer product form).
    """
    lead, n = x.shape[:-2], x.shape[-1]
    axis, columns, rest = len(lead), [], x
    for k in range(n):
        pivot = call("sqrt", _element(rest, 0, 0))
        column = sliced(rest, axis + 1, 0) / reshape(pivot, (*lead, 1))
        columns.append(concatenate([const(0, (*lead, k), x.dtype), column], axis) if k else column)
        if k < n - 1:
            below = sliced(column, axis, range(1, n - k))
            block = sliced(sliced(rest, axis, range(1, n - k)), axis + 1, range(1, n - k))
            rest = block - reshape(below, (*lead, n - k - 1, 1)) * reshape(below, (*lead, 1, n - k - 1))
    return stack(columns, axis + 1)


def triangle(op: str, x: Node, diagonal: int = 0) -> Node:
    """Return `triu` or `tril`: the elements from that diagonal up, or down to it, and zeros elsewhere."""
    if len(x.shape) < 2:
        raise InputError(f"`{op}` takes a matrix, or a stack of them, not an array of shape {x.shape}")
    if type(diagonal) is not int:
        raise InputError("the diagonal must be an integer", hint=f"for example `{op}(M, 1)`")
    rows, columns = x.shape[-2:]
    return Node(op, (x,), x.shape, (max(-rows, min(diagonal, columns)),))


def cross(a: Node, b: Node, axis: int = -1) -> Node:
    """Return the vector product of vectors of 3 along an axis; the other axes broadcast.

    Errors: `InputError` for other vectors.
    """
    shape = broadcast_shapes([a.shape, b.shape])
    axis = one_axis(axis, len(shape))
    for x in (a, b):
        aligned = axis - len(shape) + len(x.shape)
        if aligned < 0 or x.shape[aligned] != 3:
            raise InputError(
                f"`cross` multiplies vectors of 3, not arrays of shapes {a.shape} and {b.shape}",
                hint="another axis than the last is given as `axis=0`",
            )
    return Node("cross", (broadcast(a, shape), broadcast(b, shape)), shape, (axis,))


def written_cross(axis: int, a: Node, b: Node) -> Node:
    """Return the vector product in its elements."""
    (a1, a2, a3), (b1, b2, b3) = ([sliced(x, axis, i) for i in range(3)] for x in (a, b))
    return stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], axis)


def kron(a: Node, b: Node) -> Node:
    """Return the Kronecker product: a copy of `b` for each element of `a`, times it."""
    rank = max(len(a.shape), len(b.shape))
    first, second = ((1,) * (rank - len(x.shape)) + x.shape for x in (a, b))
    left = reshape(a, [n for size in first for n in (size, 1)])
    right = reshape(b, [n for size in second for n in (1, size)])
    return reshape(left * right, [n * m for n, m in zip(first, second, strict=True)])
