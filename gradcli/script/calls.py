"""Statements of a script's system that are written as calls: what `conv2d` computes takes many operations to write."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from gradcli.errors import Source, Span
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.notation.nodes import Notation, readable_names, written_size
from gradcli.script.written import CallOf

_MANY = 4  # operations of what is rather written as its call


def spans_of_calls(graph: Graph, calls: Mapping[Node, CallOf]) -> dict[Node, Span]:
    """Return how nodes with a name are written that are such calls, or have them within.

    The calls are in the order in which they were recorded.  What is too deep to read as a whole is left as it is.
    """
    names = readable_names(graph)
    if len(names) > len(graph.labels):
        return {}
    found: dict[Node, str] = {}
    for node, call in calls.items():
        if (written := _written(node, call, names)) is not None:
            found[node] = written
            names.setdefault(node, written)
    if len(names) > len(graph.labels):
        writer = Notation(names)
        found = {n: writer.expression(n) for n in graph.labels if n.args} | found
    return {n: Span(Source(text), 0, len(text)) for n, text in found.items() if n in graph.labels}


def _written(node: Node, call: CallOf, names: dict[Node, str]) -> str | None:
    """Return a call as it is typed, where what it computes is much longer."""
    writer = Notation(names)
    if call.function == "nll_loss":
        return _loss_of_classes(call, writer)
    if not call.can_be_typed or written_size(node, ChainMap(dict.fromkeys(call.operands, ""), names)) < _MANY:
        return None
    return call.typed([writer.name(n) for n in call.operands])


def _loss_of_classes(call: CallOf, writer: Notation) -> str | None:
    """Return a loss of classes whose call says its operands alone: their mean, in which each counts once."""
    how, _, complete, _ = call.settings
    if how != "mean" or not complete or len(call.operands) != 2:
        return None
    scores, target = call.operands
    softened = scores.op == "log_softmax" and scores not in writer.names
    function, first = ("cross_entropy", scores.args[0]) if softened else ("nll_loss", scores)
    return f"{function}({writer.name(first)}, {writer.name(target)})"
