"""Passes from a graph to a smaller graph with the same values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.weights import Weights


def optimise(graph: Graph) -> Graph:
    """Return the graph without repeated and without unread nodes.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> y = elementwise("add", elementwise("sin", x), elementwise("sin", x))
    >>> [n.op for n in optimise(Graph.of({"x": x}, {"y": y})).nodes]
    ['input', 'sin', 'add']
    """
    new = representatives(graph.nodes)
    return Graph.of(graph.inputs, {name: new[n] for name, n in graph.outputs.items()})


def representatives(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Return for each node the one that stands for it and all that are equal operations on equal arguments."""
    first: dict[Any, Node] = {}
    new: dict[Node, Node] = {}
    for node in nodes:
        if node.is_leaf:
            new[node] = node
            continue
        args = tuple(new[a] for a in node.args)
        same = node if args == node.args else node.with_args(args)
        operands = frozenset(args) if node.args and OPERATIONS[node.op].commutes else args
        # 1 == 1.0 == Decimal(1), and each prints in its own way; 0.0 == -0.0, and they are not the same.
        # Weights are equal to themselves alone.
        listed = node.is_constant and not isinstance(node.settings[0], Weights)
        settings = repr(node.settings) if listed else node.settings
        key = (node.op, operands, node.shape, settings, node.dtype)
        new[node] = first.setdefault(key, same)
    return new
