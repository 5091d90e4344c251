"""`torch.nn`'s layers: modules that have weights or draw numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.pytorch.calls import called
from gradcli.pytorch.dtypes import chosen, default_dtype
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.module import Module, Parameter, listed
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.operations.joining import cat, stack
from gradcli.pytorch.tensor import Tensor, of_array


def _kept(signature: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Return a constructor that keeps its arguments as attributes, and then builds the layer."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        signature.__qualname__ = f"{type(self).__name__}.__init__"
        given = signature(self, *args, **kwargs)
        dtype = chosen(given.pop("dtype", None), default_dtype())
        for name, value in given.items():
            if name not in ("self", "device"):
                setattr(self, name, value)
        self._build(lambda *shape: Parameter(of_array(np.zeros(shape, dtype.numpy))))

    return __init__


class _Layer(Module):
    """A module that keeps its arguments, and shows some of them in its text: `m` is the module."""

    shown = ""
    calls = ""  # a function of `torch.nn.functional`, and the attributes that it takes

    def _build(self, empty: Callable[..., Any]) -> None:
        """Make the parameters; `empty` makes one of a shape."""

    def _affine(self, empty: Callable[..., Any], shape: Sequence[int], weight: bool, bias: bool) -> None:
        """Have a factor of 1 for each number, and a summand of 0."""
        self.register_parameter("weight", init.ones_(empty(*shape)) if weight else None)  # type: ignore[arg-type]
        self.register_parameter("bias", empty(*shape) if bias else None)

    def forward(self, *given: Any) -> Any:
        function, *names = self.calls.split()
        return getattr(F, function)(*given, *(getattr(self, name) for name in names))

    def extra_repr(self) -> str:
        return self.shown.format(m=self, bias=getattr(self, "bias", None) is not None)

    def _unusual(self, **usual: Any) -> str:
        """Return the settings that are not the usual ones, for the text."""
        return "".join(f", {k}={getattr(self, k)}" for k, v in usual.items() if getattr(self, k) != v)


class Identity(Module):
    """What changes nothing."""

    def forward(self, input: Any) -> Any:
        return input


class Flatten(_Layer):
    """Several axes as one."""

    __init__ = _kept(lambda self, start_dim=1, end_dim=-1: locals())
    shown = "start_dim={m.start_dim}, end_dim={m.end_dim}"

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(_Layer):
    """An axis as several."""

    __init__ = _kept(lambda self, dim, unflattened_size: locals())
    shown = "dim={m.dim}, unflattened_size={m.unflattened_size}"

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)


class _Linear(_Layer):
    """What multiplies by weights, which begin small where there are many of them."""

    def _weights(self, empty: Callable[..., Any], outputs: int, *shape: int) -> None:
        self.weight = empty(*shape)
        self.register_parameter("bias", empty(outputs) if self.bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        if self.bias is not None:
            count = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(count) if count else 0
            init.uniform_(self.bias, -bound, bound)


class Linear(_Linear):
    """`x @ weight.T + bias`."""

    __init__ = _kept(lambda self, in_features, out_features, bias=True, device=None, dtype=None: locals())
    shown = "in_features={m.in_features}, out_features={m.out_features}, bias={bias}"

    def _build(self, empty: Callable[..., Any]) -> None:
        self._weights(empty, self.out_features, self.out_features, self.in_features)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)


class Bilinear(_Layer):
    """`x1 @ weight @ x2 + bias`, a matrix for each output."""

    __init__ = _kept(lambda self, in1_features, in2_features, out_features, bias=True: locals())
    calls = "bilinear weight bias"
    shown = "in1_features={m.in1_features}, in2_features={m.in2_features}, out_features={m.out_features}, bias={bias}"

    def _build(self, empty: Callable[..., Any]) -> None:
        bound = 1 / math.sqrt(self.in1_features)
        self.weight = init.uniform_(empty(self.out_features, self.in1_features, self.in2_features), -bound, bound)
        self.register_parameter("bias", init.uniform_(empty(self.out_features), -bound, bound) if self.bias else None)  # type: ignore[arg-type]


class PReLU(_Layer):
    """The numbers, those below 0 times a weight that is learnt."""

    __init__ = _kept(lambda self, num_parameters=1, init=0.25: locals())
    calls = "prelu weight"
    shown = "num_parameters={m.num_parameters}"

    def _build(self, empty: Callable[..., Any]) -> None:
        self.weight = init.constant_(empty(self.num_parameters), self.init)


class Embedding(_Layer):
    """A table of vectors; the row at `padding_idx` is 0 at first, and gets no gradient."""

    calls = "embedding weight padding_idx max_norm norm_type"
    padding_idx: int | None
    __init__ = _kept(
        lambda self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
        scale_grad_by_freq=False, sparse=False: locals()
    )  # fmt: skip

    def _build(self, empty: Callable[..., Any]) -> None:
        rows = self.num_embeddings
        if self.padding_idx is not None:
            if not -rows <= self.padding_idx < rows:
                raise AssertionError("Padding_idx must be within num_embeddings")
            self.padding_idx = self.padding_idx % rows
        if self.scale_grad_by_freq or self.sparse:
            raise MissingError("torch.nn.Embedding(scale_grad_by_freq=…, sparse=…)")
        self.weight = init.normal_(empty(rows, self.embedding_dim))
        if self.padding_idx is not None:
            self.weight._a[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Any:
        found = cls(*embeddings.shape, padding_idx)
        found.weight = Parameter(embeddings, requires_grad=not freeze)
        return found

    def extra_repr(self) -> str:
        more = self._unusual(padding_idx=None, max_norm=None, norm_type=2)
        return f"{self.num_embeddings}, {self.embedding_dim}{more}"


class Upsample(_Layer):
    """A picture, or a row, in another size."""

    __init__ = _kept(lambda self, size=None, scale_factor=None, mode="nearest", align_corners=None: locals())
    calls = "interpolate size scale_factor mode align_corners"
    scale_factor: Any

    def _build(self, empty: Callable[..., Any]) -> None:
        if (own := self.scale_factor) is not None:
            self.scale_factor = tuple(map(float, own)) if isinstance(own, tuple) else float(own)

    def extra_repr(self) -> str:
        own = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{own}, mode={self.mode!r}"


# Normalisation


class _BatchNorm(_Layer):
    ranks: tuple[int, ...] = (2, 3)
    words = "2D or 3D"
    __init__ = _kept(
        lambda self, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True: locals()
    )
    shown = (
        "{m.num_features}, eps={m.eps}, momentum={m.momentum}, affine={m.affine}, bias={bias}, "
        "track_running_stats={m.track_running_stats}"
    )

    def _build(self, empty: Callable[..., Any]) -> None:
        self._affine(empty, (self.num_features,), self.affine, self.affine)
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            own = of_array(np.full(self.num_features, value, np.float32)) if self.track_running_stats else None
            self.register_buffer(name, own)
        self.register_buffer("num_batches_tracked", of_array(np.array(0)) if self.track_running_stats else None)

    def forward(self, input: Any) -> Any:
        if input.dim() not in self.ranks:
            raise ValueError(f"expected {self.words} input (got {input.dim()}D input)")
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked._a[...] += 1
        own = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var, self.weight, self.bias)
        return F.batch_norm(input, *kept, own, self.momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of vectors."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images."""

    ranks, words = (4,), "4D"


