"""Nodes as text, and the names under which the nodes of a graph are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from gradcli.graph.graph import Graph
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.notation.text import TEXT
from gradcli.notation.writer import Writer, spread_argument

_DEEP = 40
_REPEATED = 40  # operations of a part with several uses that is written out for each: two lines
_SHARED = 3  # the same, where some parts get names in any case
ENDLESS = 2**60


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


@lru_cache(maxsize=8)  # a page asks for those of its graph several times
def readable_names(graph: Graph) -> Mapping[Node, str]:
    """Return the user's names, and names for the parts of expressions that would be too long to read as one.

    These are parts that are deep, and those with several uses that are long, which would be written out for each use:
    so the texts of all definitions grow with the nodes.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> list(readable_names(Graph.of({"x": x}, {"y": 3 * x**2})).values())
    ['x', 'y']
    """
    names = _named(graph, _REPEATED)
    return names if len(names) == len(graph.labels) else _named(graph, _SHARED)


def _named(graph: Graph, repeated: int) -> dict[Node, str]:
    """Return the user's names, and those of deep parts and of parts with several uses of more operations than these."""
    fresh = fresh_names({*graph.inputs, *graph.names})
    uses = Counter(a for n in graph.nodes for a in n.args)
    names: dict[Node, str] = {}
    depths: dict[Node, int] = {}
    sizes: dict[Node, int] = {}
    for node in graph.nodes:
        if node in graph.labels:
            names[node] = graph.labels[node]
            continue
        depths[node] = 1 + max((depths[a] for a in node.args if a not in names), default=0)
        sizes[node] = _written_size(node, names, sizes)
        is_long = depths[node] > _DEEP or (uses[node] > 1 and sizes[node] > repeated)
        if is_long and not node.is_constant:
            names[node] = next(fresh)
    return names


def written_size(node: Node, names: Mapping[Node, str]) -> int:
    """Return how many operations the text of a node has; shared ones are written out each time, spreading is not.

    No size is larger than `ENDLESS`.
    """
    sizes: dict[Node, int] = {}
    stack = [node]
    while stack:
        if waiting := [a for a in stack[-1].args if a not in names and a not in sizes]:
            stack += waiting
        else:
            part = stack.pop()
            sizes[part] = _written_size(part, names, sizes)
    return sizes[node]


def _written_size(node: Node, names: Mapping[Node, str], sizes: Mapping[Node, int]) -> int:
    """Return the size of a node's text, given those of its arguments without names."""
    size = int(spread_argument(node) is None) + sum(1 if a in names else sizes[a] for a in node.args)
    return min(size, ENDLESS)


def short_text(node: Node, names: Mapping[Node, str], length: int) -> str:
    """Return a node's name or its formula, up to broadcasting, if it has at most so many characters; else "".

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> short_text(2 * x, {x: "x"}, 3), short_text(2 * x, {x: "x"}, 2)
    ('2*x', '')
    """
    if written_size(node, names) > length:  # an operation has at least one character
        return ""
    text = Notation(names, implicit=True).name(node)
    return text if len(text) <= length else ""


class Notation(Writer):
    """Writes nodes in the language of gradcli, in terms of the nodes in `names`.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> Notation({x: "x"}).expression(2 * x**3)
    '2*x**3'
    """

    rules = TEXT
    typed = True
