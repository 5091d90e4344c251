"""What NumPy computes in fewer or quicker calls: the same values, to the last bit but for the hyperbolic secant."""

from __future__ import annotations

from collections import Counter

from gradcli.engine.schedule import Schedule
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS


def quicker(schedule: Schedule) -> Schedule:
    """Return a schedule of the same values for calls of NumPy.

    >>> from gradcli.graph.graph import Graph
    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> [n.op for n in quicker(Schedule.of(Graph.of({"x": x}, {"y": elementwise("sech", x)}), {})).steps]
    ['sech']
    """
    readers = Counter(a for n in schedule.steps for a in n.args)
    readers.update(schedule.outputs.values())
    new: dict[Node, Node] = {}
    for n in schedule.steps:
        args = tuple(new.get(a, a) for a in n.args)
        node = n if args == n.args else n.with_args(args)
        new[n] = _secant(node, schedule, readers[n.args[-1]]) or _before_broadcast(node, schedule) or node
    return schedule if all(new[n] is n for n in schedule.steps) else schedule.renewed(new)


def _secant(node: Node, schedule: Schedule, readers: int) -> Node | None:
    """Return 1/cosh(x), the slope of tanh, as one call: the exponential function takes half as long as cosh."""
    if node.op != "div" or node.args[1].op != "cosh" or readers > 1:
        return None
    one, cosh = node.args
    value = schedule.same.get(one)
    return Node("sech", cosh.args, node.shape) if value is not None and (value == 1).all() else None


def _before_broadcast(node: Node, schedule: Schedule) -> Node | None:
    """Return an operation on numbers that are equal along all axes as one on the numbers, before they are repeated.

    What is the same at all points has been repeated already.
    """
    if not node.shape or not OPERATIONS[node.op].broadcasts:
        return None
    numbers = [a.args[0] if a.op == "broadcast" and a not in schedule.same else a for a in node.args]
    if any(a.shape for a in numbers) or all(a in node.args for a in numbers):
        return None
    number = Node(node.op, tuple(numbers), (), node.settings, node.dtype)
    return Node("broadcast", (number,), node.shape, (node.shape,), node.dtype)
