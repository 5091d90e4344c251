"""Finite differences of what a claim is about: the witness that knows no rule of differentiation."""

from __future__ import annotations

import numpy as np

from gradcli.engine.complex_step import is_analytic, refined
from gradcli.engine.differences import Difference, along, step_size
from gradcli.engine.evaluate import values_of
from gradcli.engine.rounding import UNIT
from gradcli.explain.check.claim import Case, numbers, term_numbers
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph, scheduled

_NUMBERS = 4_000_000  # that are computed for the differences of some points: 32 MB
_STEPS = 11  # points at which a difference evaluates the system
_SURE = 1e-6  # the relative error of a difference whose estimated error is 0
_DOUBTS = 10.0  # times the estimate of its error, which is rarely exceeded
_TRUSTED = 1e-3  # the relative error of a difference that decides nothing
_ROUNDED = 1e4  # times what rounding makes of a difference: no error, however small the difference is


def cost(case: Case) -> int:
    """Return how many numbers are worked out for the differences by every variable at a point."""
    return _STEPS * case.width * sum(n.size for n in scheduled([case.cut[0]]))


def agreement(case: Case, points: Named, truth: Array, seed: int) -> tuple[Array, Array]:
    """Return at which points differences agree with the derivative `truth`, and at which the base has a corner.

    They are taken by every variable, so that every entry has its own; where that is too much, once along a random
    direction, in which each entry has its part.
    """
    count = truth.shape[-1]
    if not count or not truth.size:
        return np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    if count * cost(case) <= _NUMBERS:
        directions: Array = np.repeat(np.eye(case.width)[:, :, None], count, axis=2)
    else:
        signs = np.random.default_rng(seed).integers(0, 2, (case.width, 1, count))
        directions = (2.0 * signs - 1) * _sizes(case, points)[:, None]
    repeats = directions.shape[1]
    repeated = {name: np.tile(value, repeats) for name, value in points.items()}
    result = differences(case, repeated, directions.reshape(case.width, -1))
    parts = truth.reshape(case.base.size, case.width, count)
    expected = np.einsum("rcp,cdp->rdp", parts, directions).reshape(case.base.size, -1)
    size = np.einsum("rcp,cdp->rdp", np.abs(parts), np.abs(directions)).reshape(case.base.size, -1)
    agree = _agree(result, expected, size)
    if not agree.all():
        terms = term_numbers(case.graph, points, [case.truth])[0].reshape(parts.shape)
        rounding = UNIT * np.einsum("rcp,cdp->rdp", terms, np.abs(directions)).reshape(case.base.size, -1)
        agree = _agree(result, expected, size, rounding)
    corner = result.corner.reshape(-1, repeats, count)
    return np.all(agree.reshape(corner.shape), axis=(0, 1)), np.any(corner, axis=(0, 1))


@np.errstate(all="ignore")
def _agree(measured: Difference, expected: Array, size: Array, rounding: Array | float = 0.0) -> Array:
    """Return where finite differences agree with `expected`, a sum of numbers of that size with that rounding error."""
    least = measured.rounding + rounding
    off = np.abs(measured.value - expected)
    trusted = measured.error <= np.maximum(_TRUSTED * np.maximum(size, measured.slope), _ROUNDED * least)
    return np.asarray(trusted & (off <= _SURE * size + _DOUBTS * measured.error + least))


def _sizes(case: Case, points: Named) -> Array:
    """Return the size of each variable of the claim at points: of one that is 0, that of the largest."""
    (at,) = numbers(case.graph, points, [case.by])
    whole = step_size(at, np.ones_like(at))
    at = np.abs(at[case.columns])
    return np.where(at > 0, at, whole)


def differences(case: Case, points: Named, directions: Array) -> Difference:
    """Return the differences of all elements of the base along a direction at each point.

    `directions` is of shape (variables of the claim, points).  Where the base is made of analytic functions alone, a
    complex step takes the place of the difference that it agrees with.
    """
    y, x = case.cut
    count = directions.shape[-1]
    (at,) = numbers(case.graph, points, [case.by])
    whole = np.zeros_like(at)
    whole[case.columns] = directions
    graph = Graph.of({**case.graph.inputs, "\0by": x}, {"": y})

    def function(moved: Array) -> Array:
        repeat = moved.shape[-1] // count
        others = {name: np.tile(value, repeat) for name, value in points.items()}
        result = values_of(graph, others | {"\0by": moved.reshape((*x.shape, -1))}, [y])[y]
        return np.asarray(np.broadcast_to(result, (*y.shape, moved.shape[-1])).reshape(y.size, -1))

    def terms() -> Array:
        return term_numbers(case.graph, points, [case.base])[0]

    result = along(function, at, whole, terms)
    return refined(function, result, at, whole) if is_analytic([y]) else result


def difference(case: Case, point: Named, entry: int) -> tuple[float, float]:
    """Return the difference of one entry of the claim at one point, and about how far it may be off."""
    direction = np.zeros((case.width, 1))
    direction[entry % case.width] = 1
    result = differences(case, {name: value[..., None] for name, value in point.items()}, direction)
    row = entry // case.width
    return float(result.value[row, 0]), float(result.error[row, 0])
