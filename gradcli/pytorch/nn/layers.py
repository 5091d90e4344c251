"""`torch.nn`'s layers: modules that have weights or draw numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch.dtypes import check_device, chosen, default_dtype
from gradcli.pytorch.limits import check_limits
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.module import Module, Parameter
from gradcli.pytorch.nn.table import bound_arguments, parameters, rows
from gradcli.pytorch.tensor import Tensor, of_array


@cache
def _pytorch_name(cls: type) -> str:
    """Return the name of PyTorch's module that a class is, or that a script's own class is based on."""
    return next((c.__name__ for c in cls.__mro__ if c.__name__ in rows()), "")


class _Layer(Module):
    """A module that keeps its arguments, tensors as buffers, and shows some of them in its text: its row says which."""

    calls: tuple[str, ...] = ()  # a function of `torch.nn.functional`, and the attributes that it takes
    takes: ClassVar[dict[str, Any]] = {}
    shows = ""
    axes = 0  # of the windows, or the pictures, of modules whose names end in `1d` and the like

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if (row := rows().get(cls.__name__)) is not None and cls.__module__.startswith("torch.nn."):
            cls.axes = int(cls.__name__[-2]) if cls.__name__.endswith(("1d", "2d", "3d")) else cls.axes
            cls.calls = tuple(row.calls)
            cls.takes = cls.takes if row.takes is None else parameters(row.takes)
            cls.shows = cls.shows if row.shows is None else row.shows

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        arguments = bound_arguments(type(self).__name__, self.takes, args, kwargs)
        self.__dict__["_kind"] = chosen(arguments.pop("dtype", None), default_dtype()).numpy
        check_device(arguments.pop("device", None))
        check_limits(_pytorch_name(type(self)), arguments)  # type: ignore[arg-type]
        for name, value in arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self._build()

    def _build(self) -> None:
        """Make the parameters."""

    def _empty(self, *shape: int) -> Parameter:
        return Parameter(of_array(np.zeros(shape, self._kind)))

    def _affine(self, shape: Sequence[int], weight: bool, bias: bool) -> None:
        """Register the parameters `weight`, ones, and `bias`, zeros, if the module has them."""
        self._register("weight", init.ones_(self._empty(*shape)) if weight else None)
        self._register("bias", self._empty(*shape) if bias else None)

    def _register(self, name: str, param: Tensor | None) -> None:
        """Register a parameter in place of the setting that says whether there is one."""
        self.__dict__.pop(name, None)
        self.register_parameter(name, param)

    def forward(self, *args: Any, **more: Any) -> Any:
        function, *names = self.calls
        return getattr(F, function)(*args, **{name: getattr(self, name) for name in names} | more)

    def extra_repr(self) -> str:
        result = []
        for word in self.shows.split():
            name = word.strip("*?!")
            value, usual = getattr(self, name), self.takes.get(name)
            if name == "bias" and not isinstance(value, bool):
                value = value is not None
            if "?" not in word or value not in (usual, (usual,) * self.axes):
                text = repr(value) if "!" in word else str(value)
                result.append(text if "*" in word else f"{name}={text}")
        return ", ".join(result)


class Identity(Module):
    """The module that returns its input."""

    def forward(self, input: Any) -> Any:
        return input


class Flatten(_Layer):
    """Several axes as one."""

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)


class Upsample(_Layer):
    """Pictures, or rows, in another size."""

    scale_factor: Any

    def _build(self) -> None:
        factors = self.scale_factor
        self.scale_factor = tuple(map(float, factors)) if isinstance(factors, tuple) else factors and float(factors)


class Unflatten(_Layer):
    """An axis as several."""

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)


class _Linear(_Layer):
    """A layer with weights, which are initialized as in PyTorch: the more inputs, the smaller."""

    def _weights(self, outputs: int, *shape: int) -> None:
        self.weight = self._empty(*shape)
        self._register("bias", self._empty(outputs) if self.bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        if self.bias is not None:
            count = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(count) if count else 0
            init.uniform_(self.bias, -bound, bound)


class Bilinear(_Layer):
    """`x1 @ weight[i] @ x2 + bias[i]`."""

    def _build(self) -> None:
        self.weight = self._empty(self.out_features, self.in1_features, self.in2_features)
        self._register("bias", self._empty(self.out_features) if self.bias else None)
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)


class Linear(_Linear):
    """`x @ weight.T + bias`."""

    def _build(self) -> None:
        self._weights(self.out_features, self.out_features, self.in_features)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)


class PReLU(_Layer):
    """The numbers, those below 0 times a weight that is learnt."""

    def _build(self) -> None:
        self.weight = init.constant_(self._empty(self.num_parameters), self.init)


class Embedding(_Layer):
    """A table of vectors; the row at `padding_idx` is 0 at first, and gets no gradient."""

    padding_idx: int | None

    def _build(self) -> None:
        rows = self.num_embeddings
        if self.padding_idx is not None:
            raise_if(not -rows <= self.padding_idx < rows, "padding outside")
            self.padding_idx = self.padding_idx % rows
        initial = self._buffers.pop("_weight", self.__dict__.pop("_weight", None))
        self.weight = init.normal_(self._empty(rows, self.embedding_dim)) if initial is None else Parameter(initial)
        if self.padding_idx is not None and initial is None:
            self.weight._a[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Any:
        result = cls(*embeddings.shape, padding_idx)
        result.weight = Parameter(embeddings, requires_grad=not freeze)
        return result


# Normalisation


class _BatchNorm(_Layer):
    def _build(self) -> None:
        self._affine((self.num_features,), self.affine, self.affine)
        zeros = np.zeros(self.num_features, self._kind)
        buffers = {"running_mean": zeros, "running_var": zeros + 1, "num_batches_tracked": np.array(0)}
        for name, value in buffers.items():
            self.register_buffer(name, of_array(value) if self.track_running_stats else None)

    def forward(self, input: Any) -> Any:
        check_limits(f"{_pytorch_name(type(self))}.forward", {"input": input})  # type: ignore[arg-type]
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked._a[...] += 1
        of_batch = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var, self.weight, self.bias)
        return F.batch_norm(input, *kept, of_batch, self.momentum, self.eps)


class _InstanceNorm(_BatchNorm):
    def forward(self, input: Any) -> Any:
        other = self.track_running_stats or input.dim() != self.axes + 2
        missing_if(other, f"torch.nn.{type(self).__name__} with running statistics or of {input.dim()} axes")
        return F.instance_norm(input, None, None, self.weight, self.bias, eps=self.eps)


class GroupNorm(_Layer):
    """Normalisation in groups of channels."""

    def _build(self) -> None:
        raise_if(self.num_channels % self.num_groups, "channels of group_norm", self.num_channels, self.num_groups)
        self._affine((self.num_channels,), self.affine, self.affine)


class LayerNorm(_Layer):
    """Normalisation along the last axes."""

    normalized_shape: Any

    def _build(self) -> None:
        shape = self.normalized_shape
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._affine(self.normalized_shape, self.elementwise_affine, self.elementwise_affine and self.bias)


class RMSNorm(_Layer):
    """Division by the root mean square along the last axes."""

    normalized_shape: Any

    def _build(self) -> None:
        shape = self.normalized_shape
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._affine(self.normalized_shape, self.elementwise_affine, False)
        del self._parameters["bias"]


class _Dropout(_Layer):
    """A layer of dropout."""
