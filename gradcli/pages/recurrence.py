"""Loops of a system as recurrences: `h[t] = tanh(W @ h[t-1] + U @ xs[t-1]) for t in 1..5`.

What a loop carries from round to round, and what is read of its rounds elsewhere, is a list with an element a round.
Operands that differ from round to round are elements of lists, too, or follow from the index.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from gradcli.graph.calls import is_call
from gradcli.graph.graph import Graph
from gradcli.graph.names import ElementName, array_name, element_name, fresh_names, indexed_name
from gradcli.graph.node import Constant, Node, const, elementwise, leaf, operand, operands
from gradcli.graph.rewrite import operation_key
from gradcli.notation.text import subscript
from gradcli.record.loops import LEAST, Entry, loops
from gradcli.record.record import Loop, Source

SCREEN = 24  # statements of a system that are shown one by one
_INDICES = ("t", "i", "k")
_ELEMENT = re.compile(r"(.+?)(?:\[(\d+)\]|\.(\d+))")
# Numbers of a name that count elements, rows, columns or layers: h[3], M[:, 3], net.3.
_SLOT = re.compile(r"(?<=\[)(\d+)(?=[\],])|(?<=, )(\d+)(?=[\],])|\.(\d+)(?=\.|$)")
_NUMBER = re.compile(r"\d+")
_SEARCHES = 4
_DIGITS = 12  # to which numbers that follow from the index agree


class NoRecurrence(Exception):
    """Raised for a loop that cannot be written as a recurrence: its rounds are written out."""


class Program:
    """What is known of the program behind a graph: here, of a system of formulas, whose loops assign elements."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = texts  # of the system

    def list_of(self, names: Sequence[str]) -> tuple[str, int] | None:
        """Return the list that a loop assigns, whose elements have the names, and the index of the first.

        Raises `NoRecurrence` where nothing else may be a list.
        """
        if (result := numbered(names)) is None or not isinstance(names[0], ElementName):
            raise NoRecurrence
        return result

    def order(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return computed nodes in the order in which the program computed them."""
        return nodes

    def statement(self, node: Node) -> tuple[Hashable, int]:
        """Return the function and the instruction that computed a node."""
        return None, 0

    def is_operation(self, node: Node) -> bool:
        """Return whether the program computed a node, and it is no expression of constants that a page writes so."""
        return True

    def element(self, node: Node) -> str:
        """Return the name of an input as an element of an array that has a name; "" where it is none."""
        return ""

    def may_number(self, node: Node) -> bool:
        """Return whether an input has no name of the program's own, so that it may become an element of a list."""
        return False

    def variable(self, node: Node) -> str:
        """Return the variable that a node is assigned to; "" where it is a part of what is assigned."""
        return ""

    def label(self, node: Node, name: str) -> str:
        """Return a node's name in the graph, if it is not one that a page has given to a part."""
        return name

    def index(self, nodes: Sequence[Node], names: Sequence[str]) -> str:
        """Return the program's own index of a loop, given the results of a round that have names."""
        for text in self.texts:
            for name in map(array_name, names):
                if match := re.search(rf"\b{re.escape(name)}\[[^\]]*\]\s*=[^;\n]*\bfor (\w+) in", text):
                    return match[1]
        return ""

    def is_round(self, nodes: Sequence[Node], after: Sequence[Node]) -> bool:
        """Return whether operations are a round of a loop, given those that follow; they are not several rounds."""
        return True

    def may_hide(self, node: Node, name: str) -> bool:
        """Return whether a name within a round was not the user's own, so that a list may take its place."""
        return isinstance(name, ElementName)


class _Variables(Program):
    """A function or a model, whose variables have a value a round: names h, h_2, h_3, … on pages, or none."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.spans = {n: span for n, span in graph.spans.items() if span.source.is_python}
        self.variables = graph.variables
        latest = dict.fromkeys(map(_without_digits, reversed([*graph.variables.values()])))
        self.statements = {name: k for k, name in enumerate(reversed(latest))}  # in the order of the last round
        self.positions = {n: k for k, n in enumerate(graph.variables)}

    def list_of(self, names: Sequence[str]) -> tuple[str, int] | None:
        """Return None: a variable becomes a list."""
        return None

    def order(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes in the order of their variables; one that is no variable's follows what it reads."""
        if self.spans:
            return nodes
        when: dict[Node, int] = {}
        for n in nodes:
            when[n] = max(self.positions.get(n, 0), *(when.get(a, 0) for a in n.args))
        return sorted(nodes, key=when.__getitem__)

    def statement(self, node: Node) -> tuple[Hashable, int]:
        """Return the file and the line that computed a node, by its first letter, or the variable of a model."""
        span = self.spans.get(node)
        if span is not None:
            return span.source.label, span.start
        name = self.variables.get(node)
        return (None, 0) if name is None else ("", self.statements[_without_digits(name)])

    def variable(self, node: Node) -> str:
        """Return the variable that a node is a value of."""
        return self.variables.get(node, "")

    def label(self, node: Node, name: str) -> str:
        """Return "" for a variable, whose place a list may take."""
        return "" if node in self.variables else name

    def index(self, nodes: Sequence[Node], names: Sequence[str]) -> str:
        """Return the index of the innermost loop of a function around the lines of a round."""
        if not self.spans:
            return ""
        source = next(iter(self.spans.values())).source.text
        lines = {span.source.locate(span.start)[0] + 1 for n in nodes if (span := self.spans.get(n)) is not None}
        loops = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.For)]
        around = [n for n in loops if all(n.lineno <= k <= (n.end_lineno or 0) for k in lines)]
        target = max(around, key=lambda n: n.lineno).target if around else None
        return target.id.lstrip("_") if isinstance(target, ast.Name) else ""

    def may_hide(self, node: Node, name: str) -> bool:
        """Return whether a name is that of a variable, and not of a statement about the model."""
        return node in self.variables


