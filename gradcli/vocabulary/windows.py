"""Names of convolutions, pooling and interpolation, with the settings of PyTorch's `torch.nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.calls import call_of, call_with
from gradcli.graph.node import Node
from gradcli.graph.operations.interpolation import MODES
from gradcli.graph.shapes import MAX_ELEMENTS
from gradcli.vocabulary.register import each, flag, named

Sizes = int | Sequence[int]

_AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def _per_axis(name: str, sizes: Sizes, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return one integer for each axis."""
    typed = tuple(sizes) if isinstance(sizes, tuple | list) else (sizes,)
    listed = tuple(n for n in typed if type(n) is int) * (axes if len(typed) == 1 else 1)
    if len(listed) != axes or len(typed) not in (1, axes):
        several = f", or {axes} of them" if axes > 1 else ""
        raise InputError(f"`{name}` is an integer{several}", hint=f"for example `{name}={max(1, least)}`")
    if min(listed) < least:
        raise InputError(f"`{name}` is at least {least}, not {min(listed)}")
    if max(listed) > MAX_ELEMENTS:
        raise InputError(f"`{name}` is too large", hint=f"at most {MAX_ELEMENTS:,} elements fit into an array")
    return listed


def _axes(name: str, x: Node) -> int:
    """Return over how many axes the windows move: over two with `conv2d`, for one."""
    axes = int(name[-2])
    if len(x.shape) not in (axes + 1, axes + 2):
        raise InputError(
            f"`{name}` takes an array of (batch, channels, {_AXES[axes]}), not of shape {x.shape}",
            hint="the batch may be left out; `unsqueeze(x, 0)` adds an axis",
        )
    return axes


