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

Array = np.ndarray[Any, Any]

_LANES = {np.dtype(np.float32): 8, np.dtype(np.float64): 4}
_BESIDE = 4
_STEP = 16
_LEVELS = 4


def function_of(node: Node) -> Callable[..., Array]:
    """Return what computes a node from the arrays of its arguments."""
    if node.op == "sum":
        return partial(sums, *node.settings)
    if node.op in _OWN:
        return _OWN[node.op]
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


def _sigmoid(x: Array) -> Array:
    """Return 1/(1 + exp(-x)), rounded at each step."""
    if x.dtype != np.float32:
        return 1 / (1 + np.exp(-x))  # type: ignore[no-any-return]
    one = np.float32(1)
    return one / (one + np.exp(-x.astype(np.float64)).astype(np.float32))  # type: ignore[no-any-return]


# NumPy has no `positive` of booleans, and its remainder 0 has another sign.
_OWN: dict[str, Callable[..., Array]] = {"identity": np.copy, "mod": _remainder, "sigmoid": _sigmoid}


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