def _without_digits(name: str) -> str:
    return _NUMBER.sub("", name)


class Statement(NamedTuple):
    """What a round assigns: the list that has it as its element, and the expression, in the names of its loop."""

    name: ElementName
    node: Node


@dataclass(frozen=True)
class Recurrence:
    """A loop as statements that hold for each index from `first` to `last`.

    `initial` are elements before the first round that no other statement assigns, `lists` the lists of numbers that
    rounds read, `members` the nodes of each list by index.  `names` has what the statements are written in.
    """

    index: str
    first: int
    last: int
    initial: tuple[Statement, ...]
    lists: Mapping[str, tuple[Constant, ...]]
    statements: tuple[Statement, ...]
    members: Mapping[str, Mapping[int, Node]]
    names: Mapping[Node, str]
    rounds: tuple[tuple[Node, ...], ...]
    carried: frozenset[str]  # the lists that a later round reads
    starts: tuple[Node, ...]  # what is there before the first round
    modules: frozenset[str]  # lists whose elements the program calls net.0, net.1, …
    shared: Mapping[Node, tuple[tuple[int, int], ...]]  # what all rounds read: the operations and operands that it is


class Folded(NamedTuple):
    """A graph in which loops have names for what leaves them, the loops, and the new names of old ones.

    `inputs` are the new names of inputs that are elements of lists.  `left_out` is what rounds compute that a page does
    not write: those between the first and the last ones of a loop that is no recurrence.
    """

    graph: Graph
    loops: tuple[Recurrence, ...] = ()
    renamed: Mapping[str, str] = MappingProxyType({})
    inputs: Mapping[str, str] = MappingProxyType({})
    whole: Graph | None = None  # the graph before
    left_out: tuple[frozenset[Node], ...] = ()

    @property
    def unwritten_nodes(self) -> frozenset[Node]:
        """The nodes of rounds that a page does not write."""
        return frozenset().union(*self.left_out)

    @property
    def written_loops(self) -> list[Recurrence]:
        """The loops that a page writes."""
        hidden = self.unwritten_nodes
        return [loop for loop in self.loops if loop.rounds[0][0] not in hidden]

    @property
    def written_names(self) -> list[str]:
        """The names of what a page writes."""
        hidden = self.unwritten_nodes
        return [name for name, n in self.graph.names.items() if n not in hidden]

    @property
    def inside(self) -> set[Node]:
        """The nodes that the loops compute."""
        return {n for loop in self.loops for part in loop.rounds for n in part}

    @property
    def elements(self) -> dict[str, str]:
        """The names of the elements of lists, by the names in the graph before that they take the place of."""
        labels = self.whole.labels if self.whole is not None else {}
        of_lists = ((stem, k, n) for loop in self.loops for stem, m in loop.members.items() for k, n in m.items())
        return {labels[n]: element_name(stem, (k,)) for stem, k, n in of_lists if n in labels}

    @property
    def unwritten(self) -> frozenset[str]:
        """The inputs that rounds other than the last read: no formula of their gradients stays outside of a loop."""
        read = {a for loop in self.loops for part in loop.rounds[:-1] for n in part for a in n.args}
        read |= {a for n in self.unwritten_nodes for a in n.args}
        return frozenset(name for name, n in self.graph.inputs.items() if n in read)

    @property
    def with_elements(self) -> Graph:
        """The graph with names for the elements of all rounds: gradients are written from one to the next, not through.

        >>> from gradcli import parse
        >>> loops = loops_of_formulas(parse("s[0] = x; s[k] = sin(s[k-1]) for k in 1..40; y = s[40]"))
        >>> [*loops.graph.names], len(loops.with_elements.names)
        (['s[0]', 's[40]', 'y'], 42)
        """
        elements = {
            str(element_name(stem, (k,))): n
            for loop in self.loops
            for stem, members in loop.members.items()
            for k, n in members.items()
            if n not in self.graph.labels
        }
        return replace(self.graph, names={**elements, **self.graph.names})


