"""Convolutions and pooling over one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.calls import call_of, call_with, definition_of
from gradcli.graph.construct import call, channels, kept, reduce, reshape
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import check_size, size_of
from gradcli.graph.windows import Window, average, convolve, largest
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import integers, lift

_MAX_AXES = 3


def _windows(x: Node, sizes: Sequence[int], attributes: dict[str, Any], ceil: int = 0) -> list[Window]:
    """Return the window along each axis behind the batch and the channels, of an operator's attributes."""
    axes = len(x.shape) - 2
    if not 1 <= axes <= _MAX_AXES or len(sizes) != axes:
        raise InputError(f"windows of {len(sizes)} axes over an array of shape {x.shape} are not supported")
    strides, dilations = (tuple(attributes.get(key) or (1,) * axes) for key in ("strides", "dilations"))
    pads = tuple(attributes.get("pads") or (0,) * 2 * axes)
    if {len(strides), len(dilations)} != {axes} or len(pads) != 2 * axes or min((*strides, *dilations, *sizes)) < 1:
        raise InputError("sizes, strides, dilations and pads must be a positive integer for each axis")
    if min(pads) < 0:
        raise InputError("negative pads are not supported", hint="a `Slice` in front cuts elements off")
    result = []
    for i, (n, k, s, d) in enumerate(zip(x.shape[2:], sizes, strides, dilations, strict=True)):
        before, behind = pads[i], pads[i + axes]
        if (auto_pad := attributes.get("auto_pad", "NOTSET")) != "NOTSET":
            needed = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n) if auto_pad != "VALID" else 0
            before = needed // 2 if auto_pad != "SAME_LOWER" else needed - needed // 2
            behind = needed - before
        check_size((n + before + behind,))
        result.append(Window(k, s, before, d, bool(ceil), behind - before))
    return result


@operator("Conv")
def _conv(
    x: Node, w: Node, b: Node | None = None, *, group: int = 1, kernel_shape: Any = None, **attributes: Any
) -> Node:
    _check_channels(x, w, group, 1)
    windows = _windows(x, w.shape[2:], attributes)
    if (sizes := _even(windows)) is not None and (b is None or b.shape == w.shape[:1]):
        _, stride, padding, dilation = sizes
        return call_with(f"conv{len(windows)}d", (stride, padding, dilation, group), (x, w), bias=b)
    return _biased(convolve(x, w, windows, group), b)


def _even(windows: Sequence[Window]) -> list[tuple[int, ...]] | None:
    """Return the sizes, strides, paddings and dilations of windows, unless one has a padding that PyTorch does not."""
    if any(w.more or w.ceil for w in windows):
        return None
    rows = [(w.size, w.stride, w.padding, w.dilation) for w in windows]
    return list(zip(*rows, strict=True))


def _check_channels(x: Node, w: Node, group: int, axis: int) -> None:
    channels = w.shape[1] * group if axis else w.shape[0]
    if len(w.shape) != len(x.shape) or x.shape[1] != channels or group < 1 or w.shape[0] % group:
        raise InputError(
            f"a weight of shape {w.shape} does not fit an input of shape {x.shape} in {group} group{'s' * (group > 1)}"
        )


