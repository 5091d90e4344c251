"""Nodes as text, and the names under which the nodes of a graph are shown."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.graph.graph import Graph
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.notation.text import TEXT
from gradcli.notation.writer import Writer, spread_argument

_DEEP = 40


def node_names(graph: Graph) -> dict[Node, str]:
    """Return the names of the nodes of a system: the user's, and `t1`, `t2`, … for the nodes without one.

    Constants are shown as they are, and have no name.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> list(node_names(Graph.of({"x": x}, {"y": 3 * x**2})).values())
    ['x', 't1', 'y']
    """
    fresh = fresh_names({*graph.inputs, *graph.names})
    return {n: graph.labels.get(n) or next(fresh) for n in graph.nodes if not n.is_constant or n in graph.labels}


def readable_names(graph: Graph) -> dict[Node, str]:
    """Return the user's names, and names for the parts of expressions that would be too deep to read as one.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> list(readable_names(Graph.of({"x": x}, {"y": 3 * x**2})).values())
    ['x', 'y']
    """
    fresh = fresh_names({*graph.inputs, *graph.names})
    names: dict[Node, str] = {}
    depths: dict[Node, int] = {}
    for node in graph.nodes:
        depths[node] = 1 + max((depths[a] for a in node.args if a not in names), default=0)
        if node in graph.labels or (depths[node] > _DEEP and not node.is_constant):
            names[node] = graph.labels.get(node) or next(fresh)
    return names


def written_size(node: Node, names: Mapping[Node, str]) -> int:
    """Return how many operations the text of a node has; shared ones are written out each time, spreading is not."""
    sizes: dict[Node, int] = {}
    stack = [node]
    while stack:
        if waiting := [a for a in stack[-1].args if a not in names and a not in sizes]:
            stack += waiting
        else:
            part = stack.pop()
            sizes[part] = int(spread_argument(part) is None) + sum(1 if a in names else sizes[a] for a in part.args)
    return sizes[node]


class Notation(Writer):
    """Writes nodes in the language of gradcli, in terms of the nodes in `names`.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> Notation({x: "x"}).expression(2 * x**3)
    '2*x**3'
    """

    rules = TEXT
    typed = True
