"""Corners: points at which a function has no derivative, and what PyTorch takes there, by the rows of the table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from gradcli.errors import Notes
from gradcli.graph.calls import opened
from gradcli.graph.construct import equal
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes
from gradcli.notation.numbers import array_text, number_text
from gradcli.pages.results import Array
from gradcli.text.wrapping import in_words

_NODES = 5_000  # of a system that is looked into: more would take longer than the rest of the page
_FEW = 6  # elements of an argument that is shown whole
_LISTED = 3  # elements that are listed
_NO_SLOPE = "has no derivative: PyTorch takes"
_BRANCHES = "switches branches: PyTorch takes the derivative of the selected one"
_SHOWN = 60  # characters of an expression: a note fits on two lines


class Condition(NamedTuple):
    """A corner: the condition as a node of booleans, the node and the argument at it, and what the rule gives there."""

    node: Node
    argument: Node
    taken: str


def condition(node: Node, active: Collection[Node]) -> Condition | None:
    """Return where a node has its corner in an active argument; None for one that has none.

    >>> from gradcli.graph.construct import call
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> condition(call("abs", x), {x}).taken
    '0, the middle of -1 and 1'
    """
    corner = OPERATIONS[node.op].corner if node.args else None
    if corner is None or not all(a.size for a in node.args):
        return None
    argument = next((node.args[i] for i in corner.positions if node.args[i] in active), None)
    if argument is None:
        return None
    return Condition(corner.at(node, *node.settings, *node.args), argument, corner.text(node.settings))


def _branching(node: Node, active: Set[Node]) -> Condition | None:
    """Return where a choice of the user's changes: where two numbers are equal that its condition compares."""
    if not node.args or not OPERATIONS[node.op].selects or node.args[0].dtype != "bool":
        return None
    parts = list(_ordered(node.args[0]))
    compared = next((a for c in parts for a in c.args if a in active), None)
    if compared is None or active.isdisjoint(node.args[1:]):
        return None
    return Condition(reduce(or_, (equal(*c.args) for c in parts if compared in c.args)), compared, "")


def _ordered(c: Node) -> Iterator[Node]:
    """Yield the comparisons by order in a condition: x > 0 and x < 1 in (x > 0) & (x < 1), and not x == 0."""
    if c.dtype == "bool" and len(c.args) == 2 and not OPERATIONS[c.op].commutes:
        yield c
    elif c.dtype == "bool":
        for a in c.args:
            yield from _ordered(a)


class Corners:
    """The corners of a system, and the notes on those that a point lies on; a very large system has none.

    `nodes` are those whose values the notes are made of: without a corner there are none.
    """

    def __init__(self, graph: Graph, wanted: bool = True) -> None:
        chosen = graph.nodes if wanted and len(graph.nodes) <= _NODES else ()
        self._graph = graph = opened(graph) if wanted else graph
        looked_into = graph.nodes if wanted and len(graph.nodes) <= _NODES else ()
        active = active_nodes(graph, graph.inputs.values()) if looked_into else set()
        with np.errstate(all="ignore"):
            self._conditions = {n: c for n in looked_into if (c := condition(n, active)) is not None}
            self._conditions |= {n: c for n in chosen if (c := _branching(n, active)) is not None}
        self.nodes = (*graph.nodes, *(c.node for c in self._conditions.values())) if self._conditions else ()

    def note(
        self, values: Mapping[Node, Array], found: Sequence[Array], warnings: Notes, notes: Notes, page: bool
    ) -> tuple[str, ...]:
        """Return the warnings at a point, and a note for each operation whose corner the point lies on.

        `values` holds those of `nodes` at the point.  The warnings are added to `notes`, and for a page the notes, too.
        Where a derivative that was `found` is not finite, it is not that of a branch of a choice.
        """
        is_finite = not self._conditions or all(a.dtype == object or np.isfinite(a).all() for a in found)
        added = notes.extend(warnings)
        result = tuple(
            f"{_where(self._graph, node, c, values)} {f'{_NO_SLOPE} {c.taken}' if c.taken else _BRANCHES}"
            for node, c in self._conditions.items()
            if (c.taken or is_finite) and values[c.node].any()
        )
        for text in result if page else ():
            notes.add("note", text)
        return (*added, *result)


def _where(graph: Graph, node: Node, corner: Condition, values: Mapping[Node, Array]) -> str:
    """Return the operation and the elements at its corner, in words: at x[0] = 0 and x[2] = 0, abs(x)."""
    from gradcli.notation.nodes import Notation, readable_names

    notation = Notation(readable_names(graph))
    argument, expression, mask = corner.argument, notation.expression(node), values[corner.node]
    if len(expression) > _SHOWN and node in notation.names:
        return f"at this point, {notation.names[node]}"
    name = notation.name(argument)
    if 1 < mask.size <= _FEW and mask.shape == argument.shape and mask.all() and not OPERATIONS[node.op].broadcasts:
        return f"at {_short(name)} = {array_text(values[argument])}, {_short(expression)}"  # norm: all of them are 0
    indices, names = np.flatnonzero(mask), [name] * mask.size
    if argument.shape and mask.shape == argument.shape:
        names = element_names(name if argument in notation.names else f"({name})", argument.shape)
    else:
        indices = indices[:1]
    numbers = np.broadcast_to(values[argument], mask.shape).reshape(-1)
    shown = [f"{_short(names[i])} = {number_text(float(numbers[i]))}" for i in indices[:_LISTED]]
    more = [f"{len(indices) - _LISTED:,} more"] if len(indices) > _LISTED else []
    return f"at {in_words(shown + more)}, {_short(expression)}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