def folded(graph: Graph, program: Program, keep: Collection[Node] = ()) -> Folded:
    """Return a graph with its loops as recurrences.

    A loop with a node of `keep` in a round before the last is written out: a recurrence would hide that node.
    """
    computed = [n for n in graph.nodes if n.args]
    if len(computed) < LEAST:
        return Folded(graph)
    nodes = [n for n in program.order(computed) if program.is_operation(n)]
    entries = _entries(graph, nodes, program)
    node_of = {e.results[0]: n for n, e in zip(nodes, entries, strict=True)}
    refused: set[Hashable] = set()

    def is_round(*parts: Sequence[Entry]) -> bool:
        if _kinds(parts[0]) in refused:
            return False
        return program.is_round(*([node_of[e.results[0]] for e in part] for part in parts))

    # What cannot be written as a recurrence is no loop in the next search, which may find loops within its rounds.
    for _ in range(_SEARCHES):
        recurrences, before = _Loops(graph, program, keep), len(refused)
        for loop in loops(entries, is_round):
            if not recurrences.add(loop, [[nodes[k] for k in ids] for ids in loop.rounds]):
                refused.add(_kinds([entries[k] for k in loop.rounds[0]]))
        if len(refused) == before:
            break
    return recurrences.result()


def _kinds(part: Sequence[Entry]) -> Hashable:
    """Return what is equal for the rounds of one loop, wherever they begin, and for several rounds as one."""
    return frozenset(e.kind for e in part)


def _entries(graph: Graph, nodes: Sequence[Node], program: Program) -> list[Entry]:
    """Return computed nodes as entries; equal constants are one operand."""
    ids: dict[Hashable, int] = {n: k for k, n in enumerate(nodes)}
    constants: dict[Node, Hashable] = {}  # what stands for an expression of constants
    for n in graph.nodes:
        if n not in ids and n not in graph.labels and not n.is_leaf:
            constants[n] = (operation_key(n), *(constants.get(a, a) for a in n.args))
    result = []
    for n in nodes:
        keys = [constants.get(a, a) for a in n.args]
        operands = tuple(ids.setdefault(key, len(ids)) for key in keys)
        function, instruction = program.statement(n)
        # Which element an index takes may follow from the round.
        settings = n.settings if operand(n, "index") is None else None
        kind = (function, instruction, n.op, settings, n.shape, n.dtype, tuple(a.shape for a in n.args))
        result.append(Entry(kind, operands, (ids[n],), function, instruction))
    return result


@lru_cache(maxsize=8)
def loops_of_formulas(graph: Graph) -> Folded:
    """Return a graph of formulas or of a function, with loops as recurrences where a screen has fewer statements."""
    if len({*graph.names, *graph.variables}) <= SCREEN:
        return Folded(graph)
    if graph.variables:
        return folded(graph, _Variables(graph))
    if not any(isinstance(name, ElementName) for name in graph.names):  # what a loop of formulas assigns
        return Folded(graph)
    texts = {span.source.text: None for span in graph.spans.values()}
    return folded(graph, Program([*texts]))


