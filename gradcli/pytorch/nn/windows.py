"""Windows over sequences, pictures and volumes: convolutions, also transposed, pools, and blocks as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of
from gradcli.graph.windows import Window
from gradcli.pytorch.argument_checks import check_convolution, check_pooling, several
from gradcli.pytorch.calls import call_function, check_numbers, set_grad_fn_name
from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.dtypes import contiguous_format
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import _Linear
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Array, Tensor, axis_of, of_array

# Convolutions


@function("conv1d", "conv2d", "conv3d", module=NN)
def _convolved(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, op: str
) -> Any:
    axes, settings = int(op[-2]), {"stride": stride, "padding": padding, "dilation": dilation}
    check_convolution(axes, input, weight, bias, settings, groups)
    result = call_function(op, input, weight, bias, groups=groups, **settings)
    is_batch = input.dim() == axes + 2
    return result if is_batch else set_grad_fn_name(result, "SqueezeBackward1(Convolution(Unsqueeze(0),1,2))")


def _transposed(axes: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{axes}d"

    def convolve(
        input: Any, weight: Any, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, groups: int,
        dilation: Any,
    ) -> Tensor:  # fmt: skip
        missing_if(not input.is_floating_point(), f"{name} of integers")
        others = {"stride": stride, "padding": padding, "dilation": dilation}
        settings = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        check_convolution(axes, input, weight, bias, others, groups, transposed=True)
        _check_output_padding(axes, settings)
        x = input if input.dim() == axes + 2 else input.unsqueeze(0)
        stride, padding, more, dilation = (tuple(several(s, axes)) for s in settings.values())
        call = (("bias",) if bias is not None else ()), stride, padding, more, groups, dilation

        operands = [t for t in (x, weight, bias) if t is not None]
        result = apply(name, partial(call_of, name, call), operands, call, "ConvolutionBackward0")
        return result if x is input else set_grad_fn_name(result.squeeze(0), "SqueezeBackward1")

    return convolve


def _check_output_padding(axes: int, settings: dict[str, Any]) -> None:
    rows = [several(settings[name], axes) for name in ("output_padding", "stride", "dilation")]
    wrong = any(more >= max(others) for more, *others in zip(*rows, strict=True))
    raise_if(wrong, "output padding", *rows)


for _axes in (1, 2):
    function(f"conv_transpose{_axes}d", module=NN)(_transposed(_axes))


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
    settings = {"kernel_size": kernel_size, "stride": steps, "padding": more.get("padding", 0)}
    check_pooling(op, input, {**settings, "dilation": more.get("dilation", 1)}, more.get("ceil_mode", False))
    result = call_function(op, input, kernel_size, None if steps == kernel_size else steps, **more)
    if not return_indices:
        return result
    return result, indices_of(op, input, result, int(op[-2]), {"dilation": 1} | settings | more)


@function(*(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2)), module=NN)
def _adaptive(input: Any, output_size: Any, return_indices: bool, op: str) -> Any:
    kind, axes = op[9:12].capitalize(), int(op[-2])
    rows = zip(input.shape[-axes:], several(output_size, axes), strict=True)
    counts = tuple(n if k is None else k for n, k in rows)
    name = f"Adaptive{kind}Pool2DBackward0" if axes == 2 else f"SqueezeBackward1(Adaptive{kind}Pool2D(Unsqueeze(0)))"
    name = "MeanBackward1" if kind == "Avg" and counts == (1, 1) else name
    result = apply(op, partial(call_of, op, (counts,)), (input,), counts, name)
    return (result, indices_of_parts(op, input, counts)) if return_indices else result


def indices_of(name: str, x: Tensor, pooled: Tensor, axes: int, settings: Mapping[str, Any]) -> Tensor:
    """Return for each largest number its index in its plane: the first of equal ones, the last `nan`.

    `settings` are `kernel_size`, `stride`, `padding` and `dilation`, for each axis or for all.
    """
    sizes = (several(settings[k], axes) for k in ("kernel_size", "stride", "padding", "dilation"))
    rows = zip(pooled.shape[-axes:], zip(*sizes, strict=True), strict=True)
    windows = [
        np.arange(count)[:, None] * stride - padding + np.arange(kernel) * dilation
        for count, (kernel, stride, padding, dilation) in rows
    ]
    result = of_array(_largest(x, windows).reshape(pooled.shape))
    note_lost(result, (x,), f"taking the indices of {name}")
    return result


def indices_of_parts(name: str, x: Tensor, counts: Sequence[int]) -> Tensor:
    """Return the indices of the largest numbers of so many windows that cover the last axes."""
    axes, windows = len(counts), []
    for size, count in zip(x.shape[-axes:], counts, strict=True):
        ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        most = max((b - a for a, b in ends), default=0)
        windows.append(np.array([[*range(a, b), *[-1] * (most - b + a)] for a, b in ends], np.int64))
    result = of_array(_largest(x, windows).reshape(*x.shape[:-axes], *counts))
    note_lost(result, (x,), f"taking the indices of {name}")
    return result


def _largest(x: Tensor, windows: Sequence[Array]) -> Array:
    """Return for each plane the flat indices of the largest numbers of windows; each axis has its rows of positions.

    A position outside of the axis is none.
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


