"""Windows over sequences, pictures and volumes: convolutions, also transposed, pools, and blocks as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of
from gradcli.graph.windows import Window
from gradcli.pytorch.calls import call_function, check_numbers, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.dtypes import contiguous_format
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.names import TORCH, function, with_indices
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import _Linear
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Array, Tensor, axis_of, of_array


def several(setting: Any, axes: int) -> list[int]:
    """Return a setting as one number for each axis, or as it is where it has another length."""
    result = list(setting) if isinstance(setting, tuple | list) else [setting]
    return result * axes if len(result) == 1 else result


# Convolutions


@function("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", module=NN)
def _convolved(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    output_padding: Any, op: str,
) -> Any:  # fmt: skip
    axes, settings = int(op[-2]), {"stride": stride, "padding": padding, "dilation": dilation}
    if is_transposed := "transpose" in op:
        missing_if(not input.is_floating_point(), f"{op} of integers")
        settings["output_padding"] = output_padding
    _check_convolution(axes, input, weight, bias, settings, groups, is_transposed)
    result = call_function(op, input, weight, bias, groups=groups, **settings)
    is_batch = input.dim() == axes + 2
    return result if is_batch else set_grad_fn_name(result, "SqueezeBackward1(Convolution(Unsqueeze(0),1,2))")


def _check_convolution(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], groups: int,
    is_transposed: bool,
) -> None:  # fmt: skip
    """Check the shapes and dtypes of a convolution over some axes.  The vocabulary checks the settings."""
    rank, shape = input.dim(), list(weight.shape)
    name = f"_transpose{axes}" if is_transposed else axes
    wrong = rank not in (axes + 1, axes + 2)
    raise_if(wrong, "rank of a convolution's input", axes + 1, axes + 2, name, list(input.shape))
    has_strides = set(several(settings["stride"], axes)) != {1}
    raise_if(settings["padding"] == "same" and has_strides, "strides of the same size")
    _check_types(input, weight, None if is_transposed else bias)
    raise_if(not is_transposed and shape[0] % groups, "groups of a weight", groups, shape)
    whole = list(input.shape) if rank == axes + 2 else [1, *input.shape]
    channels, how = (shape[0], "transposed=1") if is_transposed else (shape[1] * groups, f"groups={groups}")
    raise_if(whole[1] != channels, "channels of a convolution", how, shape, whole, channels, whole[1])
    if not is_transposed and not isinstance(settings["padding"], str):
        each = (several(settings[name], axes) for name in ("padding", "dilation"))
        windows = [Window(n, 1, p, d) for n, p, d in zip(shape[2:], *each, strict=False)]
        rows = list(zip(windows, whole[2:], strict=False))
        sizes = [w.padded(n) for w, n in rows], [w.reach for w in windows]
        too_large = any(w.fitting(n) < 1 for w, n in rows)
        raise_if(too_large, "kernel larger than the input", *(" x ".join(map(str, n)) for n in sizes))


def _check_types(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Check that weight and bias have the input's dtype."""
    reference = input if bias is None else bias
    raise_if(reference._a.dtype != input._a.dtype, "types of input and bias", input.dtype.in_c, reference.dtype.in_c)
    other = input._a.dtype != weight._a.dtype
    single = other and input._a.dtype == "float32"
    raise_if(single, "types of input and weight", input.dtype.tensor, weight.dtype.tensor)
    raise_if(other, "scalar type of a weight", input.dtype.word, weight.dtype.word)


# Their layers