class _Loops:
    """Writes loops, in their order: a later one may read the elements of the lists of an earlier one."""

    def __init__(self, graph: Graph, program: Program, keep: Collection[Node]) -> None:
        self.graph, self.program, self.keep = graph, program, {*keep}
        self.labels = dict(graph.labels)
        self.input_names = {n: name for name, n in graph.inputs.items()}
        self.inputs: dict[str, str] = {}
        self.lists: set[str] = set()  # that loops assign
        self.outputs = set(graph.outputs.values())
        self.readers: dict[Node, list[Node]] = {}
        for n in graph.nodes:
            for a in n.args:
                self.readers.setdefault(a, []).append(n)
        self.loops: list[Recurrence] = []
        self.elements: dict[Node, str] = {}  # the names of the elements of lists
        self.inside: set[Node] = set()
        self.taken = {array_name(name) for name in graph.inputs}

    def add(self, loop: Loop, rounds: Sequence[Sequence[Node]]) -> bool:
        """Write a loop, and return whether a recurrence says it."""
        try:
            writer = _Writer(self, loop, rounds)
            written = writer.recurrence()
        except NoRecurrence:
            return False
        self.loops.append(written)
        self.inputs |= {self.input_names[n]: name for n, name in writer.elements.items()}
        self.labels |= writer.elements
        self.inside |= {n for part in rounds for n in part}
        self.taken |= {*written.members, *written.lists}
        self.lists |= {*written.members}
        for stem, members in written.members.items():
            self.elements |= {n: element_name(stem, (k,)) for k, n in members.items()}
        return True

    def result(self) -> Folded:
        """Return the graph with the names of what leaves the loops, and without those of what stays inside."""
        if not self.loops:
            return Folded(self.graph)
        ends = {m[max(m)] for loop in self.loops for stem, m in loop.members.items() if stem in loop.carried}
        read = {
            n for n in self.elements if n in self.outputs or any(r not in self.inside for r in self.readers.get(n, ()))
        }
        for loop in self.loops:  # one that only other loops read stands on the page by its last element
            members = [*loop.members.values()]
            if not any(n in ends or n in read for m in members for n in m.values()):
                ends.add(members[-1][max(members[-1])])
        shown = {n: name for n, name in self.elements.items() if n in ends or n in read}
        starts = {s.node: s.name for loop in self.loops for s in loop.initial if s.node not in self.elements}
        shown |= {n: name for n, name in starts.items() if self._is_hidden(n)}
        hidden = {name for name, n in self.graph.names.items() if n in shown and self.program.may_hide(n, name)}
        renamed = {name: shown[self.graph.names[name]] for name in hidden}
        names = {name: n for n, name in shown.items()}
        names |= {
            name: n
            for name, n in self.graph.names.items()
            if name not in hidden and (n not in self.inside or n in shown)
        }
        names |= self._wholes(names)
        computed = self.program.order([n for n in self.graph.nodes if n.args])
        position: dict[Node, float] = {n: k for k, n in enumerate(computed)}
        for n in computed:
            for a in n.args:
                position.setdefault(a, position[n] - 0.5)  # a constant comes before what reads it first
        ordered = dict(sorted(names.items(), key=lambda pair: position.get(pair[1], -1)))
        outputs = {renamed.get(name, name): n for name, n in self.graph.outputs.items()}
        loops = [
            replace(
                loop,
                initial=tuple(s for s in loop.initial if shown.get(s.node) != s.name),
                names={n: shown.get(n, name) for n, name in loop.names.items()},
            )
            for loop in self.loops
        ]
        inputs = {self.inputs.get(name, name): n for name, n in self.graph.inputs.items()}
        graph = replace(self.graph, names=ordered, inputs=inputs, outputs=outputs)
        return Folded(graph, tuple(loops), renamed, self.inputs, self.graph)

    def _is_hidden(self, start: Node) -> bool:
        """Return whether what a loop starts from has a name that the element of its list may take the place of."""
        names = [name for name, n in self.graph.names.items() if n is start]
        return bool(names) and start not in self.keep and all(self.program.may_hide(start, name) for name in names)

    def _wholes(self, names: Mapping[str, Node]) -> Iterator[tuple[str, Node]]:
        """Yield the lists that are read as a whole, by their names."""
        labels = {name: n for n, name in self.labels.items()}
        labels |= {s.name: s.node for loop in self.loops for s in loop.initial}
        stems = {stem: loop for loop in self.loops for stem in loop.members}
        for n in self.graph.nodes:
            if not operands(n, "stack") or n.settings != (0,) or n in self.inside or n in names.values():
                continue
            for stem, loop in stems.items():
                members = loop.members[stem]
                whole = [members.get(k, labels.get(element_name(stem, (k,)))) for k in range(max(members) + 1)]
                if [*n.args] == whole and stem not in names:
                    yield stem, n
                    break


