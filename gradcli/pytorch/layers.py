"""`torch.nn`'s layers: modules that call `torch.nn.functional`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.pytorch import functional as F
from gradcli.pytorch import init
from gradcli.pytorch.dtypes import dtype as torch_dtype
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.module import Module, Parameter, listed
from gradcli.pytorch.tensor import Tensor, of_array


class Identity(Module):
    """What changes nothing."""

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Flatten(Module):
    """Several axes as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """Return the input with fewer axes."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


# Layers with weights


def empty(*shape: int, dtype: torch_dtype | None = None) -> Parameter:
    """Return a parameter of zeros."""
    from gradcli.pytorch.dtypes import default_dtype

    return Parameter(of_array(np.zeros(shape, (dtype or default_dtype()).numpy)))


class Linear(Module):
    """`x @ weight.T + bias`."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty(out_features, in_features, dtype=dtype)
        if bias:
            self.bias = empty(out_features, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin anew."""
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """Return the product and the bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class _Conv(Module):
    axes = 1
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        for which, channels in (("in", in_channels), ("out", out_channels)):
            if channels % groups:
                raise ValueError(f"{which}_channels must be divisible by groups")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {list(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.padding_mode = padding_mode
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = map(self._each, (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.weight = empty(out_channels, in_channels // groups, *self.kernel_size)
        if bias:
            self.bias = empty(out_channels)
        else:
            self.register_parameter("bias", None)
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(in_channels // groups * math.prod(self.kernel_size))
            init.uniform_(self.bias, -bound, bound)

    def _each(self, given: Any) -> tuple[int, ...]:
        return tuple(given) if isinstance(given, Sequence) else (given,) * self.axes

    def forward(self, input: Any) -> Any:
        """Return the convolution."""
        convolve = F.conv1d if self.axes == 1 else F.conv2d
        padding = self.padding
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            ends = [n for own in padding[::-1] for n in (own, own)]
            input, padding = F.pad(input, ends, self.padding_mode), (0,) * self.axes
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        found = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.axes:
            found += f", padding={self.padding}"
        if self.dilation != (1,) * self.axes:
            found += f", dilation={self.dilation}"
        if self.groups != 1:
            found += f", groups={self.groups}"
        found += ", bias=False" if self.bias is None else ""
        return found + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Conv1d(_Conv):
    """A convolution along one axis."""


class Conv2d(_Conv):
    """A convolution along two axes."""

    axes = 2


class Embedding(Module):
    """A table of vectors; the row at `padding_idx` is 0 at first, and gets no gradient."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        for name, value in (("max_norm", max_norm), ("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)):
            if value:
                raise MissingError(f"torch.nn.Embedding({name}=…)")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = empty(num_embeddings, embedding_dim)
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._a[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Any:
        """Return the layer of a table that is there."""
        rows, columns = embeddings.shape
        found = cls(rows, columns, padding_idx)
        found.weight = Parameter(embeddings, requires_grad=not freeze)
        return found

    def forward(self, input: Any) -> Any:
        """Return the rows at places."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        found = f"{self.num_embeddings}, {self.embedding_dim}"
        return found + (f", padding_idx={self.padding_idx}" if self.padding_idx is not None else "")


class _BatchNorm(Module):
    ranks: tuple[int, ...] = (2, 3)
    words = "2D or 3D"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            self.register_parameter(name, init.constant_(empty(num_features), value) if affine else None)  # type: ignore[arg-type]
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            own = of_array(np.full(num_features, value, np.float32)) if track_running_stats else None
            self.register_buffer(name, own)
        self.register_buffer("num_batches_tracked", of_array(np.array(0)) if track_running_stats else None)

    def forward(self, input: Any) -> Any:
        """Return the numbers with mean 0 and variance 1 in each channel."""
        if input.dim() not in self.ranks:
            raise ValueError(f"expected {self.words} input (got {input.dim()}D input)")
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked._a[...] += 1
        uses_batch = self.training or self.running_mean is None
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, uses_batch, self.momentum, self.eps
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of vectors."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images."""

    ranks = (4,)
    words = "4D"


class LayerNorm(Module):
    """Normalisation along the last axes."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-05, elementwise_affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        own = self.normalized_shape
        self.register_parameter("weight", init.ones_(empty(*own)) if elementwise_affine else None)  # type: ignore[arg-type]
        self.register_parameter("bias", empty(*own) if elementwise_affine and bias else None)

    def forward(self, input: Any) -> Any:
        """Return the numbers with mean 0 and variance 1 along the last axes."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        own = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{own}, bias={self.bias is not None}"


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        """Return the numbers, some of them 0 by chance."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Sets numbers to 0 by chance, in training."""


class Dropout2d(_DropoutNd):
    """Sets channels to 0 by chance, in training."""

    def forward(self, input: Any) -> Any:
        """Return the channels, some of them 0 by chance."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class GroupNorm(Module):
    """Normalisation in groups of channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", init.ones_(empty(num_channels)) if affine else None)  # type: ignore[arg-type]
        self.register_parameter("bias", empty(num_channels) if affine else None)

    def forward(self, input: Any) -> Any:
        """Return the numbers with mean 0 and variance 1 in each group."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        own = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{own}, bias={self.bias is not None}"


class Bilinear(Module):
    """`x1 @ weight @ x2 + bias`, a matrix for each output."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = init.uniform_(empty(out_features, in1_features, in2_features), -bound, bound)
        self.register_parameter("bias", init.uniform_(empty(out_features), -bound, bound) if bias else None)  # type: ignore[arg-type]

    def forward(self, input1: Any, input2: Any) -> Any:
        """Return the sums of products."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        own = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{own}, bias={self.bias is not None}"


class PReLU(Module):
    """The numbers, those below 0 times a weight that is learnt."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = empty(num_parameters)
        self.weight._a[...] = init

    def forward(self, input: Any) -> Any:
        """Return the numbers."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Unflatten(Module):
    """An axis as several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        """Return the input with more axes."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


__all__ = [*listed(globals(), __name__), "Parameter", "Tensor"]
