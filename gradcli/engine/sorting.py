"""Stable sorting along an axis, NaN last, of arrays whose last axis is the batch."""

from __future__ import annotations

import numpy as np

from gradcli.engine.functions import into
from gradcli.graph.array import Array
from gradcli.graph.construct import Axes


def sort_indices(axis: int, descending: bool, x: Array) -> Array:
    """Return the indices that sort the elements; NaN is the largest.

    >>> sort_indices(0, True, np.array([[2.0], [np.nan], [3.0], [2.0]]))[:, 0]
    array([1, 2, 0, 3])
    """
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Of equal ones the first is to be first: in opposite order, they are sorted and reversed.
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.asarray(x.shape[axis] - 1 - np.flip(backwards, axis))


def sort(axis: int, descending: bool, x: Array, out: Array | None = None) -> Array:
    """Return the elements in order."""
    return into(out, np.take_along_axis(x, sort_indices(axis, descending, x), axis))


def argsort(axis: int, descending: bool, x: Array, out: Array | None = None) -> Array:
    """Return the indices that sort the elements, as float64."""
    return into(out, sort_indices(axis, descending, x).astype(float))


def take_along(axis: int, x: Array, order: Array, out: Array | None = None) -> Array:
    """Return the elements in that order."""
    x, order = np.broadcast_arrays(x, order)
    return into(out, np.take_along_axis(x, order.astype(np.intp), axis))


def put_along(axis: int, x: Array, order: Array, out: Array | None = None) -> Array:
    """Return the elements, each moved to the index that `order` has at its position."""
    x, order = np.broadcast_arrays(x, order)
    result = np.empty(x.shape, dtype=x.dtype) if out is None else out
    np.put_along_axis(result, order.astype(np.intp), x, axis)
    return result


def median(axes: Axes, ties: str, x: Array, out: Array | None = None) -> Array:
    """Return the lower one of the elements in the middle; NaN where one is NaN.

    >>> median((0,), "first", np.array([[4.0], [1.0], [3.0], [2.0]]))
    array([2.])
    """
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    lines = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *kept)
    middle = (len(lines) - 1) // 2
    result = np.partition(lines, middle, axis=0)[middle]
    return into(out, np.where(np.isnan(lines).any(axis=0), np.nan, result))


def median_index(axis: int, x: Array) -> Array:
    """Return the index of the median along an axis, or of the first NaN."""
    middle = np.take(sort_indices(axis, False, x), (x.shape[axis] - 1) // 2, axis=axis)
    lost = np.isnan(x)
    return np.asarray(np.where(lost.any(axis=axis), lost.argmax(axis=axis), middle))
