"""Operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.calls import call_of, definition_of
from gradcli.graph.construct import broadcast, concatenate, index, reshape, sliced, transpose, where
from gradcli.graph.index_arrays import scatter_add
from gradcli.graph.matrices import triangle
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import check_size, size_of
from gradcli.graph.windows import Window, flat_positions
from gradcli.onnx.register import operator
from gradcli.onnx.values import axis_of, gather, integers, lift


@operator("Reshape", since=5)
def _reshape(x: Node, shape: Array, *, allowzero: int = 0) -> Node:
    sizes = integers(shape)
    if not allowzero:
        if any(n == 0 and i >= len(x.shape) for i, n in enumerate(sizes)):
            raise InputError(f"the shape {sizes} copies a size that shape {x.shape} does not have")
        sizes = tuple(x.shape[i] if n == 0 else n for i, n in enumerate(sizes))
    return reshape(x, sizes)


@operator("Flatten")
def _flatten(x: Node, *, axis: int = 1) -> Node:
    axis = axis_of(axis, len(x.shape)) if axis != len(x.shape) else axis
    return reshape(x, (size_of(x.shape[:axis]), size_of(x.shape[axis:])))


@operator("Transpose")
def _transpose(x: Node, *, perm: Any = None) -> Node:
    rank = len(x.shape)
    return transpose(x, tuple(axis_of(a, rank) for a in perm) if perm is not None else tuple(range(rank)[::-1]))


@operator("Squeeze")
def _squeeze(x: Node, axes: Array | None = None) -> Node:
    chosen = {axis_of(a, len(x.shape)) for a in integers(axes)} or {i for i, n in enumerate(x.shape) if n == 1}
    if any(x.shape[i] != 1 for i in chosen):
        raise InputError(f"an axis of shape {x.shape} that is squeezed is not of size 1")
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in chosen])


@operator("Unsqueeze")
def _unsqueeze(x: Node, axes: Array) -> Node:
    rank = len(x.shape) + axes.size
    new = {axis_of(a, rank) for a in integers(axes)}
    if len(new) < axes.size:
        raise InputError(f"an axis is added twice: {integers(axes)}")
    sizes = iter(x.shape)
    return reshape(x, [1 if i in new else next(sizes) for i in range(rank)])


@operator("Concat")
def _concat(*parts: Node, axis: int = 1) -> Node:
    return concatenate(parts, axis_of(axis, len(parts[0].shape)))


@operator("Split")
def _split(
    x: Node, split: Array | None = None, *, axis: int = 0, num_outputs: int = 0, outputs: int = 1
) -> tuple[Node, ...]:
    if num_outputs not in (0, outputs):
        raise InputError(f"an axis is not split into {num_outputs} parts, of which {outputs} have names")
    axis = axis_of(axis, len(x.shape))
    n = x.shape[axis]
    each = -(-n // outputs)
    sizes = integers(split) or (*(each,) * (outputs - 1), n - each * (outputs - 1))
    if sum(sizes) != n or min(sizes) < 0:
        raise InputError(f"an axis of size {n} is not split into {sizes}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(sliced(x, axis, range(a, a + size)) for a, size in zip(starts, sizes, strict=True))


@operator("Slice")
def _slice(x: Node, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Node:
    key = [range(n) for n in x.shape]
    along = integers(axes) if axes is not None else tuple(range(starts.size))
    by = integers(steps) if steps is not None else (1,) * starts.size
    if len({starts.size, ends.size, len(along), len(by)}) > 1 or 0 in by:
        raise InputError("`Slice` takes a start, an end and a step other than 0 for each axis")
    for start, end, axis, step in zip(integers(starts), integers(ends), along, by, strict=True):
        axis = axis_of(axis, len(key))
        key[axis] = range(*slice(start, end, step).indices(x.shape[axis]))
    return index(x, tuple(key))


@operator("Expand")
def _expand(x: Node, shape: Array) -> Node:
    sizes = integers(shape)
    try:
        return broadcast(x, np.broadcast_shapes(x.shape, sizes))
    except ValueError:
        raise InputError(f"shape {x.shape} does not expand to {sizes}") from None


@operator("Tile", since=6)
def _tile(x: Node, repeats: Array) -> Node:
    times = integers(repeats)
    if len(times) != len(x.shape) or any(n < 0 for n in times):
        raise InputError(f"`Tile` takes a number for each axis of shape {x.shape}, not {times}")
    check_size(tuple(n * k for n, k in zip(x.shape, times, strict=True)))
    apart = reshape(x, [size for n in x.shape for size in (1, n)])
    apart = broadcast(apart, tuple(size for pair in zip(times, x.shape, strict=True) for size in pair))
    return reshape(apart, [n * k for n, k in zip(x.shape, times, strict=True)])


# Padding


@operator("Pad")
def _pad(x: Node, pads: Array, value: Node | None = None, axes: Array | None = None, *, mode: str = "constant") -> Node:
    along = integers(axes) if axes is not None else tuple(range(len(x.shape)))
    half, counts = len(along), integers(pads)
    if len(counts) != 2 * half:
        raise InputError(f"`Pad` takes two numbers for each of {half} axes, not {len(counts)}")
    for axis, before, behind in zip(along, counts[:half], counts[half:], strict=True):
        axis = axis_of(axis, len(x.shape))
        n = x.shape[axis]
        x = sliced(x, axis, range(max(0, -before), n - max(0, -behind)))
        before, behind = max(0, before), max(0, behind)
        check_size((*x.shape[:axis], x.shape[axis] + before + behind, *x.shape[axis + 1 :]))
        if mode == "constant":
            x = _with_constant(x, axis, before, behind, value)
        elif mode in ("reflect", "edge", "wrap"):
            order: Any = np.pad(np.arange(x.shape[axis]), (before, behind), mode=mode)  # type: ignore[call-overload]
            x = lift(gather(x, axis, order)) if before or behind else x
        else:
            raise InputError(f"`Pad` has no mode `{mode[:40]}`")
    return x


def _with_constant(x: Node, axis: int, before: int, behind: int, value: Node | None) -> Node:
    fill = const(0, (), x.dtype) if value is None else reshape(value, ())
    counts = (*(0,) * 2 * (len(x.shape) - 1 - axis), before, behind)
    return definition_of(call_of("pad", (counts,), x, fill))


# Blocks of pixels, triangles, sequences


@operator("DepthToSpace")
def _depth_to_space(x: Node, *, blocksize: int, mode: str = "DCR") -> Node:
    n, c, h, w = x.shape
    b = blocksize
    if b < 1 or c % (b * b):
        raise InputError(f"{c} channels cannot be split into blocks of {b}×{b}")
    if mode == "DCR":
        x = transpose(reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = transpose(reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(x, (n, c // b**2, h * b, w * b))


@operator("SpaceToDepth")
def _space_to_depth(x: Node, *, blocksize: int, mode: str = "DCR") -> Node:
    n, c, h, w = x.shape
    b = blocksize
    if b < 1 or h % b or w % b:
        raise InputError(f"{h}×{w} pixels cannot be split into blocks of {b}×{b}")
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    x = transpose(reshape(x, (n, c, h // b, b, w // b, b)), order)
    return reshape(x, (n, c * b * b, h // b, w // b))


@operator("Trilu")
def _trilu(x: Node, k: Array | None = None, *, upper: int = 1) -> Node:
    n, m = x.shape[-2:]
    diagonal = 0 if k is None else min(max(int(k), -n), m)
    return triangle("triu" if upper else "tril", x, diagonal)


@operator("ReverseSequence")
def _reverse_sequence(x: Node, lengths: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Node:
    rest = [i for i in range(len(x.shape)) if i not in (batch_axis, time_axis)]
    order = (batch_axis, time_axis, *rest)
    moved = transpose(x, order)
    if lengths.shape != moved.shape[:1]:
        raise InputError(f"lengths of shape {lengths.shape} do not fit {moved.shape[0]} sequences")
    rows = []
    for k, length in enumerate(integers(lengths)):
        indices = np.r_[np.arange(length)[::-1], np.arange(length, moved.shape[1])]
        rows.append(lift(gather(sliced(moved, 0, range(k, k + 1)), 1, indices)))
    return transpose(concatenate(rows, 0), tuple(order.index(i) for i in range(len(order))))


@operator("Compress")
def _compress(x: Node, condition: Array, *, axis: int | None = None) -> Node:
    x, along = (reshape(x, (size_of(x.shape),)), 0) if axis is None else (x, axis_of(axis, len(x.shape)))
    return lift(gather(x, along, np.flatnonzero(condition.reshape(-1))))


@operator("Col2Im")
def _col_to_im(
    x: Node, image_shape: Array, block_shape: Array, *, dilations: Any = None, pads: Any = None, strides: Any = None
) -> Node:
    image, block = integers(image_shape), integers(block_shape)
    rank = len(image)
    pads = tuple(pads or (0,) * 2 * rank)
    rows = zip(block, strides or (1,) * rank, dilations or (1,) * rank, pads, pads[rank:], strict=False)
    windows = [Window(k, s, before, d, more=behind - before) for k, s, d, before, behind in rows]
    whole = check_size(tuple(n + a + b for n, a, b in zip(image, pads, pads[rank:], strict=False)))
    positions = [w.positions(n) + w.padding for w, n in zip(windows, image, strict=True)]
    n, channels = x.shape[0], x.shape[1] // size_of(block)
    values = reshape(x, (n, channels, *block, *map(len, positions)))
    last = (*range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))  # the elements of a window come last
    placed = scatter_add(transpose(values, (0, 1, *last)), 2, flat_positions(positions, whole), size_of(whole))
    key = (range(n), range(channels), *(range(a, a + size) for a, size in zip(pads, image, strict=False)))
    return index(reshape(placed, (n, channels, *whole)), key)


@operator("OneHot")
def _one_hot(indices: Array, depth: Array, values: Node, *, axis: int = -1) -> Node:
    count = integers(depth.astype(np.int64))[0]
    check_size((*indices.shape, count))
    axis = axis_of(axis, indices.ndim + 1)
    hot = np.expand_dims(np.asarray(indices).astype(np.int64) % count, axis)
    inside = np.expand_dims((indices >= -count) & (indices < count), axis)
    classes = np.arange(count).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    mask = (hot == classes) & inside
    return where(lift(mask), index(values, (1,)), index(values, (0,)))
