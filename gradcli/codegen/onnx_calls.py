"""Calls of layers and losses as ONNX's own operators, where these compute the same.

A call that its operator does not take (a padding of windows that may reach beyond it, a variable where ONNX has a
number) is written by its definition, and so are those of float64 where ONNX Runtime has an operator for float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.codegen.onnx_rules import ModelWriter
from gradcli.engine.evaluate import number
from gradcli.graph.index_arrays import known_integers
from gradcli.graph.node import Exact, Node, is_const
from gradcli.graph.operations import OPERATIONS

Rule = Callable[[ModelWriter, Node, Sequence[str]], str]


class Call(NamedTuple):
    """How a call is written, which nodes its operator takes, and whether ONNX Runtime has it for float64, too."""

    write: Rule
    takes: Callable[[Node], bool] = lambda node: True
    doubles: bool = True


def takes(node: Node, doubles: bool) -> bool:
    """Return whether a call is written as an operator of its own, in a model of float64 or of float32."""
    call = CALLS.get(node.op)
    return call is not None and (call.doubles or not doubles) and call.takes(node)


def _settings(node: Node) -> dict[str, Any]:
    return dict(zip(OPERATIONS[node.op].settings, node.settings, strict=True))


def _options(node: Node, args: Sequence[Any]) -> dict[str, Any]:
    """Return what there is of each option, by its name: of the arguments as nodes, or of their names in the model."""
    given = _settings(node).get("given", tuple(OPERATIONS[node.op].options))
    return dict(zip(given, args[len(args) - len(given) :], strict=True))


def _has_eps(node: Node) -> bool:
    return isinstance(_options(node, node.args)["eps"].value, Exact)


def _eps(node: Node) -> float:
    value = _options(node, node.args)["eps"].value
    assert value is not None
    return number(value)


# Products


def _linear(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a product with a transposed weight: that of a matrix is `Gemm`."""
    x, weight, *bias = args
    rank = len(node.args[0].shape)
    if rank == 2:
        return w.add("Gemm", x, weight, *bias, transB=1)
    if rank == 1:  # ONNX Runtime takes no vectors with a transposed matrix
        row = w.add("Gemm", w.add("Unsqueeze", x, w.integers([0])), weight, *bias, transB=1)
        return w.add("Squeeze", row, w.integers([0]))
    y = w.add("MatMul", x, w.add("Transpose", weight, perm=[1, 0]))
    return w.add("Add", y, *bias) if bias else y


def _of_matrix(node: Node) -> bool:
    """Return whether the weight is a matrix, and the bias a number for each output, if there is one."""
    return len(node.args[1].shape) == 2 and all(b.shape == node.args[1].shape[:1] for b in node.args[2:])


# Windows


