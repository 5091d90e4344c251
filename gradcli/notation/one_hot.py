"""One-hot vectors that a graph writes as a choice of 1 and 0: `one_hot(t, 3)`."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.graph.construct import reshape
from gradcli.graph.node import Node, is_const, operand, operands


def one_hot_of(node: Node, names: Mapping[Node, str]) -> tuple[Node, int] | None:
    """Return the classes and their number where a node is a one-hot encoding; None elsewhere.

    A node with a name is taken for one that is equal to it.

    >>> from gradcli.graph.construct import equal, where
    >>> from gradcli.graph.node import const, leaf
    >>> t = leaf((4,))
    >>> classes = one_hot_of(where(equal(reshape(t, (4, 1)), const((0, 1, 2), (3,))), 1, 0), {})
    >>> classes == (t, 3)
    True
    """
    match operands(node, "where"):
        case condition, one, zero if condition not in names and is_const(one, 1) and is_const(zero, 0):
            compared = operands(condition, "eq")
        case _:
            return None
    if not compared:
        return None
    wanted, classes = compared
    *samples, count = node.shape or (0,)
    is_one = wanted.is_constant and wanted.shape == () == tuple(samples)
    if not is_one and wanted.shape != (*samples, 1):
        return None
    if not classes.is_constant or classes.values != tuple(range(count)):
        return None
    target = operand(wanted, "reshape") or reshape(wanted, tuple(samples))
    if target.shape != tuple(samples):
        return None
    if not target.is_constant:
        return target, count
    equal = (n for n in names if n.is_constant and n.shape == target.shape and n.values == target.values)
    return next(equal, target), count
