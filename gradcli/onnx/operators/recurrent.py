"""Recurrent layers, step after step: `RNN`, `GRU` and `LSTM`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import call, matmul, sliced, stack, transpose, where
from gradcli.graph.node import Node, const
from gradcli.onnx.register import operator
from gradcli.onnx.values import lift, number

MAX_STEPS = 10_000

_ACTIVATIONS: dict[str, Callable[..., Node]] = {
    **{f: lambda x, a, b, f=f: call(f, x) for f in ("relu", "tanh", "sigmoid", "softsign", "softplus")},
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: call("leaky_relu", x, a),
    "thresholdedrelu": lambda x, a, b: where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * call("tanh", b * x),
    "hardsigmoid": lambda x, a, b: call("hardtanh", a * x + b, 0, 1),
    "elu": lambda x, a, b: call("elu", x, a),
}
_DEFAULTS = {"leakyrelu": (0.01, 0), "thresholdedrelu": (1, 0), "hardsigmoid": (0.2, 0.5), "elu": (1, 0)}


@dataclass
class _Layer:
    """One direction of a layer: the weights of a step, and its activations."""

    w: Node
    r: Node
    bias: tuple[Node, Node]  # of the input and of the state
    hidden: int
    activations: Sequence[Callable[[Node], Node]]
    clip: float = 0.0

    def gates(self, x: Node, h: Node) -> list[Node]:
        """Return the sums of all gates."""
        return self.split(matmul(x, transpose(self.w, (1, 0))) + self.bias[0] + self.state(h))

    def state(self, h: Node) -> Node:
        """Return the contribution of the state to the sums of all gates."""
        return matmul(h, transpose(self.r, (1, 0))) + self.bias[1]

    def split(self, sums: Node) -> list[Node]:
        """Return the part of each gate."""
        axis = len(sums.shape) - 1
        return [sliced(sums, axis, range(k, k + self.hidden)) for k in range(0, sums.shape[-1], self.hidden)]

    def activate(self, k: int, x: Node) -> Node:
        """Return the k-th activation of a sum, clipped first if the layer clips."""
        clipped = call("clamp", x, number(-self.clip), number(self.clip)) if self.clip else x
        return self.activations[k](clipped)


Step = Callable[[_Layer, Node, list[Node]], list[Node]]


def _rnn_step(layer: _Layer, x: Node, state: list[Node]) -> list[Node]:
    return [layer.activate(0, layer.gates(x, state[0])[0])]


def _gru_step(linear_before_reset: int, layer: _Layer, x: Node, state: list[Node]) -> list[Node]:
    h = state[0]
    inner = layer.split(matmul(x, transpose(layer.w, (1, 0))) + layer.bias[0])
    parts = layer.split(layer.state(h))
    z, r = (layer.activate(0, a + b) for a, b in zip(inner[:2], parts[:2], strict=True))
    new = r * parts[2] if linear_before_reset else layer.split(layer.state(r * h))[2]
    return [(1 - z) * layer.activate(1, inner[2] + new) + z * h]


def _lstm_step(input_forget: int, peepholes: Sequence[Node], layer: _Layer, x: Node, state: list[Node]) -> list[Node]:
    h, c = state
    i, o, f, g = layer.gates(x, h)
    input_weights, output_weights, forget_weights = peepholes or [const(0)] * 3
    i = layer.activate(0, i + input_weights * c if peepholes else i)
    f = 1 - i if input_forget else layer.activate(0, f + forget_weights * c if peepholes else f)
    c = f * c + i * layer.activate(1, g)
    o = layer.activate(0, o + output_weights * c if peepholes else o)
    return [o * layer.activations[2](c), c]


def _activations(names: Sequence[str], attributes: dict[str, Any], count: int) -> list[list[Callable[[Node], Node]]]:
    """Return the activations of each direction."""
    alphas, betas = list(attributes.get("activation_alpha") or ()), list(attributes.get("activation_beta") or ())
    result: list[Callable[[Node], Node]] = []
    for name in attributes.get("activations") or names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            raise InputError(f"there is no activation `{name[:40]}`")
        a, b = _DEFAULTS.get(key, (1, 0))
        if key in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu") and alphas:
            a = alphas.pop(0)
        if key in ("affine", "scaledtanh", "hardsigmoid") and betas:
            b = betas.pop(0)
        result.append(partial(_ACTIVATIONS[key], a=number(a), b=number(b)))
    each = len(result) // count
    return [result[k * each : (k + 1) * each] for k in range(count)]


def _run(
    x: Node, parts: Sequence[Node | None], lengths: Array | None, initial: Sequence[Node | None], gates: int,
    steps: Callable[[int], Step], names: Sequence[str], attributes: dict[str, Any],
) -> tuple[Node, ...]:  # fmt: skip
    """Return the states of all steps, and the last ones: `(steps, directions, batch, hidden)` and `(directions, …)`."""
    layout = attributes.get("layout", 0)
    x = transpose(x, (1, 0, 2)) if layout else x
    initial = [None if s is None else transpose(s, (1, 0, 2)) if layout else s for s in initial]
    w, r, b = parts
    assert w is not None
    assert r is not None
    count, batch, _ = x.shape
    hidden, directions = r.shape[-1], w.shape[0]
    if r.shape != (directions, gates * hidden, hidden):
        raise InputError(f"the weights of the state have shape {r.shape}, and not (directions, {gates}·hidden, hidden)")
    if b is not None and b.shape != (directions, 2 * gates * hidden):
        raise InputError(f"the bias has shape {b.shape}, and not {(directions, 2 * gates * hidden)}")
    if other := next((s for s in initial if s is not None and s.shape != (directions, batch, hidden)), None):
        raise InputError(f"an initial state has shape {other.shape}, and not {(directions, batch, hidden)}")
    if count > MAX_STEPS:
        raise InputError(f"a sequence of {count:,} steps is too long", hint=f"at most {MAX_STEPS:,}")
    activations = _activations([*names] * directions, attributes, directions)
    ways = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}.get(attributes.get("direction", "forward"))
    if ways is None or len(ways) != directions:
        raise InputError("the direction does not fit the weights")
    outputs, ends = [], []
    for k, backwards in enumerate(ways):
        n = hidden * gates
        zero = const(0, (n,))
        bias = [zero, zero] if b is None else [sliced(sliced(b, 0, k), 0, range(i, i + n)) for i in (0, n)]
        layer = _Layer(
            sliced(w, 0, k), sliced(r, 0, k), (bias[0], bias[1]), hidden, activations[k], attributes.get("clip") or 0.0
        )
        state = [const(0, (batch, hidden)) if s is None else sliced(s, 0, k) for s in initial]
        seen, state = _sequence(layer, x, state, lengths, steps(k), bool(backwards))
        outputs.append(stack(seen))
        ends.append(state)
    y = stack(outputs, 1)
    last = [stack([state[i] for state in ends]) for i in range(len(initial))]
    if layout:
        return transpose(y, (2, 0, 1, 3)), *(transpose(s, (1, 0, 2)) for s in last)
    return y, *last


def _sequence(
    layer: _Layer, x: Node, state: list[Node], lengths: Array | None, step: Step, backwards: bool
) -> tuple[list[Node], list[Node]]:
    """Return the outputs of one direction, and the state after the last step of each sequence."""
    count = x.shape[0]
    outputs: list[Node] = [const(0)] * count
    for t in range(count)[::-1] if backwards else range(count):
        new = step(layer, sliced(x, 0, t), state)
        if lengths is None or (lengths >= count).all():
            state, outputs[t] = new, new[0]
        else:  # a sequence that has ended keeps its state, and gives zeros
            going = lift((lengths.reshape(-1, 1) > t) & np.ones((1, layer.hidden), bool))
            state = [where(going, a, b) for a, b in zip(new, state, strict=True)]
            outputs[t] = where(going, new[0], 0)
    return outputs, state


@operator("RNN")
def _rnn(
    x: Node, w: Node, r: Node, b: Node | None = None, lengths: Array | None = None, h: Node | None = None,
    *, hidden_size: int = 0, **attributes: Any,
) -> tuple[Node, ...]:  # fmt: skip
    return _run(x, (w, r, b), lengths, [h], 1, lambda k: _rnn_step, ["Tanh"], attributes)


@operator("GRU")
def _gru(
    x: Node, w: Node, r: Node, b: Node | None = None, lengths: Array | None = None, h: Node | None = None,
    *, hidden_size: int = 0, linear_before_reset: int = 0, **attributes: Any,
) -> tuple[Node, ...]:  # fmt: skip
    gates, step = 3, partial(_gru_step, linear_before_reset)
    return _run(x, (w, r, b), lengths, [h], gates, lambda k: step, ["Sigmoid", "Tanh"], attributes)


@operator("LSTM")
def _lstm(
    x: Node, w: Node, r: Node, b: Node | None = None, lengths: Array | None = None, h: Node | None = None,
    c: Node | None = None, p: Node | None = None, *, hidden_size: int = 0, input_forget: int = 0, **attributes: Any,
) -> tuple[Node, ...]:  # fmt: skip
    def steps(k: int) -> Step:
        n = r.shape[-1]
        if p is not None and p.shape != (w.shape[0], 3 * n):
            raise InputError(f"the peepholes have shape {p.shape}, and not {(w.shape[0], 3 * n)}")
        peepholes = [] if p is None else [sliced(sliced(p, 0, k), 0, range(i * n, i * n + n)) for i in range(3)]
        return partial(_lstm_step, input_forget, peepholes)

    return _run(x, (w, r, b), lengths, [h, c], 4, steps, ["Sigmoid", "Tanh", "Tanh"], attributes)
