"""Which operations share a box of a picture: repeated parts, isomorphic ones, and the middle of a long system."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

from gradcli.explain.picture.isomorphic import isomorphic_groups
from gradcli.explain.picture.repeats import LEAST, repeats
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node

_MANY = 40  # arguments of one operation whose leaves stand in one box: more are wider than a screen
_JOINED = 7  # operations that join eight which stand side by side, as a sum does
_SCOPES = 40  # boxes of a model that are read one by one: where there are more, deep parts become one
MOST_BOXES = 200  # of a folded picture: more are too many to read


class Fold(NamedTuple):
    """The operations of a box: one, parts of `period` operations that follow each other, or some side by side.

    The middle of a long system has operations of any kind, and so has a `part` of a model.
    """

    nodes: tuple[Node, ...]
    period: int = 1
    side_by_side: bool = False
    middle: bool = False
    part: str = ""

    @property
    def times(self) -> int:
        """The number of parts."""
        return 1 if self.part else len(self.nodes) // self.period


def folds(graph: Graph, nodes: Sequence[Node], fold: bool = True) -> list[Fold]:
    """Return the folds of the computed nodes in topological order; without `fold`, each node is one.

    Where there would be more than `MOST_BOXES` boxes, those in the middle become one.

    >>> from gradcli import parse
    >>> rows = "; ".join(f"h{k} = sin(x{k})" for k in range(10))
    >>> graph = parse(f"{rows}; y = {' + '.join(f'h{k}' for k in range(10))}")
    >>> [f"{fold.nodes[0].op}, {fold.times} times" for fold in folds(graph, [n for n in graph.nodes if n.args])]
    ['sin, 10 times', 'add, 9 times']
    """
    if not fold:
        return [Fold((n,)) for n in nodes]
    return _shortened(_parts(graph, nodes) if graph.parts else _repeated(graph, nodes))


def _parts(graph: Graph, nodes: Sequence[Node]) -> list[Fold]:
    """Return the nodes grouped by the module of the model; deep modules are merged where there are many.

    Only nodes that follow each other are put together, so that no two parts need each other.
    """
    paths = [tuple(graph.parts.get(n, "").strip("/").split("/")) for n in nodes]
    for depth in range(max(map(len, paths)), 0, -1):
        cut = dict(zip(nodes, ("/".join(path[:depth]) for path in paths), strict=True))
        runs = [(path, (*run,)) for path, run in groupby(nodes, cut.__getitem__)]
        if len(runs) <= _SCOPES:
            break
    result: list[Fold] = []
    for path, run in runs:
        result += [Fold(run, part=path)] if path and len(run) > 1 else [Fold((n,)) for n in run]
    return result


def _repeated(graph: Graph, nodes: Sequence[Node]) -> list[Fold]:
    """Return the folds of repeated parts, then of isomorphic operations, and the other nodes alone."""
    chains = _chains(graph, nodes)
    rest = _without(nodes, chains)
    beside = [Fold(tuple(group), 1, True) for group in isomorphic_groups(graph, rest)]
    if beside:
        whole = _in_order(nodes, [*chains, *beside, *_chains(graph, _without(rest, beside), _JOINED)])
        if sum(len(part.nodes) for part in whole) == len(nodes):  # nothing stands in a circle
            return whole
    return _in_order(nodes, chains)


def _shortened(parts: list[Fold]) -> list[Fold]:
    """Return the folds, with those in the middle as one where there are too many boxes.

    As each part is behind what it needs, so is the one in the middle: no arrow leads from it to a part before it.
    """
    if sum(1 + len(leaves) for leaves in _new_leaves(parts)) <= MOST_BOXES:
        return parts
    first, last = 0, len(parts)
    by_turns = (part for pair in zip(parts, reversed(parts), strict=True) for part in pair)
    boxes = 1
    for turn, leaves in enumerate(_new_leaves(by_turns)):
        boxes += 1 + len(leaves)
        if boxes > MOST_BOXES or last - first <= 2:
            break
        first, last = (first, last - 1) if turn % 2 else (first + 1, last)
    middle = tuple(n for part in parts[first:last] for n in part.nodes)
    return [*parts[:first], Fold(middle, middle=True), *parts[last:]]


def _new_leaves(parts: Iterable[Fold]) -> Iterator[set[Node]]:
    """Yield for each fold the leaves whose boxes come right before it: those that it is the first to read."""
    seen: set[Node] = set()
    for part in parts:
        single = part.times == 1 and len(part.nodes[0].args) < _MANY
        leaves = {a for a in part.nodes[0].args if a.is_leaf} - seen if single else set()
        seen |= leaves
        yield leaves


def isomorphic_leaves(graph: Graph, parts: Sequence[Fold]) -> list[list[Node]]:
    """Return the groups of leaves that share a box: only one fold, or one operation of many arguments, reads them.

    Leaves of a group are read at the same indices of the same parts.
    """
    edges: dict[Node, list[tuple[int, int, int]]] = {}
    alone = set(graph.outputs.values())
    for number, part in enumerate(parts):
        for i, n in enumerate(part.nodes):
            many = part.times == 1 and len(n.args) >= _MANY
            for k, a in enumerate(n.args):
                if a.is_leaf:
                    spot = (number, i % part.period, 0 if many or part.middle else k)
                    mine = edges.setdefault(a, [])
                    if not part.middle or spot not in mine[-1:]:  # how often the middle reads it makes no difference
                        mine.append(spot)
                    alone |= {a} if part.times == 1 and not many else set()
    groups: dict[tuple[Hashable, ...], list[Node]] = {}
    for leaf, mine in edges.items():
        if leaf not in alone:
            groups.setdefault((leaf.shape, *sorted(mine)), []).append(leaf)
    return [group for group in groups.values() if len(group) > 1]


def _chains(graph: Graph, nodes: Sequence[Node], least: int = LEAST) -> list[Fold]:
    return [Fold(tuple(nodes[r.start : r.stop]), r.period) for r in repeats(graph, nodes, least)]


def _without(nodes: Sequence[Node], kept: Iterable[Fold]) -> list[Node]:
    inside = {n for fold in kept for n in fold.nodes}
    return [n for n in nodes if n not in inside]


def _in_order(nodes: Sequence[Node], kept: Sequence[Fold]) -> list[Fold]:
    """Return the folds and the other nodes in topological order; folds that would form a cycle are left out."""
    position = {n: k for k, n in enumerate(nodes)}
    parts = sorted([*kept, *(Fold((n,)) for n in _without(nodes, kept))], key=lambda fold: position[fold.nodes[0]])
    part_of = {n: k for k, fold in enumerate(parts) for n in fold.nodes}
    needs = [{part_of[a] for n in fold.nodes for a in n.args if a in part_of} - {k} for k, fold in enumerate(parts)]
    sorter = TopologicalSorter(dict(enumerate(needs)))
    ready: list[int] = []
    ordered: list[Fold] = []
    with suppress(CycleError):
        sorter.prepare()
    while sorter.is_active():
        for k in sorter.get_ready():
            heappush(ready, k)
        k = heappop(ready)
        ordered.append(parts[k])
        sorter.done(k)
    return ordered
