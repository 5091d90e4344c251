"""NumPy's linear algebra: `np.linalg`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct, matrices
from gradcli.graph.construct import axes_of, call, reshape
from gradcli.graph.node import Node, cast, compare, const
from gradcli.pyfunc.functions.arguments import axes_in, number, rule
from gradcli.pyfunc.functions.movement import swapaxes
from gradcli.pyfunc.tracer import RULES, lift
from gradcli.vocabulary import FUNCTIONS
from gradcli.vocabulary.register import kept

_CHOLESKY = 64  # rows: each is a few operations of the graph

RULES[np.linalg.det] = lambda a: FUNCTIONS["det"](number(a))
RULES[np.linalg.inv] = lambda a: FUNCTIONS["inv"](number(a))


@rule(np.linalg.solve)
def _solve(a: Any, b: Any) -> Node:
    x, y = number(a), number(b)
    if len(y.shape) == 1 or y.shape != x.shape[:-1]:
        return FUNCTIONS["solve"](x, y)
    return matrices.solution(x, y)  # NumPy 2: `b` is a stack of matrices unless it is one vector


@rule(np.linalg.slogdet)
def _slogdet(a: Any) -> tuple[Node, Node]:
    x = FUNCTIONS["det"](number(a))
    return call("sign", x), call("log", call("abs", x))


class _Svd(NamedTuple):
    U: Any
    S: Any
    Vh: Any


class _Eigh(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


@rule(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Node | _Svd:
    x = number(a)
    if not compute_uv:
        return matrices.svdvals(x)
    u, vh = (matrices.singular_vectors(op, x, full_matrices) for op in ("svd_u", "svd_vh"))
    return _Svd(u, matrices.svdvals(x), vh)


if hasattr(np.linalg, "svdvals"):
    RULES[np.linalg.svdvals] = lambda x, /: matrices.svdvals(number(x))
RULES[np.linalg.eigvalsh] = lambda a, UPLO="L": matrices.eigvalsh(_mirrored(a, UPLO))


@rule(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> _Eigh:
    x = _mirrored(a, UPLO)
    return _Eigh(matrices.eigvalsh(x), matrices.eigvecsh(x))


def _mirrored(a: Any, triangle: str) -> Node:
    """Return the symmetric matrices of one triangle, the only one that LAPACK reads."""
    x = number(a)
    matrices.check_square("eigh", x)
    lower = x if triangle.upper() == "L" else swapaxes(x, -2, -1)
    return matrices.triangle("tril", lower) + swapaxes(matrices.triangle("tril", lower, -1), -2, -1)


@rule(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Node:
    """Return L, or its transpose."""
    x = number(a)
    matrices.check_square("cholesky", x)
    if x.shape[-1] > _CHOLESKY:
        raise InputError(f"`np.linalg.cholesky` is traced for matrices of at most {_CHOLESKY} rows")
    factor = matrices.cholesky(x)
    return swapaxes(factor, -2, -1) if upper else factor


def _matrix_norm(x: Node, ord: Any, axes: Sequence[int]) -> Node:
    """Return the operator norms of the matrices along two axes, or the sums of their singular values."""
    rest = [i for i in range(len(x.shape)) if i not in axes]
    x, last = construct.transpose(x, (*rest, *axes)), len(x.shape) - 1
    if ord in (2, -2, "nuc"):
        values = matrices.svdvals(x)
        return construct.reduce("sum", values, (last - 1,)) if ord == "nuc" else _outermost(values, ord, last - 1)
    if ord not in (1, -1, math.inf, -math.inf):
        raise InputError(f"`np.linalg.norm` of a matrix with `ord={ord!r}` is not supported")
    return _outermost(construct.reduce("sum", call("abs", x), (last - 1 if abs(ord) == 1 else last,)), ord, last - 1)


def _outermost(x: Node, ord: float, axis: int) -> Node:
    return construct.reduce("max" if ord > 0 else "min", x, (axis,), "even")


@rule(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    n = number(x)
    if axis is None and ord is None:
        n = reshape(n, (n.size,))
    axes = axes_in(axis, len(n.shape))
    if len(axes) == 2 and ord not in (None, "fro"):
        result = _matrix_norm(n, ord, axes)
    elif ord in (None, 2, "fro"):
        result = construct.reduce("norm", n, axes)
    elif ord in (math.inf, -math.inf):
        result = construct.reduce("max" if ord > 0 else "min", call("abs", n), axes, "even")
    elif ord == 0:
        result = construct.reduce("sum", cast(compare("ne", n, const(0)), "float64"), axes)
    elif ord == 1:
        result = construct.reduce("sum", call("abs", n), axes)
    else:
        result = construct.reduce("sum", call("abs", n) ** lift(ord), axes) ** (1 / lift(ord))
    whole = lift(x)
    return kept(result, whole, axes_of(None, len(whole.shape)) if axis is None else axes, keepdims)
