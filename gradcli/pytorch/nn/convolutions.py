"""`torch.nn`'s convolutions, and the transposed ones, in which each number of the input spreads over a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.graph.construct import reshape, scatter, transpose
from gradcli.graph.node import Node
from gradcli.graph.places import Places, take
from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import _kept, _Linear
from gradcli.pytorch.record import apply
from gradcli.pytorch.refusals import check_settings, check_types, several
from gradcli.pytorch.tensor import Tensor
from gradcli.vocabulary import FUNCTIONS

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"]


def _transposed(axes: int) -> Callable[..., Tensor]:
    def convolve(
        input: Any,
        weight: Any,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        settings = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        _check(axes, input, weight, bias, settings, groups)
        rows = list(zip(*(several(s, axes) for s in settings.values()), strict=True))

        def build(x: Node, w: Node, *more: Node) -> Node:
            return FUNCTIONS[f"conv{axes}d"](
                _apart(x, w.shape[2:], rows), _turned(w, groups), *more, dilation=several(dilation, axes), groups=groups
            )

        x = input if input.dim() == axes + 2 else input.unsqueeze(0)
        given = [t for t in (x, weight, bias) if t is not None]
        found: Any = apply(f"conv_transpose{axes}d", build, given, (tuple(rows), groups), "ConvolutionBackward0")
        return found if x is input else called(found.squeeze(0), "SqueezeBackward1")  # type: ignore[no-any-return]

    convolve.__name__ = f"conv_transpose{axes}d"
    return convolve


def _apart(x: Node, kernel: Sequence[int], rows: Sequence[Sequence[int]]) -> Node:
    """Return the input with zeros between its numbers and around them, over which the turned kernel runs."""
    shape, key = list(x.shape[:2]), [range(n) for n in x.shape[:2]]
    ends: list[int] = []
    for n, k, (stride, padding, more, dilation) in zip(x.shape[2:], kernel, rows, strict=True):
        reach = dilation * (k - 1)
        size = (n - 1) * stride + 1
        shape.append(size)
        key.append(range(0, size, stride))
        ends = [reach - padding, reach - padding + more, *ends]
    wide = x if tuple(shape) == x.shape else scatter(tuple(shape), [(tuple(key), x)])
    return FUNCTIONS["pad"](wide, tuple(ends))


def _turned(w: Node, groups: int) -> Node:
    """Return the kernel as one of a convolution: outputs before inputs, and backwards along the other axes."""
    inputs, outputs, *sizes = w.shape
    rest = range(3, 3 + len(sizes))
    found = transpose(reshape(w, (groups, inputs // groups, outputs, *sizes)), (0, 2, 1, *rest))
    found = reshape(found, (groups * outputs, inputs // groups, *sizes))
    for axis, n in enumerate(sizes, 2):
        found = take(found, axis, Places.of(range(n - 1, -1, -1)))
    return found


def _check(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], groups: int
) -> None:
    if input.dim() not in (axes + 1, axes + 2):
        raise refusal("rank of a convolution's input", axes + 1, axes + 2, f"_transpose{axes}", list(input.shape))
    check_settings(weight.dim() - 2, {name: v for name, v in settings.items() if name != "output_padding"})
    check_types(input, weight, None)
    shape, whole = list(weight.shape), list(input.shape) if input.dim() == axes + 2 else [1, *input.shape]
    if whole[1] != shape[0]:
        raise refusal("channels of a convolution", "transposed=1", shape, whole, shape[0], whole[1])
    if bias is not None and list(bias.shape) != [shape[1] * groups]:
        raise refusal("size of a convolution's bias", "transposed=1, ", shape, shape[1] * groups, list(bias.shape))
    rows = [several(settings[name], axes) for name in ("output_padding", "stride", "dilation")]
    if any(more >= max(others) for more, *others in zip(*rows, strict=True)):
        ends = [pair if axes == 2 else [least, *pair] for pair, least in zip(rows, (0, 1, 1), strict=True)]
        raise refusal("output padding", *ends[0], *ends[1], *ends[2])


conv_transpose1d, conv_transpose2d = _transposed(1), _transposed(2)


# Layers


class _Conv(_Linear):
    axes = 1
    output_padding: Any = 0  # of transposed ones
    __init__ = _kept(
        lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros": locals()
    )  # fmt: skip

    def _build(self, empty: Callable[..., Any]) -> None:
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            if isinstance(own := getattr(self, name), int | list):
                setattr(self, name, tuple(own) if isinstance(own, list) else (own,) * self.axes)
        for which in ("in_channels", "out_channels"):
            if getattr(self, which) % self.groups:
                raise ValueError(f"{which} must be divisible by groups")
        self._weights(empty, self.out_channels, *self._planes(), *self.kernel_size)

    def _planes(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def forward(self, input: Any) -> Any:
        padding, convolve = self.padding, (F.conv1d, F.conv2d)[self.axes - 1]
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            ends = [n for own in padding[::-1] for n in (own, own)]
            input, padding = F.pad(input, ends, self.padding_mode), (0,) * self.axes
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        found = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        none = (0,) * self.axes
        found += self._unusual(padding=none, dilation=(1,) * self.axes, output_padding=none, groups=1)
        return found + (", bias=False" if self.bias is None else "") + self._unusual(padding_mode="zeros")


class Conv1d(_Conv):
    """A convolution along one axis."""


class Conv2d(_Conv):
    """A convolution along two axes."""

    axes = 2


class ConvTranspose1d(_Conv):
    """A transposed convolution along one axis."""

    __init__ = _kept(
        lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros": locals()
    )  # fmt: skip
    spread = staticmethod(conv_transpose1d)

    def _planes(self) -> tuple[int, int]:
        if self.padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Any, output_size: Any = None) -> Any:
        if output_size is not None:
            raise MissingError(f"torch.nn.{type(self).__name__}(…)(output_size=…)")
        own = (self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return self.spread(input, *own)


class ConvTranspose2d(ConvTranspose1d):
    """A transposed convolution along two axes."""

    axes = 2
    spread = staticmethod(conv_transpose2d)
