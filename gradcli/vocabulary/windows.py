"""Names of convolutions and of pooling, with the settings of PyTorch's `torch.nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.errors import InputError
from gradcli.graph.construct import reshape
from gradcli.graph.node import Node
from gradcli.graph.shapes import MAX_ELEMENTS
from gradcli.graph.windows import Window, average, convolve, largest
from gradcli.vocabulary.register import each, flag

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
    apart = _per_axis("dilation", dilation, axes)
    ends = _ends(padding, stride, [d * (n - 1) for n, d in zip(weight.shape[2:], apart, strict=True)])
    sizes = zip(weight.shape[2:], _per_axis("stride", stride, axes), ends, apart, strict=True)
    y = convolve(x, weight, [Window(n, s, p, d, more=more) for n, s, (p, more), d in sizes], groups)
    if bias is None:
        return y
    if bias.shape != weight.shape[:1]:
        raise InputError(f"the bias is a vector of {weight.shape[0]}, a number for each output, not {bias.shape}")
    return y + reshape(bias, (*bias.shape, *(1,) * axes))


def _ends(padding: Sizes | str, stride: Sizes, reaches: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each axis the padding at both ends, and what there is more of it at the far one."""
    if not isinstance(padding, str):
        return [(n, 0) for n in _per_axis("padding", padding, len(reaches), 0)]
    if padding not in ("same", "valid"):
        raise InputError(f"there is no padding `{padding[:40]}`", hint='it is an integer, "same" or "valid"')
    if padding == "same" and set(_per_axis("stride", stride, len(reaches))) != {1}:
        raise InputError('`padding="same"` goes with `stride=1`')
    return [divmod(n, 2) if padding == "same" else (0, 0) for n in reaches]


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


def _windows(axes: int, size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil: bool) -> list[Window]:
    """Return the windows of pooling, which by default touch one another."""
    sizes, apart = _per_axis("kernel_size", size, axes), _per_axis("dilation", dilation, axes)
    steps, ends = sizes if stride is None else _per_axis("stride", stride, axes), _per_axis("padding", padding, axes, 0)
    result = [Window(n, s, p, d, flag("ceil_mode", ceil)) for n, s, p, d in zip(sizes, steps, ends, apart, strict=True)]
    for w in result:
        if w.padding > w.reach // 2:
            raise InputError(
                f"`padding` must be at most half of the window, {w.reach // 2} here, not {w.padding}",
                hint="each window must contain elements of the array",
            )
    return result


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
    return largest(x, _windows(axes, kernel_size, stride, padding, dilation, ceil_mode))


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
    windows = _windows(axes, kernel_size, stride, padding, 1, ceil_mode)
    return average(x, windows, flag("count_include_pad", count_include_pad), divisor)