class LayerNorm(_Layer):
    """Normalisation along the last axes."""

    normalized_shape: Any
    __init__ = _kept(lambda self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True: locals())
    calls = "layer_norm normalized_shape weight bias eps"
    shown = "{m.normalized_shape}, eps={m.eps}, elementwise_affine={m.elementwise_affine}, bias={bias}"

    def _build(self, empty: Callable[..., Any]) -> None:
        own = self.normalized_shape
        self.normalized_shape = (own,) if isinstance(own, int) else tuple(own)
        self._affine(empty, self.normalized_shape, self.elementwise_affine, self.elementwise_affine and self.bias)


class GroupNorm(_Layer):
    """Normalisation in groups of channels."""

    __init__ = _kept(lambda self, num_groups, num_channels, eps=1e-05, affine=True: locals())
    calls = "group_norm num_groups weight bias eps"
    shown = "{m.num_groups}, {m.num_channels}, eps={m.eps}, affine={m.affine}, bias={bias}"

    def _build(self, empty: Callable[..., Any]) -> None:
        if self.num_channels % self.num_groups:
            raise ValueError(f"num_channels ({self.num_channels}) must be divisible by num_groups ({self.num_groups})")
        self._affine(empty, (self.num_channels,), self.affine, self.affine)


class Dropout(_Layer):
    """Sets numbers to 0 by chance, in training."""

    __init__ = _kept(lambda self, p=0.5, inplace=False: locals())
    shown = "p={m.p}, inplace={m.inplace}"
    dropped = staticmethod(F.dropout)

    def _build(self, empty: Callable[..., Any]) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, input: Any) -> Any:
        return self.dropped(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """Sets channels to 0 by chance, in training."""

    dropped = staticmethod(F.dropout2d)


# Recurrence


class _Recurrent(_Layer):
    """Weights and biases of recurrences `h ← tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)`."""

    def _register(self, name: str, inputs: int, empty: Callable[..., Any]) -> None:
        bound, own = 1.0 / math.sqrt(self.hidden_size), self.hidden_size
        shapes = {"weight_ih": (own, inputs), "weight_hh": (own, own)}
        for part, shape in (shapes | ({"bias_ih": (own,), "bias_hh": (own,)} if self.bias else {})).items():
            self.register_parameter(f"{part}{name}", init.uniform_(empty(*shape), -bound, bound))  # type: ignore[arg-type]

    def _linear(self, x: Any, part: str, name: str) -> Any:
        bias = getattr(self, f"bias_{part}{name}") if self.bias else None
        return F.linear(x, getattr(self, f"weight_{part}{name}"), bias)

    def _step(self, from_input: Any, h: Any, name: str) -> Any:
        act = F.tanh if self.nonlinearity == "tanh" else F.relu  # type: ignore[attr-defined]
        return act(self._linear(h, "hh", name) + from_input)


class RNN(_Recurrent):
    """Recurrent layers, each on the states of the one before, in one direction or in both."""

    __init__ = _kept(
        lambda self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
        dropout=0.0, bidirectional=False: locals()
    )  # fmt: skip

    def _build(self, empty: Callable[..., Any]) -> None:
        self._ends = ("", "_reverse") if self.bidirectional else ("",)
        for k in range(self.num_layers):
            for end in self._ends:
                self._register(f"_l{k}{end}", self.hidden_size * len(self._ends) if k else self.input_size, empty)

    def forward(self, input: Any, hx: Any = None) -> Any:
        batched = input.dim() == 3
        if input.shape[-1] != self.input_size:
            raise refusal("features of a recurrence", self.input_size, input.shape[-1])
        x = input if batched else input.unsqueeze(int(not self.batch_first))
        x = x.transpose(0, 1) if self.batch_first else x
        count = self.num_layers * len(self._ends)
        if hx is None:
            hx = zeros(count, x.shape[1], self.hidden_size, dtype=x.dtype)
        elif not batched:
            hx = hx.unsqueeze(1)
        if tuple(hx.shape) != (count, x.shape[1], self.hidden_size):
            raise RuntimeError(f"Expected hidden size {(count, x.shape[1], self.hidden_size)}, got {list(hx.shape)}")
        out, last = self._layers(x, hx)
        out = called(out.transpose(0, 1), "TransposeBackward1") if self.batch_first else out
        return (out, last) if batched else (out.squeeze(int(not self.batch_first)), last.squeeze(1))

    def _layers(self, x: Any, hx: Any) -> tuple[Any, Any]:
        last = []
        for k in range(self.num_layers):
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            sides = []
            for i, end in enumerate(self._ends):
                states, h = self._run(x, hx[k * len(self._ends) + i], f"_l{k}{end}", bool(end))
                sides.append(states)
                last.append(h)
            x = sides[0] if len(sides) == 1 else cat(sides, -1)
        return x, stack(last)

    def _run(self, x: Any, h: Any, name: str, backwards: bool) -> tuple[Any, Any]:
        found: list[Any] = []
        steps = self._linear(x, "ih", name).unbind(0)  # of all at once, as their last digits show
        for step in reversed(steps) if backwards else steps:
            h = self._step(step, h, name)
            found.append(h)
        return stack(found[::-1] if backwards else found), h

    def extra_repr(self) -> str:
        own = self._unusual(num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)
        return f"{self.input_size}, {self.hidden_size}{own}"


class RNNCell(_Recurrent):
    """One step of a recurrence."""

    __init__ = _kept(lambda self, input_size, hidden_size, bias=True, nonlinearity="tanh": locals())

    def _build(self, empty: Callable[..., Any]) -> None:
        self._register("", self.input_size, empty)

    def forward(self, input: Any, hx: Any = None) -> Any:
        own = zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype) if hx is None else hx
        return self._step(self._linear(input, "ih", ""), own, "")

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{self._unusual(bias=True, nonlinearity='tanh')}"


__all__ = [*listed(globals(), __name__), "Parameter", "Tensor"]
