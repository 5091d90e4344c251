"""Sums and moments in PyTorch's order of addition.

Source: PyTorch's cascade sum on a processor with AVX2, as its numbers show: vectors of lanes are added four beside one
another, and after sixteen rows a sum goes a level up, where the next sixteen are waited for.  Moments are Welford's and
Chan's: "Algorithms for computing the sample variance" (1983).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.kernels.rounding import folded, fused

Array = np.ndarray[Any, Any]

LANES = {np.dtype(np.float32): 8, np.dtype(np.float64): 4}
_BESIDE = 4
_STEP = 16
_LEVELS = 4


def sums(axes: tuple[int, ...], x: Array, out: Array | None = None) -> Array:
    """Return the sums over axes; the last axis of the array is that of points, of which there is one."""
    lanes = LANES.get(x.dtype)
    if lanes is None or not axes or not x.size or not x.flags.c_contiguous:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    if axes[-1] - axes[0] != len(axes) - 1:
        return _of_apart(axes, x) if axes[-1] == x.ndim - 2 else x.sum(axis=axes)
    shape = x.shape[: axes[0]] + x.shape[axes[-1] + 1 :]
    count, inner = math.prod(x.shape[a] for a in axes), math.prod(x.shape[axes[-1] + 1 :])
    if count < _BESIDE:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    rows = x.reshape(-1, count, inner)
    found = _along(rows[..., 0], lanes) if inner == 1 else _across(rows, lanes)
    return found.reshape(shape)


def _of_apart(axes: tuple[int, ...], x: Array) -> Array:
    """Return sums over axes with others in between: of the last ones first, and then one sum after the other."""
    near = [a for i, a in enumerate(axes) if axes[-1] - a == len(axes) - 1 - i]
    each = sums(tuple(near), x)
    far = axes[: len(axes) - len(near)]
    rows = np.moveaxis(each, far, range(len(far)))
    return np.add.accumulate(rows.reshape(-1, *rows.shape[len(far) :]), axis=0)[-1]  # type: ignore[no-any-return]


def _along(x: Array, lanes: int) -> Array:
    """Return the sum of each row of numbers that stand side by side."""
    count = x.shape[1]
    if count < lanes:
        return _four_beside(x.T)
    whole = count - count % lanes
    vector = _four_beside(np.moveaxis(x[:, :whole].reshape(len(x), -1, lanes), 1, 0))
    # The rest one after the other, then the lanes.
    return np.add.accumulate(np.concatenate([x[:, whole:], vector], axis=1), axis=1)[:, -1]


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


def in_lanes(axis: int, x: Array, vector: int = 32, by: Array | None = None) -> Array:
    """Return the sums along an axis that a kernel needs for itself: of the last axis in lanes, which are folded.

    A lane is a number of a vector of so many bytes.  With factors `by` it is the products that are added, those behind
    whole vectors with one rounding.
    """
    if not x.shape[axis]:
        return x.sum(axis, keepdims=True)  # type: ignore[no-any-return]
    first, *factors = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in ((x,) if by is None else (x, by)))
    rows = first * factors[0] if factors else first
    lanes = vector // x.itemsize if axis == x.ndim - 2 else 1
    if len(rows) < lanes or lanes == 1:
        found = np.add.accumulate(rows, axis=0)[-1]
    else:
        whole = len(rows) - len(rows) % lanes
        sums_of_lanes = np.add.reduce(rows[:whole].reshape(-1, lanes, *rows.shape[1:]), axis=0)
        rest = sums_of_lanes[: len(rows) - whole]
        rest[...] = fused(first[whole:], factors[0][whole:], rest) if factors else rest + rows[whole:]
        # Lanes of float64 are added one after the other.
        found = folded(sums_of_lanes) if x.itemsize == 4 else np.add.accumulate(sums_of_lanes, axis=0)[-1]
    return np.expand_dims(found, axis)


def norms(axes: tuple[int, ...], x: Array) -> Array:
    """Return the norms over axes: of rows, lanes one after the other, a four behind them, and the rest fused."""
    if not x.size or not x.flags.c_contiguous or axes != tuple(range(x.ndim - 1 - len(axes), x.ndim - 1)):
        return np.sqrt(np.add.reduce(x * x, axis=axes))  # type: ignore[no-any-return]
    rows = x.reshape(*x.shape[: x.ndim - 1 - len(axes)], -1)
    squares, lanes, count = rows * rows, 32 // x.itemsize, rows.shape[-1]
    whole, fours = count - count % lanes, count - count % 4
    first = squares[..., :whole].reshape(*rows.shape[:-1], -1, lanes).sum(axis=-2)
    found = np.add.accumulate(np.concatenate([first, squares[..., whole:fours]], axis=-1), axis=-1)[..., -1:]
    for k in range(fours, count):
        found = fused(rows[..., k : k + 1], rows[..., k : k + 1], found)
    return np.sqrt(found)


def moments(x: Array) -> tuple[Array, Array]:
    """Return the means of the rows of a matrix, and of the squares of what differs from them."""
    lanes, (rows, count) = LANES[x.dtype], x.shape
    whole = count // lanes
    parts = [
        _of_steps(x[:, i * lanes : min(i + _STEP, whole) * lanes].reshape(rows, -1, lanes))
        for i in range(0, whole, _STEP)
    ]
    while len(parts) > 1:
        pairs = [_together(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(pairs) * 2 :]
    n, mean, squares = _of_steps(x[:, whole * lanes :, None], divides=True)
    found = n, mean[:, 0], squares[:, 0]
    for number, of_lanes, squares_of_lanes in parts:
        for i in range(lanes):
            found = _together(found, (number, of_lanes[:, i], squares_of_lanes[:, i]))
    return found[1], found[2] / x.dtype.type(count)


_Moments = tuple[int, Array, Array]  # of how many numbers, their mean, the sum of the squares of what differs from it


def _of_steps(x: Array, divides: bool = False) -> _Moments:
    """Return the moments along the middle axis, one number after the other; vectors are not divided by k, but fused."""
    kind = x.dtype.type
    mean = squares = np.zeros((x.shape[0], x.shape[2]), x.dtype)
    for k in range(x.shape[1]):
        far = x[:, k] - mean
        if divides:
            mean = mean + far / kind(k + 1)
            squares = squares + far * (x[:, k] - mean)
        else:
            mean = fused(far, kind(1) / kind(k + 1), mean)
            squares = fused(far, x[:, k] - mean, squares)
    return x.shape[1], mean, squares


def _together(a: _Moments, b: _Moments) -> _Moments:
    """Return the moments of two sets of numbers together."""
    count = a[0] + b[0]
    if not count:
        return a
    kind = a[1].dtype.type
    share, far = kind(b[0]) / kind(count), b[1] - a[1]
    return count, fused(far, share, a[1]), a[2] + fused(far * far * share, kind(a[0]), b[2])
