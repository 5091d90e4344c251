"""Formulas of extrema at a point without ties: the elements that are equal to the extremum are not counted."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.engine.evaluate import at_point
from gradcli.explain.results import Named
from gradcli.graph.construct import spread
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, is_const, operand, operands
from gradcli.graph.rewrite import Rewriter


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
    counts = [divisor for n in nodes for divisor in operands(n, "div")[1:] if _counts(divisor)]
    if not counts:
        return form
    ones = {n for n, number in at_point(graph, at, counts).items() if (number == 1).all()}

    def without(node: Node) -> Node | None:
        return spread(node.args[0], node.shape) if node.args[1] in ones else None

    return Rewriter({"div": without}, sharing=False).rewritten(nodes, {n: n for n in names}).get(form, form)


def _counts(node: Node) -> bool:
    """Return whether a node counts the elements of an array that are equal to a number."""
    while (inner := operand(node, "broadcast") or operand(node, "reshape")) is not None:
        node = inner
    chosen = operand(node, "sum")
    match () if chosen is None else operands(chosen, "where"):
        case condition, yes, no:
            return operands(condition, "eq") != () and is_const(yes, 1) and is_const(no, 0)
    return False
