"""Elementwise operations hoisted above broadcasts, for NumPy: equal elements are computed once, to the same bits."""

from __future__ import annotations

from gradcli.engine.schedule import Schedule
from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import rewritten


def hoisted(schedule: Schedule) -> Schedule:
    """Return a schedule of the same values in which operations on equal elements come before their broadcast.

    >>> from gradcli.graph.construct import spread
    >>> from gradcli.graph.graph import Graph
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = spread(x, (5,)) ** 2
    >>> [(n.op, n.shape) for n in hoisted(Schedule.of(Graph.of({"x": x}, {"y": y}), {})).steps]
    [('mul', ()), ('broadcast', (5,))]
    """
    known = {n: n for n in (*schedule.inputs.values(), *schedule.same)}
    new = rewritten(schedule.steps, lambda node: _before_broadcast(node, schedule), known)
    return schedule if all(new[n] is n for n in schedule.steps) else schedule.renewed(new)


def _before_broadcast(node: Node, schedule: Schedule) -> Node | None:
    """Return an operation on broadcast scalars as the broadcast of the operation on the scalars.

    None where an argument is not a scalar, or none is broadcast.  A node in `schedule.same` stays as it is, for its
    value is computed already: a broadcast in it is an array.
    """
    if not node.shape or not OPERATIONS[node.op].broadcasts:
        return None
    scalars = [a if a in schedule.same else operand(a, "broadcast") or a for a in node.args]
    if any(a.shape for a in scalars) or all(a in node.args for a in scalars):
        return None
    scalar = Node(node.op, tuple(scalars), (), node.settings, node.dtype)
    return Node("broadcast", (scalar,), node.shape, (node.shape,), node.dtype)
