"""Passes from a graph to a smaller graph with the same values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradcli.graph.node import Graph, Node


def optimise(graph: Graph) -> Graph:
    """Return the graph without repeated and without unread nodes.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf("x")
    >>> y = elementwise("add", elementwise("sin", x), elementwise("sin", x)).called("y")
    >>> [n.op for n in optimise(Graph.of([x], [y])).nodes]
    ['input', 'sin', 'add']
    """
    return dead_code(common_subexpressions(graph))


def common_subexpressions(graph: Graph) -> Graph:
    """Return the graph in which equal operations on equal arguments are one node.  Outputs keep their names."""
    outputs = set(graph.outputs)
    first: dict[Any, Node] = {}
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        args = tuple(new[a] for a in node.args)
        same = node if args == node.args else replace(node, args=args)
        # A value's type is part of it: 1 == 1.0 == Decimal(1), and each prints in its own way.
        key = (node.op, args, node.shape, node.params, type(node.value))
        if node.op == "input":
            new[node] = node
        elif node in outputs:
            new[node] = same
        else:
            new[node] = first.setdefault(key, same)
    return Graph(
        tuple(dict.fromkeys(new.values())), tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs)
    )


def dead_code(graph: Graph) -> Graph:
    """Return the graph without the nodes that no output needs; the inputs stay."""
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.args)
    inputs = set(graph.inputs)
    return Graph(tuple(n for n in graph.nodes if n in needed or n in inputs), graph.inputs, graph.outputs)
