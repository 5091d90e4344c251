"""`torch.nn`'s layers, activations and losses: modules that call `torch.nn.functional`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.pytorch import functional as F
from gradcli.pytorch import init
from gradcli.pytorch.dtypes import dtype as torch_dtype
from gradcli.pytorch.module import Module, Parameter
from gradcli.pytorch.tensor import Tensor, of_array

# Containers


class Sequential(Module):
    """Layers, one after the other."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], dict)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Return what the last layer makes of what the others made."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        items = list(self._modules.items())
        return type(self)(dict(items[key])) if isinstance(key, slice) else items[key][1]

    def __setitem__(self, key: int, module: Module) -> None:
        self._modules[list(self._modules)[key]] = module

    def append(self, module: Module) -> Any:
        """Add a layer at the end."""
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module):
    """Modules in a list."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self.extend(modules)

    def extend(self, modules: Any) -> Any:
        """Add modules at the end."""
        for module in modules or ():
            self.append(module)
        return self

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        found = list(self._modules.values())[key]
        return type(self)(found) if isinstance(key, slice) else found


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self.add_module(name, module)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()


class ParameterList(Module):
    """Parameters in a list."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> Any:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self._parameters)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, key: int) -> Any:
        return list(self._parameters.values())[key]


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


def _empty(*shape: int, dtype: torch_dtype | None = None) -> Parameter:
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
        self.weight = _empty(out_features, in_features, dtype=dtype)
        if bias:
            self.bias = _empty(out_features, dtype=dtype)
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
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = map(self._each, (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.weight = _empty(out_channels, in_channels // groups, *self.kernel_size)
        if bias:
            self.bias = _empty(out_channels)
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
        return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        found = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.axes:
            found += f", padding={self.padding}"
        if self.dilation != (1,) * self.axes:
            found += f", dilation={self.dilation}"
        if self.groups != 1:
            found += f", groups={self.groups}"
        return found + (", bias=False" if self.bias is None else "")


class Conv1d(_Conv):
    """A convolution along one axis."""


class Conv2d(_Conv):
    """A convolution along two axes."""

    axes = 2


class Embedding(Module):
    """A table of vectors."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if padding_idx is not None:
            from gradcli.pytorch.missing import MissingError

            raise MissingError("torch.nn.Embedding(padding_idx=…)")
        self.weight = _empty(num_embeddings, embedding_dim)
        init.normal_(self.weight)

    def forward(self, input: Any) -> Any:
        """Return the rows at places."""
        return F.embedding(input, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


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
            self.register_parameter(name, init.constant_(_empty(num_features), value) if affine else None)  # type: ignore[arg-type]
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
        self.register_parameter("weight", init.ones_(_empty(*own)) if elementwise_affine else None)  # type: ignore[arg-type]
        self.register_parameter("bias", _empty(*own) if elementwise_affine and bias else None)

    def forward(self, input: Any) -> Any:
        """Return the numbers with mean 0 and variance 1 along the last axes."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        own = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{own}, bias={self.bias is not None}"


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        """Return the numbers, some of them 0 by chance."""
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Sets numbers to 0 by chance, in training."""


class Dropout2d(_Dropout):
    """Sets channels to 0 by chance, in training."""

    def forward(self, input: Any) -> Any:
        """Return the channels, some of them 0 by chance."""
        return F.dropout2d(input, self.p, self.training)


class RNN(Module):
    """A recurrent layer: `h ← tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if dropout or bidirectional or not bias:
            from gradcli.pytorch.missing import MissingError

            raise MissingError("torch.nn.RNN with dropout, in both directions, or without bias")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.nonlinearity, self.batch_first = nonlinearity, batch_first
        bound = 1.0 / math.sqrt(hidden_size)
        for k in range(num_layers):
            sizes = {"weight_ih": (hidden_size, hidden_size if k else input_size), "weight_hh": (hidden_size,) * 2}
            sizes |= {"bias_ih": (hidden_size,), "bias_hh": (hidden_size,)}  # type: ignore[dict-item]
            for name, shape in sizes.items():
                self.register_parameter(f"{name}_l{k}", init.uniform_(_empty(*shape), -bound, bound))  # type: ignore[arg-type]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the last layer's states at all times, and every layer's last state."""
        from gradcli.pytorch.creation import zeros
        from gradcli.pytorch.joining import stack

        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1 if not self.batch_first else 0)
        x = x.transpose(0, 1) if self.batch_first else x
        states = (
            zeros(self.num_layers, x.shape[1], self.hidden_size) if hx is None else hx if batched else hx.unsqueeze(1)
        )
        last = []
        act = F.tanh if self.nonlinearity == "tanh" else F.relu
        for k in range(self.num_layers):
            w_ih, w_hh, b_ih, b_hh = (
                getattr(self, f"{n}_l{k}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h: Any = states[k]
            found = []
            for step in range(x.shape[0]):
                h = act(F.linear(x[step], w_ih, b_ih) + F.linear(h, w_hh, b_hh))
                found.append(h)
            x = stack(found)
            last.append(h)
        out = x.transpose(0, 1) if self.batch_first else x
        hidden = stack(last)
        return (out, hidden) if batched else (out.squeeze(0 if self.batch_first else 1), hidden.squeeze(1))

    def extra_repr(self) -> str:
        found = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            found += f", num_layers={self.num_layers}"
        return found + (f", batch_first={self.batch_first}" if self.batch_first else "")


# Pooling


class _Pool(Module):
    function: Any = None
    largest = True

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation, self.ceil_mode = kernel_size, padding, dilation, ceil_mode
        self.stride = kernel_size if stride is None else stride

    def forward(self, input: Any) -> Any:
        """Return one number for each window."""
        more = (self.dilation, self.ceil_mode) if self.largest else ()
        return type(self).function(input, self.kernel_size, self.stride, self.padding, *more)

    def extra_repr(self) -> str:
        found = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return found + (f", dilation={self.dilation}, ceil_mode={self.ceil_mode}" if self.largest else "")


class MaxPool1d(_Pool):
    """The largest of each window."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_Pool):
    """The largest of each window."""

    function = staticmethod(F.max_pool2d)


class AvgPool1d(_Pool):
    """The mean of each window."""

    function, largest = staticmethod(F.avg_pool1d), False

    def extra_repr(self) -> str:
        own = [v if isinstance(v, tuple) else (v,) for v in (self.kernel_size, self.stride, self.padding)]
        return f"kernel_size={own[0]}, stride={own[1]}, padding={own[2]}"


class AvgPool2d(_Pool):
    """The mean of each window."""

    function, largest = staticmethod(F.avg_pool2d), False


class AdaptiveAvgPool2d(Module):
    """The means of whole images."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """Return the means."""
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


__all__ = [n for n, v in list(globals().items()) if isinstance(v, type) and issubclass(v, Module) and n[0] != "_"]
__all__ += ["Parameter", "Tensor"]
for _name in __all__:
    if globals()[_name].__module__ == __name__:
        globals()[_name].__module__ = "torch.nn.modules"