class _Writer:
    """Writes a loop: the names of its lists, and its statements in the nodes of a round."""

    def __init__(self, whole: _Loops, loop: Loop, rounds: Sequence[Sequence[Node]]) -> None:
        self.whole, self.loop, self.rounds = whole, loop, rounds
        self.sources = [*loop.sources]
        self.period = len(rounds[0])
        self.inside = {n for part in rounds for n in part}
        self.lag = max((s.lag for sources in self.sources for s in sources if s is not None), default=0)
        self.taken = set(whole.taken)
        self.carried = {s.statement for sources in self.sources for s in sources if s is not None and s.lag}
        self.named = self._named()
        self.reached = self._reached()
        self.index = self._index()
        self.stems, self.ahead, self.first = self._stems()
        self.last = self.first + len(rounds) - 1
        self.lists: dict[str, tuple[Constant, ...]] = {}
        self.names: dict[Node, str] = dict(whole.labels) | whole.elements
        self.template: dict[int, Node] = {}
        self.elements: dict[Node, str] = {}  # the new names of inputs
        self.modules: set[str] = set()

    def _named(self) -> list[int]:
        """Return the positions in a round whose results are elements of lists."""
        whole = self.whole
        uses = Counter(s.statement for sources in self.sources for s in sources if s is not None and _is_inner(s))
        result = []
        for p in range(self.period):
            nodes = [part[p] for part in self.rounds]
            is_hidden = not whole.keep.isdisjoint(nodes[:-1])
            named = [n for n in nodes[:-1] if whole.program.label(n, whole.labels.get(n, ""))]
            if is_hidden or any(not whole.program.may_hide(n, whole.labels[n]) for n in named):
                raise NoRecurrence
            is_long = is_call(nodes[0]) or any(a.args for a in nodes[0].args)
            is_shared = uses[p] > 1 and is_long and operand(nodes[0], "index") is None
            if p in self.carried or self._is_read_outside(p) or whole.program.variable(nodes[-1]) or is_shared or named:
                result.append(p)
        if not result:
            raise NoRecurrence
        return result

    def _reached(self) -> dict[int, set[int]]:
        """Return for each list the lists that it is computed from, in this round or before."""
        direct: dict[int, set[int]] = {}
        for p in self.named:
            pending, direct[p] = [p], set()
            while pending:
                inner = {s.statement for s in self.sources[pending.pop()] if s is not None and s.quantity is None}
                direct[p] |= inner.intersection(self.named)
                pending += inner.difference(self.named)
        result: dict[int, set[int]] = {}
        for p in self.named:
            waiting, result[p] = [*direct[p]], set()
            while waiting:
                q = waiting.pop()
                if q not in result[p]:
                    result[p].add(q)
                    waiting += direct[q]
        return result

    def _together(self, p: int) -> list[int]:
        """Return the lists that are computed from each other, of which one is at a position, in their order."""
        return [q for q in self.named if q == p or (q in self.reached[p] and p in self.reached[q])]

    def _ordered(self) -> list[int]:
        """Return the lists in the order of their statements: behind all that they are computed from."""
        result: list[int] = []
        while len(result) < len(self.named):
            waiting = [p for p in self.named if p not in result]
            ready = (p for p in waiting if self.reached[p].issubset([*result, *self._together(p)]))
            result += self._together(next(ready))
        return result

    def _index(self) -> str:
        last = self.rounds[-1]
        own = self.whole.program.index(last, [self.whole.labels[n] for n in last if n in self.whole.labels])
        taken = self.taken | set(self.whole.graph.names)
        free = [name for name in (*filter(None, [own]), *_INDICES) if name not in taken]
        return free[0] if free else next(fresh_names(taken, "t"))

    def _stems(self) -> tuple[dict[int, str], dict[int, int], int]:
        """Return the names of the lists by position, how far their indices are ahead, and the index of the first round.

        The program may have lists of its own, which count from another number.
        """
        whole = self.whole
        others = {array_name(name) for n, name in whole.labels.items() if n not in self.inside}
        taken = self.taken | others | {self.index}
        stems: dict[int, str] = {}
        firsts: dict[int, int] = {}
        for p in reversed(self.named):  # the last one of several has the variable's own name
            names = [whole.labels.get(part[p], "") for part in self.rounds]
            listed, node = whole.program.list_of(names), self.rounds[-1][p]
            is_free = listed is not None and listed[0] not in stems.values() and listed[0] not in whole.lists
            if listed is not None and is_free and self._is_whole(p, *listed):
                stems[p] = listed[0]
                firsts[p] = listed[1]
                continue
            wanted = [whole.program.variable(node), array_name(whole.program.label(node, names[-1]))]
            free = [n for n in wanted if n.isidentifier() and n not in taken and n not in stems.values()]
            stems |= {p: free[0]} if free else {}
        if not stems and not self.carried:
            raise NoRecurrence  # elements of an array that is filled, say: the program has no list of them
        for p in self.named:
            if p not in stems:
                stem = whole.program.variable(self.rounds[-1][p]) or "t"
                stems[p] = next(fresh_names({*taken, *stems.values()}, stem + "_" * stem[-1].isdigit()))
        first = max([self.lag, *(k for p, k in firsts.items() if p in self.carried)])
        first = max(first, *firsts.values()) if firsts and not self.lag else first
        # What only a recurrence reads that it is a part of has the index of its round; other lists begin at 0.
        alone = [p for p in self.named if p not in self.carried and not self._is_inner(p)]
        return stems, dict.fromkeys(alone, -first) | {p: k - first for p, k in firsts.items()}, first

    def _start_nodes(self, p: int) -> dict[int, Node]:
        """Return what is there before the first round in the place of a list's elements, by how far before it."""
        reads = [(q, i, s.lag) for q, sources in enumerate(self.sources) for i, s in enumerate(sources)
                 if s is not None and s.quantity is None and s.statement == p]  # fmt: skip
        return {lag - r: self.rounds[r][q].args[i] for q, i, lag in reads for r in range(lag)}

    def _is_inner(self, p: int) -> bool:
        """Return whether the lists that are computed from each other, this one among them, alone read it."""
        together = self._together(p)
        others = [q for q in self.named if p in self.reached[q] and q not in together]
        return len(together) > 1 and not others and not self._is_read_outside(p)

    def _is_read_outside(self, p: int) -> bool:
        nodes = [part[p] for part in self.rounds]
        readers = (r for n in nodes for r in self.whole.readers.get(n, ()))
        return any(r not in self.inside for r in readers) or not self.whole.outputs.isdisjoint(nodes)

    def _is_whole(self, p: int, name: str, first: int) -> bool:
        """Return whether a list of the program has all elements before the first round's that a page needs."""
        known = {label: n for n, label in self.whole.labels.items()}
        if p in self.carried:
            starts = self._start_nodes(p)
            at = {k: known.get(element_name(name, (first - k,)), n) for k, n in starts.items()}
            return first >= self.lag and at == starts
        return self._is_inner(p) or all(element_name(name, (k,)) in known for k in range(first))

    def recurrence(self) -> Recurrence:
        """Return the loop as statements."""
        for p in range(self.period):
            self.template[p] = self._node(p)
        statements = []
        for p in self._ordered():
            statements.append(Statement(self._element(p, 0), self.template[p]))
        members = {
            self.stems[p]: {self.first + self.ahead.get(p, 0) + r: part[p] for r, part in enumerate(self.rounds)}
            for p in self.named
        }
        starts = self._starts()
        initial = tuple(s for s in starts if self.names.get(s.node) != s.name)
        carried = {self.stems[p] for p in self.carried}
        return Recurrence(
            self.index, self.first, self.last, initial, self.lists, tuple(statements), members, self.names,
            tuple(map(tuple, self.rounds)), frozenset(carried), tuple(s.node for s in starts), frozenset(self.modules),
            self._shared(),
        )  # fmt: skip

    def _shared(self) -> dict[Node, tuple[tuple[int, int], ...]]:
        """Return what all rounds read, with the positions in a round at which they do."""
        result: dict[Node, list[tuple[int, int]]] = {}
        for p, sources in enumerate(self.sources):
            for i, source in enumerate(sources):
                if source is not None and source.quantity is not None:
                    result.setdefault(self.rounds[0][p].args[i], []).append((p, i))
        return {n: tuple(read) for n, read in result.items()}

    def _element(self, p: int, lag: int) -> ElementName:
        """Return the element of a list in this round, or some rounds before."""
        return indexed_name(self.stems[p], _affine(1, self.ahead.get(p, 0) - lag, self.index))

    def _node(self, p: int) -> Node:
        """Return the operation at a position of a round, in terms of lists, constants and the index."""
        node = self.rounds[-1][p]
        args = []
        for i, source in enumerate(self.sources[p]):
            if source is None:
                args.append(self._varying(p, i))
            elif source.quantity is not None:
                args.append(node.args[i])
            elif source.lag or source.statement in self.named:
                args.append(self._named_leaf(node.args[i], self._element(source.statement, source.lag)))
            else:
                args.append(self.template[source.statement])
        if operand(node, "index") is not None and len({part[p].settings for part in self.rounds}) > 1:
            return self._indexed(p, args[0])
        return node.with_args(tuple(args))

    def _named_leaf(self, like: Node, name: str) -> Node:
        result = leaf(like.shape, like.dtype)
        self.names[result] = name
        return result

    def _indexed(self, p: int, array: Node) -> Node:
        """Return an element of an array whose index follows from the round."""
        nodes = [part[p] for part in self.rounds]
        name = self.names.get(array)
        key = self._in_index([_written_out(n) for n in nodes], _NUMBER)
        if name is None or key is None:
            raise NoRecurrence
        return self._named_leaf(nodes[-1], indexed_name(name, key))

    def _varying(self, p: int, i: int) -> Node:
        """Return an operand that is another one in each round: an element of a list, or a number."""
        nodes = [part[p].args[i] for part in self.rounds]
        if all(n.is_constant and n.value is not None and not n.shape and n not in self.names for n in nodes):
            return self._number([n.value for n in nodes if n.value is not None])
        if all(operand(n, "index") in nodes[0].args and n not in self.names for n in nodes):
            name = self.names.get(nodes[0].args[0])
            key = self._in_index([_written_out(n) for n in nodes], _NUMBER)
            if name is not None and key is not None:
                return self._named_leaf(nodes[-1], indexed_name(name, key))
        names = [self.names.get(n, "") for n in nodes]
        written = self._in_index(names, _SLOT) if all(names) else None
        if written is None and len({*nodes}) == len(nodes) and all(n.is_leaf for n in nodes):
            written = self._in_index(self._elements(nodes), _SLOT)
        if written is None:
            raise NoRecurrence
        array, _, key = written.rpartition("[")
        return self._named_leaf(nodes[-1], indexed_name(array, key[:-1]) if key.endswith("]") else written)

    def _elements(self, nodes: Sequence[Node]) -> list[str]:
        """Return inputs as elements: of the array that they are parts of, or of a new list."""
        program, names = self.whole.program, [self.names[n] for n in nodes]
        elements = [program.element(n) for n in nodes]
        if all(map(program.may_number, nodes)) and not all(elements):
            stems = {re.sub(r"_\d+$", "", name) for name in names}
            stem = min(stems) if len(stems) == 1 else "data"
            others = {*self.taken, *self.whole.labels.values()} - {*names}
            stem = stem if stem not in others else next(fresh_names(others, stem))
            elements = [element_name(stem, (k,)) for k in range(len(nodes))]
        else:
            others = {*self.whole.labels.values()} - {*names}
            elements = [e if e and e not in others else name for e, name in zip(elements, names, strict=True)]
        new = {n: e for n, e, name in zip(nodes, elements, names, strict=True) if e != name}
        self.elements |= new
        self.names |= new
        return elements

    def _in_index(self, texts: Sequence[str], slot: re.Pattern[str]) -> str | None:
        """Return texts that differ in integers only as one text in the index; None where no such text says them."""
        if len({slot.sub("\0", text) for text in texts}) > 1:
            return None
        columns = list(zip(*(map(_integer, slot.finditer(text)) for text in texts), strict=True))
        parts, end = [], 0
        for match, column in zip(slot.finditer(texts[0]), columns, strict=True):
            text = _following(column, self.first, self.index)
            if text is None:
                return None
            parts.append(texts[0][end : match.start()])
            if len({*column}) > 1 and match[0].startswith("."):
                self.modules.add("".join(parts))
                text = f"[{text}]"
            parts.append(text if len({*column}) > 1 else match[0])
            end = match.end()
        return "".join(parts) + texts[0][end:] if len({*texts}) > 1 else None

    def _number(self, values: Sequence[Constant]) -> Node:
        """Return numbers that differ from round to round: in terms of the index, or as elements of a list."""
        if all(isinstance(v, int | Fraction | Decimal) for v in values):
            exact = [Fraction(v) for v in values if isinstance(v, int | Fraction | Decimal)]
            step, start = _rounded(exact[1] - exact[0]), _rounded(exact[0])
            if all(_rounded(v) == _rounded(start + k * step) for k, v in enumerate(exact)):
                decimals = any(isinstance(v, Decimal) for v in values)
                return self._in_terms_of_index(step, _rounded(start - self.first * step), decimals)
        name = next((name for name, numbers in self.lists.items() if numbers == tuple(values)), "")
        if not name:
            others = {*self.taken, *self.lists, *self.stems.values(), *map(array_name, self.whole.labels.values())}
            name = "c" if "c" not in others else next(fresh_names(others, "c"))
            self.lists[name] = tuple(values)
        return self._named_leaf(const(0), indexed_name(name, _affine(1, -self.first, self.index)))

    def _in_terms_of_index(self, step: Fraction, rest: Fraction, decimals: bool) -> Node:
        """Return a number that is linear in the index: 0.1*(t - 1), or 2*t + 0.5."""
        index = self._named_leaf(const(0), self.index)
        before = rest / step
        if before.denominator == 1:
            return const(_typed(step, decimals)) * _plus(index, before, decimals)
        return _plus(const(_typed(step, decimals)) * index, rest, decimals)

    def _starts(self) -> tuple[Statement, ...]:
        """Return the elements that are there before the first round."""
        return tuple(
            Statement(element_name(self.stems[p], (self.first + self.ahead.get(p, 0) - before,)), node)
            for p in sorted(self.carried)
            for before, node in sorted(self._start_nodes(p).items(), key=lambda pair: -pair[0])
        )


