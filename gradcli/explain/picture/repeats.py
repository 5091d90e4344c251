"""Repeated parts of a graph: equal layers that follow each other, a chain of 3,000 sines."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.rewrite import operation_key

PERIOD = 64  # operations of the longest part that is looked for: a layer of a network has fewer
TIMES = 3  # fewer are no repetition
LEAST = 10  # operations that are worth folding, all repetitions together: fewer fit on a screen

Positions = Mapping[Node, int]


class Repeat(NamedTuple):
    """Operations `start` to `start + period` of a list, which follow each other `times` times."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The index after the last part."""
        return self.start + self.period * self.times

    @property
    def saved(self) -> int:
        """The number of operations that are left out."""
        return self.period * (self.times - 1)


def repeats(graph: Graph, nodes: Sequence[Node], least: int = LEAST, varying: bool = False) -> list[Repeat]:
    """Return the parts of a list of computed nodes that are repeated, in their order; none overlaps another.

    The parts are isomorphic: each reads of the one before it what that one reads of its predecessor, or a leaf of its
    own of the same shape, or what all of them read.  The first may read anything in the predecessor's place.  Nothing
    else uses what they compute, but for the last of them.  At least `least` operations are worth it; `varying` numbers
    of the same shape are alike.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = y = leaf()
    >>> for _ in range(3000):
    ...     y = elementwise("sin", y)
    >>> graph = Graph.of({"x": x}, {"y": y})
    >>> repeats(graph, graph.nodes[1:])
    [Repeat(start=0, period=1, times=3000)]
    """
    search = _Search(graph, nodes, least, varying)
    result: list[Repeat] = []
    taken = np.zeros(len(nodes), dtype=bool)
    for repeat in sorted(search.candidates(), key=lambda r: (-r.saved, r.period, r.start)):
        if not taken[repeat.start : repeat.stop].any():
            taken[repeat.start : repeat.stop] = True
            result.append(repeat)
    return sorted(result)


class _Search:
    """A search for repetitions among nodes that are coloured: nodes of one operation have the same number."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], least: int, varying: bool) -> None:
        self.nodes, self.least, self.varying = nodes, least, varying
        self.position: Positions = {n: i for i, n in enumerate(nodes)}
        self.users: dict[Node, list[int]] = {}
        for n in graph.nodes:
            for a in n.args:
                self.users.setdefault(a, []).append(self.position.get(n, len(nodes)))
        for n in graph.outputs.values():
            self.users.setdefault(n, []).append(len(nodes))
        codes: dict[Hashable, int] = {}
        looks = [self._look(n) for n in nodes]
        self.codes = np.array([codes.setdefault(look, len(codes)) for look in looks], dtype=np.int64)

    def _look(self, node: Node) -> Hashable:
        arguments = tuple(self._argument(node, a) for a in node.args)
        return (operation_key(node), arguments)

    def _argument(self, node: Node, a: Node) -> Hashable:
        """Return an argument's key relative to its reader: a distance, a leaf of its own, or the node."""
        if a in self.position:
            return self.position[node] - self.position[a]
        if a.is_constant:
            return ("const", a.shape) if self.varying else operation_key(a)
        return ("leaf", a.shape) if len(self.users[a]) == 1 else ("leaf", id(a))

    def candidates(self) -> Iterator[Repeat]:
        """Yield the repetitions that there are, overlapping ones too."""
        for period in range(1, min(PERIOD, len(self.nodes) // TIMES) + 1):
            for start, stop in _stretches(self.codes[period:] == self.codes[:-period]):
                # The first may look different: it reads something else, in the predecessor's place.
                if stop - start >= period * (TIMES - 2) and stop - start + 2 * period >= self.least:
                    yield from self._closed(self._aligned(start, stop + period, period))

    def _aligned(self, start: int, stop: int, period: int) -> Repeat:
        """Return the repetition in a stretch, with the start that gives most parts and then fewest values between."""
        best = (0, 0, Repeat(start, period, 0))
        for first in range(start, min(start + period, stop - period + 1)):
            times = (stop - first) // period
            if first >= period and self._begins(first - period, first, period):
                first, times = first - period, times + 1
            carried = sum(any(u >= first + period for u in self.users.get(n, ())) for n in self._part(first, period))
            if (times * period, -carried) > best[:2]:
                best = (times * period, -carried, Repeat(first, period, times))
        return best[2]

    def _part(self, start: int, period: int) -> Sequence[Node]:
        return self.nodes[start : start + period]

    def _begins(self, first: int, second: int, period: int) -> bool:
        """Return whether the first part equals the next, but for arguments that each part takes from the one before."""
        carried: dict[Node, Node] = {}
        for a, b in zip(self._part(first, period), self._part(second, period), strict=True):
            if operation_key(a) != operation_key(b):
                return False
            for mine, other in zip(a.args, b.args, strict=True):
                if first <= self.position.get(other, -1) < second:
                    if mine.shape != other.shape or carried.setdefault(other, mine) is not mine:
                        return False
                elif self._argument(a, mine) != self._argument(b, other):
                    return False
        return True

    def _closed(self, repeat: Repeat) -> Iterator[Repeat]:
        """Yield the repetition in pieces, which end where a node outside reads a value inside."""
        start, period, times = repeat
        begun = 0
        for k in range(times):
            beyond = start + (k + 2) * period
            used = any(u >= beyond for n in self._part(start + k * period, period) for u in self.users.get(n, ()))
            if used or k == times - 1:
                if k + 1 - begun >= TIMES and (k + 1 - begun) * period >= self.least:
                    yield Repeat(start + begun * period, period, k + 1 - begun)
                begun = k + 1


def _stretches(same: Array) -> list[tuple[int, int]]:
    """Return where stretches of true values begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