class _Conv(_Linear):
    output_padding: Any = 0  # of transposed ones

    def _build(self) -> None:
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            if isinstance(value := getattr(self, name), int | list):
                setattr(self, name, tuple(value) if isinstance(value, list) else (value,) * self.axes)
        for which in ("in_channels", "out_channels"):
            raise_if(getattr(self, which) % self.groups, "channels of groups", which)
        other = isinstance(self.padding, str) or isinstance(self, _ConvTranspose)
        missing_if(self.padding_mode != "zeros" and other, f"torch.nn.{type(self).__name__}(padding_mode=…)")
        self._weights(self.out_channels, *self._planes(), *self.kernel_size)

    def _planes(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def forward(self, *args: Any, **more: Any) -> Any:
        if self.padding_mode == "zeros":
            return super().forward(*args, **more)
        ends = [n for n in self.padding[::-1] for _ in range(2)]
        return super().forward(F.pad(args[0], ends, self.padding_mode), padding=0)


class _ConvTranspose(_Conv):
    def _planes(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Any, output_size: Any = None) -> Any:
        missing_if(output_size is not None, f"torch.nn.{type(self).__name__}(…)(output_size=…)")
        return super().forward(input)


# Pools


@function(*(f"{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)), module=NN)
def _pooled(input: Tensor, kernel_size: Any, stride: Any, return_indices: bool, op: str, **more: Any) -> Any:
    steps = kernel_size if stride in (None, [], ()) else stride
    settings = [kernel_size, steps, more.get("padding", 0), more.get("dilation", 1)]
    windows = _check_pooling(op, input, settings, more.get("ceil_mode", False))
    result = call_function(op, input, kernel_size, None if steps == kernel_size else steps, **more)
    if not return_indices:
        return result
    counts = zip(windows, result.shape[-len(windows) :], strict=True)
    positions = [np.arange(n)[:, None] * w.stride - w.padding + np.arange(w.size) * w.dilation for w, n in counts]
    return with_indices(op, result, _largest(input, positions).reshape(result.shape))


def _check_pooling(name: str, input: Tensor, settings: Sequence[Any], ceil: bool) -> list[Window]:
    """Return the windows of pooling; what their size, stride, padding and dilation may be the vocabulary checks.

    Errors: `RuntimeError`, `IndexError`.
    """
    axes, rank = int(name[-2]), input.dim()
    wrong = name == "avg_pool2d" and rank not in (3, 4)
    raise_if(wrong, "rank for avg_pool2d", list(input.shape), rank, -rank, rank - 1)
    sizes, each = input.shape[-axes:], [several(setting, axes) for setting in settings]
    raise_if(min(*each[0], *each[1]) <= 0, "setting of a pool", name, *settings)
    windows = [Window(n, s, p, d, ceil) for n, s, p, d in zip(*each, strict=False)]
    rows = list(zip(windows, sizes, strict=False))
    result = [w.fitting(n) for w, n in rows]
    small = name == "avg_pool3d" and any(w.padded(n) < w.reach for w, n in rows)
    raise_if(small or (name == "max_pool1d" and min(result) < 1), "setting of a pool", name, *settings)
    head = [*input.shape[:-axes][-1:], *[1] * (axes == 1)]
    before, after = ("x".join(map(str, (*head, *values))) for values in (sizes, result))
    raise_if(min(result) < 1, "output of a pool", before, after)
    return windows


@function(*(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2)), module=NN)
def _adaptive(input: Any, output_size: Any, return_indices: bool, op: str) -> Any:
    kind, axes = op[9:12].capitalize(), int(op[-2])
    rows = zip(input.shape[-axes:], several(output_size, axes), strict=True)
    counts = tuple(n if k is None else k for n, k in rows)
    name = f"Adaptive{kind}Pool2DBackward0" if axes == 2 else f"SqueezeBackward1(Adaptive{kind}Pool2D(Unsqueeze(0)))"
    name = "MeanBackward1" if kind == "Avg" and counts == (1, 1) else name
    result = apply(op, partial(call_of, op, (counts,)), (input,), counts, name)
    if not return_indices:
        return result
    positions = [_of_parts(n, count) for n, count in zip(input.shape[-axes:], counts, strict=True)]
    return with_indices(op, result, _largest(input, positions).reshape(result.shape))


def _of_parts(size: int, count: int) -> Array:
    """Return the positions in each of so many parts that cover an axis; -1 is none."""
    ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    most = max((b - a for a, b in ends), default=0)
    return np.array([[*range(a, b), *[-1] * (most - b + a)] for a, b in ends], np.int64)


def _largest(x: Tensor, windows: Sequence[Array]) -> Array:
    """Return for each plane the flat indices of the largest numbers of windows: the first of equal ones, the last nan.

    Each axis has the rows of positions of its windows; one outside of the axis is none.
    """
    shape = x.shape[-len(windows) :]
    planes = x._a[..., 0].reshape(-1, math.prod(shape))
    flat, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for size, positions in zip(shape, windows, strict=True):
        is_element = (positions >= 0) & (positions < size)
        rows, columns = len(flat) * len(positions), flat.shape[1] * positions.shape[1]
        flat = (flat[:, None, :, None] * size + np.clip(positions, 0, size - 1)[:, None]).reshape(rows, columns)
        inside = (inside[:, None, :, None] & is_element[:, None]).reshape(rows, columns)
    values = np.where(inside, planes[:, flat], -np.inf)
    largest = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=-1)
    is_nan = np.isnan(values)
    last_nan = values.shape[-1] - 1 - np.argmax(is_nan[..., ::-1], axis=-1)
    largest = np.where(is_nan.any(-1), last_nan, largest)
    return flat[np.arange(len(flat)), largest]


@function("max_unpool1d", "max_unpool2d", module=NN)
def _unpooled(input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any, op: str) -> Any:
    axes = int(op[-2])
    raise_if(indices._a.dtype != np.int64, "dtype of unpooled indices", indices.dtype.word)
    raise_if(indices.shape != input.shape, "shape of unpooled indices", list(input.shape), list(indices.shape))
    kernel = several(kernel_size, axes)
    strides, paddings = several(kernel_size if stride is None else stride, axes), several(padding, axes)
    rows = zip(input.shape[-axes:], kernel, strides, paddings, strict=True)
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in rows]
    size = usual if output_size is None else _chosen(output_size, usual, strides)
    flat = indices.flatten(-axes)
    bad = flat._a[(flat._a < 0) | (flat._a >= math.prod(size))]
    raise_if(bad.size, "index to unpool", *bad[-1:], size)
    empty = TORCH["zeros"](*input.shape[:-axes], math.prod(size), dtype=input.dtype)
    result = empty.scatter(-1, flat, input.flatten(-axes)).unflatten(-1, size)
    return set_grad_fn_name(result, "SqueezeBackward1" if axes == 1 else "MaxUnpool2DBackward0")


