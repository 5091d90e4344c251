"""One entry of an array's gradient in full: adjoints of what reads the leaf times local derivatives, added up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.construct import index
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.names import AdjointName, adjoint_name, array_name, element_name, fresh_names
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import sweep
from gradcli.pages.backward.loss import loss_name
from gradcli.pages.question import Result
from gradcli.pages.results import Array
from gradcli.pages.sections import (
    Block,
    Computed,
    Equations,
    Line,
    Math,
    Name,
    Partial,
    Product,
    Sum,
    Text,
    Value,
    gradient,
)
from gradcli.pages.system import written_by_user
from gradcli.pages.trace import Trace

_TERMS = 6  # of a sum that is written whole: two lines
_READABLE = 40  # characters of a local derivative beside its adjoint: half a line
_ALONE = 100  # characters of one that is all there is: two lines
_NAMES = 40  # letters of names in a term that has no formula: longer ones say less than the numbers
_DIGITS = 7  # of a number in a formula that is not rounded: float32 has no more
_FORMULAS = 3_000  # elements whose formulas are worked out for these: more would keep the reader waiting
_NODES = 200  # operations in these: more make formulas that are too long
_READERS = 4  # operations that read a leaf and need a line each: more are not one entry in full, but a table
_EXACT = 1e-3  # of an entry: a sum that differs by more is not what the backward computed
_MOVING = ("view", "move")  # kinds of operations that compute nothing

Key = tuple[int, ...]
Element = tuple[Node, Key]  # an element of a node


class _Slopes:
    """The derivatives of the elements of `readers` by one element of the leaf `x`, with `fixed` nodes held fixed.

    Two sweeps give them: the element's gradient is linear in the cotangents, with the slopes as its derivatives.
    """

    def __init__(self, x: Node, key: Key, readers: Sequence[Node], trace: Trace, fixed: Collection[Node]) -> None:
        stops = dict.fromkeys(n for n in (*fixed, *readers) if n.args and not n.is_constant)
        self.leaves = {n: leaf(n.shape, n.dtype) for n in stops}
        names = {n: self.leaves.get(n, n) for n in trace.values if n.is_leaf or n in self.leaves}
        inputs = {f"x{i}": n for i, n in enumerate(names.values())}
        outputs = {f"y{i}": n.with_args(tuple(substituted(n.args, self.leaves))) for i, n in enumerate(readers)}
        first = sweep(Graph.of(inputs, outputs), [name for name, n in inputs.items() if n is x])
        (gradient,) = first.gradients.values()
        entry = index(gradient, key)
        seeds = {f"{name}.v": v for name, v in first.cotangents.items()}
        self.swept = sweep(Graph.of({**inputs, **seeds}, {"g": entry}), list(seeds))
        self.of = dict(zip(readers, self.swept.gradients.values(), strict=True))
        at = {name: trace.values[n] for name, n in zip(inputs, names, strict=True)}
        at |= {name: np.zeros(v.shape) for name, v in seeds.items()} | {"g.v": np.ones(())}
        numbers = at_point(self.swept.graph, at, self.of.values())
        self.numbers = {n: numbers[slopes] for n, slopes in self.of.items()}

    def formulas(self, indices: Sequence[Element], names: Mapping[Node, str]) -> list[Any]:
        """Return the slopes of some elements as formulas; none where that is too much work, or cannot be written."""
        from gradcli.algebra.formulas import TooDeepError, formulas, symbols

        wanted = [index(self.of[n], key) for n, key in indices]
        named = {self.leaves.get(n, n): name for n, name in names.items()}
        v = self.swept.cotangents["g"]
        nodes = scheduled(wanted, [*named, v])
        if len(nodes) > _NODES or sum(n.size for n in nodes) > _FORMULAS:
            return []
        written = {n: symbols(name, n.shape) for n, name in named.items()} | {v: np.array(1, dtype=object)}
        try:
            exprs = formulas(wanted, written, {}).exprs
        except TooDeepError:
            return []
        return [exprs[n].item() for n in wanted]


@dataclass
class Entries:
    """Writes entries of gradients as sums of adjoint · local derivative, below definitions of the names in these.

    `known` are the adjoints that have a line of their own elsewhere.
    """

    result: Result
    trace: Trace
    known: Collection[str]
    lines: list[Line] = field(default_factory=list)
    definitions: dict[str, Line] = field(default_factory=dict)
    names: dict[Node, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph, symbolic = self.result.graph, self.result.symbolic
        self.names |= graph.labels
        taken = () if symbolic is None else map(array_name, symbolic.worked_out_names)
        self.fresh = fresh_names({*graph.inputs, *graph.names, *taken})
        self.loss = loss_name(graph, self.result.points[0].calls[0].v)
        self.adjoints = self.trace.calls[0].adjoints

    def add(self, name: str, grad: Array) -> None:
        """Add the line of the largest entry of a leaf's gradient, unless the entry is 0 or no short sum gives it."""
        if not np.isfinite(grad).all() or not grad.any():
            return
        key = tuple(map(int, np.unravel_index(np.abs(grad).argmax(), grad.shape)))
        x, graph = self.result.leaves[name], self.result.graph
        computing = {n for n in graph.nodes if n.args and OPERATIONS[n.op].kind not in _MOVING}
        for stops in (graph.labels, computing):
            readers = [n for n in _readers(graph, x, stops) if n in self.adjoints]
            if len(graph.nodes) > _NODES and not any(n.shape for n in readers):
                continue  # v·∂y/∂x, whose formula would be too long
            if readers and len(readers) <= _READERS and (line := self._line(name, key, readers, float(grad[key]))):
                self.lines.append(line)
                for n in readers:
                    self._define(n)
                return

    def blocks(self) -> Iterator[Block]:
        """Yield the lines of the entries, below the definitions of their names."""
        if self.lines:
            each = " of each" if len(self.lines) > 1 else ""
            yield Text((f"One entry{each} in full, adjoint · local derivative added up:",))
            if self.definitions:
                yield Equations(tuple(self.definitions.values()))
            yield Equations(tuple(self.lines))

    def _line(self, name: str, key: Key, readers: Sequence[Node], entry: float) -> Line | None:
        """Return an entry as a sum of formulas, of numbers, and its value; None where the sum is v·∂y/∂x, or 1 = 1."""
        slopes = _Slopes(self.result.leaves[name], key, readers, self.trace, self.result.graph.labels)
        products = {n: np.asarray(self.adjoints[n] * slopes.numbers[n]) for n in readers}
        indices = [(n, tuple(map(int, k))) for n in readers for k in np.argwhere(products[n] != 0)]
        error = abs(sum(products[n][k] for n, k in indices) - entry)
        if not indices or (math.isfinite(entry) and not error <= _EXACT * abs(entry)):  # a rule may take 0 for 0/0
            return None
        shown = indices if len(indices) <= _TERMS else [*indices[: _TERMS - 2], indices[-1]]
        names = self.names | {n: self.names.get(n) or next(self.fresh) for n in readers}
        formulas = slopes.formulas(shown, names)
        room = _ALONE if len(indices) == 1 else _READABLE
        if not all(len(self.result.formula(e)) <= room and e.is_finite is not False for e in formulas):
            formulas = []
        if len(indices) == 1 and ((not formulas and not indices[0][1]) or (formulas == [1] and entry == 1)):
            return None
        self.names = names
        ones = [e == 1 for e in formulas] or [False] * len(shown)
        numbers = [
            _product(Value.of(self.adjoints[n][k]), Value.of(slopes.numbers[n][k]), one)
            for (n, k), one in zip(shown, ones, strict=True)
        ]
        terms = [_product(*pair) for pair in zip(*self._symbolic(name, key, shown, formulas), ones, strict=False)]
        sides = [_sum(side, len(indices)) for side in (terms, numbers) if side]
        return Line((gradient(name, key, self.loss, self.result.wanted.returned), *sides, Value.of(entry)))

    def _symbolic(
        self, name: str, key: Key, shown: Sequence[Element], formulas: Sequence[Any]
    ) -> tuple[list[Math], list[Math]]:
        """Return the pairs (adjoint, local derivative) of an entry's terms; none where the names are too long."""
        adjoints = [self._adjoint(n, k) for n, k in shown]
        if formulas:
            many = [e.is_comparable and len(str(e)) > _DIGITS for e in formulas]  # as floats, which pages round
            return adjoints, [Value.of(float(e) if m else e) for e, m in zip(formulas, many, strict=True)]
        by = element_name(name, key)
        if max(len((self._bar(n) or "v") + self.names[n] + by) for n, _ in shown) > _NAMES:
            return [], []
        return adjoints, [Partial(_element(self.names[n], k), by, local=True) for n, k in shown]

    def _adjoint(self, node: Node, key: Key) -> Math:
        """Return the adjoint of an element: z̄[0,1], v[0,1], or ∂L/∂conv[0,1]."""
        bar = self._bar(node)
        if bar is None or bar.barred:
            return Name(_element(bar or "v", key))
        return Partial(self.loss, _element(self.names[node], key))

    def _bar(self, node: Node) -> AdjointName | None:
        """Return the name of a node's adjoint; None for the cotangent v."""
        name = self.trace.adjoint_names.get(node)
        return None if name == "v" else adjoint_name(self.names[node], self.loss)

    def _define(self, node: Node) -> None:
        """Add the definitions of a node without a name and of its adjoint, unless there are such lines."""
        name, bar = self.names[node], self._bar(node)
        if node not in self.result.graph.labels:
            others = {n: label for n, label in self.names.items() if n is not node}
            value = Value(self.trace.values[node])
            written = written_by_user(self.result.graph, node)
            self.definitions[name] = Line((Name(name), Computed(node, others, written, implicit=True), value))
        if bar is not None and bar not in self.known:
            left = (Name(bar),) if bar.barred else ()
            self.definitions[bar] = Line((*left, Partial(self.loss, name), Value(self.adjoints[node])))


def _element(name: str, key: Key) -> str:
    return element_name(name, key) if key else name


def _product(adjoint: Math, slope: Math, one: bool) -> Math:
    return Product((adjoint,) if one else (adjoint, slope))


def _sum(terms: Sequence[Math], count: int) -> Math:
    """Return a sum that shows the first terms, `…`, and the last one."""
    return Sum(tuple(terms)) if len(terms) == count else Sum((*terms[:-1], "…", terms[-1]))


def _readers(graph: Graph, x: Node, stops: Collection[Node]) -> list[Node]:
    """Return the first nodes among `stops` on each path from a leaf."""
    inside: set[Node] = {x}
    result = []
    for node in graph.nodes:
        if not inside.isdisjoint(node.args):
            if node in stops:
                result.append(node)
            else:
                inside.add(node)
    return result