def _biased(y: Node, b: Node | None) -> Node:
    return y if b is None else y + channels(b, y)


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
    strides, dilations = (tuple(attributes.get(key) or (1,) * axes) for key in ("strides", "dilations"))
    more = tuple(output_padding or (0,) * axes)
    pads = list(attributes.get("pads") or (0,) * 2 * axes)
    reach = [d * (k - 1) for k, d in zip(w.shape[2:], dilations, strict=True)]
    whole = [(n - 1) * s + r + 1 + m for n, s, r, m in zip(x.shape[2:], strides, reach, more, strict=True)]
    auto_pad = attributes.get("auto_pad", "NOTSET")
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = list(output_shape or (n * s for n, s in zip(x.shape[2:], strides, strict=True)))[-axes:]
        for i in range(axes):
            total = whole[i] - wanted[i]  # below 0, zeros follow the result
            smaller = total // 2
            pads[i] = smaller if auto_pad != "SAME_LOWER" else total - smaller
            pads[i + axes] = total - pads[i]
            if auto_pad == "NOTSET":
                pads[i], pads[i + axes] = total - smaller, smaller
    check_size((*x.shape[:2], *whole))
    ends = list(zip(pads[:axes], pads[axes:], strict=True))
    inside = all(before == behind and n > 2 * before for n, (before, behind) in zip(whole, ends, strict=True))
    fits = all(m < max(s, d) for m, s, d in zip(more, strides, dilations, strict=True))
    if (
        output_shape is None
        and auto_pad == "NOTSET"
        and inside
        and fits
        and (b is None or b.shape == (w.shape[1] * group,))
    ):
        return call_with(
            f"conv_transpose{axes}d", (strides, tuple(pads[:axes]), more, group, dilations), (x, w), bias=b
        )
    none = (0,) * axes
    y = call_with(f"conv_transpose{axes}d", (strides, none, none, group, dilations), (x, w))
    counts = [n for (a, z), m in zip(reversed(ends), reversed(more), strict=True) for n in (-a, m - z)]
    if any(n + sum(counts[2 * k : 2 * k + 2]) < 1 for k, n in enumerate(reversed(y.shape[2:]))):
        raise InputError("the padding leaves no elements of the result")
    return _biased(definition_of(call_of("pad", (tuple(counts),), y, const(0))), b)


# Pooling


@operator("MaxPool")
def _max_pool(
    x: Node, *, kernel_shape: Any, ceil_mode: int = 0, storage_order: int = 0, outputs: int = 1, **attributes: Any
) -> Node:
    if outputs > 1:
        raise InputError("the indices of `MaxPool` are not supported", hint="`MaxPool` with one output is supported")
    windows = _windows(x, kernel_shape, attributes, ceil_mode)
    if (sizes := _even(windows)) is not None and all(2 * w.padding <= w.reach for w in windows):
        return call_of(f"max_pool{len(windows)}d", (*sizes, False), x)
    return largest(x, windows)


@operator("AveragePool")
def _average_pool(
    x: Node, *, kernel_shape: Any, ceil_mode: int = 0, count_include_pad: int = 0, **attributes: Any
) -> Node:
    windows = _windows(x, kernel_shape, attributes, ceil_mode)
    sizes = _even(windows)
    if sizes is not None and all(w.dilation == 1 and 2 * w.padding <= w.size for w in windows):
        return call_of(f"avg_pool{len(windows)}d", (*sizes[:3], False, bool(count_include_pad), None), x)
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


add(lambda x: kept(reduce("mean", x, _spatial(x)), x, _spatial(x)), "GlobalAveragePool")


add(lambda x: kept(reduce("max", x, _spatial(x), "even"), x, _spatial(x)), "GlobalMaxPool")


@operator("GlobalLpPool")
def _global_lp(x: Node, *, p: int = 2) -> Node:
    if p == 2:
        return kept(reduce("norm", x, _spatial(x)), x, _spatial(x))
    return kept(reduce("sum", call("abs", x) ** p, _spatial(x)) ** (1 / lift(np.array(p))), x, _spatial(x))


@operator("MaxUnpool")
def _max_unpool(
    x: Node, indices: Array, output_shape: Array | None = None, *, kernel_shape: Any, **attributes: Any
) -> Node:
    strides = tuple(attributes.get("strides") or (1,) * len(kernel_shape))
    pads = tuple(attributes.get("pads") or (0,) * 2 * len(kernel_shape))
    axes = len(kernel_shape)
    if indices.shape != x.shape:
        raise InputError(f"indices of shape {indices.shape} do not fit an array of shape {x.shape}")
    sizes = zip(x.shape[2:], kernel_shape, strides, pads[:axes], pads[axes:], strict=True)
    shape = check_size((*x.shape[:2], *((n - 1) * s - a - b + k for n, k, s, a, b in sizes)))
    wanted = shape if output_shape is None else check_size(integers(output_shape))
    if indices.size and not 0 <= indices.min() <= indices.max() < size_of(shape):
        raise InputError("an index is outside of the result")
    if wanted != shape:  # the indices are those of the smaller array
        at = np.unravel_index(indices, shape)
        indices = np.ravel_multi_index(tuple(at), wanted)
    return reshape(scatter_add(reshape(x, (x.size,)), 0, IndexArray.of(indices.reshape(-1)), size_of(wanted)), wanted)
