"""`torch.nn`'s recurrent layers: `RNN`, `LSTM`, `GRU`, and their cells, each of which is one step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.node import const
from gradcli.graph.operations.recurrent import gru_output, lstm_memory, lstm_output, recurrent
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.chains import chain
from gradcli.pytorch.composed import composed
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.layers import _Layer
from gradcli.pytorch.nn.utils.rnn import PackedSequence
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.operations.joining import cat, stack
from gradcli.pytorch.operations.random import drawn_mask, dropped
from gradcli.pytorch.running import apply

State = tuple[Any, ...]  # what goes on from step to step: the output, and the LSTM's memory
Weights = Mapping[str, Any]  # those of a layer in one direction by their names without what these end in


def _linear(x: Any, which: str, weights: Weights) -> Any:
    return F.linear(x, weights[f"weight_{which}"], weights.get(f"bias_{which}"))


class _Weights(_Layer):
    """The weights and biases of steps that are made of linear maps of the input and of the last output."""

    gates = 1  # how many linear maps of the input a step has
    states = 1  # how many tensors go on from step to step
    proj_size = 0  # the size of a linear map of the output; 0 where there is none

    def _add_weights(self, suffix: str, inputs: int) -> None:
        rows, columns = self.gates * self.hidden_size, self.outputs
        sizes = {"weight_ih": (rows, inputs), "weight_hh": (rows, columns), "bias_ih": (rows,), "bias_hh": (rows,)}
        sizes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name in self._names():
            self.register_parameter(f"{name}{suffix}", self._empty(*sizes[name]))

    def _names(self) -> list[str]:
        """Return the names of the weights and biases of a layer in one direction."""
        biases = ["bias_ih", "bias_hh"] if self.bias else []
        return ["weight_ih", "weight_hh", *biases, *(["weight_hr"] if self.proj_size else [])]

    def _weights(self, suffix: str) -> Weights:
        return {name: getattr(self, f"{name}{suffix}") for name in self._names()}

    @property
    def outputs(self) -> int:
        """The size of the output of a step."""
        return self.proj_size or self.hidden_size

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, from_input: Any, state: State, weights: Weights) -> State:
        """Return the next state, of the linear maps of the input and the last state."""
        raise NotImplementedError


class _Elman(_Weights):
    """h ← tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh), or relu of it."""

    def _step(self, from_input: Any, state: State, weights: Weights) -> State:
        return (getattr(F, self.nonlinearity)(_linear(state[0], "hh", weights) + from_input),)


class _LSTM(_Weights):
    """c ← f·c + i·g, h ← o·tanh(c): the gates i, f, o and the new memory g are each of x and h.

    With a projection, h is a linear map of that.
    """

    gates, states = 4, 2

    def _step(self, from_input: Any, state: State, weights: Weights) -> State:
        h, c = state
        gates = _linear(h, "hh", weights) + from_input
        c = apply("lstm_memory", lstm_memory, (gates, c), (), chain("lstm_memory"))
        h = apply("lstm_output", lstm_output, (gates, c), (), chain("lstm_output"))
        return F.linear(h, weights["weight_hr"]) if self.proj_size else h, c


class _GRU(_Weights):
    """h ← (h - n)·z + n with n = tanh(of x + r·(of h)): the gates r and z are each of x and h."""

    gates = 3

    def _step(self, from_input: Any, state: State, weights: Weights) -> State:
        return (gru_step(from_input, _linear(state[0], "hh", weights), *state),)


def gru_step(of_input: Any, of_output: Any, h: Any) -> Any:
    """Return the output of a GRU, of the linear maps of the input and the last output, and that output."""
    return apply("gru_output", gru_output, (of_input, of_output, h), (), chain("gru_output"))


# Layers


class _Recurrent(_Weights):
    """Recurrent layers, each on the outputs of the one before, in one direction or in both."""

    # PyTorch's names of the step that moves the batch to the front, and of a layer of float32 in one direction.
    transposition, fused = "TransposeBackward1", ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise_if("proj_size" in kwargs and "proj_size" not in self.takes, "projection of another recurrence")
        super().__init__(*args, **kwargs)

    def _build(self) -> None:
        self._check_settings()
        ends = ("", "_reverse") if self.bidirectional else ("",)
        # What the names of each layer's weights end in, in each direction.
        self._suffixes = [[f"_l{k}{end}" for end in ends] for k in range(self.num_layers)]
        for k, suffixes in enumerate(self._suffixes):
            for suffix in suffixes:
                self._add_weights(suffix, self.outputs * len(ends) if k else self.input_size)
        self.reset_parameters()

    def _check_settings(self) -> None:
        kind = getattr(self, "nonlinearity", "tanh")
        raise_if(kind not in ("tanh", "relu"), "nonlinearity of a recurrence", kind)
        raise_if(not 0 <= self.dropout <= 1, "dropout of a recurrence")
        for name in ("input_size", "hidden_size", "num_layers"):
            size = getattr(self, name)
            raise_if(not isinstance(size, int), "type of a size", name, type(size).__name__)
            raise_if(size <= 0, "size that is not positive", name)
        raise_if(self.proj_size < 0, "negative size of a projection")
        if self.dropout and self.num_layers == 1:
            warn("dropout of a single layer", self.dropout, self.num_layers)
        raise_if(self.proj_size >= self.hidden_size, "size of a projection")

    def flatten_parameters(self) -> None:
        """Do nothing: on a GPU, PyTorch moves the weights together."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights and biases of each layer and direction."""
        named = dict(self.named_parameters())
        suffixes = [suffix for layer in self._suffixes for suffix in layer]
        return [[p for name, p in named.items() if name[name.index("_l") :] == suffix] for suffix in suffixes]

    def forward(self, input: Any, hx: Any = None) -> Any:
        state = hx if hx is None or self.states > 1 else (hx,)
        if isinstance(input, PackedSequence):
            output, last = self._packed(input, state)
        else:
            output, last = self._unpacked(input, state)
        return output, last if self.states > 1 else last[0]

    def _unpacked(self, input: Any, state: State | None) -> tuple[Any, State]:
        rank = input.dim()
        kind = type(self).__name__
        raise_if(rank not in (2, 3), "rank for a recurrence", kind, 2, 3, f"{rank}D" + " tensor" * (kind == "RNN"))
        ranks = [] if state is None else [state[i].dim() for i in range(self.states)]
        what = "batched 3-D input" if rank == 3 else "unbatched 2-D input"
        each = ", ".join(f"{n}-D" for n in ranks)
        of = ("hx", f"{each} tensor") if len(ranks) == 1 else ("hx and cx", f"({each}) tensors")
        raise_if({*ranks} - {rank}, "rank of a state beside its input", what, of[0], rank, of[1])
        raise_if(input.shape[-1] != self.input_size, "features of a recurrence", self.input_size, input.shape[-1])
        state = self._zeros(input, *input.shape[int(not self.batch_first) :][: rank - 2]) if state is None else state
        weights = [w for each in self._all_weights() for w in each.values()]
        masked = bool(self.training and self.dropout and self.num_layers > 1)
        settings = self.num_layers, self.bidirectional, self.bias, self.batch_first, masked
        # A p of 1 is a constant: what is kept is not divided by 1 - p then.
        numbers = [np.array([float(self.dropout)])] if masked and self.dropout < 1 else []
        last = [const(1)] if masked and not numbers else []
        build = partial(recurrent, self._op, settings)
        output, *states = composed(
            self._op, settings, lambda *nodes: build(*nodes, *last), self._computed, (input, *state, *weights), numbers
        )
        return output, tuple(states)

    def _computed(self, masks: list[Any], input: Any, *rest: Any) -> State:
        """Return the results for the operands, and add the masks of dropout to a list."""
        each, names = iter(rest[self.states :]), self._names()
        weights = [dict(zip(names, each, strict=False)) for suffixes in self._suffixes for _ in suffixes]
        state = rest[: self.states]
        is_batch, batch_axis = input.dim() == 3, int(not self.batch_first)
        x = input if is_batch else input.unsqueeze(batch_axis)
        x = x.transpose(0, 1) if self.batch_first else x
        state = state if is_batch else tuple(s.unsqueeze(1) for s in state)
        output, last = self._layers(x, state, weights, masks, (x.shape[1],))
        if self.batch_first:
            output = set_grad_fn_name(output.transpose(0, 1), self.transposition)
        if is_batch:
            return output, *last
        return output.squeeze(batch_axis), *(s.squeeze(1) for s in last)

    def _packed(self, input: Any, state: State | None) -> tuple[Any, State]:
        """Go through sequences of different lengths, the longest first."""
        data, sizes, order, back = input
        if state is None:
            state = self._zeros(data, int(sizes[0]))
        elif order is not None:
            state = tuple(s.index_select(1, order) for s in state)
        output, last = self._layers(data, state, self._all_weights(), [], sizes.tolist())
        last = last if back is None else tuple(s.index_select(1, back) for s in last)
        return PackedSequence(output, sizes, order, back), last

    def _shapes(self, *batch: int) -> list[tuple[int, ...]]:
        """Return the shapes of the states."""
        count = sum(map(len, self._suffixes))
        return [(count, *batch, n) for n in (self.outputs, self.hidden_size)[: self.states]]

    def _zeros(self, x: Any, *batch: int) -> State:
        return tuple(zeros(*shape, dtype=x.dtype) for shape in self._shapes(*batch))

    def _all_weights(self) -> list[Weights]:
        return [self._weights(suffix) for suffixes in self._suffixes for suffix in suffixes]

    def _layers(
        self, x: Any, state: State, weights: Sequence[Weights], masks: list[Any], sizes: Sequence[int]
    ) -> tuple[Any, State]:
        """Return the outputs and the last states, where so many sequences go on to each step, or to all of them."""
        for i, (s, shape) in enumerate(zip(state, self._shapes(sizes[0]), strict=True)):
            which = f"[{i}]" if self.states > 1 else ""
            raise_if(tuple(s.shape) != shape, "size of a state", which, shape, list(s.shape))
        if self.proj_size and x.dtype.name == "float32":
            warn("projection of an LSTM")
        last: list[State] = []
        for suffixes in self._suffixes:
            if last and self.dropout and self.training:
                masks.append(drawn_mask(x, self.dropout, tuple(x.shape)))
                x = dropped(x, masks[-1], self.dropout)
            directions = []
            for suffix in suffixes:
                first, is_reverse = tuple(s[len(last)] for s in state), suffix.endswith("_reverse")
                outputs, end = self._direction(x, first, weights[len(last)], is_reverse, sizes)
                last.append(end)
                join = stack if x.dim() == 3 else cat
                directions.append(join(outputs[::-1] if is_reverse else outputs))
            x = directions[0] if len(directions) == 1 else cat(directions, -1)
            is_fused = self.fused and not self.proj_size and x.dtype.name == "float32"
            if is_fused and x.dim() == 3 and len(directions) == 1:
                set_grad_fn_name(x, self.fused)
        return x, tuple(map(stack, zip(*last, strict=True)))

    def _direction(
        self, x: Any, first: State, weights: Weights, is_reverse: bool, sizes: Sequence[int]
    ) -> tuple[list[Any], State]:
        """Return the outputs of one direction in the order of computation, and the last state of each sequence."""
        of_input = _linear(x, "ih", weights)  # of all steps at once
        steps = of_input.unbind(0) if x.dim() == 3 else of_input.split(sizes)
        outputs: list[Any] = []
        ended: list[State] = []  # of sequences that are shorter
        state = first
        for step in reversed(steps) if is_reverse else steps:
            count, before = len(step), len(state[0])
            if count < before:
                ended.append(tuple(s[count:] for s in state))
                state = tuple(s[:count] for s in state)
            elif count > before:  # in reverse, shorter sequences begin later
                state = tuple(cat([s, f[before:count]]) for s, f in zip(state, first, strict=True))
            state = self._step(step, state, weights)
            outputs.append(state[0])
        if is_reverse or not ended:
            return outputs, state
        return outputs, tuple(map(cat, zip(state, *ended[::-1], strict=True)))