def _plus(node: Node, number: Fraction, decimals: bool) -> Node:
    if number == 0:
        return node
    other = const(_typed(abs(number), decimals))
    return elementwise("add" if number > 0 else "sub", node, other)


def _written_out(node: Node) -> str:
    """Return an index with both ends of its slices, which the index of a loop may take the place of.

    >>> from gradcli.graph.construct import index
    >>> [_written_out(index(leaf((3, 2)), (range(k, k + 2), range(2)))) for k in (0, 1)]
    ['0:2', '1:3']
    """
    key, shape = node.settings[0], node.args[0].shape
    if None in key or any(isinstance(k, range) and k.step != 1 for k in key):
        return subscript(key, shape)
    parts = [str(k) if isinstance(k, int) else f"{k.start}:{k.stop}" if len(k) < size else ":"
             for k, size in zip(key, shape, strict=False)]  # fmt: skip
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def _is_inner(source: Source) -> bool:
    return source.quantity is None and not source.lag


def _integer(match: re.Match[str]) -> int:
    return int(next(g for g in match.groups() if g is not None) if match.groups() else match[0])


def numbered(names: Sequence[str]) -> tuple[str, int] | None:
    """Return the list of whose elements names are, in their order, and the index of the first.

    >>> numbered(["h[2]", "h[3]"]), numbered(["net.0", "net.1"]), numbered(["h2", "h3"])
    (('h', 2), ('net', 0), None)
    """
    matches = [_ELEMENT.fullmatch(name) for name in names]
    pairs = [(m[1], int(m[2] or m[3])) for m in matches if m is not None]
    first = pairs[0] if len(pairs) == len(names) else None
    return first if first is not None and pairs == [(first[0], first[1] + k) for k in range(len(names))] else None