@each("conv1d", "conv2d", "conv3d", methods=())
def _convolution(
    name: str,
    x: Node,
    weight: Node,
    bias: Node | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Node:
    axes = _axes(name, x)
    (groups,) = _per_axis("groups", groups, 1)
    _check_weight(name, x, weight, axes, groups)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise InputError(f"the bias is a vector of {weight.shape[0]}, a number for each output, not {bias.shape}")
    dilations, strides = _per_axis("dilation", dilation, axes), _per_axis("stride", stride, axes)
    return call_with(name, (strides, _paddings(padding, strides), dilations, groups), (x, weight), bias=bias)


@each("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", methods=())
def _transposed_convolution(
    name: str,
    x: Node,
    weight: Node,
    bias: Node | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Node:
    axes = _axes(name, x)
    (groups,) = _per_axis("groups", groups, 1)
    if len(weight.shape) != axes + 2 or weight.shape[0] != x.shape[-axes - 1] or weight.shape[0] % groups:
        raise InputError(
            f"a weight of shape {weight.shape} does not fit {x.shape[-axes - 1]} channels",
            hint=f"it is (channels, outputs/groups, {_AXES[axes]})",
        )
    outputs = weight.shape[1] * groups
    if bias is not None and bias.shape != (outputs,):
        raise InputError(f"the bias is a vector of {outputs}, a number for each output, not {bias.shape}")
    strides, dilations = _per_axis("stride", stride, axes), _per_axis("dilation", dilation, axes)
    paddings, more = _per_axis("padding", padding, axes, 0), _per_axis("output_padding", output_padding, axes, 0)
    if any(n >= max(pair) for n, *pair in zip(more, strides, dilations, strict=True)):
        raise InputError("`output_padding` must be less than the stride or the dilation")
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + m
        for n, k, s, p, d, m in zip(x.shape[-axes:], weight.shape[2:], strides, paddings, dilations, more, strict=True)
    ]
    if min(sizes) < 1:
        raise InputError("nothing is left of the result within so much `padding`")
    return call_with(name, (strides, paddings, more, groups, dilations), (x, weight), bias=bias)


def _paddings(padding: Sizes | str, strides: Sequence[int]) -> tuple[int, ...] | str:
    """Return the padding at both ends of each axis, or "same"."""
    if not isinstance(padding, str):
        return _per_axis("padding", padding, len(strides), 0)
    if padding not in ("same", "valid"):
        raise InputError(f"there is no padding `{padding[:40]}`", hint='it is an integer, "same" or "valid"')
    if padding == "same" and set(strides) != {1}:
        raise InputError('`padding="same"` goes with `stride=1`')
    return "same" if padding == "same" else (0,) * len(strides)


def _check_weight(name: str, x: Node, weight: Node, axes: int, groups: int) -> None:
    if len(weight.shape) != axes + 2:
        raise InputError(
            f"the weight of `{name}` is an array of (outputs, channels, {_AXES[axes]}), not of shape {weight.shape}"
        )
    outputs, rows = weight.shape[:2]
    channels = x.shape[-axes - 1]
    if channels != rows * groups or outputs % groups:
        raise InputError(
            f"a weight of shape {weight.shape} does not fit {channels} channels in {groups} group{'s' * (groups > 1)}",
            hint="it is (outputs, channels/groups, …), and the outputs are shared evenly by the groups",
        )


def _windows(axes: int, size: Sizes, stride: Sizes | None, padding: Sizes, dilations: Sequence[int]) -> tuple[Any, ...]:
    """Return the sizes of the windows of pooling, their strides (by default the sizes), and paddings."""
    sizes, paddings = _per_axis("kernel_size", size, axes), _per_axis("padding", padding, axes, 0)
    for k, p, d in zip(sizes, paddings, dilations, strict=True):
        most = (d * (k - 1) + 1) // 2
        if p > most:
            raise InputError(
                f"`padding` must be at most half of the window, {most} here, not {p}",
                hint="each window must contain elements of the array",
            )
    return sizes, sizes if stride is None else _per_axis("stride", stride, axes), paddings


@each("max_pool1d", "max_pool2d", "max_pool3d", methods=())
def _max_pool(
    name: str,
    x: Node,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Node:
    axes = _axes(name, x)
    dilations = _per_axis("dilation", dilation, axes)
    windows = _windows(axes, kernel_size, stride, padding, dilations)
    return call_of(name, (*windows, dilations, flag("ceil_mode", ceil_mode)), x)


@each("avg_pool1d", "avg_pool2d", "avg_pool3d", methods=())
def _avg_pool(
    name: str,
    x: Node,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Node:
    axes = _axes(name, x)
    divisor = None if divisor_override is None else _per_axis("divisor_override", divisor_override, 1)[0]
    windows = _windows(axes, kernel_size, stride, padding, (1,) * axes)
    flags = flag("ceil_mode", ceil_mode), flag("count_include_pad", count_include_pad)
    return call_of(name, (*windows, *flags, divisor), x)


@each(*(f"adaptive_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)), methods=())
def _adaptive_pool(name: str, x: Node, output_size: int | Sequence[int | None]) -> Node:
    axes = _axes(name, x)
    typed: Any = output_size if isinstance(output_size, tuple | list) else (output_size,) * axes
    sizes = x.shape[-axes:] if len(typed) == axes else ()
    counts = tuple(n if count is None else count for n, count in zip(sizes, typed, strict=False))
    return call_of(name, (_per_axis("output_size", counts or typed, axes),), x)


@named("interpolate", methods=())
def _interpolate(
    input: Node,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Node:
    axes = len(input.shape) - 2
    if mode not in MODES:
        raise InputError(f"there is no mode `{str(mode)[:40]}`", hint=f"it is one of {', '.join(map(repr, MODES))}")
    if axes not in MODES[mode]:
        raise InputError(f"`mode={mode!r}` is not for an array of shape {input.shape}: it is (batch, channels, …)")
    if (size is None) == (scale_factor is None):
        raise InputError("`interpolate` takes a size or a factor", hint="for example `interpolate(x, scale_factor=2)`")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise InputError(f"`mode={mode!r}` has no `align_corners`")
    counts = None if size is None else _per_axis("size", size, axes)
    factors = None if scale_factor is None else _factors(scale_factor, axes)
    if min(counts or [int(n * f) for n, f in zip(input.shape[2:], factors or (), strict=True)]) < 1:
        raise InputError("nothing is left of an axis")
    corners = None if align_corners is None else flag("align_corners", align_corners)
    return call_of("interpolate", (counts, factors, mode, corners or None), input)


def _factors(numbers: Any, axes: int) -> tuple[float, ...]:
    """Return one factor for each axis."""
    listed = tuple(numbers) if isinstance(numbers, list | tuple) else (numbers,) * axes
    if len(listed) != axes or not all(type(n) in (int, float) and 0 < n <= 2**20 for n in listed):
        raise InputError(f"`scale_factor` is a positive number{f', or {axes} of them' if axes > 1 else ''}")
    return tuple(map(float, listed))
