"""Isomorphic operations without a path between them: ten branches with the same operations on different inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.rewrite import interpret, operation_key

LEAST = 8  # nodes that are drawn as one: fewer are shown each by itself, and fit beside each other
_ROUNDS = 4  # in which leaves are told apart; more are hardly ever needed

Colours = Mapping[Node, int]


def isomorphic_groups(graph: Graph, nodes: Iterable[Node]) -> list[list[Node]]:
    """Return the groups of isomorphic operations among `nodes`, each in the order of computation.

    Two operations are isomorphic if they are the same on arguments that are equal or isomorphic; leaves are isomorphic
    if their readers are.  Which element an index takes makes no difference.  No node of a group depends on another of
    it.  The method is colour refinement (B. Weisfeiler and A. Leman, "The reduction of a graph to canonical form",
    1968).

    >>> from gradcli import parse
    >>> graph = parse("y = " + " + ".join(f"sin(w*x{k})" for k in range(10)))
    >>> [f"{group[0].op}, {len(group)} times" for group in isomorphic_groups(graph, graph.nodes)]
    ['mul, 10 times', 'sin, 10 times']
    """
    groups: dict[int, list[Node]] = {}
    wanted = [n for n in nodes if n.args]
    if len(wanted) < LEAST:
        return []
    colours = _colours(graph)
    for n in wanted:
        groups.setdefault(colours[n], []).append(n)
    return [group for group in groups.values() if len(group) >= LEAST]


def _colours(graph: Graph) -> Colours:
    """Return a colour for each node by colour refinement: isomorphic nodes have the same."""
    outputs = frozenset(graph.outputs.values())
    leaves: dict[Node, Hashable] = {n: n.shape for n in graph.nodes if n.is_leaf}
    colours = _computed(graph, leaves, outputs)
    for _ in range(_ROUNDS):
        read: dict[Node, Counter[tuple[int, int]]] = {n: Counter() for n in leaves}
        for n in graph.nodes:
            for position, a in enumerate(n.args):
                if a in read:
                    read[a][colours[n], position] += 1
        finer: dict[Node, Hashable] = {n: (colours[n], frozenset(read[n].items())) for n in leaves}
        if len(set(finer.values())) == len({colours[n] for n in leaves}):
            break
        colours = _computed(graph, finer, outputs)
    return colours


def _computed(graph: Graph, leaves: Mapping[Node, Hashable], outputs: frozenset[Node]) -> Colours:
    numbers: dict[Hashable, int] = {}

    def colour(n: Node, arguments: Sequence[int]) -> int:
        kind = ("index", n.shape) if n.op == "index" else operation_key(n)
        look = ("input", leaves[n]) if n in leaves else (kind, n in outputs, *arguments)
        return numbers.setdefault(look, len(numbers))

    return interpret(graph.nodes, colour, {})
