"""What a picture of a system shows, as data: boxes with what each computes, and arrows with local derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from gradcli.explain.repeats import Repeat, repeats
from gradcli.explain.results import Array, Named
from gradcli.explain.rules import rule
from gradcli.explain.sections import Computed, Equal, Formula, Math, Name, Partial, Value, Words
from gradcli.explain.shared import style
from gradcli.explain.steps import reverse_step
from gradcli.explain.tables import local_derivative
from gradcli.explain.trace import Edge, Reverse, Trace, numeric_trace, symbolic_trace
from gradcli.explain.weights import loss, loss_name
from gradcli.graph.graph import Graph
from gradcli.graph.names import bar
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.graph.vjp import Sweep, sweep
from gradcli.notation.nodes import node_names, written_size
from gradcli.notation.numbers import shape_text

Kind = Literal["leaf", "intermediate", "output"]

NOT_COMPUTED: Final = "not computed"
_WRITTEN = 12  # operations of a repeated part that is written out
_SMALL = 200  # operations of a system whose adjoints are shown as formulas
_LONG = 40  # operations in the formula of an adjoint that is shown


@dataclass(frozen=True)
class Arrow:
    """From one box, by its place in the picture, to the box that has the arrow, with what the latter does with it."""

    source: int
    local: Math | None


@dataclass(frozen=True)
class Box:
    """A value: its name, what computes it (nothing for a leaf), its primal at a point, and its adjoint.

    Its adjoint is None where none is to be shown.  `others` are more names of the same value.  `times` tells how many
    alike stand in this box: repetitions, of which it has the last one's value, or leaves.
    """

    name: str
    kind: Kind
    operation: str
    formula: Math | None
    shape: Shape
    value: Array | None
    adjoint: Array | Literal["not computed"] | None
    arrows: tuple[Arrow, ...]
    others: tuple[str, ...] = ()
    times: int = 1

    @property
    def several(self) -> bool:
        """Whether these are several leaves."""
        return self.times > 1 and not self.arrows

    def equation(self) -> list[Math]:
        """Return the sides of what the box says of its value."""
        sides: list[Math] = [*map(Name, self.others), self.name if self.several else Name(self.name)]
        if self.formula is not None:
            sides.append(self.formula)
        if self.value is not None:
            sides.append(Value(self.value))
        elif self.shape:
            sides[-1] = Words((sides[-1], f"  ({'each ' * self.several}{shape_text(self.shape)})"))
        return sides

    def reverse(self) -> list[Math]:
        """Return the sides of what the box says of its adjoint, if anything."""
        if self.adjoint is None:
            return []
        return [Name(bar(self.name)), self.adjoint if isinstance(self.adjoint, str) else Value(self.adjoint)]


@dataclass(frozen=True)
class Picture:
    """Boxes in an order in which arrows lead onwards.

    `scalar` is the name of what adjoints are derivatives of, if there are any, and `loss` what that is, unless it is an
    output.  Formulas are written with decimals if the user wrote decimals; `taken` are names that mean variables.
    """

    boxes: tuple[Box, ...]
    scalar: str = ""
    loss: Math | None = None
    decimals: bool = False
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class View:
    """What of a system is looked at: a point, a cotangent, the leaves to differentiate by; whether repeats are folded.

    Without a point there are no values, without a cotangent no adjoints.
    """

    wrt: Sequence[str]
    at: Named | None = None
    v: Named | None = None
    fold: bool = True


def least_boxes(graph: Graph, fold: bool = True) -> int:
    """Return how many boxes a picture has at least, without drawing it: leaves that a folded part reads do not count.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> least_boxes(Graph.of({"x": x}, {"y": x * x + 1}))
    3
    """
    computed = _computed(graph, node_names(graph))
    folded = repeats(graph, computed) if fold else []
    inside = {n for repeat in folded for n in computed[repeat.start : repeat.stop]}
    shown = [n for n in computed if n not in inside]
    return len(shown) + len(folded) + len({a for n in shown for a in n.args if a.op == "input"})


def _computed(graph: Graph, names: Mapping[Node, str]) -> list[Node]:
    """Return the nodes that have a box, but for the leaves."""
    return [n for n in graph.nodes if n.op != "input" and n in names]


@np.errstate(all="ignore")
def picture(graph: Graph, view: View) -> Picture:
    """Return the picture of a system.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = Graph.of({"x": x}, {"y": x * x})
    >>> found = picture(graph, View(["x"], {"x": np.array(3.0)}, {"y": np.array(1.0)}))
    >>> [(box.name, box.kind, float(box.value), float(box.adjoint)) for box in found.boxes]
    [('x', 'leaf', 3.0, 6.0), ('y', 'output', 9.0, 1.0)]
    """
    swept = sweep(graph, view.wrt)
    scalar, whole = ("", None) if view.v is None else _scalar(graph, view.v)
    boxes = _Drawing(graph, swept, view).boxes()
    return Picture(tuple(boxes), scalar, whole, *style(graph, [view.v] if view.v else []))


def _scalar(graph: Graph, v: Named) -> tuple[str, Math | None]:
    """Return the name of what adjoints are derivatives of, and what it is where that is no output."""
    name = loss_name(graph.outputs, v)
    if name in graph.outputs:
        return name, None
    name = "loss" if name in graph.labels.values() else name
    return name, loss(graph.outputs, v, name)


def _trace(graph: Graph, swept: Sweep, view: View) -> Trace:
    """Return the trace at the point, or in formulas where they can be read; otherwise one of names alone."""
    names, passes = node_names(graph), {Edge(p.node, p.position): p for p in swept.passes}
    if view.at is not None:
        # Local derivatives are the same for any v.
        v = view.v or {name: np.zeros(y.shape) for name, y in graph.outputs.items()}
        inputs = {n: a[..., None] for n, a in view.at.items()} | {f"{n}.v": a[..., None] for n, a in v.items()}
        return numeric_trace(graph, swept, inputs, 1)
    nothing = Reverse({}, {}, {}, {}, {})
    if view.v is not None and len(graph.nodes) <= _SMALL and not any(n.shape for n in graph.nodes):
        from gradcli.algebra.formulas import TooDeepError

        try:
            return symbolic_trace(graph, swept, [view.v])
        except TooDeepError:
            pass
    return Trace(graph, names, passes, {}, (nothing,))


class _Drawing:
    """The boxes of a graph: one for each named node, for each repetition, and for the leaves that only it reads."""

    def __init__(self, graph: Graph, swept: Sweep, view: View) -> None:
        self.graph = graph
        self.view = view
        self.swept = swept
        self.trace = _trace(graph, swept, view)
        self.names = self.trace.names
        self.outputs = frozenset(graph.outputs.values())
        self.computed = _computed(graph, self.names)
        self.folded: dict[Node, Repeat] = {}
        for repeat in repeats(graph, self.computed) if view.fold else []:
            self.folded |= dict.fromkeys(self.computed[repeat.start : repeat.stop], repeat)
        self.place: dict[Node, int] = {}
        self.found: list[Box] = []
        self.readers: dict[Node, set[Node]] = {}
        for n in self.computed:
            for a in n.args:
                self.readers.setdefault(a, set()).add(n)
        self.also: dict[Node, list[str]] = {}
        for name, n in {**graph.names, **graph.outputs}.items():
            self.also.setdefault(n, []).append(name)

    def _local(self, edge: Edge) -> Math | None:
        """Return the local derivative along an edge, if adjoints are passed on along it."""
        if edge not in self.trace.passes:
            return None
        adjoint = bar(self.names[edge.node])
        if self.view.at is not None:
            return local_derivative(reverse_step(self.trace, 0, edge, adjoint))
        adds = self.trace.several(edge.argument)
        return Formula(*rule(self.trace.passes[edge], self.names, adjoint, adds))

    def boxes(self) -> list[Box]:
        """Return the boxes, leaves right before what reads them first."""
        for n in self.computed:
            if n not in self.place:
                self._compute(n)
        for n in self.graph.inputs.values():
            if n not in self.place:
                self._leaf(n)
        return self.found

    def _add(self, box: Box, nodes: Iterable[Node]) -> None:
        for n in nodes:
            self.place[n] = len(self.found)
        self.found.append(box)

    def _kind(self, node: Node) -> Kind:
        return "output" if node in self.outputs else "leaf" if node.op == "input" else "intermediate"

    def _box(self, node: Node, formula: Math | None, arrows: Sequence[Arrow], times: int = 1) -> Box:
        name, operation = self.names[node], "" if node.op == "input" else node.op
        others = tuple(other for other in self.also.get(node, ()) if other != name)
        value, adjoint = self.trace.values.get(node), self._adjoint(node)
        kind = self._kind(node)
        return Box(name, kind, operation, formula, node.shape, value, adjoint, tuple(arrows), others, times)

    def _adjoint(self, node: Node) -> Array | Literal["not computed"] | None:
        if self.view.v is None:
            return None
        if node not in self.swept.adjoints and node not in self.trace.calls[0].adjoints:
            return NOT_COMPUTED
        found = self.trace.calls[0].adjoints.get(node)
        return found if found is None or found.dtype != object or readable(found) else None

    def _leaf(self, node: Node) -> None:
        self._add(self._box(node, None, ()), [node])

    def _compute(self, node: Node) -> None:
        """Add the box of a node, or of the repetition that it belongs to, behind those that it needs."""
        if (repeat := self.folded.get(node)) is not None:
            self._fold(repeat)
            return
        arrows = list(self._arrows(node))
        self._add(self._box(node, Computed(node, self.names), arrows), [node])

    def _arrows(self, node: Node) -> Iterator[Arrow]:
        """Yield an arrow for each argument that has a box; x*x has one, with both local derivatives."""
        for argument in dict.fromkeys(node.args):
            if argument not in self.names:
                continue
            if argument not in self.place:
                self._leaf(argument)
            found = [self._local(Edge(node, k)) for k, a in enumerate(node.args) if a is argument]
            yield Arrow(self.place[argument], _joined([math for math in found if math is not None]))

    def _fold(self, repeat: Repeat) -> None:
        """Add one box for all parts of a repetition."""
        nodes = self.computed[repeat.start : repeat.stop]
        inside, first = set(nodes), nodes[: repeat.period]
        outside = [a for n in nodes for a in n.args if a not in inside and a in self.names]
        own = self._own_leaves(nodes, repeat.period)
        for group in own.values():
            self._add(self._group(group), group)
        arrows = []
        for argument in dict.fromkeys(outside):
            if argument not in self.place:
                self._leaf(argument)
        for source in dict.fromkeys(self.place[a] for a in outside):
            arrows.append(Arrow(source, None))
        last = nodes[-1]
        if repeat.period == 1 and len(arrows) == 1 and (slope := self._slope_of_all(nodes)) is not None:
            arrows = [Arrow(arrows[0].source, Equal((Partial(self.names[last], self.names[outside[0]]), slope)))]
        self._add(self._box(last, self._part(first, repeat), arrows, repeat.times), nodes)

    def _own_leaves(self, nodes: Sequence[Node], period: int) -> dict[tuple[int, int], list[Node]]:
        """Return the leaves that each part of a repetition has for itself, by where they stand in it."""
        groups: dict[tuple[int, int], list[Node]] = {}
        for i, n in enumerate(nodes):
            for k, a in enumerate(n.args):
                if a.op == "input" and len(self.readers[a]) == 1 and a not in self.outputs:
                    groups.setdefault((i % period, k), []).append(a)
        return {place: group for place, group in groups.items() if len(group) > 1}

    def _group(self, leaves: Sequence[Node]) -> Box:
        first, last = self.names[leaves[0]], self.names[leaves[-1]]
        name = f"{first}, …, {last}" if len(leaves) > 2 else f"{first}, {last}"
        return Box(name, "leaf", "", f"{len(leaves):,} leaves", leaves[0].shape, None, None, (), times=len(leaves))

    def _part(self, first: Sequence[Node], repeat: Repeat) -> Math:
        """Return what a repeated part computes, and how often."""
        node, times = first[-1], f", {repeat.times:,} times"
        if repeat.period == 1 and len(node.args) == 1 and not OPERATIONS[node.op].infix:
            return f"{node.op}{times}"
        inside = set(first)
        names = {n: name for n, name in self.names.items() if n not in inside}
        if repeat.period <= _WRITTEN and written_size(node, names) <= _WRITTEN:
            return Words((Computed(node, names), times))
        return f"{repeat.period} operations{times}"

    def _slope_of_all(self, nodes: Sequence[Node]) -> Value | None:
        """Return the derivative of a chain of numbers: the product of its slopes."""
        slopes = [self.trace.calls[0].slopes.get(Edge(n, 0)) for n in nodes]
        known = [s for s in slopes if s is not None and not s.shape and s.dtype != object]
        return Value(np.asarray(np.prod(known))) if len(known) == len(slopes) else None


def readable(formulas: Array) -> bool:
    """Tell whether an array of formulas is short enough to be read in a picture."""
    return sum(int(e.count_ops()) for e in formulas.reshape(-1)) <= _LONG


def _joined(locals_: Sequence[Math]) -> Math | None:
    """Return the local derivatives along edges between the same two nodes as one piece of mathematics."""
    if len(locals_) < 2:
        return locals_[0] if locals_ else None
    parts: list[Any] = [locals_[0]]
    for more in locals_[1:]:
        parts += [", ", more]
    return Words(tuple(parts))
