"""Corners: points at which a function has no derivative, and what PyTorch takes there, by the rows of the table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import Notes
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes
from gradcli.notation.numbers import number_text

_NODES = 5_000  # of a system that is looked into
_SHOWN = 60  # characters of an expression


class Condition(NamedTuple):
    """That a point lies on the corner of a node, as a node of booleans; the argument that has it; what is taken."""

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


def note_corners(graph: Graph, at: Named, notes: Notes, page: bool = True) -> tuple[str, ...]:
    """Return a note for each operation whose corner the point lies on, and add them to those that a page has."""
    if len(graph.nodes) > _NODES:
        return ()
    active = active_nodes(graph, graph.inputs.values())
    conditions = {n: c for n in graph.nodes if (c := condition(n, active)) is not None}
    if not conditions:
        return ()
    with np.errstate(all="ignore"):
        values = at_point(graph, at, [*graph.nodes, *(c.node for c in conditions.values())])
    result = tuple(
        f"{_where(graph, node, c, values)} has no derivative: PyTorch takes {c.taken}"
        for node, c in conditions.items()
        if values[c.node].any()
    )
    for text in result if page else ():
        notes.add("note", text)
    return result


def _where(graph: Graph, node: Node, corner: Condition, values: Mapping[Node, Array]) -> str:
    """Return the operation and the first index of its corner, in words: at x = 0, abs(x)."""
    from gradcli.notation.nodes import Notation, readable_names

    notation = Notation(readable_names(graph))
    argument, expression, mask = corner.argument, notation.expression(node), values[corner.node]
    if len(expression) > _SHOWN and node in notation.names:
        return f"at this point, {notation.names[node]}"
    place = int(np.flatnonzero(mask)[0])
    name = notation.name(argument)
    if argument.shape and mask.shape == argument.shape:
        name = element_names(name if argument in notation.names else f"({name})", argument.shape)[place]
    value = np.broadcast_to(values[argument], mask.shape).reshape(-1)[place]
    return f"at {_short(name)} = {number_text(float(value))}, {_short(expression)}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