def _unpooled(axes: int) -> Callable[..., Any]:
    def unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
    ) -> Any:  # fmt: skip
        raise_if(indices._a.dtype != np.int64, "dtype of unpooled indices", indices.dtype.word)
        raise_if(indices.shape != input.shape, "shape of unpooled indices", list(input.shape), list(indices.shape))
        kernel = several(kernel_size, axes)
        strides, paddings = several(kernel_size if stride is None else stride, axes), several(padding, axes)
        rows = zip(input.shape[-axes:], kernel, strides, paddings, strict=True)
        usual = [(n - 1) * s + k - 2 * p for n, k, s, p in rows]
        size = usual if output_size is None else _chosen(output_size, usual, strides)
        flat = indices.flatten(-axes)
        bad = flat._a[(flat._a < 0) | (flat._a >= math.prod(size))]
        raise_if(bad.size, "index to unpool", *bad[-1:], *([1, *size][-2:]))
        empty = TORCH["zeros"](*input.shape[:-axes], math.prod(size), dtype=input.dtype)
        result = empty.scatter(-1, flat, input.flatten(-axes)).unflatten(-1, size)
        return set_grad_fn_name(result, "SqueezeBackward1" if axes == 1 else "MaxUnpool2DBackward0")

    return unpool


def _chosen(requested: Sequence[int], usual: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the size that a script chooses among those that pooling makes as small."""
    size = list(requested)[-len(usual) :] if len(requested) == len(usual) + 2 else list(requested)
    if len(size) != len(usual):
        raise torch_error("count of unpooled sizes", len(usual), len(usual) + 2, len(size))
    for axis, (n, middle, s) in enumerate(zip(size, usual, strides, strict=True)):
        wrong = not middle - s < n < middle + s
        raise_if(wrong, "unpooled size", requested, axis, middle - s, middle + s)
    return size


for _axes in (1, 2):
    function(f"max_unpool{_axes}d", module=NN)(_unpooled(_axes))


# Blocks as columns


def _windows(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[Window]:
    """Return the windows along the rows and the columns."""
    settings = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    sizes = {name: several(setting, 2) for name, setting in settings.items()}
    for name, values in sizes.items():
        wrong = len(values) != 2 or min(values) < (name != "padding")
        raise_if(wrong, "sizes of a block", name, values)
    return [Window(k, s, p, d) for k, d, p, s in zip(*sizes.values(), strict=True)]


def _indices(windows: Sequence[Window], sizes: Sequence[int]) -> Tensor:
    """Return where the elements of all blocks are in a flat padded picture: first the first element of each block."""
    rows, columns = (w.positions(n).T + w.padding for w, n in zip(windows, sizes, strict=True))
    width = windows[1].padded(sizes[1])
    return of_array((rows[:, None, :, None] * width + columns[:, None]).reshape(-1))


def _settings(windows: Sequence[Window]) -> dict[str, tuple[int, ...]]:
    return {
        "kernel_size": tuple(w.size for w in windows),
        "dilation": tuple(w.dilation for w in windows),
        "padding": tuple(w.padding for w in windows),
        "stride": tuple(w.stride for w in windows),
    }


@function("unfold", module=NN)
def unfold(input: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return the blocks of pictures as columns: (batch, channels · elements of a block, blocks)."""
    windows = _windows(kernel_size, dilation, padding, stride)
    axis_of(2, input.dim())
    raise_if(input.dim() not in (3, 4), "rank for unfold", list(input.shape))
    *outer, channels, _, _ = input.shape
    sizes = tuple(input.shape[-2:])
    counts = tuple(w.fitting(n) for w, n in zip(windows, sizes, strict=True))
    settings = _settings(windows)
    raise_if(min(counts) < 1, "blocks of unfold", sizes, counts)
    check_numbers("im2col", input.dtype)
    (top, left) = settings["padding"]
    flat = F.pad(input, (left, left, top, top)).flatten(-2)
    columns = flat.index_select(-1, _indices(windows, sizes))
    size = math.prod(settings["kernel_size"])
    return set_grad_fn_name(columns.reshape(*outer, channels * size, math.prod(counts)), "Im2ColBackward0")


@function("fold", module=NN)
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return pictures whose elements are the sums of those of the blocks that cover them: the adjoint of `unfold`."""
    windows, sizes = _windows(kernel_size, dilation, padding, stride), tuple(several(output_size, 2))
    raise_if(input.dim() not in (2, 3), "rank for fold", list(input.shape))
    *outer, height, length = input.shape
    settings = _settings(windows)
    size = math.prod(settings["kernel_size"])
    raise_if(height % size, "channels of fold", height, size)
    counts = [w.fitting(n) for w, n in zip(windows, sizes, strict=True)]
    count = math.prod(counts)
    wrong = min(counts) < 1 or length != count
    raise_if(wrong, "blocks of fold", sizes, counts, length)
    check_numbers("col2im", input.dtype)
    padded = [w.padded(n) for w, n in zip(windows, sizes, strict=True)]
    terms = input.reshape(*outer, height // size, size * length)
    empty = TORCH["zeros"](*outer, height // size, math.prod(padded), dtype=input.dtype)
    total = empty.index_add(-1, _indices(windows, sizes), terms).unflatten(-1, padded)
    for axis, (w, n) in enumerate(zip(windows, sizes, strict=True)):
        total = total.narrow(axis - 2, w.padding, n)
    return set_grad_fn_name(total.clone(memory_format=contiguous_format), "Col2ImBackward0")
