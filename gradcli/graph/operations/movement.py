"""Movement of elements: views, copies, indexing, and scatters, which add elements at equal indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.construct import (
    Index,
    broadcast,
    concatenate,
    diagonal,
    from_diagonal,
    index,
    inverse,
    reshape,
    scatter,
    sliced,
    sum_to,
    transpose,
)
from gradcli.graph.index_arrays import (
    IndexArray,
    dynamic_scatter,
    dynamic_slice,
    gather,
    groups_of,
    index_add,
    known_integers,
    scatter_add,
    shape_at,
    shifted,
    take,
)
from gradcli.graph.matrices import triangle
from gradcli.graph.node import Node, cast, const, is_const
from gradcli.graph.operation import Operation, defined
from gradcli.graph.shapes import Shape


def basic(key: Index) -> tuple[Any, ...]:
    """Return the index as NumPy takes it: a range that counts down to 0 has no stop that a slice can name."""
    return tuple(slice(k.start, k.stop if k.stop >= 0 else None, k.step) if isinstance(k, range) else k for k in key)


# A result that is not a view of the argument is written into the array `out`, if there is one.


def _broadcast(shape: Shape, x: Array) -> Array:
    return np.broadcast_to(x.reshape((1,) * (len(shape) + 1 - x.ndim) + x.shape), (*shape, x.shape[-1]))


def _diagonal(x: Array) -> Array:
    result = x.diagonal()
    return result.transpose(result.ndim - 1, *range(result.ndim - 1))


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any], out: Array | None) -> Array:
    if out is None:
        return np.zeros(shape, dtype)
    out[...] = 0
    return out


def _from_diagonal(shape: Shape, x: Array, out: Array | None = None) -> Array:
    result = _zeros((*shape, x.shape[-1]), x.dtype, out)
    indices = np.arange(min(shape[:2]))
    result[indices, indices] = x
    return result


def _scatter(
    shape: Shape, keys: tuple[Index, ...], *parts: Array, join: np.ufunc = np.add, out: Array | None = None
) -> Array:
    rows = keys[0][0] if len(keys[0]) == 1 else None
    if out is not None and isinstance(rows, range) and rows.step == 1:
        # The first part goes to neighbouring slices: it is added at once, and -0 becomes 0.
        out[: rows.start] = 0
        out[rows.stop :] = 0
        np.add(parts[0], 0, out=out[rows.start : rows.stop])
        result, keys, parts = out, keys[1:], parts[1:]
    else:
        result = _zeros((*shape, max(p.shape[-1] for p in parts)), np.result_type(*parts), out)
    for key, part in zip(keys, parts, strict=True):
        view = result[basic(key)]
        join(view, part, out=view)
    return result


def _merged(nodes: Sequence[Node]) -> Node:
    """Return the sum of several arrays with parts among zeros, as one with the parts of all."""
    parts = [(key, arg) for n in nodes for key, arg in zip(n.settings[1], n.args, strict=True)]
    return scatter(nodes[0].shape, parts)


def _scatter_add(
    axis: int, indices: IndexArray, size: int, x: Array, join: np.ufunc = np.add, out: Array | None = None
) -> Array:
    return _added(axis, indices.groups, len(indices.shape), size, x, join, out)


def _added(
    axis: int, groups: tuple[Array, Array, Array], rank: int, size: int, x: Array, join: np.ufunc, out: Array | None
) -> Array:
    """Return zeros to which slices are added, those of each group of equal indices; the indices have `rank` axes."""
    result = _zeros((*x.shape[:axis], size, *x.shape[axis + rank :]), x.dtype, out)
    order, starts, distinct = groups
    slices = x.reshape(*x.shape[:axis], order.size, *x.shape[axis + rank :]).take(order, axis=axis)
    at: tuple[Any, ...] = (*(slice(None),) * axis, distinct)
    result[at] = join(result[at], join.reduceat(slices, starts, axis=axis, dtype=x.dtype))  # -0 becomes 0
    return result


# Of indices that are arguments, the arrays have the axis of points too: a single one.  Positions are a tuple too.


def _gather(axis: int, x: Array, indices: Array, out: Array | None = None) -> Array:
    result: Array = x.take(indices[..., 0], axis=axis, out=out, mode="clip")
    return result


def _index_add(
    axis: int, size: int, x: Array, indices: Array, join: np.ufunc = np.add, out: Array | None = None
) -> Array:
    return _added(axis, groups_of(indices[..., 0]), indices.ndim - 1, size, x, join, out)


def _dynamic_slice(key: Index, x: Array, start: Any) -> Array:
    result: Array = x[basic(shifted(key, _position(start)))]
    return result


def _position(start: Any) -> Sequence[int]:
    result: Sequence[int] = start if isinstance(start, tuple) else start[:, 0].tolist()
    return result


def _dynamic_scatter(
    shape: Shape, key: Index, part: Array, start: Any, join: np.ufunc = np.add, out: Array | None = None
) -> Array:
    return _scatter(shape, (shifted(key, _position(start)),), part, join=join, out=out)


def _indexed(key: Index, x: Node, start: Array) -> Node:
    return Node("index", (x,), shape_at(key, x.shape), (shifted(key, start.tolist()),))


def _with_known(static: Callable[..., Node]) -> Callable[..., Node | None]:
    """Return the definition of an operation whose last argument holds integers: where they are known, a static one."""

    def definition(*settings_and_arguments: Any) -> Node | None:
        known = known_integers(settings_and_arguments[-1])
        return None if known is None else static(*settings_and_arguments[:-1], known)

    return definition


def _triangle(op: str, keep: Callable[..., Array]) -> Operation:
    """Return the row of `tril` or `triu`: one triangle of each matrix, with zeros in the other."""

    def move(diagonal: int, x: Array, out: Array | None = None) -> Array:
        result = _zeros(x.shape, x.dtype, out)
        np.copyto(result, x, where=keep(np.ones(x.shape[-3:-1], dtype=bool), diagonal)[..., None])
        return result

    return Operation("move", ("diagonal",), lambda g, y, diagonal, x: [triangle(op, g, diagonal)], move=move)


def same_points(arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays with one number of points: constants have a single one."""
    counts = {a.shape[-1] for a in arrays}
    if len(counts) == 1:
        return list(arrays)
    (points,) = counts - {1}
    return [np.broadcast_to(a, (*a.shape[:-1], points)) for a in arrays]


