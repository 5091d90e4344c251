"""`torch.nn`'s recurrent layer and its cell."""

from __future__ import annotations

import math
from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch import init
from gradcli.pytorch.calls import called
from gradcli.pytorch.creation import zeros
from gradcli.pytorch.joining import cat, stack
from gradcli.pytorch.layers import empty
from gradcli.pytorch.module import Module, listed


class _Recurrent(Module):
    """Weights and biases of recurrences `h ← tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)`."""

    hidden_size: int
    nonlinearity: str

    def _register(self, name: str, inputs: int, bias: bool) -> None:
        bound, own = 1.0 / math.sqrt(self.hidden_size), self.hidden_size
        shapes = {"weight_ih": (own, inputs), "weight_hh": (own, own)}
        for part, shape in (shapes | ({"bias_ih": (own,), "bias_hh": (own,)} if bias else {})).items():
            self.register_parameter(f"{part}{name}", init.uniform_(empty(*shape), -bound, bound))  # type: ignore[arg-type]
        self.__dict__["bias"] = bias

    def _linear(self, x: Any, part: str, name: str) -> Any:
        bias = getattr(self, f"bias_{part}{name}") if self.bias else None
        return F.linear(x, getattr(self, f"weight_{part}{name}"), bias)

    def _step(self, from_input: Any, h: Any, name: str) -> Any:
        act = F.tanh if self.nonlinearity == "tanh" else F.relu  # type: ignore[attr-defined]
        return act(self._linear(h, "hh", name) + from_input)


class RNN(_Recurrent):
    """Recurrent layers, each on the states of the one before, in one direction or in both."""

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
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.nonlinearity, self.batch_first = nonlinearity, batch_first
        self.dropout, self.bidirectional = dropout, bidirectional
        self._ends = ("", "_reverse") if bidirectional else ("",)
        for k in range(num_layers):
            for end in self._ends:
                self._register(f"_l{k}{end}", input_size if not k else hidden_size * len(self._ends), bias)

    def forward(self, input: Any, hx: Any = None) -> Any:
        batched = input.dim() == 3
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )
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
        found = f"{self.input_size}, {self.hidden_size}"
        shown = {"num_layers": 1, "nonlinearity": "tanh", "bias": True, "batch_first": False}
        for name, usual in (shown | {"dropout": 0.0, "bidirectional": False}).items():
            if getattr(self, name) != usual and name != "nonlinearity":
                found += f", {name}={getattr(self, name)}"
        return found


class RNNCell(_Recurrent):
    """One step of a recurrence."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.nonlinearity = input_size, hidden_size, nonlinearity
        self._register("", input_size, bias)

    def forward(self, input: Any, hx: Any = None) -> Any:
        own = zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype) if hx is None else hx
        return self._step(self._linear(input, "ih", ""), own, "")

    def extra_repr(self) -> str:
        found = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        return found + (f", nonlinearity={self.nonlinearity}" if self.nonlinearity != "tanh" else "")


__all__ = listed(globals(), __name__)
