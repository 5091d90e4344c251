"""Convolutions and pooling over one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.construct import call, reduce, reshape, scatter
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.graph.node import Node
from gradcli.graph.shapes import check_size, size_of
from gradcli.graph.windows import Window, average, convolve, largest
from gradcli.onnx.register import operator
from gradcli.onnx.values import integers, lift

_MAX_AXES = 3


def _windows(x: Node, sizes: Sequence[int], attributes: dict[str, Any], ceil: int = 0) -> list[Window]:
    """Return the windows along the axes behind the batch and the channels, of the attributes."""
    axes = len(x.shape) - 2
    if not 1 <= axes <= _MAX_AXES or len(sizes) != axes:
        raise InputError(f"windows of {len(sizes)} axes over an array of shape {x.shape} are not supported")
    steps, apart = (tuple(attributes.get(key) or (1,) * axes) for key in ("strides", "dilations"))
    ends = tuple(attributes.get("pads") or (0,) * 2 * axes)
    if {len(steps), len(apart)} != {axes} or len(ends) != 2 * axes or min((*steps, *apart, *sizes)) < 1:
        raise InputError("sizes, strides, dilations and pads must be a positive integer for each axis")
    result = []
    for i, (n, k, s, d) in enumerate(zip(x.shape[2:], sizes, steps, apart, strict=True)):
        before, behind = ends[i], ends[i + axes]
        if (how := attributes.get("auto_pad", "NOTSET")) != "NOTSET":
            needed = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n) if how != "VALID" else 0
            before = needed // 2 if how != "SAME_LOWER" else needed - needed // 2
            behind = needed - before
        check_size((n + before + behind,))
        result.append(Window(k, s, before, d, bool(ceil), behind - before))
    return result


@operator("Conv")
def _conv(
    x: Node, w: Node, b: Node | None = None, *, group: int = 1, kernel_shape: Any = None, **attributes: Any
) -> Node:
    _check_channels(x, w, group, 1)
    return _biased(convolve(x, w, _windows(x, w.shape[2:], attributes), group), b)


def _check_channels(x: Node, w: Node, group: int, axis: int) -> None:
    channels = w.shape[1] * group if axis else w.shape[0]
    if len(w.shape) != len(x.shape) or x.shape[1] != channels or group < 1 or w.shape[0] % group:
        raise InputError(
            f"a weight of shape {w.shape} does not fit an input of shape {x.shape} in {group} group{'s' * (group > 1)}"
        )


def _biased(y: Node, b: Node | None) -> Node:
    return y if b is None else y + reshape(b, (b.size, *(1,) * (len(y.shape) - 2)))


@operator("ConvTranspose")
def _conv_transpose(
    x: Node,
    w: Node,
    b: Node | None = None,
    *,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Any = None,
    output_shape: Any = None,
    **attributes: Any,
) -> Node:
    _check_channels(x, w, group, 0)
    axes = len(x.shape) - 2
    steps, apart = (tuple(attributes.get(key) or (1,) * axes) for key in ("strides", "dilations"))
    more = tuple(output_padding or (0,) * axes)
    ends = list(attributes.get("pads") or (0,) * 2 * axes)
    reach = [d * (k - 1) for k, d in zip(w.shape[2:], apart, strict=True)]
    whole = [(n - 1) * s + r + 1 + m for n, s, r, m in zip(x.shape[2:], steps, reach, more, strict=True)]
    how = attributes.get("auto_pad", "NOTSET")
    if output_shape is not None or how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = list(output_shape or (n * s for n, s in zip(x.shape[2:], steps, strict=True)))[-axes:]
        for i in range(axes):
            total = whole[i] - wanted[i]  # below 0, zeros follow the result
            smaller = total // 2
            ends[i] = smaller if how != "SAME_LOWER" else total - smaller
            ends[i + axes] = total - ends[i]
            if how == "NOTSET":
                ends[i], ends[i + axes] = total - smaller, smaller
    shape = check_size((*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], steps, strict=True))))
    key = (range(shape[0]), range(shape[1]), *(range(0, n, s) for n, s in zip(shape[2:], steps, strict=True)))
    spaced = scatter(shape, [(key, x)])  # the input with zeros between its elements
    spaced = _around(spaced, [(r - ends[i], r - ends[i + axes] + more[i]) for i, r in enumerate(reach)])
    # Each group's inputs become its outputs, and each kernel is reversed.
    inputs, outputs = x.shape[1] // group, w.shape[1]
    kernel = reshape(w, (group, inputs, outputs, *w.shape[2:]))
    kernel = construct.transpose(kernel, (0, 2, 1, *range(3, 3 + axes)))
    kernel = construct.flip(reshape(kernel, (group * outputs, inputs, *w.shape[2:])), tuple(range(2, 2 + axes)))
    windows = [Window(k, 1, 0, d) for k, d in zip(w.shape[2:], apart, strict=True)]
    return _biased(convolve(spaced, kernel, windows, group), b)


def _around(x: Node, ends: Sequence[tuple[int, int]]) -> Node:
    """Return an array with zeros around its last axes; negative numbers take elements away."""
    lead = [range(n) for n in x.shape[:2]]
    kept = [range(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape[2:], ends, strict=True)]
    if any(len(k) < 1 for k in kept):
        raise InputError("the padding leaves no elements of the result")
    x = construct.index(x, (*lead, *kept))
    more = [(max(0, a), max(0, b)) for a, b in ends]
    shape = check_size((*x.shape[:2], *(a + n + b for n, (a, b) in zip(x.shape[2:], more, strict=True))))
    key = (*lead, *(range(a, a + n) for n, (a, _) in zip(x.shape[2:], more, strict=True)))
    return x if shape == x.shape else scatter(shape, [(key, x)])


# Pooling


@operator("MaxPool")
def _max_pool(
    x: Node, *, kernel_shape: Any, ceil_mode: int = 0, storage_order: int = 0, outputs: int = 1, **attributes: Any
) -> Node:
    if outputs > 1:
        raise InputError("the indices of `MaxPool` are not supported", hint="`MaxPool` with one output is supported")
    return largest(x, _windows(x, kernel_shape, attributes, ceil_mode))


@operator("AveragePool")
def _average_pool(
    x: Node, *, kernel_shape: Any, ceil_mode: int = 0, count_include_pad: int = 0, **attributes: Any
) -> Node:
    windows = _windows(x, kernel_shape, attributes, ceil_mode)
    counts = np.ones(())
    for n, w in zip(x.shape[2:], windows, strict=True):
        at = w.positions(n)
        low, high = (-w.padding, n + w.padding + w.more) if count_include_pad else (0, n)
        counts = counts[..., None] * ((at >= low) & (at < high)).sum(axis=1)
    if not counts.all():
        raise InputError("a whole window lies in the padding")
    if (counts == (size := prod(w.size for w in windows))).all():
        return average(x, windows, True, size)
    return average(x, windows, True, 1) / lift(counts, x.dtype)


@operator("LpPool")
def _lp_pool(x: Node, *, kernel_shape: Any, p: int = 2, ceil_mode: int = 0, **attributes: Any) -> Node:
    powers = call("abs", x) ** p if p % 2 else x**p
    return average(powers, _windows(x, kernel_shape, attributes, ceil_mode), True, 1) ** (1 / lift(np.array(p)))


def _spatial(x: Node) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


def _kept(y: Node, x: Node) -> Node:
    return reshape(y, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


@operator("GlobalAveragePool")
def _global_average(x: Node) -> Node:
    return _kept(reduce("mean", x, _spatial(x)), x)


@operator("GlobalMaxPool")
def _global_max(x: Node) -> Node:
    return _kept(reduce("max", x, _spatial(x), "even"), x)


@operator("GlobalLpPool")
def _global_lp(x: Node, *, p: int = 2) -> Node:
    if p == 2:
        return _kept(reduce("norm", x, _spatial(x)), x)
    return _kept(reduce("sum", call("abs", x) ** p, _spatial(x)) ** (1 / lift(np.array(p))), x)


@operator("MaxUnpool")
def _max_unpool(
    x: Node, indices: Array, output_shape: Array | None = None, *, kernel_shape: Any, **attributes: Any
) -> Node:
    steps = tuple(attributes.get("strides") or (1,) * len(kernel_shape))
    ends = tuple(attributes.get("pads") or (0,) * 2 * len(kernel_shape))
    axes = len(kernel_shape)
    sizes = zip(x.shape[2:], kernel_shape, steps, ends[:axes], ends[axes:], strict=True)
    shape = check_size((*x.shape[:2], *((n - 1) * s - a - b + k for n, k, s, a, b in sizes)))
    wanted = shape if output_shape is None else check_size(integers(output_shape))
    if indices.size and not 0 <= indices.min() <= indices.max() < size_of(shape):
        raise InputError("an index is outside of the result")
    if wanted != shape:  # the indices are those of the smaller array
        at = np.unravel_index(indices, shape)
        indices = np.ravel_multi_index(tuple(at), wanted)
    return reshape(scatter_add(reshape(x, (x.size,)), 0, IndexArray.of(indices.reshape(-1)), size_of(wanted)), wanted)