def _following(numbers: Sequence[int], first: int, index: str) -> str | None:
    """Return integers, one for each round from the `first`, in terms of the index; None where they follow no rule.

    >>> _following([4, 5, 6], 1, "t"), _following([1, 2, 0, 1, 2], 1, "t"), _following([0, 1, 0, 1], 1, "t")
    ('t+3', 't % 3', '(t+1) % 2')
    >>> _following([0, 1, 3], 1, "t")
    """
    step, rest = numbers[1] - numbers[0], numbers[0] - first * (numbers[1] - numbers[0])
    if all(b - a == step for a, b in pairwise(numbers)):
        return _affine(step, rest, index)
    size = max(numbers) + 1
    if any((a + 1) % size != b for a, b in pairwise(numbers)):
        return None
    above = (numbers[0] - first) % size
    shift = min(above, above - size, key=abs)
    return f"({_affine(1, shift, index)}) % {size}" if shift else f"{index} % {size}"


def _affine(step: int, rest: int, index: str) -> str:
    """Return an integer in terms of an index.

    >>> [_affine(1, -1, "t"), _affine(2, 0, "t"), _affine(-1, 4, "t"), _affine(0, 3, "t")]
    ['t-1', '2*t', '4-t', '3']
    """
    if step == 0:
        return str(rest)
    if step < 0 <= rest:
        return f"{rest}-{_affine(-step, 0, index)}"
    product = index if step == 1 else f"-{index}" if step == -1 else f"{step}*{index}"
    return product if rest == 0 else f"{product}{rest:+d}"


def _rounded(number: Fraction) -> Fraction:
    return Fraction(f"{float(number):.{_DIGITS}g}") if number.denominator > 1 else number


def _typed(number: Fraction, decimals: bool) -> Constant:
    if number.denominator == 1:
        return int(number)
    return Decimal(f"{float(number):.{_DIGITS}g}") if decimals else number
