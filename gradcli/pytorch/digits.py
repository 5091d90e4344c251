"""The last digits of functions: of sums in PyTorch's order, and of those that are rounded once, as most of its are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import forward
from gradcli.graph.node import Node
from gradcli.pytorch.product_order import product
from gradcli.pytorch.rounding import fused
from gradcli.pytorch.sum_order import LANES, in_lanes, sums

Array = np.ndarray[Any, Any]


def is_whole(node: Node) -> bool:
    """Tell whether a node is computed as it is, where an engine would take it apart."""
    return node.op in _WHOLE and node.dtype in ("float32", "float64")


def function_of(node: Node) -> Callable[..., Array]:
    """Return what computes a node from the arrays of its arguments."""
    if node.op == "sum":
        return partial(sums, *node.settings)
    if node.op in _OWN:
        return _OWN[node.op]
    if is_whole(node):
        return partial(_WHOLE[node.op], *node.settings)
    wider = {"float32": _WIDE32, "float64": _WIDE64}.get(node.dtype, ())
    return partial(wide, forward(node)) if node.op in wider else forward(node)


def wide(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return what a function gives in numbers of more digits, rounded once."""
    kind = arrays[0].dtype
    return function(*[a.astype(np.float64 if kind == np.float32 else np.longdouble) for a in arrays]).astype(kind)


# Of float64 only those that NumPy rounds otherwise than PyTorch; where a long double has no more digits, they stay so.
_WIDE64 = frozenset(("tanh", "sinh", "cosh", "atanh", "log1p", "expm1", "log10"))
_WIDE32 = _WIDE64 | {"exp", "log", "sin", "cos", "log2", "cumsum", "cumprod", "asin", "acos"}


def _remainder(a: Array, b: Array) -> Array:
    """Return what is left of a division: 0 has the sign of the dividend, as in PyTorch."""
    found = np.fmod(a, b)
    return np.where((found != 0) & ((b < 0) != (found < 0)), found + b, found)


def sigmoid(x: Array) -> Array:
    """Return 1/(1 + exp(-x)), rounded at each step."""
    one = x.dtype.type(1)
    return one / (one + exp(-x))  # type: ignore[no-any-return]


def exp(x: Array) -> Array:
    """Return powers of e as PyTorch's kernels have them, which compute more than an exp.

    2**n times a polynomial of degree seven in what is left of x, each term added with one rounding; its coefficients
    are those of SLEEF, whose `expf` PyTorch uses there.
    """
    if x.dtype != np.float32:
        return np.exp(x)  # type: ignore[no-any-return]
    x = np.clip(x, -104, 104)
    power = np.rint(x * np.float32(_LOG2_E))
    rest = fused(power, _LN2_HIGH, x)
    rest = fused(power, _LN2_LOW, rest)
    found = np.full_like(x, _EXP[0])
    for coefficient in _EXP[1:]:
        found = fused(found, rest, coefficient)
    found = np.float32(1) + fused(rest * rest, found, rest)
    return np.ldexp(found, np.nan_to_num(power).astype(np.int32))  # type: ignore[no-any-return]


_LOG2_E = 1 / math.log(2)
_LN2_HIGH, _LN2_LOW = np.float32(-0.693145751953125), np.float32(-1.428606765330187e-06)
_EXP = [np.float32(c) for c in (1.98527618e-4, 1.39304355e-3, 8.33336078e-3, 4.16664854e-2, 1.66666672e-1, 0.5)]


def _softmax(axis: int, x: Array) -> Array:
    powers, whole = _powers(axis, x)
    last = axis == x.ndim - 2
    return powers * (whole.dtype.type(1) / whole) if last else powers / whole  # type: ignore[no-any-return]


def _log_softmax(axis: int, x: Array) -> Array:
    _, whole = _powers(axis, x)
    return x - x.max(axis, keepdims=True) - (wide(np.log, whole) if x.dtype == np.float32 else np.log(whole))  # type: ignore[no-any-return]


def _powers(axis: int, x: Array) -> tuple[Array, Array]:
    powers = exp(x - x.max(axis, keepdims=True))
    return powers, in_lanes(axis, powers)


def _matmul(a: Array, b: Array) -> Array:
    if a.dtype != b.dtype or a.dtype not in LANES:
        return np.asarray(np.matmul(a[..., 0], b[..., 0]))[..., None]
    return product(a[..., 0], b[..., 0])[..., None]


# NumPy has no `positive` of booleans, and its remainder 0 has another sign.
_OWN: dict[str, Callable[..., Array]] = {"identity": np.copy, "mod": _remainder, "matmul": _matmul}
_WHOLE: dict[str, Callable[..., Array]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "sigmoid": sigmoid,
    "silu": lambda x: x / (1 + exp(-x)),
}
