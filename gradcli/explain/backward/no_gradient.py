"""Leaves that no gradient arrives at: their `.grad` is 0 here and None in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes, differentiated
from gradcli.wrapping import in_words

if TYPE_CHECKING:
    from gradcli.explain.sections import Text


def leaves_without(graph: Graph, wrt: Sequence[str]) -> Iterator[Text]:
    """Yield why PyTorch leaves the `.grad` of a leaf None, for each leaf that no gradient arrives at.

    >>> from gradcli.graph.construct import call
    >>> from gradcli.graph.node import leaf
    >>> x, y = leaf(), leaf()
    >>> [text] = leaves_without(Graph.of({"x": x, "y": y}, {"z": call("detach", x) * y}), ["x", "y"])
    >>> text.parts
    (Grad(name='x', key=()), ' is None in PyTorch: x is only used behind detach.')
    """
    reached = differentiated(graph, wrt)
    for name in wrt:
        if graph.inputs[name] not in reached:
            from gradcli.explain.sections import Grad, Text  # data that need no sentence start sooner without it

            yield Text((Grad(name), f" is None in PyTorch: {_why(graph, name)}."))


def _why(graph: Graph, name: str) -> str:
    """Return the operation that cuts a leaf from the outputs, in words."""
    nodes = scheduled(graph.outputs.values())
    active = active_nodes(graph, [graph.inputs[name]])
    cuts = [n for n in nodes if n not in active and not active.isdisjoint(n.args)]
    if not cuts:
        return f"no output depends on {name}"
    return f"{name} is only used {in_words(list(dict.fromkeys(map(_cut, cuts))))}"


def _cut(node: Node) -> str:
    return "in conditions" if OPERATIONS[node.op].kind == "condition" else f"behind {node.op}"