def _chosen(requested: Sequence[int], usual: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the size that a script chooses among those that pooling makes as small."""
    size = list(requested)[-len(usual) :] if len(requested) == len(usual) + 2 else list(requested)
    wrong = len(size) != len(usual) or any(
        not middle - s < n < middle + s for n, middle, s in zip(size, usual, strides, strict=True)
    )
    raise_if(wrong, "unpooled size", requested, usual, strides)
    return size


# Blocks as columns


def _windows(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[Window]:
    """Return the windows along the rows and the columns."""
    sizes = [several(setting, 2) for setting in (kernel_size, stride, padding, dilation)]
    wrong = {*map(len, sizes)} != {2} or min(map(min, sizes)) < 0 or 0 in (*sizes[0], *sizes[1], *sizes[3])
    raise_if(wrong, "sizes of a block", *sizes)
    return [Window(k, s, p, d) for k, s, p, d in zip(*sizes, strict=True)]


def _indices(windows: Sequence[Window], sizes: Sequence[int]) -> Tensor:
    """Return where the elements of all blocks are in a flat padded picture: first the first element of each block."""
    rows, columns = (w.positions(n).T + w.padding for w, n in zip(windows, sizes, strict=True))
    width = windows[1].padded(sizes[1])
    return of_array((rows[:, None, :, None] * width + columns[:, None]).reshape(-1))


@function("unfold", module=NN)
def unfold(input: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return the blocks of pictures as columns: (batch, channels · elements of a block, blocks)."""
    down, across = windows = _windows(kernel_size, dilation, padding, stride)
    axis_of(2, input.dim())
    raise_if(input.dim() not in (3, 4), "rank for unfold", list(input.shape))
    *outer, channels, height, width = input.shape
    counts = down.fitting(height), across.fitting(width)
    raise_if(min(counts) < 1, "blocks of unfold", (height, width), counts)
    check_numbers("im2col", input.dtype)
    flat = F.pad(input, (across.padding, across.padding, down.padding, down.padding)).flatten(-2)
    columns = flat.index_select(-1, _indices(windows, (height, width)))
    shape = *outer, channels * down.size * across.size, math.prod(counts)
    return set_grad_fn_name(columns.reshape(shape), "Im2ColBackward0")


@function("fold", module=NN)
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return pictures whose elements are the sums of those of the blocks that cover them: the adjoint of `unfold`."""
    windows, sizes = _windows(kernel_size, dilation, padding, stride), several(output_size, 2)
    raise_if(input.dim() not in (2, 3), "rank for fold", list(input.shape))
    *outer, rows, length = input.shape
    channels, rest = divmod(rows, windows[0].size * windows[1].size)
    counts = [w.fitting(n) for w, n in zip(windows, sizes, strict=True)]
    wrong = rest or min(counts) < 1 or length != math.prod(counts)
    raise_if(wrong, "blocks of fold", sizes, counts, list(input.shape))
    check_numbers("col2im", input.dtype)
    padded = [w.padded(n) for w, n in zip(windows, sizes, strict=True)]
    empty = TORCH["zeros"](*outer, channels, math.prod(padded), dtype=input.dtype)
    terms = input.reshape(*outer, channels, -1)
    total = empty.index_add(-1, _indices(windows, sizes), terms).unflatten(-1, padded)
    for axis, (w, n) in enumerate(zip(windows, sizes, strict=True)):
        total = total.narrow(axis - 2, w.padding, n)
    return set_grad_fn_name(total.clone(memory_format=contiguous_format), "Col2ImBackward0")