def _with_batch(write: Rule, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write windows over an array that may have no batch, which ONNX wants."""
    if len(node.args[0].shape) == int(node.op[-2]) + 2:
        return write(w, node, args)
    batch = w.add("Unsqueeze", args[0], w.integers([0]))
    return w.add("Squeeze", write(w, node, (batch, *args[1:])), w.integers([0]))


_ATTRIBUTES = {
    "stride": "strides", "dilation": "dilations", "groups": "group", "kernel_size": "kernel_shape",
    "output_padding": "output_padding", "count_include_pad": "count_include_pad",
}  # fmt: skip


def _windows(operator: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write windows by an operator; of the padding "same", what is more of it is at the far end."""
    s = _settings(node)
    if isinstance(s["padding"], tuple):
        before = after = list(s["padding"])
    else:
        rows = [divmod(d * (k - 1), 2) for k, d in zip(node.args[1].shape[2:], s["dilation"], strict=True)]
        before, after = [n for n, _ in rows], [n + more for n, more in rows]
    attributes = {name: s[key] for key, name in _ATTRIBUTES.items() if key in s}
    return w.add(operator, *args, pads=before + after, **attributes)


def _adaptive(operator: str) -> Rule:
    """Return the rule of windows that divide their axes; a single one has an operator of its own."""

    def rule(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
        (counts,) = node.settings
        if set(counts) == {1}:
            return w.add(f"Global{operator}", *args)
        sizes = [n // k for n, k in zip(node.args[0].shape[-len(counts) :], counts, strict=True)]
        return w.add(operator, *args, kernel_shape=sizes, strides=sizes)

    return rule


def _divides(node: Node) -> bool:
    (counts,) = node.settings
    return not any(n % k for n, k in zip(node.args[0].shape[-len(counts) :], counts, strict=True))


# Normalisations


def _filled(w: ModelWriter, name: str | None, value: float, shape: tuple[int, ...]) -> str:
    """Return the name of a weight or of a bias that ONNX wants; where there is none, ones or zeros."""
    return w.initializer(np.full(shape, value, w.dtype)) if name is None else name


def _layer_norm(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    shape, given = node.settings[1], _options(node, args)
    weight, bias = _filled(w, given.get("weight"), 1, shape), given.get("bias")
    more = [] if bias is None else [bias]
    return w.add("LayerNormalization", args[0], weight, *more, axis=-len(shape), epsilon=_eps(node))


def _plain_layer_norm(node: Node) -> bool:
    """Return whether weight and bias have the shape of what is normalised, as ONNX Runtime wants them."""
    given = _options(node, node.args)
    return _has_eps(node) and all(a.shape == node.settings[1] for name, a in given.items() if name != "eps")


def _batch_norm(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    given, channels = _options(node, args), node.args[0].shape[1:2]
    weight, bias = _filled(w, given.get("weight"), 1, channels), _filled(w, given.get("bias"), 0, channels)
    statistics = given["running_mean"], given["running_var"]
    return w.add("BatchNormalization", args[0], weight, bias, *statistics, epsilon=_eps(node))


def _of_running(node: Node) -> bool:
    given = _options(node, node.args)
    vectors = [a for name, a in given.items() if name != "eps"]
    fixed = "running_mean" in given and not _settings(node)["training"]
    return fixed and _has_eps(node) and all(a.shape == node.args[0].shape[1:2] for a in vectors)


def _instance_norm(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    given, channels = _options(node, args), node.args[0].shape[1:2]
    weight, bias = _filled(w, given.get("weight"), 1, channels), _filled(w, given.get("bias"), 0, channels)
    return w.add("InstanceNormalization", args[0], weight, bias, epsilon=_eps(node))


def _of_input(node: Node) -> bool:
    vectors = [a for name, a in _options(node, node.args).items() if name in ("weight", "bias")]
    return node.settings[1] and _has_eps(node) and all(a.shape == node.args[0].shape[1:2] for a in vectors)


# Losses of classes


def _of_classes(operator: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    known = known_integers(node.args[1])
    assert known is not None
    weight = _options(node, args).get("weight")
    inputs = [args[0], w.initializer(np.array(known)), *([] if weight is None else [weight])]
    s = _settings(node)
    return w.add(operator, *inputs, reduction=s["reduction"], ignore_index=s["ignore_index"])


def _of_known_classes(node: Node) -> bool:
    x, target = node.args[:2]
    integers = target.is_constant and all(type(v) is int for v in target.values)
    smoothing = _options(node, node.args).get("label_smoothing")
    return len(x.shape) > 1 and integers and x.shape != target.shape and (smoothing is None or is_const(smoothing, 0))


# Recurrent layers: the operator, PyTorch's gates in ONNX's order, and what else is said

_RECURRENT: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2), {}),
    "gru": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnn_tanh": ("RNN", (0,), {}),
    "rnn_relu": ("RNN", (0,), {"activations": ["Relu"]}),
}


def _recurrent(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a result of recurrent layers, an operator each; all results are those of the same operators."""
    key = node.op, tuple(args), node.settings[:-1]
    if key not in w.results:
        w.results[key] = _layers(w, node, args)
    result: int = node.settings[-1]
    return w.results[key][result]


def _layers(w: ModelWriter, node: Node, args: Sequence[str]) -> list[str]:
    s = _settings(node)
    both, states = s["bidirectional"], OPERATIONS[node.op].results - 1
    operator, order, attributes = _RECURRENT[node.op]
    x, first, weights = args[0], args[1 : 1 + states], args[1 + states :]
    size, ways = node.args[1].shape[-1], 1 + both
    steps, batch = (node.args[0].shape[k] for k in ((1, 0) if s["batch_first"] else (0, 1)))
    gates = w.initializer(np.concatenate([np.arange(k * size, k * size + size) for k in order]))
    attributes = attributes | {"hidden_size": size, "direction": "bidirectional" if both else "forward"}
    attributes |= {"activations": attributes["activations"] * ways} if "activations" in attributes else {}
    x = w.add("Transpose", x, perm=[1, 0, 2]) if s["batch_first"] else x
    each, ends = 2 + 2 * s["has_biases"], []

    def reordered(names: Sequence[str]) -> str:
        """Return what each direction has of a kind, with a first axis of the directions."""
        rows = [w.add("Unsqueeze", w.add("Gather", name, gates, axis=0), w.integers([0])) for name in names]
        return rows[0] if ways == 1 else w.add("Concat", *rows, axis=0)

    for layer in range(s["num_layers"]):
        own = [weights[k * each : (k + 1) * each] for k in range(layer * ways, (layer + 1) * ways)]
        of_input, of_state, *biases = (reordered(kind) for kind in zip(*own, strict=True))
        bias = w.add("Concat", *biases, axis=1) if biases else ""
        cut = w.integers([layer * ways]), w.integers([(layer + 1) * ways]), w.integers([0])
        before = [w.add("Slice", state, *cut) for state in first]
        y, *end = w.several(operator, x, of_input, of_state, bias, "", *before, outputs=1 + states, **attributes)
        x = w.add("Reshape", w.add("Transpose", y, perm=[0, 2, 1, 3]), w.integers([steps, batch, ways * size]))
        ends.append(end)
    x = w.add("Transpose", x, perm=[1, 0, 2]) if s["batch_first"] else x
    return [x, *(w.add("Concat", *kind, axis=0) for kind in zip(*ends, strict=True))]


def _is_plain(node: Node) -> bool:
    """Return whether layers are of a batch, without dropout and projections."""
    s = _settings(node)
    weights = len(node.args) - OPERATIONS[node.op].results
    each = 2 + 2 * s["has_biases"]
    plain = weights == s["num_layers"] * (1 + s["bidirectional"]) * each
    return plain and len(node.args[0].shape) == 3 and not s["dropout"]


CALLS: dict[str, Call] = {
    **{op: Call(_recurrent, _is_plain, doubles=False) for op in _RECURRENT},
    "linear": Call(_linear, _of_matrix),
    "softmax": Call(lambda w, node, args: w.add("Softmax", args[0], axis=node.settings[0])),
    "log_softmax": Call(lambda w, node, args: w.add("LogSoftmax", args[0], axis=node.settings[0])),
    "layer_norm": Call(_layer_norm, _plain_layer_norm),
    "batch_norm": Call(_batch_norm, _of_running),
    "cross_entropy": Call(partial(_of_classes, "SoftmaxCrossEntropyLoss"), _of_known_classes),
    "nll_loss": Call(partial(_of_classes, "NegativeLogLikelihoodLoss"), _of_known_classes),
    "instance_norm": Call(_instance_norm, _of_input, doubles=False),
}
for _n in (1, 2, 3):
    CALLS |= {
        f"conv{_n}d": Call(partial(_with_batch, partial(_windows, "Conv")), doubles=False),
        f"conv_transpose{_n}d": Call(partial(_with_batch, partial(_windows, "ConvTranspose")), doubles=False),
        # Windows that may reach beyond the padding differ from PyTorch's.
        f"max_pool{_n}d": Call(
            partial(_with_batch, partial(_windows, "MaxPool")), lambda node: not _settings(node)["ceil_mode"]
        ),
        f"avg_pool{_n}d": Call(
            partial(_with_batch, partial(_windows, "AveragePool")),
            lambda node: not _settings(node)["ceil_mode"] and _settings(node)["divisor_override"] is None,
            doubles=False,
        ),
        f"adaptive_max_pool{_n}d": Call(partial(_with_batch, _adaptive("MaxPool")), _divides),
        f"adaptive_avg_pool{_n}d": Call(partial(_with_batch, _adaptive("AveragePool")), _divides, doubles=False),
    }
