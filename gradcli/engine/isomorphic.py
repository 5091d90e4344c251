"""Isomorphic operations on scalars, vectorised to one operation on an array (superword-level parallelism).

A function of `gradcli.compile` is called at few points, where a call of NumPy takes longer than its arithmetic.  A
system that is written element by element, `y0 = (3 - 2*x0)*x0 - 2*x1; y1 = …`, repeats the same few operations:
vectorised, a thousand such elements are computed three times as fast.  Leaves are stacked to arrays, and a scalar that
is read alone is a view of one row.  Elementwise operations on equal elements are hoisted above their broadcast.  Each
number comes from the same operation as before, so no bit changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcli.engine.schedule import Schedule
from gradcli.graph.construct import index
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import operation_key, rewritten

_MOST = 64  # numbers from the inputs in an array: at some hundred points they stay in the cache for the next steps
_FEWEST = 16  # for fewer, an array saves less than it costs to put together


@dataclass(eq=False)
class _Kind:
    """Isomorphic scalars: one operation of arguments of the same kinds; or inputs, or elements of one array."""

    are_inputs: bool  # they are inputs, or numbers of an array
    members: list[Node] = field(default_factory=list)
    whole: Node | None = None  # the array of all members

    def indices(self) -> dict[Node, int]:
        return {n: i for i, n in enumerate(self.members)}


def vectorised(schedule: Schedule) -> Schedule:
    """Return a schedule of the same numbers in half as many steps or fewer, or else the same schedule.

    >>> from gradcli.graph.graph import Graph
    >>> from gradcli.graph.node import leaf
    >>> x = [leaf() for _ in range(20)]
    >>> graph = Graph.of({f"x{i}": n for i, n in enumerate(x)}, {f"y{i}": 3 * n + 1 for i, n in enumerate(x)})
    >>> [n.op for n in vectorised(Schedule.of(graph, {})).steps if n.op != "index"]
    ['stack', 'mul', 'add']
    """
    new = schedule.renewed(_Groups(schedule).rebuilt(schedule.steps))
    calls = set(new.steps) - {n for n in new.outputs.values() if is_row(n)}
    return new if 2 * len(calls) <= len(schedule.steps) else schedule


def is_row(node: Node) -> bool:
    """Return whether a node is an element of an array with one axis."""
    array = operand(node, "index")
    return array is not None and not node.shape and len(array.shape) == 1


class _Groups:
    """The kinds of the numbers of a schedule, and the steps on arrays of them."""

    def __init__(self, schedule: Schedule) -> None:
        self._kinds: dict[Any, _Kind] = {}
        self._of: dict[Node, _Kind] = {}
        self._new: dict[Node, Node] = {}
        for i, n in enumerate(n for n in schedule.inputs.values() if not n.shape):
            self._join(n, i // _MOST, True)
        for n in schedule.steps:
            if is_row(n):
                self._join(n, (n.args[0], n.settings[0][0] // _MOST), True)
            elif OPERATIONS[n.op].broadcasts and not any(a.shape for a in (n, *n.args)):
                self._join(n, (operation_key(n), *(self._of.get(a, a) for a in n.args)), False)

    def _join(self, node: Node, key: Any, are_inputs: bool) -> None:
        self._of[node] = kind = self._kinds.setdefault(key, _Kind(are_inputs))
        kind.members.append(node)

    def rebuilt(self, steps: Sequence[Node]) -> dict[Node, Node]:
        """Return for each step the node that has its value now.

        An array is made where the first of its numbers was: what all of them read comes before it.
        """
        for n in steps:
            kind = self._of.get(n)
            if kind is None or n not in self._new:
                args = tuple(self._new.get(a, a) for a in n.args)
                self._new[n] = n if args == n.args else n.with_args(args)
            if kind is not None and kind.whole is None and not kind.are_inputs:
                self._vectorise(kind)
        return self._new

    def _vectorise(self, kind: _Kind) -> None:
        """Make the array of all members, and each member a row of it, if that takes fewer calls."""
        first, *others = kind.members
        varying = [i for i, a in enumerate(first.args) if any(n.args[i] is not a for n in others)]
        if len(kind.members) < _FEWEST or not all(self._is_array(self._of.get(first.args[i])) for i in varying):
            return
        indices = [self._of[first.args[i]].indices() for i in varying]
        kind.members.sort(key=lambda n: [p[n.args[i]] for i, p in zip(varying, indices, strict=True)])
        args = [self._new.get(a, a) for a in first.args]
        for i, p in zip(varying, indices, strict=True):
            args[i] = _rows(self._whole(self._of[first.args[i]]), [p[n.args[i]] for n in kind.members])
        kind.whole = Node(first.op, tuple(args), (len(kind.members),), first.settings, first.dtype)
        self._new |= {n: Node("index", (kind.whole,), (), ((i,),)) for i, n in enumerate(kind.members)}

    def _is_array(self, kind: _Kind | None) -> bool:
        """Return whether the scalars of a kind are an array, or can be stacked to one."""
        return kind is not None and (kind.whole is not None or (kind.are_inputs and len(kind.members) >= _FEWEST))

    def _whole(self, kind: _Kind) -> Node:
        if kind.whole is None:  # inputs, or rows of an array
            first = kind.members[0]
            if is_row(first):
                kind.whole = _rows(self._new[first].args[0], [n.settings[0][0] for n in kind.members])
            else:
                kind.whole = Node("stack", tuple(kind.members), (len(kind.members),), (0,))
        return kind.whole


def _rows(whole: Node, numbers: list[int]) -> Node:
    """Return rows of an array: itself or a view of it, where there is one."""
    step = numbers[1] - numbers[0]
    straight = range(numbers[0], numbers[0] + step * len(numbers), step or 1)
    if list(straight) == numbers and step > 0:
        return index(whole, (straight,))
    return take(whole, 0, IndexArray.of(numbers))


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
