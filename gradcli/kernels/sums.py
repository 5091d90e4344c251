"""How PyTorch's kernels add: one number after the other, in lanes, and in a cascade.

A vector has several numbers beside one another; where vectors are added one after the other, each place is a lane, and
at the end the lanes are folded, half upon half.  A cascade adds vectors four beside one another, and after sixteen of
them a sum goes a level up, where the next sixteen are waited for.  All other kernels are told in these words.
Source: PyTorch's numbers on a processor with AVX2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.kernels.rounding import Array, fused

LANES = {np.dtype(np.float32): 8, np.dtype(np.float64): 4}
_BESIDE = 4
_STEP = 16
_LEVELS = 4


def in_order(terms: Any) -> Array:
    """Return the sum along the first axis, one number after the other.

    >>> float(in_order(np.array([1e16, 1.0, -1e16, 1.0])))
    1.0
    """
    terms = np.asarray(terms)
    if terms.flags.c_contiguous and math.prod(terms.shape[1:]) > 1:
        return np.add.reduce(terms, axis=0)  # type: ignore[no-any-return]  # row by row, and sooner
    return np.add.accumulate(terms, axis=0)[-1]  # type: ignore[no-any-return]


def products_in_order(a: Array, b: Array) -> Any:
    """Return the sum of products along the first axis, each added with one rounding."""
    found = np.zeros_like(a[0])
    for x, y in zip(a, b, strict=True):
        found = fused(x, y, found)
    return found


def in_lanes(terms: Array, width: int) -> tuple[Array, Array]:
    """Return the sum of each lane of so many along the first axis, and the terms behind whole vectors."""
    whole = len(terms) - len(terms) % width
    return in_order(terms[:whole].reshape(-1, width, *terms.shape[1:])), terms[whole:]


def folded(lanes: Array) -> Array:
    """Return the sum of lanes: one half and the other, until one is left."""
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]  # type: ignore[no-any-return]


def sum_along(axis: int, x: Array, vector: int = 32, by: Array | None = None) -> Array:
    """Return the sums along an axis that a kernel needs for itself: of the last axis in lanes, which are folded.

    A lane is a number of a vector of so many bytes.  With factors `by` it is the products that are added, those behind
    whole vectors with one rounding.
    """
    if not x.shape[axis]:
        return x.sum(axis, keepdims=True)  # type: ignore[no-any-return]
    first, *factors = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in ((x,) if by is None else (x, by)))
    rows = first * factors[0] if factors else first
    width = vector // x.itemsize if axis == x.ndim - 2 else 1
    if len(rows) < width or width == 1:
        return np.expand_dims(in_order(rows), axis)
    lanes, rest = in_lanes(rows, width)
    some, left = lanes[: len(rest)], slice(len(rows) - len(rest), None)
    some[...] = fused(first[left], factors[0][left], some) if factors else some + rest
    # Lanes of float64 are added one after the other.
    return np.expand_dims(folded(lanes) if x.itemsize == 4 else in_order(lanes), axis)


def norms(axes: tuple[int, ...], x: Array) -> Array:
    """Return the norms over axes: of rows, lanes one after the other, a four behind them, and the rest fused."""
    if not x.size or not x.flags.c_contiguous or axes != tuple(range(x.ndim - 1 - len(axes), x.ndim - 1)):
        return np.sqrt(np.add.reduce(x * x, axis=axes))  # type: ignore[no-any-return]
    terms = np.moveaxis(x.reshape(*x.shape[: x.ndim - 1 - len(axes)], -1), -1, 0)
    lanes, rest = in_lanes(np.ascontiguousarray(terms * terms), 32 // x.itemsize)
    fours = len(rest) - len(rest) % 4
    found = in_order([*lanes, *rest[:fours]])
    for row in terms[len(terms) - len(rest) + fours :]:
        found = fused(row, row, found)
    return np.sqrt(found)[..., None]


def sums(axes: tuple[int, ...], x: Array) -> Array:
    """Return the sums over axes, in a cascade; the last axis of the array is that of points, of which there is one."""
    lanes = LANES.get(x.dtype)
    if lanes is None or not axes or not x.size or not x.flags.c_contiguous:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    if axes[-1] - axes[0] != len(axes) - 1:
        return _of_apart(axes, x) if axes[-1] == x.ndim - 2 else x.sum(axis=axes)
    shape = x.shape[: axes[0]] + x.shape[axes[-1] + 1 :]
    count, inner = math.prod(x.shape[axes[0] : axes[-1] + 1]), math.prod(x.shape[axes[-1] + 1 :])
    if count < _BESIDE:
        return x.sum(axis=axes)  # type: ignore[no-any-return]
    rows = x.reshape(-1, count, inner)
    found = _along(rows[..., 0], lanes) if inner == 1 else _across(rows, lanes)
    return found.reshape(shape)


def _of_apart(axes: tuple[int, ...], x: Array) -> Array:
    """Return sums over axes with others in between: of the last ones first, and then one sum after the other."""
    near = [a for i, a in enumerate(axes) if axes[-1] - a == len(axes) - 1 - i]
    each, far = sums(tuple(near), x), axes[: len(axes) - len(near)]
    rows = np.moveaxis(each, far, range(len(far)))
    return in_order(rows.reshape(-1, *rows.shape[len(far) :]))


def _along(x: Array, lanes: int) -> Array:
    """Return the sum of each row of numbers that stand side by side."""
    count = x.shape[1]
    if count < lanes:
        return _four_beside(x.T)
    whole = count - count % lanes
    vector = _four_beside(x[:, :whole].reshape(len(x), -1, lanes).swapaxes(0, 1))
    # The rest one after the other, then the lanes.
    return in_order(np.concatenate([x[:, whole:], vector], axis=1).T if whole < count else vector.T)


def _across(x: Array, lanes: int) -> Array:
    """Return the sums over the middle axis: of as many columns at once as four vectors have."""
    rows, columns = x.swapaxes(0, 1), x.shape[2]
    together = _BESIDE * (lanes if columns >= lanes else 1)
    whole = columns - columns % together
    parts = [_cascade(rows[..., :whole])] if whole else []
    parts += [_four_beside(rows[..., whole:])] if whole < columns else []
    return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]


def _four_beside(rows: Array) -> Array:
    """Return the sum of rows, of which four partial sums are kept."""
    whole = len(rows) - len(rows) % _BESIDE
    parts = _cascade(rows[:whole].reshape(whole // _BESIDE, _BESIDE, *rows.shape[1:]))
    return in_order(np.concatenate([parts[:1], rows[whole:], parts[1:]]) if whole < len(rows) else parts)


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
    return in_order([*levels, np.add.reduce(rows, axis=0)])
