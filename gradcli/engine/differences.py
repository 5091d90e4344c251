"""Finite differences along a direction: central, extrapolated, with an estimate of their error, corners recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gradcli.graph.array import Array

_STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_JUMP = 1e-4  # of the slope, between the two sides of a point, that makes it a corner
_FADES = 0.3  # the share of its jump that a smooth function keeps at a tenth of the step, at most


@dataclass(frozen=True)
class Difference:
    """The derivative along a direction, about how far it may be off, and where the function has a corner.

    All have the function's shape with the points along the last axis.
    """

    value: Array
    error: Array
    corner: Array


@np.errstate(all="ignore")
def along(function: Callable[[Array], Array], at: Array, direction: Array) -> Difference:
    """Return the derivatives of a function at points, each along its direction.

    `at` and `direction` are of shape (inputs, points); the function maps (inputs, N) to (*shape, N) for any N.
    Source: Richardson's extrapolation of central differences; the step is that whose neighbours agree best.

    >>> found = along(lambda x: x[0] ** 3, np.array([[2.0, -1.0]]), np.ones((1, 2)))
    >>> found.value.round(8).tolist(), bool(found.error.max() < 1e-8), found.corner.tolist()
    ([12.0, 3.0], True, [False, False])
    >>> along(lambda x: abs(x[0]), np.array([[0.0]]), np.ones((1, 1))).corner.tolist()
    [True]
    """
    count = at.shape[-1]
    size = np.maximum(1, np.abs(at).max(axis=0, initial=0)) / np.maximum(
        np.abs(direction).max(axis=0, initial=0), 1e-300
    )
    steps = [h * size for h in _STEPS]
    moved = np.concatenate([at, *(at + sign * h * direction for h in steps for sign in (1, -1))], axis=-1)
    values = function(moved)
    parts = [values[..., k * count : (k + 1) * count] for k in range(1 + 2 * len(steps))]
    centre, above, below = parts[0], parts[1::2], parts[2::2]
    central = [(a - b) / (2 * h) for a, b, h in zip(above, below, steps, strict=True)]
    extrapolated = [(100 * fine - coarse) / 99 for coarse, fine in pairwise(central)]
    rounding = [np.finfo(float).eps * (np.abs(a) + np.abs(b)) / h for a, b, h in zip(above, below, steps, strict=True)]
    errors = [
        np.abs(fine - coarse) + noise
        for coarse, fine, noise in zip(extrapolated, extrapolated[1:], rounding[2:], strict=False)
    ]
    error = np.nan_to_num(np.stack(errors), nan=np.inf)
    best = error.argmin(axis=0)[None]
    value = np.take_along_axis(np.stack(extrapolated[1:]), best, axis=0)[0]
    jumps = [np.abs((a - centre) - (centre - b)) / h for a, b, h in zip(above, below, steps, strict=True)]
    near, nearer = jumps[-2], jumps[-1]
    scale = np.maximum(1, np.abs(value))
    noise = 16 * np.finfo(float).eps * np.abs(centre) / steps[-1]
    corner = ~((nearer <= _JUMP * scale + noise) | (nearer <= _FADES * near))
    return Difference(value, np.take_along_axis(error, best, axis=0)[0], corner)
