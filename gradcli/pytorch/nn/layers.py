"""`torch.nn`'s layers: modules that have weights or draw numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.dtypes import check_device, chosen, default_dtype
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.module import Module, Parameter
from gradcli.pytorch.nn.table import bound_arguments, parameters, rows
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.tensor import Tensor, of_array


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
        self.__dict__["_kind"] = chosen(arguments.pop("dtype", None), default_dtype())
        check_device(arguments.pop("device", None))
        for name, value in arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self._build()

    def _build(self) -> None:
        """Make the parameters."""

    def _empty(self, *shape: int) -> Parameter:
        return Parameter(TORCH["empty"](shape, dtype=self._kind))

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
        if initial is not None:
            raise_if(initial.shape != (rows, self.embedding_dim), "size of the vectors of a table")
            self.weight = Parameter(initial)
            return
        self.weight = self._empty(rows, self.embedding_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._a[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, *args: Any, **kwargs: Any) -> Any:
        raise_if(embeddings.dim() != 2, "no vectors of a table")
        table = cls(*embeddings.shape, *args, _weight=embeddings, **kwargs)
        table.weight.requires_grad_(not freeze)
        return table


# Normalisation


class _BatchNorm(_Layer):
    def _build(self) -> None:
        self._affine((self.num_features,), self.affine, self.affine)
        for name in ("running_mean", "running_var"):
            statistic = TORCH["empty"](self.num_features, dtype=self._kind)
            self.register_buffer(name, statistic if self.track_running_stats else None)
        self.register_buffer("num_batches_tracked", of_array(np.array(0)) if self.track_running_stats else None)
        self.reset_running_stats()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            for buffer, first in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                buffer.fill_(first)

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        ranks = (2, 3) if self.axes == 1 else (self.axes + 2,)
        wrong = input.dim() not in ranks
        raise_if(wrong, "rank for a batch", " or ".join(f"{n}D" for n in ranks), input.dim())
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # the running statistics are means over all batches
                momentum = 1 / self.num_batches_tracked.item()
        of_batch = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var, self.weight, self.bias)
        return F.batch_norm(input, *kept, of_batch, momentum, self.eps)


class _InstanceNorm(_BatchNorm):
    def forward(self, input: Any) -> Any:
        missing_if(input.dim() != self.axes + 2, f"torch.nn.{type(self).__name__} of {input.dim()} axes")
        kept = (self.running_mean, self.running_var, self.weight, self.bias)
        return F.instance_norm(input, *kept, self.training or self.running_mean is None, self.momentum or 0, self.eps)


class GroupNorm(_Layer):
    """Normalisation in groups of channels."""

    def _build(self) -> None:
        raise_if(self.num_channels % self.num_groups, "channels of group_norm", self.num_channels, self.num_groups)
        self._affine((self.num_channels,), self.affine, self.affine)


class _OfLastAxes(_Layer):
    normalized_shape: Any

    def _build(self) -> None:
        shape = self.normalized_shape
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        affine = self.elementwise_affine
        self._register("weight", init.ones_(self._empty(*self.normalized_shape)) if affine else None)


class LayerNorm(_OfLastAxes):
    """Normalisation along the last axes."""

    def _build(self) -> None:
        super()._build()
        self._register("bias", self._empty(*self.normalized_shape) if self.elementwise_affine and self.bias else None)


class RMSNorm(_OfLastAxes):
    """Division by the root mean square along the last axes."""


class _Dropout(_Layer):
    """A layer of dropout."""

    def _build(self) -> None:
        F.check_probability(self.p)


# Bags of vectors of a table: each is summed up, averaged, or its largest numbers are taken


@function("embedding_bag", module=NN)
def embedding_bag(
    input: Any, weight: Any, offsets: Any, max_norm: Any, norm_type: float, scale_grad_by_freq: bool, mode: str,
    sparse: bool, per_sample_weights: Any, include_last_offset: bool, padding_idx: int | None,
) -> Any:  # fmt: skip
    if not weight.is_floating_point() and input.is_floating_point():
        warn("old order of embedding_bag")
        input, weight = weight, input
    missing_if(scale_grad_by_freq, "torch.nn.functional.embedding_bag(scale_grad_by_freq=…)")
    missing_if(sparse, "torch.nn.functional.embedding_bag(sparse=…)")
    _check(input, weight, offsets, mode, per_sample_weights)
    ends = _ends(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    numbers, bags = flat._a[..., 0], np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    kept = np.flatnonzero(numbers[: len(bags)] != (-1 if padding_idx is None else padding_idx % len(weight)))
    rows, bags = F.embedding(flat[of_array(kept)], weight, None, max_norm, norm_type), bags[kept]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1)[of_array(kept)].unsqueeze(-1)
    empty = TORCH["zeros"](len(ends) - 1, weight.shape[1], dtype=weight.dtype)
    if mode == "max":
        each = [rows[of_array(np.flatnonzero(bags == k))] for k in range(len(empty))]
        result = stack([x.max(0).values if len(x) else x.sum(0) for x in each]) if each else empty
    else:
        result = empty.index_add(0, of_array(bags), rows)
    if mode == "mean":
        counts = np.maximum(np.bincount(bags, minlength=len(empty)), 1)
        result = result / of_array(counts[:, None].astype(weight._a.dtype))
    return set_grad_fn_name(result, "EmbeddingBagBackward0")


def _check(input: Any, weight: Any, offsets: Any, mode: str, factors: Any) -> None:
    if factors is not None:
        raise_if(factors.shape != input.shape, "shape of weights in bags", factors.shape, input.shape)
    rank = input.dim()
    raise_if(rank not in (1, 2), "axes of bags", rank)
    raise_if(mode not in ("sum", "mean", "max"), "mode of bags")
    raise_if(rank == 2 and offsets is not None, "offsets beside rows")
    raise_if(rank == 1 and not isinstance(offsets, Tensor), "no offsets")
    raise_if(rank == 1 and offsets.dim() != 1, "axes of offsets")
    raise_if(factors is not None and mode != "sum", "weights of bags that are not summed up", mode)
    ids = input._a.reshape(-1)
    raise_if(ids.dtype.kind != "i", "dtype of indices in bags", input.type())
    bad = np.flatnonzero((ids < 0) | (ids >= len(weight)))[:1]
    raise_if(bad.size, "index in a bag", *bad, *ids[bad], len(weight))
    raise_if(factors is not None and factors.dtype is not weight.dtype, "dtype of weights in bags", weight.dtype)


def _ends(input: Any, offsets: Any, with_last: bool) -> list[int]:
    """Return where each bag begins, and where the last one ends."""
    if input.dim() == 2:
        rows, columns = input.shape
        return [k * columns for k in range(rows + 1)]
    ends: list[int] = offsets._a[..., 0].tolist()
    count = input.numel()
    raise_if(ends and ends[0], "first offset", *ends[:1])
    raise_if(ends and ends[-1] > count, "last offset", count, *ends[-1:])
    missing_if(sorted(ends) != ends, "torch.nn.functional.embedding_bag with offsets that decrease")
    return ends if with_last else [*ends, count]


class EmbeddingBag(Embedding):
    """A table of vectors, of which bags are summed up, averaged, or reduced to the largest numbers."""

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        settings = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        rest = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return F.embedding_bag(input, self.weight, offsets, *settings, *rest)
