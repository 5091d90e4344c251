"""The loops of a script: which statements of it made the operations behind a call, and its own index of each loop."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from gradcli.graph.node import Node
from gradcli.pages.recurrence import Folded, Program, folded, numbered
from gradcli.record.naming import Names
from gradcli.record.record import CallSite, Operation
from gradcli.script.expressions import LoopSpan
from gradcli.script.operands import part_of
from gradcli.script.system import Recorded

_ROUNDS = 8  # of a loop that are written
_EDGE = 3  # rounds that are written of more: so many first ones, and last ones
_MANY = ("sum", "reduce", "grad", "backward")  # functions that make many operations in one call


def folded_loops(recorded: Recorded, names: Names) -> Folded:
    """Return the graph behind a call with its loops as recurrences; gradients that are kept keep their names."""
    keep = {recorded.graph.names[name] for name in recorded.retained}
    program = _Script(recorded, names)
    result = folded(recorded.graph, program, keep)
    recorded.rename_inputs(result.inputs)
    return result._replace(left_out=tuple(program.left_out(result)))


class _Script(Program):
    """What is known of a script: the operation of each node, with its place."""

    def __init__(self, recorded: Recorded, names: Names) -> None:
        super().__init__()
        self.recorded, self.names, self.expressions = recorded, names, recorded.expressions
        self.producers = recorded.record.producers

    def order(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes in the order of their operations; one without an operation follows what it reads."""
        return sorted(nodes, key=self._clocks(nodes).__getitem__)

    def _clocks(self, nodes: Sequence[Node]) -> dict[Node, int]:
        when: dict[Node, int] = {}
        for n in nodes:
            o = self.recorded.producer.get(n)
            when[n] = o.clock if o is not None else max((when.get(a, 0) for a in n.args), default=0)
        return when

    def statement(self, node: Node) -> tuple[Hashable, int]:
        """Return the code and the instruction of the line that made a node."""
        o = self.recorded.producer.get(node)
        return (None, 0) if o is None else (_code(o.site), o.site.instruction)

    def is_operation(self, node: Node) -> bool:
        """Return whether an operation made a node."""
        return node in self.recorded.producer

    def element(self, node: Node) -> str:
        """Return the name of an input that is a part of an array which has a name: u[6], which a loop calls ui."""
        x = self.recorded.quantities.get(self.recorded.graph.labels.get(node, ""))
        if x is None or x.requires or x.id not in self.producers:
            return ""
        return part_of(self.producers[x.id], self.recorded.record)

    def may_number(self, node: Node) -> bool:
        """Return whether an input has no gradient, and the script has no name for its tensor."""
        name = self.recorded.graph.labels.get(node, "")
        x = self.recorded.quantities.get(name)
        return name not in self.recorded.leaves and (x is None or not x.name or x.role == "mask")

    def label(self, node: Node, name: str) -> str:
        """Return the name that a result has in the script, or got for that of its variable."""
        return self.recorded.names.get(self.recorded.results[node], "") if node in self.recorded.results else ""

    def variable(self, node: Node) -> str:
        """Return the variable that a statement assigns a node to; "" where the node is a part of what it assigns."""
        quantity = self.recorded.results.get(node, -1)
        operation = self.producers.get(quantity)
        assignment = None if operation is None else self.recorded.assigned.get(operation.id)
        if operation is None or assignment is None or not assignment.whole:
            return ""
        if operation.site.is_module and not operation.module:
            return ""  # within the module whose output is assigned
        several = len(assignment.targets) == len(operation.results)
        return assignment.targets[operation.results.index(quantity)] if several else assignment.target

    def list_of(self, names: Sequence[str]) -> tuple[str, int] | None:
        """Return the list of the script, if names are those of its elements; any variable may become a list."""
        return numbered(names)

    def index(self, nodes: Sequence[Node], names: Sequence[str]) -> str:
        """Return the counter of the innermost loop around a round's statements of one function.

        Where there is none, it is that of the only loop that calls these functions.  A counter is the variable of
        `range` or `enumerate`, such as `i`.
        """
        sites = [o.site for o in self._operations(nodes)]
        for code in dict.fromkeys(map(_code, sites)):
            if (around := self._around([s for s in sites if _code(s) == code])) is not None:
                return around.counter
        calling = self._calling(sites)
        return calling[0].counter if len(calling) == 1 else ""

    def is_round(self, nodes: Sequence[Node], after: Sequence[Node]) -> bool:
        """Return whether a loop of the script made the operations, and no statement in it has run twice."""
        operations = self._operations(nodes)
        sites = [o.site for o in operations]
        if len({*map(_run, sites)}) == 1 and (not self._is_looped(sites) or self.expressions.called(sites[0]) in _MANY):
            return False  # one call made them all
        if all(s.is_module for s in sites) and self._is_within_module([*operations, *self._operations(after)]):
            return False
        runs = [run for run, _ in groupby(map(_run, sites))]  # a call may take several operations
        times = Counter(runs)
        for site in sites:
            if times[_run(site)] > 1:
                inner = self._around([site])
                if inner is not None and all(_code(other) == _code(site) and inner.has(other) for other in sites):
                    return False
        return True

    def may_hide(self, node: Node, name: str) -> bool:
        """Return whether a list may take the place of a name: all names of rounds were numbered by the page."""
        return True

    def left_out(self, result: Folded) -> Iterator[frozenset[Node]]:
        """Yield what rounds compute, of loops that are no recurrences and have many, but of the first and last rounds.

        A loop within another one that is cut has all its rounds.  How many of the script's rounds these are is not
        known: one whose results no gradient reaches has left no operation.
        """
        graph = result.graph
        if len(graph.names) <= _ROUNDS:
            return
        clocks = self._clocks([n for n in graph.nodes if n.args])
        inside, cut = result.inside, list[tuple[int, int]]()
        for begins, last in self._loops():
            if len(begins) <= _ROUNDS or any(a <= last and begins[0] <= b for a, b in cut):
                continue
            rounds = {n: bisect(begins, clock) for n, clock in clocks.items() if begins[0] <= clock <= last}
            written = [(rounds[n],) * 2 for n in graph.names.values() if n in rounds and n not in inside]
            for loop in result.loops:
                of_loop = [rounds[n] for part in loop.rounds for n in part if n in rounds]
                written += [(min(of_loop), max(of_loop))] if of_loop else []
            blocks = _joined(written)
            if len(blocks) > _ROUNDS:
                first, stop = blocks[_EDGE][0], blocks[-_EDGE - 1][1]
                yield frozenset(n for n, r in rounds.items() if first <= r <= stop)
                cut.append((begins[0], last))

    def _loops(self) -> Iterator[tuple[list[int], int]]:
        """Yield the loops of the script as they ran, outer ones first: the clocks of their rounds, and the last one."""
        operations = [o for o in self.recorded.record.operations if o.site.line]
        for file in dict.fromkeys(o.site.file for o in operations):
            for loop in self.expressions.file(file).loops:
                frames: dict[int, list[Operation]] = {}
                for o in operations:
                    if o.site.file == file and loop.has(o.site):
                        frames.setdefault(o.site.frame, []).append(o)
                for inner in frames.values():
                    pairs = pairwise(inner)
                    begins = [inner[0].clock, *(b.clock for a, b in pairs if self._begins(b.site, a.site))]
                    yield begins, inner[-1].clock

    def _begins(self, site: CallSite, before: CallSite) -> bool:
        """Return whether a round of a loop begins with an operation, given the one before it."""
        again = site.instruction == before.instruction and not site.is_module
        return site.instruction < before.instruction or (again and self.expressions.called(site) not in _MANY)

    def _is_within_module(self, operations: Sequence[Operation]) -> bool:
        """Return whether a module of the library, such as Sequential, calls the modules of all, one by one."""
        modules = self.names.modules
        paths = [o.module.split(".") for o in operations]
        if not any(map(any, paths)):
            return len({(o.site.frame, o.site.instruction) for o in operations}) == 1  # none of them has a name
        common = [part for part, *others in zip(*paths, strict=False) if all(part == other for other in others)]
        while common and _is_list(modules.get(".".join(common))):
            common.pop()
        return bool(common) and type(modules[".".join(common)]).__module__.startswith("torch.")

    def _operations(self, nodes: Sequence[Node]) -> list[Operation]:
        known = {self.recorded.producer[n].id: self.recorded.producer[n] for n in nodes if n in self.recorded.producer}
        return [*known.values()]

    def _is_looped(self, sites: Sequence[CallSite]) -> bool:
        """Return whether a loop of the script is around places in one function, or calls it."""
        return self._around(sites) is not None or bool(self._calling(sites))

    def _calling(self, sites: Sequence[CallSite]) -> list[LoopSpan]:
        """Return the loops that call the functions of places by name."""
        functions = {s.function.rpartition(".")[2] for s in sites}
        return [loop for loop in self.expressions.loops() if not functions.isdisjoint(loop.calls)]

    def _around(self, sites: Sequence[CallSite]) -> LoopSpan | None:
        """Return the innermost loop around places in one function."""
        loops = [loop for loop in self.expressions.file(sites[0].file).loops if all(map(loop.has, sites))]
        return max(loops, key=lambda loop: loop.first, default=None)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in their order, those that overlap as one.

    >>> _joined([(4, 4), (1, 3), (2, 2), (4, 4)])
    [(1, 3), (4, 4)]
    """
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def _is_list(module: Any) -> bool:
    """Return whether a module only holds others, which the script calls one by one; or is None."""
    return module is None or any(c.__name__ in ("ModuleList", "ModuleDict") for c in type(module).__mro__)


def _code(site: CallSite) -> tuple[str, str]:
    return site.file, site.function


def _run(site: CallSite) -> tuple[Hashable, ...]:
    return _code(site), site.frame, site.instruction
