"""`torch.nn`'s recurrent layers: `RNN`, `LSTM`, `GRU`, and their cells, each of which is one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.graph.operations.recurrent import gru_output, lstm_memory, lstm_output
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.chains import chain
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.layers import _Layer
from gradcli.pytorch.nn.utils.rnn import PackedSequence
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.operations.joining import cat, stack
from gradcli.pytorch.running import apply

State = tuple[Any, ...]  # what goes on from step to step: the output, and the LSTM's memory


class _Weights(_Layer):
    """The weights and biases of steps that are made of linear maps of the input and of the last output."""

    gates = 1  # how many linear maps of the input a step has
    states = 1  # how many tensors go on from step to step
    proj_size = 0  # the size of a linear map of the output; 0 where there is none

    def _add_weights(self, suffix: str, inputs: int) -> None:
        rows, columns = self.gates * self.hidden_size, self.outputs
        for name, *shape in (
            ("weight_ih", rows, inputs),
            ("weight_hh", rows, columns),
            ("bias_ih", rows),
            ("bias_hh", rows),
        ):
            if self.bias or name.startswith("weight"):
                self.register_parameter(f"{name}{suffix}", self._empty(*shape))
        if self.proj_size:
            self.register_parameter(f"weight_hr{suffix}", self._empty(self.proj_size, self.hidden_size))

    @property
    def outputs(self) -> int:
        """The size of the output of a step."""
        return self.proj_size or self.hidden_size

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _linear(self, x: Any, which: str, suffix: str) -> Any:
        bias = getattr(self, f"bias_{which}{suffix}") if self.bias else None
        return F.linear(x, getattr(self, f"weight_{which}{suffix}"), bias)

    def _step(self, from_input: Any, state: State, suffix: str) -> State:
        """Return the next state, of the linear maps of the input and the last state."""
        raise NotImplementedError


class _Elman(_Weights):
    """h ← tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh), or relu of it."""

    def _step(self, from_input: Any, state: State, suffix: str) -> State:
        return (getattr(F, self.nonlinearity)(self._linear(state[0], "hh", suffix) + from_input),)


class _LSTM(_Weights):
    """c ← f·c + i·g, h ← o·tanh(c): the gates i, f, o and the new memory g are each of x and h.

    With a projection, h is a linear map of that.
    """

    gates, states = 4, 2

    def _step(self, from_input: Any, state: State, suffix: str) -> State:
        h, c = state
        gates = self._linear(h, "hh", suffix) + from_input
        c = apply("lstm_memory", lstm_memory, (gates, c), (), chain("lstm_memory"))
        h = apply("lstm_output", lstm_output, (gates, c), (), chain("lstm_output"))
        return F.linear(h, getattr(self, f"weight_hr{suffix}")) if self.proj_size else h, c


class _GRU(_Weights):
    """h ← (h - n)·z + n with n = tanh(of x + r·(of h)): the gates r and z are each of x and h."""

    gates = 3

    def _step(self, from_input: Any, state: State, suffix: str) -> State:
        return (gru_step(from_input, self._linear(state[0], "hh", suffix), *state),)


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
        kind, rank = type(self).__name__, input.dim()
        raise_if(
            rank not in (2, 3), "rank for a recurrence", "RNN" if kind == "RNN" else kind, 2, 3, rank, _TENSOR[kind]
        )
        self._check_rank(rank, state)
        raise_if(input.shape[-1] != self.input_size, "features of a recurrence", self.input_size, input.shape[-1])
        batch_axis = int(not self.batch_first)
        x = input if rank == 3 else input.unsqueeze(batch_axis)
        x = x.transpose(0, 1) if self.batch_first else x
        state = state if state is None or rank == 3 else tuple(s.unsqueeze(1) for s in state)
        output, last = self._layers(x, state, x.shape[1])
        if self.batch_first:
            output = set_grad_fn_name(output.transpose(0, 1), self.transposition)
        if rank == 3:
            return output, last
        return output.squeeze(batch_axis), tuple(s.squeeze(1) for s in last)

    def _check_rank(self, rank: int, state: State | None) -> None:
        """Check that the states have the rank of the input."""
        ranks = [] if state is None else [state[i].dim() for i in range(self.states)]
        if any(n != rank for n in ranks):
            what = "batched 3-D input" if rank == 3 else "unbatched 2-D input"
            if len(ranks) == 1:
                raise torch_error("rank of a state beside its input", what, rank, *ranks)
            raise torch_error("rank of two states beside their input", what, rank, *ranks)

    def _packed(self, input: Any, state: State | None) -> tuple[Any, State]:
        """Go through sequences of different lengths, the longest first."""
        data, sizes, order, back = input
        if state is not None and order is not None:
            state = tuple(s.index_select(1, order) for s in state)
        output, last = self._layers(data, state, *sizes.tolist())
        last = last if back is None else tuple(s.index_select(1, back) for s in last)
        return PackedSequence(output, sizes, order, back), last

    def _layers(self, x: Any, state: State | None, *sizes: int) -> tuple[Any, State]:
        """Return the outputs and the last states, where so many sequences go on to each step, or to all of them."""
        count = sum(map(len, self._suffixes)), sizes[0]
        shapes = [(*count, n) for n in (self.outputs, self.hidden_size)[: self.states]]
        if state is None:
            state = tuple(zeros(*shape, dtype=x.dtype) for shape in shapes)
        for i, (s, shape) in enumerate(zip(state, shapes, strict=True)):
            which = f"[{i}]" if self.states > 1 else ""
            raise_if(tuple(s.shape) != shape, "size of a state", which, shape, list(s.shape))
        if self.proj_size and x.dtype.name == "float32":
            warn("projection of an LSTM")
        last: list[State] = []
        for suffixes in self._suffixes:
            if last and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            directions = []
            for suffix in suffixes:
                outputs, end = self._direction(x, tuple(s[len(last)] for s in state), suffix, sizes)
                last.append(end)
                join = stack if x.dim() == 3 else cat
                directions.append(join(outputs[::-1] if suffix.endswith("_reverse") else outputs))
            x = directions[0] if len(directions) == 1 else cat(directions, -1)
            is_fused = self.fused and not self.proj_size and x.dtype.name == "float32"
            if is_fused and x.dim() == 3 and len(directions) == 1:
                set_grad_fn_name(x, self.fused)
        return x, tuple(map(stack, zip(*last, strict=True)))

    def _direction(self, x: Any, first: State, suffix: str, sizes: Sequence[int]) -> tuple[list[Any], State]:
        """Return the outputs of one direction in the order of computation, and the last state of each sequence."""
        of_input = self._linear(x, "ih", suffix)  # of all steps at once
        steps = of_input.unbind(0) if x.dim() == 3 else of_input.split(sizes)
        is_reverse = suffix.endswith("_reverse")
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
            state = self._step(step, state, suffix)
            outputs.append(state[0])
        if is_reverse or not ended:
            return outputs, state
        return outputs, tuple(map(cat, zip(state, *ended[::-1], strict=True)))


# What PyTorch has behind the rank of an input that it refuses.
_TENSOR = {"RNN": " tensor", "LSTM": "", "GRU": ""}


class RNN(_Recurrent, _Elman):
    """Layers of Elman's recurrence."""


class LSTM(_Recurrent, _LSTM):
    """Layers of long short-term memory."""

    transposition, fused = "TransposeBackward0", "MkldnnRnnLayerBackward0"


class GRU(_Recurrent, _GRU):
    """Layers of gated recurrent units."""


# Cells


class _Cell(_Weights):
    """One step of a recurrence."""

    def _build(self) -> None:
        self._add_weights("", self.input_size)
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        rank, kind = input.dim(), type(self).__name__
        raise_if(rank not in (1, 2), "rank for a recurrence", kind, 1, 2, rank, "")
        if hx is None:
            state: State = (zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype),) * self.states
        else:
            state = hx if self.states > 1 else (hx,)
        self._check_state(input, state)
        x = input if rank == 2 else input.unsqueeze(0)
        state = state if rank == 2 else tuple(s.unsqueeze(0) for s in state)
        last = self._step(self._linear(x, "ih", ""), state, "")
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