class RNN(_Recurrent, _Elman):
    """Layers of Elman's recurrence."""

    @property
    def _op(self) -> str:
        return f"rnn_{self.nonlinearity}"


class LSTM(_Recurrent, _LSTM):
    """Layers of long short-term memory."""

    transposition, fused, _op = "TransposeBackward0", "MkldnnRnnLayerBackward0", "lstm"


class GRU(_Recurrent, _GRU):
    """Layers of gated recurrent units."""

    _op = "gru"


# Cells


class _Cell(_Weights):
    """One step of a recurrence."""

    def _build(self) -> None:
        self._add_weights("", self.input_size)
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        rank = input.dim()
        raise_if(rank not in (1, 2), "rank for a recurrence", type(self).__name__, 1, 2, f"{rank}D")
        if hx is None:
            state: State = (zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype),) * self.states
        else:
            state = hx if self.states > 1 else (hx,)
        self._check_state(input, state)
        x = input if rank == 2 else input.unsqueeze(0)
        state = state if rank == 2 else tuple(s.unsqueeze(0) for s in state)
        weights = self._weights("")
        last = self._step(_linear(x, "ih", weights), state, weights)
        last = last if rank == 2 else tuple(s.squeeze(0) for s in last)
        return last if self.states > 1 else last[0]

    def _check_state(self, input: Any, state: State) -> None:
        for i, s in enumerate(state):
            which = f"hx[{i}]" if self.states > 1 else "hidden"
            raise_if(s.dim() not in (1, 2), "rank of a state", type(self).__name__, which, s.dim())
        features = input.shape[-1]
        raise_if(features != self.input_size, "features of a cell's input", features, self.input_size)
        for i, s in enumerate(state):
            counts = input.shape[:-1], s.shape[: input.dim() - 1]
            raise_if(counts[0] != counts[1], "batch of a cell's state", *(n[0] for n in counts if n), i)
            size = s.shape[min(input.dim(), s.dim()) - 1]
            raise_if(size != self.hidden_size, "features of a cell's state", i, size, self.hidden_size)


class RNNCell(_Cell, _Elman):
    """One step of Elman's recurrence."""

    def _build(self) -> None:
        missing_if(self.nonlinearity not in ("tanh", "relu"), "torch.nn.RNNCell(nonlinearity=…)")
        super()._build()


class LSTMCell(_Cell, _LSTM):
    """One step of long short-term memory."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        raise_if(hx is not None and not isinstance(hx, tuple | list), "state of an LSTMCell", type(hx).__name__)
        return super().forward(input, hx)


class GRUCell(_Cell, _GRU):
    """One step of gated recurrent units."""
