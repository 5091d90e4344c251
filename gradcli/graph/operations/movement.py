"""Movement: where the elements of an array go.  No number is changed, except where two fall on one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.construct import (
    Index,
    diagonal,
    from_diagonal,
    index,
    inverse,
    reshape,
    scatter,
    sum_to,
    transpose,
)
from gradcli.graph.matrices import triangle
from gradcli.graph.node import Node, cast
from gradcli.graph.operation import Operation
from gradcli.graph.places import Places, put, take
from gradcli.graph.shapes import Shape


def basic(key: Index) -> tuple[Any, ...]:
    """Return the index as NumPy takes it: a range that counts down to 0 has no stop that a slice can name."""
    return tuple(slice(k.start, k.stop if k.stop >= 0 else None, k.step) if isinstance(k, range) else k for k in key)


def _broadcast(shape: Shape, x: Array) -> Array:
    return np.broadcast_to(x.reshape((1,) * (len(shape) + 1 - x.ndim) + x.shape), (*shape, x.shape[-1]))


def _diagonal(x: Array) -> Array:
    return np.moveaxis(np.diagonal(x, axis1=0, axis2=1), -1, 0)


def _from_diagonal(shape: Shape, x: Array) -> Array:
    result = np.zeros((*shape, x.shape[-1]), dtype=x.dtype)
    places = np.arange(min(shape[:2]))
    result[places, places] = x
    return result


def _scatter(shape: Shape, keys: tuple[Index, ...], *parts: Array, join: np.ufunc = np.add) -> Array:
    points = max(p.shape[-1] for p in parts)
    result = np.zeros((*shape, points), dtype=np.result_type(*parts))
    for key, part in zip(keys, parts, strict=True):
        result[basic(key)] = join(result[basic(key)], part)
    return result


def _put(axis: int, places: Places, size: int, x: Array, join: np.ufunc = np.add) -> Array:
    result = np.zeros((*x.shape[:axis], size, *x.shape[axis + len(places.shape) :]), dtype=x.dtype)
    at, sums = grouped(axis, places, x, join)
    result[at] = sums
    return result


def grouped(axis: int, places: Places, x: Array, join: np.ufunc = np.add) -> tuple[tuple[Any, ...], Array]:
    """Return an index of the distinct places, and for each of them what all the slices that go there are together."""
    order, starts, distinct = places.groups
    rank = len(places.shape)
    slices = x.reshape(*x.shape[:axis], places.numbers.size, *x.shape[axis + rank :]).take(order, axis=axis)
    return (*(slice(None),) * axis, distinct), np.asarray(join.reduceat(slices, starts, axis=axis, dtype=x.dtype))


def _triangle(op: str, keep: Callable[..., Array]) -> Operation:
    """Return the row of what keeps one triangle of each matrix and fills the other with zeros."""

    def move(diagonal: int, x: Array) -> Array:
        mask = keep(np.ones(x.shape[-3:-1], dtype=bool), diagonal)
        return np.where(mask[..., None], x, 0)

    return Operation(
        "move",
        settings=("diagonal",),
        move=move,
        pullback=lambda g, y, diagonal, x: [triangle(op, g, diagonal)],
    )


def same_points(arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays with one number of points: constants have a single one."""
    counts = {a.shape[-1] for a in arrays}
    if len(counts) == 1:
        return list(arrays)
    return [np.broadcast_to(a, (*a.shape[:-1], max(counts))) for a in arrays]


def _concatenate_pullback(g: Node, y: Node, axis: int, *parts: Node) -> list[Node]:
    passed, start = [], 0
    for part in parts:
        stop = start + part.shape[axis]
        passed.append(index(g, (*map(range, part.shape[:axis]), range(start, stop))))
        start = stop
    return passed


ROWS: dict[str, Operation] = {
    "transpose": Operation(
        "view",
        settings=("order",),
        move=lambda order, x: x.transpose(*order, x.ndim - 1),
        pullback=lambda g, y, order, x: [transpose(g, inverse(order))],
    ),
    "reshape": Operation(
        "view",
        settings=("shape",),
        move=lambda shape, x: x.reshape(*shape, x.shape[-1]),
        pullback=lambda g, y, shape, x: [reshape(g, x.shape)],
    ),
    "broadcast": Operation(
        "view", settings=("shape",), move=_broadcast, pullback=lambda g, y, shape, x: [sum_to(g, x.shape)]
    ),
    "index": Operation(
        "view",
        settings=("key",),
        move=lambda key, x: x[basic(key)],
        pullback=lambda g, y, key, x: [scatter(x.shape, [(key, g)])],
    ),
    # From one type of numbers to another: every number stays where it is.
    "cast": Operation(
        "view", settings=("dtype",), move=lambda dtype, x: x, pullback=lambda g, y, dtype, x: [cast(g, x.dtype)]
    ),
    "diagonal": Operation("view", move=_diagonal, pullback=lambda g, y, x: [from_diagonal(g, x.shape)]),
    "from_diagonal": Operation(
        "move", settings=("shape",), move=_from_diagonal, pullback=lambda g, y, shape, x: [diagonal(g)]
    ),
    "scatter": Operation(
        "scatter",
        settings=("shape", "keys"),
        move=_scatter,
        pullback=lambda g, y, shape, keys, *parts: [index(g, key) for key in keys],
    ),
    "take": Operation(
        "move",
        settings=("axis", "places"),
        move=lambda axis, places, x: x.take(places.numbers, axis=axis),
        pullback=lambda g, y, axis, places, x: [put(g, axis, places, x.shape[axis])],
    ),
    "put": Operation(
        "scatter",
        settings=("axis", "places", "size"),
        move=_put,
        pullback=lambda g, y, axis, places, size, x: [take(g, axis, places)],
    ),
    "triu": _triangle("triu", np.triu),
    "tril": _triangle("tril", np.tril),
    "concatenate": Operation(
        "move",
        settings=("axis",),
        move=lambda axis, *parts: np.concatenate(same_points(parts), axis=axis),
        pullback=_concatenate_pullback,
    ),
    "stack": Operation(
        "move",
        settings=("axis",),
        move=lambda axis, *parts: np.stack(same_points(parts), axis=axis),
        pullback=lambda g, y, axis, *parts: [index(g, (*map(range, g.shape[:axis]), i)) for i in range(len(parts))],
    ),
}
