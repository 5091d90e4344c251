"""Derivatives along a direction without a rule: by finite differences, and by a complex step.

Differences are central, extrapolated, with an estimate of their error, and corners are recognised.  By a complex step,
the derivative of an analytic f is the imaginary part of f(x + ih)/h, in which nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from gradcli.engine.lowering import lower
from gradcli.graph.array import Array
from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

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


_STEP = 1e-20  # relative to what moves
_ROUNDING = 1e-13  # of the result, relative to it
_NEAR = 1e-6  # how far from a finite difference without error the result is believed
# What NumPy computes for complex numbers as its analytic continuation.
_ANALYTIC = {op for op, row in OPERATIONS.items() if row.move is not None} - {"cast"} | frozenset(
    ["input", "const", "add", "sub", "mul", "div", "neg", "identity", "pow", "sqrt", "exp", "expm1", "log", "log1p",
     "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
     "sum", "prod", "max", "min", "cumsum", "cumprod", "matmul", "einsum", "det", "inv", "solve"]
)  # fmt: skip


def is_analytic(wanted: Iterable[Node]) -> bool:
    """Return whether all operations are analytic, and NumPy has them for complex numbers.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> is_analytic([elementwise("sin", x) / x]), is_analytic([elementwise("abs", x)])
    (True, False)
    """
    wanted = list(wanted)
    simpler = lower(scheduled(wanted))
    return _ANALYTIC.issuperset(n.op for n in scheduled(simpler[n] for n in wanted))


@np.errstate(all="ignore")
def refined(function: Callable[[Array], Array], difference: Difference, at: Array, direction: Array) -> Difference:
    """Return finite differences with those of a complex step in their place, wherever the two agree.

    They do not where the function is not analytic, or cut open: log at -1, for one.  `function`, `at` and `direction`
    are as for `along`.  Source: Squire and Trapp, "Using complex variables to estimate derivatives of real functions"
    (SIAM Review 40, 1998).

    >>> from gradcli.engine.differences import along
    >>> at, one = np.array([[2.0]]), np.ones((1, 1))
    >>> refined(np.exp, along(np.exp, at, one), at, one).value == np.exp(2.0)
    array([[ True]])
    """
    step = np.exp2(np.floor(np.log2(_STEP * step_size(at, direction))))  # a division by it rounds nothing
    exact = function(at + 1j * step * direction).imag / step
    near = np.abs(exact - difference.value) <= 10 * difference.error + _NEAR * np.abs(difference.value)
    error = np.where(near, np.minimum(difference.error, _ROUNDING * np.abs(exact)), difference.error)
    return replace(difference, value=np.where(near, exact, difference.value), error=error)
