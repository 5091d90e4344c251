"""Formulas of extrema at a point without ties: the elements that are equal to the extremum are not counted."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.engine.evaluate import at_point
from gradcli.explain.results import Named
from gradcli.graph.construct import spread
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, is_const
from gradcli.graph.rewrite import rewritten

_MOVED = ("broadcast", "reshape")  # operations that keep each number


def without_ties(form: Node, names: Collection[Node], graph: Graph, at: Named) -> Node:
    """Return a formula, down to what has a name, without the quotients by a number of ties that is 1 at this point.

    >>> import numpy as np
    >>> from gradcli.graph.construct import reduce
    >>> from gradcli.graph.node import const, elementwise, leaf
    >>> x = leaf((2,))
    >>> graph = Graph.of({"x": x}, {"y": reduce("max", x, (0,), "even")})
    >>> chosen = elementwise("where", elementwise("eq", x, graph.outputs["y"]), const(1), const(0))
    >>> without_ties(chosen / reduce("sum", chosen, (0,)), [x], graph, {"x": np.array([1.0, 2.0])}) is chosen
    True
    """
    nodes = [n for n in scheduled([form], names) if n not in names]
    counts = [n.args[1] for n in nodes if n.op == "div" and _counts(n.args[1])]
    if not counts:
        return form
    ones = {n for n, number in at_point(graph, at, counts).items() if (number == 1).all()}

    def without(node: Node) -> Node | None:
        return spread(node.args[0], node.shape) if node.op == "div" and node.args[1] in ones else None

    return rewritten(nodes, without, {name: name for name in names}).get(form, form)


def _counts(node: Node) -> bool:
    """Return whether a node is how many elements are equal to something."""
    while node.op in _MOVED:
        (node,) = node.args
    chosen = node.args[0] if node.op == "sum" else None
    if chosen is None or chosen.op != "where":
        return False
    condition, yes, no = chosen.args
    return condition.op == "eq" and is_const(yes, 1) and is_const(no, 0)
