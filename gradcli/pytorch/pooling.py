"""`torch.nn`'s pooling layers: one number for each window, or so many along each axis."""

from __future__ import annotations

from itertools import product
from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch.module import Module, listed


class _MaxPoolNd(Module):
    function: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.more = {"dilation": dilation, "return_indices": return_indices, "ceil_mode": ceil_mode}

    def forward(self, input: Any) -> Any:
        """Return one number for each window."""
        return type(self).function(input, self.kernel_size, self.stride, self.padding, **self.more)

    def extra_repr(self) -> str:
        own = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{own}, dilation={self.more['dilation']}, ceil_mode={self.more['ceil_mode']}"


class _Mean(_MaxPoolNd):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.more = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad, **more}

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(_MaxPoolNd):
    """The largest of each window."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The largest of each window."""

    function = staticmethod(F.max_pool2d)


class AvgPool1d(_Mean):
    """The mean of each window."""

    function = staticmethod(F.avg_pool1d)

    def extra_repr(self) -> str:
        own = [v if isinstance(v, tuple) else (v,) for v in (self.kernel_size, self.stride, self.padding)]
        return f"kernel_size={own[0]}, stride={own[1]}, padding={own[2]}"


class AvgPool2d(_Mean):
    """The mean of each window."""

    function = staticmethod(F.avg_pool2d)


class _Adaptive(Module):
    function: Any = None

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """Return so many numbers along each axis."""
        return type(self).function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


for _kind, _axes in product(("Avg", "Max"), (1, 2)):
    _function = getattr(F, f"adaptive_{_kind.lower()}_pool{_axes}d")
    _body = {"function": staticmethod(_function), "__doc__": "Pooling to a given size.", "__module__": __name__}
    globals()[f"Adaptive{_kind}Pool{_axes}d"] = type(f"Adaptive{_kind}Pool{_axes}d", (_Adaptive,), _body)

__all__ = listed(globals(), __name__)
