"""The local derivative of an elementwise operation, as nodes."""

from __future__ import annotations

from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Node, const, lift


def slope(node: Node, i: int) -> Node:
    """Return ∂node/∂(i-th argument) for an elementwise node, as a node of a shape that broadcasts to its own.

    Source: the table; a test compares it with SymPy's `diff`, at corners with PyTorch 2.13.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> slope(elementwise("sin", leaf()), 0)
    cos(input), shape ()
    """
    row = ELEMENTWISE[node.op]
    if row.constant:
        return const(0)
    return lift(row.slopes[i](node, *node.args))
