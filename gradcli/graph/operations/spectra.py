"""Spectra: eigenvalues and eigenvectors of symmetric matrices, singular values and singular vectors.

Vectors are determined up to their signs, and derivatives of vectors exist where their values are distinct: elsewhere
a gradient of vectors has inf or nan in it, as PyTorch's has.  Source: M. Giles, "Collected Matrix Derivative Results
for Forward and Reverse Mode Algorithmic Differentiation" (2008), sections 3.1 and 3.2; J. Townsend, "Differentiating
the Singular Value Decomposition" (2016), for rectangular matrices.
"""

from __future__ import annotations

from gradcli.graph.construct import from_diagonal, matmul, reshape, sliced, swap
from gradcli.graph.matrices import eigvalsh, eigvecsh, singular_vectors, svdvals
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Operation, spelled


def _as_row(x: Node) -> Node:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _as_column(x: Node) -> Node:
    return reshape(x, (*x.shape, 1))


def _skew(x: Node) -> Node:
    return x - swap(x)


def _over_gaps(x: Node, values: Node) -> Node:
    """Return `x[i, j]/(values[j] - values[i])`, with zeros on the diagonal."""
    n = values.shape[-1]
    eye = from_diagonal(const(1, (n,), x.dtype), (n, n))
    return x * (1 - eye) / (_as_row(values) - _as_column(values) + eye)


def _eigvalsh_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    vectors = eigvecsh(x)
    return [matmul(vectors * _as_row(g), swap(vectors))]


def _eigvecsh_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    core = _over_gaps(_skew(matmul(swap(y), g)) / 2, eigvalsh(x))
    return [matmul(matmul(y, core), swap(y))]


def _svdvals_pullback(g: Node, y: Node, x: Node) -> list[Node]:
    u, vh = (singular_vectors(op, x) for op in ("svd_u", "svd_vh"))
    return [matmul(u * _as_row(g), vh)]


def _svd_u_pullback(g: Node, y: Node, full: bool, x: Node) -> list[Node]:
    s = svdvals(x)
    u, g = (sliced(m, len(m.shape) - 1, range(s.shape[-1])) for m in (y, g))
    vh = _first_rows(singular_vectors("svd_vh", x, full), s.shape[-1])
    result = matmul(u, _over_gaps(_skew(matmul(swap(u), g)), s * s) * _as_row(s))
    if x.shape[-2] > s.shape[-1]:
        result = result + (g - matmul(u, matmul(swap(u), g))) / _as_row(s)
    return [matmul(result, vh)]


def _svd_vh_pullback(g: Node, y: Node, full: bool, x: Node) -> list[Node]:
    s = svdvals(x)
    vh, g = (_first_rows(m, s.shape[-1]) for m in (y, g))
    u = singular_vectors("svd_u", x, full)
    u = sliced(u, len(u.shape) - 1, range(s.shape[-1]))
    result = matmul(_as_column(s) * _over_gaps(_skew(matmul(vh, swap(g))), s * s), vh)
    if x.shape[-1] > s.shape[-1]:
        result = result + (g - matmul(matmul(g, swap(vh)), vh)) / _as_column(s)
    return [matmul(u, result)]


def _first_rows(x: Node, count: int) -> Node:
    return sliced(x, len(x.shape) - 2, range(count))


ROWS: dict[str, Operation] = {
    "eigvalsh": Operation("matrix", pullback=_eigvalsh_pullback, degree=1),
    "eigvecsh": Operation("matrix", pullback=_eigvecsh_pullback),
    "svdvals": Operation(
        "matrix", pullback=_svdvals_pullback, degree=1, spelling=spelled(numpy="linalg.svdvals", torch="linalg.svdvals")
    ),
    "svd_u": Operation("matrix", ("full_matrices",), _svd_u_pullback),
    "svd_vh": Operation("matrix", ("full_matrices",), _svd_vh_pullback),
}
