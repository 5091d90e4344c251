"""The last digits of functions: of sums in PyTorch's order, and of those that are rounded once, as most of its are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import forward
from gradcli.graph.node import Node
from gradcli.graph.places import Places
from gradcli.kernels import mkl
from gradcli.kernels.activations import sigmoid, silu
from gradcli.kernels.powers import powers
from gradcli.kernels.processor import VECTOR
from gradcli.kernels.products import product
from gradcli.kernels.rounding import Array, wide
from gradcli.kernels.sums import LANES, norms, sum_along, sums
from gradcli.kernels.vector_functions import OneByOne, Vectors, exp, in_loop, log


def is_whole(node: Node) -> bool:
    """Tell whether a node is computed as it is, where an engine would take it apart."""
    return node.op == "reshape" or (node.op in _WHOLE and node.dtype in ("float32", "float64"))


def function_of(node: Node) -> Callable[..., Array]:
    """Return what computes a node from the arrays of its arguments."""
    own = _OWN.get(node.op) or (_WHOLE.get(node.op) if is_whole(node) else None)
    if own is not None:
        return partial(own, *node.settings)
    wider = {"float32": _WIDE32, "float64": _WIDE64}.get(node.dtype, ())
    return partial(wide, forward(node)) if node.op in wider else forward(node)


def _put(axis: int, places: Places, size: int, x: Array) -> Array:
    """Return what is put to places, of which several may be the same: one number is added after the other."""
    found = np.zeros((*x.shape[:axis], size, *x.shape[axis + len(places.shape) :]), x.dtype)
    at: Any = (*[slice(None)] * axis, places.numbers)
    np.add.at(found, at, x)
    return found


# Of float64 only those that NumPy rounds otherwise than PyTorch; where a long double has no more digits, they stay so.
_WIDE64 = frozenset(("tanh", "sinh", "cosh", "atanh", "log10"))
_WIDE32 = _WIDE64.union(("log", "log2", "cumsum", "cumprod", "asin", "acos", "asinh", "acosh"))
_WIDE32 |= {"atan", "atan2", "exp2", "tan"}


def _remainder(a: Array, b: Array) -> Array:
    """Return what is left of a division: 0 has the sign of the dividend, as in PyTorch."""
    found = np.fmod(a, b)
    return np.where((found != 0) & ((b < 0) != (found < 0)), found + b, found)


def _softmax(axis: int, x: Array) -> Array:
    powers, whole = _powers(axis, x)
    return powers * (1 / whole) if axis == x.ndim - 2 else powers / whole


def _log_softmax(axis: int, x: Array) -> Array:
    _, whole = _powers(axis, x)
    return x - x.max(axis, keepdims=True) - log(whole)  # type: ignore[no-any-return]


def _powers(axis: int, x: Array) -> tuple[Array, Array]:
    x = x - x.max(axis, keepdims=True)
    powers, last = exp(x), math.prod(x.shape[axis + 1 :])
    left = last % (VECTOR // x.itemsize)
    if axis < x.ndim - 2 and left and powers.size:  # columns behind the whole vectors of each row
        powers.reshape(-1, last)[:, -left:] = OneByOne.exp(x.reshape(-1, last)[:, -left:])
    return powers, sum_along(axis, powers, VECTOR)


def _matmul(a: Array, b: Array) -> Array:
    if a.dtype != b.dtype or a.dtype not in LANES:
        return np.asarray(np.matmul(a[..., 0], b[..., 0]))[..., None]
    return product(a[..., 0], b[..., 0])[..., None]


# NumPy has no `positive` of booleans, and its remainder 0 has another sign.
_OWN: dict[str, Callable[..., Array]] = {
    "identity": np.copy,
    "mod": _remainder,
    "pow": powers,
    "matmul": _matmul,
    "put": _put,
    "sum": sums,
    "cos": mkl.cos,
    "exp": mkl.exp,
    "expm1": Vectors.expm1,
    "log1p": Vectors.log1p,
    "sin": mkl.sin,
}
_WHOLE: dict[str, Callable[..., Array]] = {
    "norm": norms,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "sigmoid": partial(in_loop, sigmoid),
    "silu": partial(in_loop, silu),
}
