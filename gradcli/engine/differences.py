"""Finite differences along a direction: central, extrapolated, with an estimate of their error, corners recognised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from gradcli.graph.array import Array

_STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_JUMP = 1e-4  # of the slope, between the two sides of a point, that makes it a corner
_NARROW = 1e-3  # the share of its steps that a difference is taken with where larger ones fail
_EXACT = 1e-6  # the relative error of a difference that needs no better one
_ROUNDED = 1e4  # times the error of rounding at the largest step: an error that no other step makes much smaller
_DOUBTS = 10.0  # times its error: by how much a difference by the smallest step may be off
_FADES = 0.3  # the share of its jump that a smooth function keeps at a tenth of the step, at most


@dataclass(frozen=True)
class Difference:
    """The derivative along a direction, about how far it may be off, and where the function has a corner.

    `rounding` is the least error that rounding causes by any step: no difference can be more accurate.  `slope` is
    the larger of the slopes to both sides by that step: what a derivative that is 0 is small in comparison with.  All
    have the function's shape with the points along the last axis.
    """

    value: Array
    error: Array
    rounding: Array
    slope: Array
    corner: Array


@np.errstate(all="ignore")
def along(
    function: Callable[[Array], Array], at: Array, direction: Array, terms: Callable[[], Array] | None = None
) -> Difference:
    """Return the derivatives of a function at points, each along its direction.

    `at` and `direction` are of shape (inputs, points); the function maps (inputs, N) to (*shape, N) for any N.
    The steps are relative to the size of what moves, so that units do not matter.  `terms` returns how large the terms
    are that the function's values are the sum of, from which their rounding follows; without it these are the values.
    Source: Richardson's extrapolation of central differences; the step is that whose neighbours agree best.

    >>> found = along(lambda x: x[0] ** 3, np.array([[2.0, -1e-20]]), np.ones((1, 2)))
    >>> np.allclose(found.value, [12, 3e-40], rtol=1e-8, atol=0), found.corner.tolist()
    (True, [False, False])
    >>> along(lambda x: abs(x[0]), np.array([[0.0]]), np.ones((1, 1))).corner.tolist()
    [True]
    """
    size = step_size(at, direction)
    result = _with_steps(function, at, direction, size, None)
    if terms is not None and result.corner.any():
        result = _with_steps(function, at, direction, size, terms())
    larger = np.maximum(size, step_size(at, np.ones_like(at)) / np.abs(direction).max(axis=0))
    for other in (larger, _NARROW * size):  # for a function that changes slowly, or in a narrow region
        if _may_gain(result, other / size):
            result = _better(result, _with_steps(function, at, direction, other, None))
    return result


def step_size(at: Array, direction: Array) -> Array:
    """Return the factor of a direction that gives each point a step of its own magnitude, that of the changing inputs.

    Where these are 0, it is the size of the others; where all are, 1.

    >>> step_size(np.array([[1e-9], [5.0]]), np.array([[2.0], [0.0]])).tolist()
    [5e-10]
    """
    whole = np.abs(at).max(axis=0, initial=0)
    moved = np.where(direction != 0, np.abs(at), 0).max(axis=0, initial=0)
    size = np.where(moved > 0, moved, np.where(whole > 0, whole, 1))
    return np.asarray(size / np.maximum(np.abs(direction).max(axis=0, initial=0), 1e-300))


def _may_gain(difference: Difference, times: Array) -> bool:
    """Return whether steps that are multiplied by some numbers may be more accurate somewhere."""
    enough = np.maximum(_EXACT * np.abs(difference.value), _ROUNDED * difference.rounding / times)
    return bool(np.any((times != 1) & (difference.error > enough)))


def _better(difference: Difference, other: Difference) -> Difference:
    """Return the differences, replaced by the others where those are far more accurate."""
    better = other.error < 1e-3 * difference.error
    names = [field.name for field in fields(Difference)]
    return Difference(**{name: np.where(better, getattr(other, name), getattr(difference, name)) for name in names})


def _with_steps(
    function: Callable[[Array], Array], at: Array, direction: Array, size: Array, terms: Array | None
) -> Difference:
    """Return the derivatives at points, by steps that are relative to a size at each."""
    count = at.shape[-1]
    steps = [h * size for h in _STEPS]
    moved = np.concatenate([at, *(at + sign * h * direction for h in steps for sign in (1, -1))], axis=-1)
    values = function(moved)
    parts = [values[..., k * count : (k + 1) * count] for k in range(1 + 2 * len(steps))]
    centre, above, below = parts[0], parts[1::2], parts[2::2]
    level = np.finfo(float).eps * np.maximum(np.abs(centre), 0 if terms is None else terms)
    central = [(a - b) / (2 * h) for a, b, h in zip(above, below, steps, strict=True)]
    extrapolated = [(100 * fine - coarse) / 99 for coarse, fine in pairwise(central)]
    rounding = [
        np.maximum(level, np.finfo(float).eps * (np.abs(a) + np.abs(b))) / h
        for a, b, h in zip(above, below, steps, strict=True)
    ]
    errors = [
        np.abs(fine - coarse) + noise
        for coarse, fine, noise in zip(extrapolated, extrapolated[1:], rounding[2:], strict=False)
    ]
    error = np.nan_to_num(np.stack(errors), nan=np.inf)
    best = error.argmin(axis=0)[None]
    value = np.take_along_axis(np.stack(extrapolated[1:]), best, axis=0)[0]
    least = np.take_along_axis(error, best, axis=0)[0]
    off = np.abs(central[-1] - value)  # large steps agree with each other outside of a narrow region
    least = np.where(off > _DOUBTS * (rounding[-1] + least), off, least)
    slope = np.maximum(np.abs(above[0] - centre), np.abs(centre - below[0])) / steps[0]
    return Difference(value, least, np.min(rounding, axis=0), slope, _corners(centre, above, below, steps, level))


def _corners(
    centre: Array, above: Sequence[Array], below: Sequence[Array], steps: Sequence[Array], level: Array
) -> Array:
    """Return where the two one-sided slopes differ by more than rounding, and no less at smaller steps: a corner."""
    slopes = [((a - centre) / h, (centre - b) / h) for a, b, h in zip(above, below, steps, strict=True)]
    near, nearer = (np.abs(right - left) for right, left in slopes[-2:])
    right, left = slopes[-1]
    scale = np.maximum(np.abs(right), np.abs(left))
    return np.asarray(~((nearer <= _JUMP * scale + 16 * level / steps[-1]) | (nearer <= _FADES * near)))
