"""The last digits: sums in PyTorch's order of addition, and functions of float32 rounded once, as most of its are.

Source: PyTorch's cascade sum on a processor with AVX2 or later, as its numbers show: vectors of lanes are added four
beside one another, and after sixteen rows a sum goes a level up, where the next sixteen are waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import forward
from gradcli.graph.node import Node
from gradcli.pytorch.product_order import product
from gradcli.pytorch.rounding import folded, fused

Array = np.ndarray[Any, Any]

_LANES = {np.dtype(np.float32): 8, np.dtype(np.float64): 4}
_BESIDE = 4
_STEP = 16
_LEVELS = 4


def is_whole(node: Node) -> bool:
    """Tell whether a node is computed as it is, where an engine would take it apart."""
    return node.op in _WHOLE and node.dtype == "float32"


def function_of(node: Node) -> Callable[..., Array]:
    """Return what computes a node from the arrays of its arguments."""
    if node.op == "sum":
        return partial(sums, *node.settings)
    if node.op in _OWN:
        return _OWN[node.op]
    if node.dtype == "float32" and node.op in _FLOAT32:
        return partial(_FLOAT32[node.op], *node.settings)
    return partial(_wide, forward(node)) if node.op in _WIDE and node.dtype == "float32" else forward(node)


def _wide(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return what a function gives in float64, rounded to float32."""
    return function(*[a.astype(np.float64) for a in arrays]).astype(np.float32)


_WIDE = frozenset(("exp", "log", "sin", "cos", "tanh", "sinh", "cosh", "log1p", "expm1", "log2", "log10"))
_WIDE |= {"std", "var", "cumsum", "cumprod", "asin", "acos", "atan", "asinh", "acosh", "atanh"}


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
    return powers * (np.float32(1) / whole) if last else powers / whole  # type: ignore[no-any-return]


def _log_softmax(axis: int, x: Array) -> Array:
    _, whole = _powers(axis, x)
    return x - x.max(axis, keepdims=True) - _wide(np.log, whole)  # type: ignore[no-any-return]


def _powers(axis: int, x: Array) -> tuple[Array, Array]:
    powers = exp(x - x.max(axis, keepdims=True))
    return powers, in_lanes(axis, powers)


def in_lanes(axis: int, x: Array) -> Array:
    """Return the sums along an axis that a kernel needs for itself: of the last axis in lanes, which are folded."""
    if not x.shape[axis]:
        return x.sum(axis, keepdims=True)  # type: ignore[no-any-return]
    rows = np.ascontiguousarray(np.moveaxis(x, axis, 0))
    lanes = _LANES[x.dtype] if axis == x.ndim - 2 else 1
    if len(rows) < lanes or lanes == 1:
        found = np.add.accumulate(rows, axis=0)[-1]
    else:
        whole = len(rows) - len(rows) % lanes
        sums_of_lanes = np.add.reduce(rows[:whole].reshape(-1, lanes, *rows.shape[1:]), axis=0)
        sums_of_lanes[: len(rows) - whole] += rows[whole:]
        found = folded(sums_of_lanes)
    return np.expand_dims(found, axis)


def _matmul(a: Array, b: Array) -> Array:
    if a.dtype != b.dtype or a.dtype not in _LANES:
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
_FLOAT32: dict[str, Callable[..., Array]] = _WHOLE


def sums(axes: tuple[int, ...], x: Array, out: Array | None = None) -> Array:
    """Return the sums over axes; the last axis of the array is that of points, of which there is one."""
    lanes = _LANES.get(x.dtype)
    if lanes is None or not axes or not x.size or not x.flags.c_contiguous or axes[-1] - axes[0] != len(axes) - 1:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    shape = x.shape[: axes[0]] + x.shape[axes[-1] + 1 :]
    count, inner = math.prod(x.shape[a] for a in axes), math.prod(x.shape[axes[-1] + 1 :])
    if count < _BESIDE:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    rows = x.reshape(-1, count, inner)
    found = _along(rows[..., 0], lanes) if inner == 1 else _across(rows, lanes)
    return found.reshape(shape)


def _along(x: Array, lanes: int) -> Array:
    """Return the sum of each row of numbers that stand side by side."""
    count = x.shape[1]
    if count < lanes:
        return _four_beside(x.T)
    whole = count - count % lanes
    vector = _four_beside(np.moveaxis(x[:, :whole].reshape(len(x), -1, lanes), 1, 0))
    # The rest one after the other, then the lanes.
    return np.add.accumulate(np.concatenate([x[:, whole:], vector], axis=1), axis=1)[:, -1]  # type: ignore[no-any-return]


def _across(x: Array, lanes: int) -> Array:
    """Return the sums over the middle axis: of as many columns at once as four vectors have."""
    rows, columns = np.moveaxis(x, 1, 0), x.shape[2]
    together = _BESIDE * (lanes if columns >= lanes else 1)
    whole = columns - columns % together
    return np.concatenate([_cascade(rows[..., :whole]), _four_beside(rows[..., whole:])], axis=-1)


def _four_beside(rows: Array) -> Array:
    """Return the sum of rows, of which four partial sums are kept."""
    whole = len(rows) - len(rows) % _BESIDE
    parts = _cascade(rows[:whole].reshape(whole // _BESIDE, _BESIDE, *rows.shape[1:]))
    found = parts[0]
    for row in (*rows[whole:], *parts[1:]):
        found = found + row
    return found  # type: ignore[no-any-return]


def _cascade(rows: Array) -> Array:
    """Return the sum of rows: of sixteen at a time, of sixteen such sums, and so on."""
    if len(rows) < _STEP:
        return np.add.reduce(rows, axis=0)  # type: ignore[no-any-return]
    step = 2 ** max(4, math.ceil(math.log2(len(rows))) // _LEVELS)
    levels = []
    for _ in range(_LEVELS - 1):
        whole = len(rows) - len(rows) % step
        levels.append(np.add.reduce(rows[whole:], axis=0))
        rows = np.add.reduce(rows[:whole].reshape(whole // step, step, *rows.shape[1:]), axis=1)
    found = levels[0]
    for level in (*levels[1:], np.add.reduce(rows, axis=0)):
        found = found + level
    return found  # type: ignore[no-any-return]
