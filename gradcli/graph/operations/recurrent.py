"""Recurrent layers, step after step: calls with several results, the outputs of all steps and the last states.

Their arguments are the input (steps, batch, features), the first states, and the weights and biases of each layer in
each direction, as PyTorch has them; then, for dropout between layers, a mask for each layer but the last, and p.
Sources: J. Elman, "Finding structure in time" (1990); S. Hochreiter and J. Schmidhuber, "Long short-term memory"
(1997); K. Cho and others, "Learning phrase representations using RNN encoder-decoder" (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from gradcli.graph.construct import call, concatenate, reshape, sliced, stack, transpose
from gradcli.graph.node import Node
from gradcli.graph.operation import Operation, defined

States = tuple[Node, ...]


class Recurrence(NamedTuple):
    """A kind of layers: how many linear maps of its input a step has, how many states, and the next states.

    `step(of_input, of_state, states)` gets the linear maps of the input and of the last output.
    """

    gates: int
    states: int
    step: Callable[[Node, Node, States], States]


def _elman(activation: str, x: Node, h: Node, states: States) -> States:
    return (call(activation, h + x),)


def _lstm(x: Node, h: Node, states: States) -> States:
    gates = h + x
    c = lstm_memory(gates, states[1])
    return lstm_output(gates, c), c


def lstm_memory(gates: Node, c: Node) -> Node:
    """Return the next memory of an LSTM, of the sum of its linear maps and the last memory."""
    i, f, g, _ = _gates(gates, 4)
    return call("sigmoid", f) * c + call("sigmoid", i) * call("tanh", g)


def lstm_output(gates: Node, c: Node) -> Node:
    """Return the output of an LSTM, of the same sum and the next memory."""
    return call("sigmoid", _gates(gates, 4)[3]) * call("tanh", c)


def gru_output(x: Node, h: Node, before: Node) -> Node:
    """Return the output of a GRU, of the linear maps of the input and the last output, and that output."""
    (r, z, n), (r_of_h, z_of_h, n_of_h) = _gates(x, 3), _gates(h, 3)
    new = call("tanh", n + call("sigmoid", r_of_h + r) * n_of_h)
    return (before - new) * call("sigmoid", z_of_h + z) + new


def _gates(x: Node, count: int) -> list[Node]:
    axis, size = len(x.shape) - 1, x.shape[-1] // count
    return [sliced(x, axis, range(k * size, k * size + size)) for k in range(count)]


KINDS = {
    "rnn_tanh": Recurrence(1, 1, partial(_elman, "tanh")),
    "rnn_relu": Recurrence(1, 1, partial(_elman, "relu")),
    "lstm": Recurrence(4, 2, _lstm),
    "gru": Recurrence(3, 1, lambda x, h, states: (gru_output(x, h, *states),)),
}


class Arguments(NamedTuple):
    """The arguments of a call: the weights are those of each layer in each direction."""

    x: Node
    states: Sequence[Node]
    weights: Sequence[Sequence[Node]]
    masks: Sequence[Node]
    p: Node | None


def arguments_of(op: str, layers: int, both: bool, masked: bool, args: Sequence[Node]) -> Arguments:
    """Return the arguments of a call by what they are."""
    count, states = layers * (1 + both), KINDS[op].states
    x, first, rest = args[0], args[1 : 1 + states], args[1 + states :]
    p = rest[-1] if masked else None
    masks = rest[-layers:-1] if masked else ()
    rest = rest[: len(rest) - layers] if masked else rest
    size = len(rest) // count
    return Arguments(x, first, [rest[k * size : (k + 1) * size] for k in range(count)], masks, p)


def recurrent(op: str, settings: tuple[int | bool, ...], *args: Node) -> tuple[Node, ...]:
    """Return the nodes of the results of a call: the outputs, and the last states.

    `settings` are those of the row without the number of the result.

    >>> from gradcli.graph.node import leaf
    >>> x, h, w, u = leaf((7, 2, 3)), leaf((1, 2, 4)), leaf((12, 3)), leaf((12, 4))
    >>> [y.shape for y in recurrent("gru", (1, False, False, False, False), x, h, w, u)]
    [(7, 2, 4), (1, 2, 4)]
    """
    x, *states = args[: 1 + KINDS[op].states]
    outputs = (*x.shape[:-1], states[0].shape[-1] * (1 + settings[1]))
    shapes = [outputs, *(s.shape for s in states)]
    return tuple(Node(op, args, shape, (*settings, k), x.dtype) for k, shape in enumerate(shapes))


@lru_cache(maxsize=4)  # the results of a call follow each other
def _results(
    op: str, layers: int, both: bool, biased: bool, batch_first: bool, masked: bool, args: tuple[Node, ...]
) -> tuple[Node, ...]:
    """Return the results of a call, whose nodes they share."""
    x, first, weights, masks, p = arguments_of(op, layers, both, masked, args)
    alone = len(x.shape) == 2  # one sequence without a batch
    if alone:
        x, first = reshape(x, (x.shape[0], 1, x.shape[1])), [reshape(s, (s.shape[0], 1, s.shape[1])) for s in first]
    x = transpose(x, (1, 0, 2)) if batch_first and not alone else x
    last: list[States] = []
    for layer in range(layers):
        if layer and p is not None:
            x = Node("dropout", (x, reshape(masks[layer - 1], x.shape), p), x.shape, (), x.dtype)
        outputs = []
        for backwards in (False, True)[: 1 + both]:
            before = tuple(sliced(s, 0, len(last)) for s in first)
            output, end = _direction(op, x, before, weights[len(last)], biased, backwards)
            outputs.append(output)
            last.append(end)
        x = concatenate(outputs, 2)
    ends = [stack([states[i] for states in last]) for i in range(len(first))]
    if alone:
        return reshape(x, (x.shape[0], x.shape[2])), *(reshape(s, (s.shape[0], s.shape[2])) for s in ends)
    return transpose(x, (1, 0, 2)) if batch_first else x, *ends


def _direction(
    op: str, x: Node, states: States, weights: Sequence[Node], biased: bool, backwards: bool
) -> tuple[Node, States]:
    """Return the outputs of one layer in one direction, and its last states."""
    of_input, of_state, *rest = weights
    biases = rest[:2] if biased else ()
    projection = rest[2 * biased :]
    lines = _linear(x, of_input, biases[:1])  # of all steps at once
    outputs: list[Node] = []
    for t in range(x.shape[0])[:: -1 if backwards else 1]:
        states = KINDS[op].step(sliced(lines, 0, t), _linear(states[0], of_state, biases[1:]), states)
        if projection:
            states = (_linear(states[0], projection[0], ()), *states[1:])
        outputs.append(states[0])
    return stack(outputs[::-1] if backwards else outputs), states


def _linear(x: Node, weight: Node, bias: Sequence[Node]) -> Node:
    shape = (*x.shape[:-1], weight.shape[0])
    given = ("bias",) if bias else ()
    return Node("linear", (x, weight, *bias), shape, (given,), x.dtype)


def _definition(op: str) -> Callable[..., Node]:
    def definition(
        layers: int, both: bool, biased: bool, batch_first: bool, masked: bool, result: int, *args: Node
    ) -> Node:
        return _results(op, layers, both, biased, batch_first, masked, args)[result]

    return definition


_SETTINGS = ("num_layers", "bidirectional", "has_biases", "batch_first", "dropout", "result")

ROWS: dict[str, Operation] = {
    op: defined(_definition(op), *_SETTINGS, results=1 + kind.states) for op, kind in KINDS.items()
}
