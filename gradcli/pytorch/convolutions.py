"""`torch.nn`'s convolutions, those that pass back what they pass on, and what makes pictures larger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch.layers import _Layer, _Linear, kept
from gradcli.pytorch.module import listed


class _Conv(_Linear):
    axes = 1
    __init__ = kept(
        lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros": locals()
    )  # fmt: skip

    def _build(self, empty: Callable[..., Any]) -> None:
        self._as_tuples("kernel_size", "stride", "padding", "dilation")
        for which in ("in_channels", "out_channels"):
            if getattr(self, which) % self.groups:
                raise ValueError(f"{which} must be divisible by groups")
        self._weights(empty, self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _as_tuples(self, *names: str) -> None:
        for name in names:
            if isinstance(own := getattr(self, name), int | list):
                setattr(self, name, tuple(own) if isinstance(own, list) else (own,) * self.axes)

    def forward(self, input: Any) -> Any:
        padding, convolve = self.padding, (F.conv1d, F.conv2d)[self.axes - 1]
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            ends = [n for own in padding[::-1] for n in (own, own)]
            input, padding = F.pad(input, ends, self.padding_mode), (0,) * self.axes
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        found = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        found += self._unusual(padding=(0,) * self.axes, dilation=(1,) * self.axes)
        found += self._unusual(output_padding=(0,) * self.axes) if hasattr(self, "output_padding") else ""
        found += self._unusual(groups=1)
        return found + (", bias=False" if self.bias is None else "") + self._unusual(padding_mode="zeros")


class Conv1d(_Conv):
    """A convolution along one axis."""


class Conv2d(_Conv):
    """A convolution along two axes."""

    axes = 2


class _ConvTranspose(_Conv):
    axes = 1
    __init__ = kept(
        lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros": locals()
    )  # fmt: skip

    def _build(self, empty: Callable[..., Any]) -> None:
        self._as_tuples("kernel_size", "stride", "padding", "dilation", "output_padding")
        self._weights(empty, self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, input: Any) -> Any:
        convolve = getattr(F, f"conv_transpose{self.axes}d")
        settings = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return convolve(input, self.weight, self.bias, *settings)


class ConvTranspose1d(_ConvTranspose):
    """What passes back what a convolution along one axis passes on."""


class ConvTranspose2d(_ConvTranspose):
    """What passes back what a convolution along two axes passes on."""

    axes = 2


class Upsample(_Layer):
    """A picture, or a row, in another size."""

    __init__ = kept(lambda self, size=None, scale_factor=None, mode="nearest", align_corners=None: locals())
    scale_factor: Any
    calls = "interpolate size scale_factor mode align_corners"

    def _build(self, empty: Callable[..., Any]) -> None:
        if (own := self.scale_factor) is not None:
            self.scale_factor = tuple(map(float, own)) if isinstance(own, tuple) else float(own)

    def extra_repr(self) -> str:
        own = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{own}, mode={self.mode!r}"


__all__ = [*listed(globals(), __name__)]