def _stack(axis: int, *parts: Array, out: Array | None = None) -> Array:
    if not axis and out is not None and out.flags.c_contiguous:
        # Concatenation writes the parts one after the other, without a view with one more axis of each.
        with suppress(ValueError):  # constants have a single point
            return np.concatenate(parts, out=out.reshape(-1, *out.shape[2:])).reshape(out.shape)
    return np.stack(same_points(parts), axis=axis, out=out)


def _concatenate_pullback(g: Node, y: Node, axis: int, *parts: Node) -> list[Node]:
    stops = accumulate(part.shape[axis] for part in parts)
    return [sliced(g, axis, range(stop - p.shape[axis], stop)) for p, stop in zip(parts, stops, strict=True)]


def _rolled(shifts: int, axis: int, x: Node) -> Node:
    n = x.shape[axis]
    start = -shifts % max(1, n)
    return concatenate([sliced(x, axis, part) for part in (range(start, n), range(start))], axis)


def _padded(counts: Sequence[int], x: Node, value: Node) -> Node:
    """Return an array with a number around it; negative counts remove elements."""
    whole = (0,) * (len(x.shape) - len(counts) // 2)
    before, behind = (whole + tuple(counts[k::2][::-1]) for k in (0, 1))
    x = index(x, tuple(range(max(0, -a), n - max(0, -b)) for n, a, b in zip(x.shape, before, behind, strict=True)))
    more = [(max(0, a), max(0, b)) for a, b in zip(before, behind, strict=True)]
    if is_const(value, 0):
        shape = tuple(a + n + b for n, (a, b) in zip(x.shape, more, strict=True))
        key = tuple(range(a, a + n) for n, (a, _) in zip(x.shape, more, strict=True))
        return x if shape == x.shape else scatter(shape, [(key, x)])
    for axis, sizes in enumerate(more):
        first, last = (broadcast(value, (*x.shape[:axis], n, *x.shape[axis + 1 :])) if n else None for n in sizes)
        x = concatenate([part for part in (first, x, last) if part is not None], axis)
    return x


ROWS: dict[str, Operation] = {
    "transpose": Operation(
        "view",
        ("order",),
        lambda g, y, order, x: [transpose(g, inverse(order))],
        move=lambda order, x: x.transpose(*order, x.ndim - 1),
    ),
    "reshape": Operation(
        "view",
        ("shape",),
        lambda g, y, shape, x: [reshape(g, x.shape)],
        move=lambda shape, x: x.reshape(*shape, x.shape[-1]),
    ),
    "broadcast": Operation("view", ("shape",), lambda g, y, shape, x: [sum_to(g, x.shape)], move=_broadcast),
    "index": Operation(
        "view", ("key",), lambda g, y, key, x: [scatter(x.shape, [(key, g)])], move=lambda key, x: x[basic(key)]
    ),
    # From one type of numbers to another: every number stays where it is.
    "cast": Operation("view", ("dtype",), lambda g, y, dtype, x: [cast(g, x.dtype)], move=lambda dtype, x: x, odd=True),
    "diagonal": Operation("view", pullback=lambda g, y, x: [from_diagonal(g, x.shape)], move=_diagonal),
    "from_diagonal": Operation("move", ("shape",), lambda g, y, shape, x: [diagonal(g)], move=_from_diagonal),
    "scatter": Operation(
        "scatter",
        ("shape", "keys"),
        lambda g, y, shape, keys, *parts: [index(g, key) for key in keys],
        move=_scatter,
        merged=_merged,
    ),
    "take": Operation(
        "move",
        ("axis", "indices"),
        lambda g, y, axis, indices, x: [scatter_add(g, axis, indices, x.shape[axis])],
        move=lambda axis, indices, x, out=None: x.take(indices.numbers, axis=axis, out=out, mode="clip"),
    ),
    "scatter_add": Operation(
        "scatter",
        ("axis", "indices", "size"),
        lambda g, y, axis, indices, size, x: [take(g, axis, indices)],
        move=_scatter_add,
    ),
    # Indices and positions that vary from call to call are arguments; with constant ones these are the rows above.
    "gather": Operation(
        "move",
        ("axis",),
        lambda g, y, axis, x, at: [index_add(g, axis, at, x.shape[axis]), const(0, at.shape)],
        definition=_with_known(lambda axis, x, at: take(x, axis, IndexArray.of(at))),
        move=_gather,
        linear=(0,),
    ),
    "index_add": Operation(
        "scatter",
        ("axis", "size"),
        lambda g, y, axis, size, x, at: [gather(g, axis, at), const(0, at.shape)],
        definition=_with_known(lambda axis, size, x, at: scatter_add(x, axis, IndexArray.of(at), size)),
        move=_index_add,
        linear=(0,),
    ),
    "dynamic_slice": Operation(
        "view",
        ("key",),
        lambda g, y, key, x, start: [dynamic_scatter(g, key, start, x.shape), const(0, start.shape)],
        definition=_with_known(_indexed),
        move=_dynamic_slice,
        linear=(0,),
    ),
    "dynamic_scatter": Operation(
        "scatter",
        ("shape", "key"),
        lambda g, y, shape, key, part, start: [dynamic_slice(g, key, start), const(0, start.shape)],
        definition=_with_known(lambda shape, key, part, start: scatter(shape, [(shifted(key, start.tolist()), part)])),
        move=_dynamic_scatter,
        linear=(0,),
    ),
    "segment_sum": Operation(
        "whole",
        ("ids", "n"),
        lambda g, y, ids, n, x: [take(g, 0, ids)],
        definition=lambda ids, n, x: scatter_add(x, 0, ids, n),
        linear=(0,),
    ),
    "roll": defined(_rolled, "shifts", "axis"),
    "pad": defined(_padded, "pad", options={"value": 0}),
    "triu": _triangle("triu", np.triu),
    "tril": _triangle("tril", np.tril),
    "concatenate": Operation(
        "move",
        ("axis",),
        _concatenate_pullback,
        move=lambda axis, *parts, out=None: np.concatenate(same_points(parts), axis=axis, out=out),
    ),
    "stack": Operation(
        "move", ("axis",), lambda g, y, axis, *parts: [sliced(g, axis, i) for i in range(len(parts))], move=_stack
    ),
}
