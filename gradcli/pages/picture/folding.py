"""Which operations share a box of a picture: loops, repeated parts, sums, isomorphic ones, the middle of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret, operation_key
from gradcli.pages.recurrence import Recurrence
from gradcli.record.loops import TIMES, Entry, loops

_MANY = 40  # arguments of one operation whose leaves stand in one box: more are wider than a screen
_JOINED = 7  # operations that join eight which stand side by side, as a sum does
_SCOPES = 40  # boxes of a model that are read one by one: where there are more, deep parts become one
MOST_BOXES = 200  # of a folded picture: more are too many to read
_GROUP = 8  # nodes that are drawn as one: fewer are shown each by itself, and fit beside each other
_TERMS = 4  # of a sum that is one box: fewer fit on a screen, addition by addition
_ROUNDS = 4  # in which leaves are told apart; more are hardly ever needed

Colours = Mapping[Node, int]
LEAST = 10  # operations that are worth folding, all repetitions together: fewer fit on a screen


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
    graph: Graph, nodes: Sequence[Node], fold: bool = True, unroll: bool = False, recurrences: Sequence[Recurrence] = ()
) -> list[Fold]:
    """Return the folds of the computed nodes in topological order; without `fold`, each node is one.

    With `unroll`, so is each that is repeated behind another one, in one of the `recurrences` or not.

    Where there would be more than `MOST_BOXES` boxes, those in the middle become one.

    >>> from gradcli import parse
    >>> rows = "; ".join(f"h{k} = sin(x{k})" for k in range(10))
    >>> graph = parse(f"{rows}; y = {' + '.join(f'h{k}' for k in range(10))}")
    >>> [f"{fold.nodes[0].op}, {len(fold.nodes)} times" for fold in folds(graph, [n for n in graph.nodes if n.args])]
    ['sin, 10 times', 'add, 9 times']
    """
    if not fold:
        return [Fold((n,)) for n in nodes]
    is_model = graph.parts and not recurrences  # which has its modules
    return _shortened(_parts(graph, nodes) if is_model else _repeated(graph, nodes, unroll, recurrences))


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


def _repeated(graph: Graph, nodes: Sequence[Node], unroll: bool, recurrences: Sequence[Recurrence]) -> list[Fold]:
    """Return the folds of loops, sums and repeated parts, then of isomorphic operations, and the other nodes alone."""
    kept = [] if unroll else [_of_loop(loop, nodes) for loop in recurrences]
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
    """Return the parts of a list of computed nodes that are repeated, in their order; none overlaps another.

    Nothing else reads what they compute, but for the last of them; a part that something reads ends a repetition.
    """
    ids: dict[Node, int] = {n: k for k, n in enumerate(nodes)}
    readers: dict[Node, set[Node]] = {}
    for n in graph.nodes:
        for a in n.args:
            readers.setdefault(a, set()).add(n)
    entries = []
    for n in nodes:
        kind = (operation_key(n), *(operation_key(a) if a.is_constant else a.shape for a in n.args))
        operands = (ids.setdefault(a, len(ids)) for a in n.args if not a.is_constant)
        entries.append(Entry(kind, tuple(operands), (ids[n],)))
    outputs, result = {*graph.outputs.values()}, list[Fold]()
    for loop in loops(entries):
        rounds = [[nodes[k] for k in part] for part in loop.rounds]
        inside, piece = {n for part in rounds for n in part}, list[Node]()
        for part in rounds:
            piece += part
            read = any(n in outputs or not readers.get(n, inside) <= inside for n in part)
            if read or part is rounds[-1]:
                if len(piece) >= max(least, TIMES * len(part)):
                    result.append(Fold(tuple(piece), len(part)))
                piece = []
    return result


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
