"""Movement: where the elements of an array go.  No number is changed, except where two fall on one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
from gradcli.graph.node import Node
from gradcli.graph.operation import Array, Operation
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
    places = np.arange(min(shape))
    result[places, places] = x
    return result


def _scatter(shape: Shape, keys: tuple[Index, ...], *parts: Array) -> Array:
    points = max(p.shape[-1] for p in parts)
    result = np.zeros((*shape, points), dtype=np.result_type(*parts))
    for key, part in zip(keys, parts, strict=True):
        result[basic(key)] += part
    return result


def same_points(arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays with one number of points: constants have a single one."""
    points = max(a.shape[-1] for a in arrays)
    return [np.broadcast_to(a, (*a.shape[:-1], points)) for a in arrays]


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
