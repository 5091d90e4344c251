"""A complete PyTorch script that computes what a page shows, to be pasted and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.explain.backward.pytorch import call_line
from gradcli.explain.backward.record import BackwardPoint, BackwardResult
from gradcli.export.arrays import ArrayWriter, Rule, Text
from gradcli.export.program import Function, identifier
from gradcli.export.python import literal
from gradcli.export.torch import LANGUAGE
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter


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


# What PyTorch has itself, with its own corners, where the files that are exported spell it in simpler operations.
_OWN: dict[str, Rule | str] = {
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


def torch_script(result: BackwardResult, point: BackwardPoint) -> list[str]:
    """Return the lines of the script; without a point, leaves are arrays of ones.

    Errors: `InputError` for an operation that PyTorch does not have.
    """
    function = _function(result.graph)
    names = {n: function.names[n] for n in result.graph.inputs.values()}
    head = ["import torch", "", "torch.set_default_dtype(torch.float64)", ""]
    leaves = [_leaf(result, point, name, names[n]) for name, n in result.graph.inputs.items()]
    body = statements(result.graph)[1]
    kept = [identifier(name) for name in point.retained if name not in result.unreached]
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


def _leaf(result: BackwardResult, point: BackwardPoint, name: str, written: str) -> str:
    value = point.at.get(name, np.ones(result.graph.inputs[name].shape))
    grad = ", requires_grad=True" if name in result.wrt else ""
    return f"{written} = torch.tensor({literal(value)}{grad})"


def _function(graph: Graph) -> Function:
    """Return the system in operations that PyTorch has, with the user's names."""
    new = _SPELLED.rewritten(graph.nodes)
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


# Operations that PyTorch lacks, in ones that it has.
_SPELLED = Rewriter(
    definitions={op: _definition for op in OPERATIONS if _LANGUAGE.rules.get(op, "unsupported") == "unsupported"},
    sharing=False,
)
