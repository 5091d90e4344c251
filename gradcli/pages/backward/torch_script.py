"""A complete PyTorch script that computes what a page shows, to be pasted and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.codegen.arrays import ArrayWriter, Rule, Text
from gradcli.codegen.program import Function, identifier
from gradcli.codegen.python import literal
from gradcli.codegen.torch import LANGUAGE
from gradcli.engine.evaluate import number
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter
from gradcli.notation.text import settings_texts
from gradcli.notation.writer import options_of
from gradcli.pages.backward.pytorch import call_line
from gradcli.pages.question import Point, Result


def _numbers(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write a function whose further arguments have to be numbers."""
    values = [repr(number(a.value)) for a in node.args[1:] if a.value is not None]
    return f"torch.nn.functional.{node.op}({', '.join([args[0], *values])})"


def _extremum(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axes, ties = node.settings
    if ties == "first" and len(axes) == 1:
        return f"torch.{node.op}({args[0]}, dim={axes[0]})[0]"
    return f"torch.a{node.op}({args[0]}, dim={axes})"


def _along(function: str) -> Rule:
    """Return the rule of a function whose settings are its axes, and a correction where it has one."""

    def write(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        settings = zip(("dim", "correction"), node.settings, strict=False)
        return f"torch.{function}({', '.join([args[0], *(f'{word}={value}' for word, value in settings)])})"

    return write


def _call(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write a call of PyTorch's function of the same name."""
    texts = [_argument(node, i, text) for i, text in enumerate(args)]
    options = options_of(node)
    named = [f"{word}={texts[i]}" for i, word in options.items() if word]
    first, behind = settings_texts(node)
    if "normalized_shape" in OPERATIONS[node.op].settings:
        first = [str(node.settings[1])]  # a tuple also of one size
    if node.op == "batch_norm":  # of the batch: PyTorch would change running statistics in place
        first, named = ["None", "None"], [text for text in named if not text.startswith("running_")]
        behind = ["training=True"]
    positional = texts[: len(texts) - len(options)]
    return f"torch.nn.functional.{node.op}({', '.join([*positional, *first, *named, *behind])})"


def _argument(node: Node, i: int, text: Text) -> str:
    """Return an argument of a call as text: indices as integers, options that are numbers as Python's numbers."""
    a = node.args[i]
    if i in OPERATIONS[node.op].indices and (not i or a.shape != node.args[0].shape):  # targets may be probabilities
        # A constant has one value for all elements, or one for each.
        indices = np.resize([int(number(v)) for v in a.values], a.shape).tolist() if a.is_constant else None
        return f"{text.atom}.long()" if indices is None else f"torch.tensor({indices})"
    return repr(number(a.value)) if a.value is not None and _is_number(node, options_of(node).get(i, "")) else text


def _is_number(node: Node, word: str) -> bool:
    """Return whether an option is a number in PyTorch, not a tensor."""
    return word in ("scale", "eps") or OPERATIONS[node.op].options.get(word) is not None


def _layers(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write one result of PyTorch's function for recurrent layers."""
    layers, both, biased, batch_first, _, result = node.settings
    states = OPERATIONS[node.op].results - 1
    first = args[1] if states == 1 else f"({', '.join(args[1 : 1 + states])})"
    flags = f"{biased}, {layers}, 0.0, False, {both}, {batch_first}"
    return f"torch.{node.op}({args[0]}, {first}, [{', '.join(args[1 + states :])}], {flags})[{result}]"


# What PyTorch has itself, with its own corners, where the files that are exported spell it in simpler operations.
_OWN: dict[str, Rule | str] = {
    **{op: _call for op, row in OPERATIONS.items() if row.kind == "call"},
    **{op: _layers for op, row in OPERATIONS.items() if row.results > 1},
    "kron": "torch.kron({}, {})",
    "roll": lambda w, node, args: f"torch.roll({args[0]}, {node.settings[0]}, {node.settings[1]})",
    "relu": "torch.relu({})",
    "sigmoid": "torch.sigmoid({})",
    "silu": "torch.nn.functional.silu({})",
    "hardtanh": _numbers,
    "leaky_relu": _numbers,
    **{op: _along(op) for op in ("mean", "var", "std", "softmax", "log_softmax", "logsumexp")},
    "norm": _along("linalg.vector_norm"),
    "max": _extremum,
    "min": _extremum,
    "detach": lambda w, node, args: f"{args[0].atom}.detach()",
    # PyTorch has no derivative of it, where everybody else has 0.
    "heaviside": lambda w, node, args: f"torch.heaviside({args[0].atom}.detach(), {args[1]})",
}
_LANGUAGE = replace(LANGUAGE, rules={**LANGUAGE.rules, **_OWN})


def torch_script(result: Result, point: Point) -> list[str]:
    """Return the lines of the script; without a point, leaves are arrays of ones.

    Errors: `InputError` for an operation that PyTorch does not have.
    """
    head = ["import torch", "", "torch.set_default_dtype(torch.float64)", ""]
    names, body = statements(result.graph)
    leaves = [_leaf(result, point, name, names[name]) for name in result.graph.inputs]
    kept = [identifier(name) for name in point.retained if name not in result.question.unreached]
    body += [f"{name}.retain_grad()" for name in kept]
    outputs = {identifier(name): y for name, y in result.graph.outputs.items()}
    calls = [{identifier(name): v for name, v in call.v.items()} for call in point.calls]
    lines = [call_line(outputs, v, k < len(calls) - 1, whole=True) for k, v in enumerate(calls)]
    shown = [f'print("{name}.grad =", {name}.grad)' for name in (*map(identifier, result.wrt), *kept)]
    return [*head, *leaves, *body, *lines, *shown]


def statements(graph: Graph) -> tuple[dict[str, str], list[str]]:
    """Return the identifiers of a system's inputs and outputs in Python, and the lines that compute the outputs.

    Errors: `InputError` for an operation that PyTorch does not have.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> statements(Graph.of({"x": x}, {"y": x * x}))
    ({'x': 'x', 'y': 'y'}, ['y = x * x'])
    """
    function = _function(graph)
    writer = ArrayWriter(_LANGUAGE, function)
    lines = list(writer.write())
    for name, node in function.results.items():
        if writer.done[node] != name:
            lines.append(f"{name} = {writer.done[node]}")
    names = {name: function.names[n] for name, n in graph.inputs.items()}
    return names | {name: identifier(name) for name in graph.outputs}, lines


def _leaf(result: Result, point: Point, name: str, written: str) -> str:
    value = point.at.get(name, np.ones(result.graph.inputs[name].shape))
    grad = ", requires_grad=True" if name in result.wrt else ""
    return f"{written} = torch.tensor({literal(value)}{grad})"


def _function(graph: Graph) -> Function:
    """Return the system in operations that PyTorch has, with the user's names."""
    new = Rewriter(definitions=_DEFINITIONS, sharing=False).rewritten(graph.nodes)
    results = {identifier(name): new[y] for name, y in graph.outputs.items()}
    names = {new[n]: identifier(name) for n, name in reversed(graph.labels.items()) if not n.is_constant}
    nodes = scheduled(results.values())
    readers = Counter(a for n in nodes for a in n.args)
    readers.update(results.values())
    arguments = {names[n]: n for n in graph.inputs.values()}
    return Function("system", "", arguments, results, nodes, names, readers, None)


def _definition(node: Node) -> Node | None:
    """Return the definition of an operation in simpler ones; None where it has none."""
    row = OPERATIONS[node.op]
    for definition in (row.lowered, row.definition, row.formula):
        if definition is not None and (simpler := definition(*node.settings, *node.args)) is not None:
            return simpler
    return None


def _opened(node: Node) -> Node | None:
    """Return the definition of a call that PyTorch's function does not take, or has no gradients of; None of others."""
    row = OPERATIONS[node.op]
    settings = dict(zip(row.settings, node.settings, strict=True))
    of_batch = settings.get("training", settings.get("use_input_stats"))
    of_running = "running_mean" in settings.get("given", ()) and not of_batch
    shapes = [a.shape for a in node.args]
    unfit = {
        "binary_cross_entropy": shapes[:1] != shapes[1:2],
        "binary_cross_entropy_with_logits": shapes[:1] != shapes[1:2],
        "linear": len(shapes) > 2 and len(shapes[1]) == 1,
        "bilinear": shapes[3:] == [()],
    }.get(node.op, False)
    divided = node.op == "avg_pool1d" and settings["divisor_override"] is not None
    plain = (i for i, word in options_of(node).items() if "reduction" in settings or _is_number(node, word))
    other = of_running or unfit or divided or any(not node.args[i].is_constant for i in plain)
    if row.results > 1:  # one sequence, dropout, and projections
        layers, both, biased, _, dropout, _ = node.settings
        weights = len(node.args) - row.results
        other = len(node.args[0].shape) == 2 or dropout or weights > layers * (1 + both) * (2 + 2 * biased)
    return _definition(node) if other else None


# Operations that PyTorch lacks, in ones that it has.
_DEFINITIONS = {
    **{op: _opened for op, row in OPERATIONS.items() if row.kind == "call"},
    "dropout": _definition,  # PyTorch's draws its mask
    **{op: _definition for op in OPERATIONS if _LANGUAGE.rules.get(op, "unsupported") == "unsupported"},
}
