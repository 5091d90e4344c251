"""Which operations share a box of a picture: loops, repeated parts, sums, isomorphic ones, the middle of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret, operation_key
from gradcli.pages.recurrence import Recurrence

_MANY = 40  # arguments of one operation whose leaves stand in one box: more are wider than a screen
_JOINED = 7  # operations that join eight which stand side by side, as a sum does
_SCOPES = 40  # boxes of a model that are read one by one: where there are more, deep parts become one
MOST_BOXES = 200  # of a folded picture: more are too many to read
_GROUP = 8  # nodes that are drawn as one: fewer are shown each by itself, and fit beside each other
_TERMS = 4  # of a sum that is one box: fewer fit on a screen, addition by addition
_ROUNDS = 4  # in which leaves are told apart; more are hardly ever needed

Colours = Mapping[Node, int]
PERIOD = 64  # operations of the longest part that is looked for: a layer of a network has fewer
TIMES = 3  # fewer are no repetition
LEAST = 10  # operations that are worth folding, all repetitions together: fewer fit on a screen

Positions = Mapping[Node, int]


class Fold(NamedTuple):
    """The operations of a box: one, parts of `period` operations that follow each other, or some side by side.

    The middle of a long system has operations of any kind, and so has a `part` of a model.  A `loop` has the
    operations of all its rounds, and a sum its additions, the last one at its end.
    """

    nodes: tuple[Node, ...]
    period: int = 1
    side_by_side: bool = False
    middle: bool = False
    part: str = ""
    loop: Recurrence | None = None
    is_sum: bool = False

    @property
    def times(self) -> int:
        """The number of parts."""
        if self.loop is not None:
            return len(self.loop.rounds)
        return 1 if self.part or self.is_sum else len(self.nodes) // self.period


def folds(
    graph: Graph, nodes: Sequence[Node], fold: bool = True, unroll: bool = False, loops: Sequence[Recurrence] = ()
) -> list[Fold]:
    """Return the folds of the computed nodes in topological order; without `fold`, each node is one.

    With `unroll`, so is each that is repeated behind another one, in one of the `loops` or not.

    Where there would be more than `MOST_BOXES` boxes, those in the middle become one.

    >>> from gradcli import parse
    >>> rows = "; ".join(f"h{k} = sin(x{k})" for k in range(10))
    >>> graph = parse(f"{rows}; y = {' + '.join(f'h{k}' for k in range(10))}")
    >>> [f"{fold.nodes[0].op}, {len(fold.nodes)} times" for fold in folds(graph, [n for n in graph.nodes if n.args])]
    ['sin, 10 times', 'add, 9 times']
    """
    if not fold:
        return [Fold((n,)) for n in nodes]
    return _shortened(_parts(graph, nodes) if graph.parts else _repeated(graph, nodes, unroll, loops))


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


def _repeated(graph: Graph, nodes: Sequence[Node], unroll: bool, loops: Sequence[Recurrence]) -> list[Fold]:
    """Return the folds of loops, sums and repeated parts, then of isomorphic operations, and the other nodes alone."""
    kept = [] if unroll else [_of_loop(loop, nodes) for loop in loops]
    kept += _sums(graph, _without(nodes, kept))
    kept += [] if unroll else _chains(graph, _without(nodes, kept))
    rest = _without(nodes, kept)
    beside = [Fold(tuple(group), 1, True) for group in isomorphic_groups(graph, rest)]
    joined = _chains(graph, _without(rest, beside), _JOINED) if beside else []
    for wanted in ([*kept, *beside, *joined], kept):
        whole = _in_order(nodes, wanted)
        if sum(len(part.nodes) for part in whole) == len(nodes):  # nothing stands in a circle
            return whole
    return [Fold((n,)) for n in nodes]


def _of_loop(loop: Recurrence, nodes: Sequence[Node]) -> Fold:
    shown = {*nodes}
    return Fold(tuple(n for part in loop.rounds for n in part if n in shown), len(loop.rounds[0]), loop=loop)


def _sums(graph: Graph, nodes: Sequence[Node]) -> list[Fold]:
    """Return the sums of many terms: additions whose results only the next one reads, and that have no names."""
    readers: dict[Node, list[Node]] = {}
    for n in graph.nodes:
        for a in n.args:
            readers.setdefault(a, []).append(n)
    outputs, parts, root = set(graph.outputs.values()), dict[Node, list[Node]](), dict[Node, Node]()
    for n in reversed(nodes):
        if not _is_addition(n):
            continue
        mine = readers.get(n, [])
        is_inner = len(mine) == 1 and mine[0] in root and mine[0].shape == n.shape and mine[0].args[0] is n
        root[n] = root[mine[0]] if is_inner and n not in graph.labels and n not in outputs else n
        parts.setdefault(root[n], []).append(n)
    return [Fold((*reversed(inside),), is_sum=True) for inside in parts.values() if len(inside) + 1 >= _TERMS]


def _is_addition(node: Node) -> bool:
    row = OPERATIONS.get(node.op)
    return row is not None and bool(row.infix) and row.arity == 2 and row.precedence is Precedence.SUM


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
        read = [a for n in (part.nodes if part.is_sum else part.nodes[:1]) for a in n.args]
        leaves = {a for a in read if a.is_leaf} - seen if single else set()
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
            many = part.times == 1 and max(len(n.args), part.is_sum * len(part.nodes)) >= _MANY
            for k, a in enumerate(n.args):
                if a.is_leaf:
                    spot = (number, 0 if many else i % part.period, 0 if many or part.middle else k)
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
    if len(wanted) < _GROUP:
        return []
    colours = _colours(graph)
    for n in wanted:
        groups.setdefault(colours[n], []).append(n)
    return [group for group in groups.values() if len(group) >= _GROUP]


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
