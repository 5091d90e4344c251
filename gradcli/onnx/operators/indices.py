"""Operators that take elements at indices, or put them there; along one axis, the indices may be computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.construct import call
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node
from gradcli.graph.shapes import check_size
from gradcli.onnx.register import operator
from gradcli.onnx.values import DEPENDS, KNOWN, Value, axis_of, gather, lift


@operator("Gather")
def _gather(x: Node, indices: Value, *, axis: int = 0) -> Value:
    return gather(x, axis, indices)


def _flat(indices: list[Array], shape: tuple[int, ...]) -> Array:
    """Return indices of elements as those of the flattened array; negative ones count from the end of their axis."""
    inside = [np.where(i < 0, i + n, i) for i, n in zip(indices, shape, strict=True)]
    if any(i.size and (i.min() < 0 or i.max() >= n) for i, n in zip(inside, shape, strict=True)):
        raise InputError(f"an index is outside of an array of shape {shape}")
    return np.asarray(np.ravel_multi_index(tuple(inside), shape)) if shape else np.zeros((), np.int64)


def _elements(x: Node, flat_indices: Array) -> Node:
    """Return the elements at indices of the flattened array."""
    check_size(flat_indices.shape)
    return take(construct.reshape(x, (x.size,)), 0, IndexArray.of(flat_indices))


def _along(indices: Array, axis: int, shape: tuple[int, ...]) -> Array:
    sparse: Any = np.indices(indices.shape, sparse=True)
    grid: list[Array] = [np.broadcast_to(g, indices.shape) for g in sparse]
    grid[axis] = indices
    return _flat(grid, shape)


@operator("GatherElements")
def _gather_elements(x: Node, indices: Value, *, axis: int = 0) -> Node:
    axis = axis_of(axis, len(x.shape))
    if isinstance(indices, Node):
        chosen, order = _chosen(indices, x.shape, axis)
        lead = [range(n) for n in indices.shape]
        lead[axis] = range(x.shape[axis])
        rows = construct.transpose(construct.index(x, tuple(lead)), order)
        rows = construct.reshape(rows, (*rows.shape[:-1], 1, rows.shape[-1]))
        found = construct.reduce("sum", construct.where(chosen, rows, 0), (len(chosen.shape) - 1,))
        return construct.transpose(found, tuple(np.argsort(order).tolist()))
    return _elements(x, _along(indices, axis, x.shape))


def _chosen(indices: Node, shape: tuple[int, ...], axis: int) -> tuple[Node, tuple[int, ...]]:
    """Return which element of the axis each index means, along a last axis, and the order that moves the axis there.

    The indices are computed, so all elements of the axis are compared with them.
    """
    if len(indices.shape) != len(shape) or any(
        m > n for i, (m, n) in enumerate(zip(indices.shape, shape, strict=True)) if i != axis
    ):
        raise InputError(f"indices of shape {indices.shape} do not fit an array of shape {shape}")
    n = shape[axis]
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    moved = construct.transpose(indices, order)
    check_size((*moved.shape, n))
    each = construct.reshape(moved, (*moved.shape, 1))
    return construct.equal(construct.where(each < 0, each + n, each), lift(np.arange(n))), order


def _of_rows(indices: Array, shape: tuple[int, ...], batch: int = 0) -> Array:
    """Return for each row of indices, and of what follows it, the index in the flattened array."""
    depth = indices.shape[-1]
    if batch + depth > len(shape):
        raise InputError(f"{depth} indices are too many for an array of shape {shape}")
    rest = shape[batch + depth :]
    lead = indices.shape[:-1]
    whole = (*lead, *rest)
    check_size(whole)
    grid: Any = np.indices(whole, sparse=True) if whole else []
    parts = [np.broadcast_to(g, whole) for g in grid]
    index = [np.broadcast_to(indices[..., k].reshape(*lead, *(1,) * len(rest)), whole) for k in range(depth)]
    return _flat([*parts[:batch], *index, *parts[len(lead) :]], shape)


@operator("GatherND")
def _gather_nd(x: Node, indices: Array, *, batch_dims: int = 0) -> Node:
    return _elements(x, _of_rows(indices, x.shape, batch_dims))


_JOINS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": lambda a, b: call("maximum", a, b),
    "min": lambda a, b: call("minimum", a, b),
}


def _scattered(x: Node, flat_indices: Array, updates: Node, reduction: str) -> Node:
    """Return an array in which updates are put at indices of the flattened array, or joined with what is there."""
    if updates.shape != flat_indices.shape:
        raise InputError(f"updates of shape {updates.shape} do not fit indices of {flat_indices.shape} elements")
    flat, new = (construct.reshape(v, (v.size,)) for v in (x, updates))
    flat_indices = flat_indices.reshape(-1)
    if reduction == "none":
        last = np.arange(flat.size)
        last[flat_indices] = flat.size + np.arange(len(flat_indices))  # of several updates of one element, the last
        return construct.reshape(_elements(construct.concatenate([flat, new], 0), last), x.shape)
    if reduction not in _JOINS:
        raise InputError(f"there is no reduction `{reduction[:40]}`")
    order = np.argsort(flat_indices, kind="stable")
    ranks = np.empty(len(flat_indices), int)
    starts = np.searchsorted(flat_indices[order], flat_indices[order])
    ranks[order] = np.arange(len(flat_indices)) - starts
    for k in range(int(ranks.max(initial=-1)) + 1):  # once for each update of the same element
        chosen = np.flatnonzero(ranks == k)
        joined = _JOINS[reduction](_elements(flat, flat_indices[chosen]), _elements(new, chosen))
        last = np.arange(flat.size)
        last[flat_indices[chosen]] = flat.size + np.arange(len(chosen))
        flat = _elements(construct.concatenate([flat, joined], 0), last)
    return construct.reshape(flat, x.shape)


@operator("ScatterND")
def _scatter_nd(x: Node, indices: Array, updates: Node, *, reduction: str = "none") -> Node:
    return _scattered(x, _of_rows(indices, x.shape), updates, reduction)


@operator("ScatterElements", "Scatter")
def _scatter_elements(x: Node, indices: Value, updates: Node, *, axis: int = 0, reduction: str = "none") -> Node:
    axis = axis_of(axis, len(x.shape))
    if isinstance(indices, Node):
        return _scattered_along(x, indices, updates, axis, reduction)
    return _scattered(x, _along(indices, axis, x.shape), updates, reduction)


def _scattered_along(x: Node, indices: Node, updates: Node, axis: int, reduction: str) -> Node:
    """Return an array in which updates are put at computed indices, which differ, or are added there."""
    chosen, order = _chosen(indices, x.shape, axis)
    whole = all(i == axis or m == n for i, (m, n) in enumerate(zip(indices.shape, x.shape, strict=True)))
    if not whole or updates.shape != indices.shape or reduction not in ("none", "add"):
        raise InputError(DEPENDS.format("indices"), hint=KNOWN)
    new = construct.transpose(updates, order)
    axes = (len(order) - 1,)  # of the updates
    put = construct.reduce("sum", construct.where(chosen, construct.reshape(new, (*new.shape, 1)), 0), axes)
    old = construct.transpose(x, order)
    if reduction == "none":
        result = construct.where(construct.reduce("sum", construct.where(chosen, 1, 0), axes) > 0, put, old)
    else:
        result = old + put
    return construct.transpose(result, tuple(np.argsort(order).tolist()))


@operator("TensorScatter")
def _tensor_scatter(x: Node, update: Node, write: Array | None = None, *, axis: int = -2, mode: str = "linear") -> Node:
    axis = axis_of(axis, len(x.shape))
    starts = np.zeros(x.shape[0], np.int64) if write is None else write.reshape(-1)
    at = np.arange(update.shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(x.shape))])
    at = at + starts.reshape([-1 if i == 0 else 1 for i in range(len(x.shape))])
    at = at % x.shape[axis] if mode == "circular" else at
    return _scattered(x, _along(np.broadcast_to(at, update.shape), axis, x.shape), update, "none")
