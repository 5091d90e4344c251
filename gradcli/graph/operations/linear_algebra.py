"""Linear algebra: products of matrices and of vectors, determinants, inverses, systems of equations."""

from __future__ import annotations

from gradcli.graph.construct import broadcast, diagonal, from_diagonal, matmul, outer, reduce, reshape, sum_to, swap
from gradcli.graph.einsum import contract, parts
from gradcli.graph.matrices import (
    by_inverse,
    cofactors,
    cofactors_along,
    cross,
    det,
    inv,
    kron,
    small_cofactors,
    small_det,
    small_inv,
    solution,
    triangle,
    written_cholesky,
    written_cross,
)
from gradcli.graph.node import Node
from gradcli.graph.operation import Operation, Precedence, defined, spelled


def _matmul_pullback(g: Node, y: Node, a: Node, b: Node) -> list[Node]:
    if len(a.shape) == len(b.shape) == 1:
        return [g * b, g * a]
    if len(a.shape) == 2 and len(b.shape) == 1:
        return [outer(g, b), matmul(swap(a), g)]
    if len(a.shape) == 1 and len(b.shape) == 2:
        return [matmul(b, g), outer(a, g)]
    return _stacked_matmul_pullback(g, a, b)


def _stacked_matmul_pullback(g: Node, a: Node, b: Node) -> list[Node]:
    if len(b.shape) == 1:
        column = reshape(g, (*g.shape, 1))
        return [column * b, sum_to(reduce("sum", column * a, (len(a.shape) - 2,)), b.shape)]
    if len(a.shape) == 1:
        row = reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        inner = matmul(row, swap(b))
        whole = reshape(a, (*a.shape, 1)) * row
        return [sum_to(reshape(inner, (*inner.shape[:-2], inner.shape[-1])), a.shape), sum_to(whole, b.shape)]
    return [sum_to(matmul(g, swap(b)), a.shape), sum_to(matmul(swap(a), g), b.shape)]


def _einsum_pullback(g: Node, y: Node, subscripts: str, a: Node, b: Node) -> list[Node]:
    first, second, result = parts(subscripts)
    return [contract(f"{result},{second}->{first}", g, b), contract(f"{first},{result}->{second}", a, g)]


def _of_each(g: Node) -> Node:
    """Return the numbers, one for each matrix of a stack, so that they broadcast with them."""
    return reshape(g, (*g.shape, 1, 1)) if g.shape else g


def _inv_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    return [-matmul(matmul(swap(y), g), swap(y))]


def _solve_pullback(g: Node, y: Node, a: Node, b: Node) -> list[Node]:
    grad = solution(swap(a), g)
    return [sum_to(-matmul(grad, swap(y)), a.shape), sum_to(grad, b.shape)]


def _cholesky_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    # I. Murray, "Differentiation of the Cholesky decomposition", 2016: only the lower triangle of x is read.
    inner = solution(swap(y), _half(matmul(swap(y), g)))
    whole = solution(swap(y), swap(inner))
    return [_half(whole + swap(whole))]


def _half(x: Node) -> Node:
    """Return the lower triangles of matrices, with half of the diagonal."""
    return (triangle("tril", x) + triangle("tril", x, -1)) / 2


def _cofactors_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    # As a second derivative, that of the cofactors is symmetric: what is passed on is their derivative along g.
    if (small := cofactors_along(x, g)) is not None:
        return [small]
    # They are det(x)·(the inverse, transposed); unlike them, this has a value at regular matrices alone.
    transposed = swap(inv(x))
    rank = len(x.shape)
    along = reduce("sum", g * transposed, (rank - 2, rank - 1))
    return [_of_each(along) * y - matmul(matmul(transposed, swap(g)), y)]


ROWS: dict[str, Operation] = {
    "matmul": Operation("contraction", pullback=_matmul_pullback, arity=2, infix="@", precedence=Precedence.PRODUCT),
    "outer": Operation(
        "contraction",
        pullback=lambda g, y, a, b: [matmul(g, b), matmul(a, g)],
        definition=lambda a, b: reshape(a, (*a.shape, 1)) * b,
    ),
    "trace": Operation(
        "whole",
        pullback=lambda g, y, x: [from_diagonal(broadcast(g, (min(x.shape),)), x.shape)],
        definition=lambda x: reduce("sum", diagonal(x), (0,)),
        linear=(0,),
        spelling=spelled(latex=r"\operatorname{tr}"),
    ),
    "einsum": Operation("contraction", ("subscripts",), _einsum_pullback),
    "kron": defined(kron),
    "cross": Operation(
        "along", ("axis",), lambda g, y, axis, a, b: [cross(b, g, axis), cross(g, a, axis)], definition=written_cross
    ),
    "det": Operation(
        "matrix",
        pullback=lambda g, y, x: [_of_each(g) * cofactors(x)],
        formula=small_det,
        spelling=spelled(numpy="linalg.det", torch="linalg.det", onnx="Det", latex=r"\det"),
    ),
    "cofactors": Operation(
        "matrix",
        pullback=_cofactors_pullback,
        lowered=small_cofactors,
        formula=lambda x: small_cofactors(x) or _of_each(det(x)) * swap(inv(x)),
    ),
    "inv": Operation(
        "matrix",
        pullback=_inv_pullback,
        degree=-1,
        formula=small_inv,
        poles=True,
        spelling=spelled(numpy="linalg.inv", torch="linalg.inv"),
    ),
    "cholesky": Operation("matrix", pullback=_cholesky_pullback, definition=written_cholesky),
    "solve": Operation(
        "matrix",
        pullback=_solve_pullback,
        formula=by_inverse,
        poles=True,
        spelling=spelled(numpy="linalg.solve", torch="linalg.solve"),
    ),
}
