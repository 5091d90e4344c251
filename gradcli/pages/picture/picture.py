"""The picture of a system: the boxes of its nodes, repetitions and leaves, and the arrows between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gradcli.graph.array import Weights
from gradcli.graph.graph import Graph, depending
from gradcli.graph.names import fresh_names, indexed_name, may_be_barred
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass, Sweep, textbook_slope
from gradcli.notation.nodes import node_names, written_size
from gradcli.pages.backward.loss import any_loss, loss, loss_name
from gradcli.pages.backward.steps import rule, slopes, standing_in, with_number
from gradcli.pages.images import image_nodes
from gradcli.pages.picture.boxes import (
    NO_GRADIENT,
    REQUIRES_NONE,
    Arrow,
    Box,
    Kind,
    Path,
    Picture,
    Rounds,
    View,
    one_notation,
)
from gradcli.pages.picture.folding import Fold, folds, isomorphic_leaves
from gradcli.pages.recurrence import Recurrence, loops_of_formulas
from gradcli.pages.results import Array, Named, style_of
from gradcli.pages.rounds import norm_of, numbers_by_round, read_by_round
from gradcli.pages.sections import Computed, Equal, Math, Name, Partial, Value, Words
from gradcli.pages.system import recurrence_lines
from gradcli.pages.trace import Reverse, Trace, numeric_trace, symbolic_trace

_WRITTEN = 12  # operations of a repeated part that is written out: a line
_SMALL = 200  # operations of a system whose adjoints are shown as formulas: more would keep the reader waiting
_LONG = 40  # operations in the formula of an adjoint that is shown: two lines


def least_boxes(graph: Graph, fold: bool = True) -> int:
    """Return a lower bound of the number of boxes, without drawing them.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> least_boxes(Graph.of({"x": x}, {"y": x * x + 1}))
    3
    """
    computed = _computed(graph, node_names(graph))
    parts = folds(graph, computed, fold)
    shown = [part.nodes[0] for part in parts if part.times == 1]
    return len(parts) + len({a for n in shown for a in n.args if a.is_leaf})


def _computed(graph: Graph, names: Mapping[Node, str]) -> list[Node]:
    """Return the nodes that have a box, but for the leaves."""
    return [n for n in graph.nodes if not n.is_leaf and n in names]


@np.errstate(all="ignore")
def picture(graph: Graph, view: View, loss: str = "", barred: bool = True) -> Picture:
    """Return the picture of a system; `loss` is what adjoints are derivatives of, if that is known without a cotangent.

    Adjoints are not `barred` where they are not in the picture around this one.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = Graph.of({"x": x}, {"y": x * x})
    >>> result = picture(graph, View(["x"], {"x": np.array(3.0)}, {"y": np.array(1.0)}))
    >>> [(box.name, box.kind, float(box.value), float(box.adjoint)) for box in result.boxes]
    [('x', 'leaf', 3.0, 6.0), ('y', 'output', 9.0, 1.0)]
    """
    graph, view = folded(graph, view)
    swept = view.measured.swept(graph, view.wrt)
    scalar, whole = "", None
    if view.v is not None or any(p.slope is None for p in swept.passes):  # whose rules are about adjoints
        scalar, whole = _scalar(graph, view.v)
    drawing = _Drawing(graph, swept, view, loss or scalar or any_loss(graph), barred)
    style = style_of(graph, [view.v] if view.v else [])
    return Picture(tuple(drawing.boxes()), style, scalar, whole, drawing.middle, drawing.barred, drawing.names)


def folded(graph: Graph, view: View) -> tuple[Graph, View]:
    """Return a system in which the elements of its loops have names, and the view of it in the names that it then has.

    A picture of many statements has the loops of formulas folded, too.
    """
    if view.unroll or not view.fold:
        return graph, view
    loops = view.loops or loops_of_formulas(graph)
    is_model = graph.parts and 2 * len(loops.inside) < len(graph.nodes)  # which has its modules
    if not loops.loops or is_model:
        return graph, view
    at, v = view.at, view.v
    at = at and {loops.inputs.get(name, name): a for name, a in at.items()}
    v = v and {loops.renamed.get(name, name): a for name, a in v.items()}
    wrt = [loops.inputs.get(name, name) for name in view.wrt]
    return loops.with_elements, replace(view, wrt=wrt, at=at, v=v, loops=loops)


def shown_names(graph: Graph, parts: Sequence[Fold]) -> dict[Node, str]:
    """Return the names of nodes, in which those without a box are numbered behind the others.

    The additions within a sum have the name of the whole: their slopes are 1.
    """
    hidden = {n for part in parts if part.is_sum or part.loop for n in part.nodes[:-1]}
    fresh = fresh_names({*graph.inputs, *graph.names})
    named = [n for n in graph.nodes if not n.is_constant or n in graph.labels]
    ordered = sorted(named, key=hidden.__contains__)
    names = {n: graph.labels.get(n) or next(fresh) for n in ordered}
    for part in parts:
        if part.is_sum:
            names |= dict.fromkeys(part.nodes, names[part.nodes[-1]])
    return {n: names[n] for n in named}


def _scalar(graph: Graph, v: Named | None) -> tuple[str, Math | None]:
    """Return the name of the scalar L that adjoints are derivatives of, and its definition where it is no output."""
    name = any_loss(graph) if v is None else loss_name(graph, v)
    if name in graph.outputs:
        return name, None
    if v is None:
        return name, Words((Name(name), f" is any number computed from the output{'s' * (len(graph.outputs) > 1)}"))
    return name, loss(graph, v, name)


def _trace(graph: Graph, swept: Sweep, view: View, names: Mapping[Node, str]) -> Trace:
    """Return the trace at the point, or in formulas where they can be read; otherwise one of names alone."""
    if view.at is not None:
        # Local derivatives are the same for any v.
        v = view.v or {name: np.zeros(y.shape) for name, y in graph.outputs.items()}
        return replace(numeric_trace(graph, swept, view.at, [v], view.measured), names=names)
    nothing = Reverse({}, {}, {}, {}, {})
    if view.v is not None and len(graph.nodes) <= _SMALL and not any(n.shape for n in graph.nodes):
        from gradcli.algebra.formulas import TooDeepError

        try:
            return symbolic_trace(graph, swept, [view.v])
        except TooDeepError:
            pass
    return Trace(graph, names, swept, {}, (nothing,))


class _Drawing:
    """The boxes of a graph: one for each named node, for each repetition, and for the leaves that only it reads."""

    def __init__(self, graph: Graph, swept: Sweep, view: View, scalar: str, barred: bool) -> None:
        self.graph = graph
        self.scalar = scalar
        self.view = view
        self.swept = swept
        loops = view.loops.loops if view.loops else ()
        self.parts = folds(graph, _computed(graph, node_names(graph)), view.fold, view.unroll, loops)
        self.trace = _trace(graph, swept, view, shown_names(graph, self.parts))
        self.names = self.trace.names
        self.named = frozenset(self.names.values())
        self.outputs = frozenset(graph.outputs.values())
        chains = [part for part in self.parts if (part.times > 1 and not part.side_by_side)]
        self.repeated = {n for part in chains for n in part.nodes}
        groups = isomorphic_leaves(graph, self.parts) if view.fold else []
        self.groups = {leaf: group for group in groups for leaf in group}
        self.together = {*self.groups, *(n for part in self.parts if part.middle for n in part.nodes)}
        self.images = image_nodes(graph) & {*graph.inputs.values(), *graph.names.values()}
        self.varying = depending(graph.nodes, graph.inputs.values())
        self.active = depending(graph.nodes, (graph.inputs[name] for name in view.wrt))
        hidden = {n for part in self.parts if part.times > 1 or part.part or part.middle for n in part.nodes[:-1]}
        told = (name for n, name in self.names.items() if n in self.active and n not in hidden)
        self.barred = barred and all(may_be_barred(name.partition("[")[0]) for name in told if name != scalar)
        self.passes: dict[tuple[Node, Node], list[Pass]] = {}
        for p in swept.passes:
            self.passes.setdefault((p.node, p.argument), []).append(p)
        self.middle = ""
        self.index: dict[Node, int] = {}
        self.drawn: list[Box] = []
        self.also: dict[Node, list[str]] = {}
        for name, n in {**graph.names, **graph.outputs}.items():
            self.also.setdefault(n, []).append(name)

    def _local(self, passes: Sequence[Pass]) -> Math | None:
        """Return the local derivative of a node by an argument, added up over positions: x + x for y = x*x."""
        if len(passes) > 1 and all(p.slope is not None for p in passes):
            result = self.trace.calls[0].slopes
            total = np.asarray(sum(result[p] for p in passes)) if self.view.at is not None else None
            return with_number(slopes(passes, self.names), total)
        if len(passes) == 1:
            return self._pass(passes[0])
        parts = [part for p in passes for part in (", ", self._pass(p))]
        return Words(tuple(parts[1:])) if parts else None

    def _pass(self, p: Pass) -> Math:
        hook, to = self.trace.calls[0].hooks.get(p.node), self._bar(self.names[p.argument])
        adjoint = self._bar(self.names[p.node]) if hook is None else hook.name
        formula = rule(p, self.names, adjoint, to, self.trace.several(p.argument))
        return with_number(formula, self.trace.calls[0].slopes.get(p)) if self.view.at is not None else formula

    def _bar(self, name: str) -> str:
        return one_notation(name, self.scalar, self.barred)

    def boxes(self) -> list[Box]:
        """Return the boxes, with leaves right before their first reader."""
        for fold in self.parts:
            if fold.is_sum:
                self._sum(fold)
            elif fold.loop is not None:
                self._loop(fold, fold.loop)
            elif fold.times > 1 or fold.part:
                self._fold(fold)
            else:  # after the boxes of the leaves that it is the first to read
                (node,), arrows = fold.nodes, [*self._arrows(fold.nodes[0])]
                formula = "constant" if _is_weights(node) else Computed(node, self.names)
                self._add(self._box(node, formula, arrows), [node])
        for n in self.graph.inputs.values():
            if n not in self.index:
                self._leaf(n)
        return self.drawn

    def _add(self, box: Box, nodes: Sequence[Node]) -> None:
        for n in nodes:
            self.index[n] = len(self.drawn)
        self.drawn.append(replace(box, nodes=tuple(nodes)))

    def _box(self, node: Node, formula: Math | None, arrows: Sequence[Arrow], times: int = 1) -> Box:
        name = self.names[node]
        others = tuple(other for other in self.also.get(node, ()) if other != name)
        value, adjoint = None if _is_weights(node) else self.trace.values.get(node), self._adjoint(node)
        if value is not None and _is_condition(node):
            value = value.astype(bool)
        kind: Kind = "output" if node in self.outputs else "leaf" if node.is_leaf else "intermediate"
        return Box(
            name, kind, formula, node.shape, value, adjoint, tuple(arrows), others, times, (), (self._bar(name),),
            node in self.images and times == 1, tuple(self._paths(node)) if times == 1 else (),
        )  # fmt: skip

    def _paths(self, node: Node) -> list[Path]:
        """Return the contributions to a node's adjoint, one for each reader; none where there is one reader."""
        if self.view.at is None or self.view.v is None or node not in self.varying:
            return []
        reverse = self.trace.calls[0]
        readers = dict.fromkeys(p.node for p in self.swept.incoming.get(node, ()) if p.node in self.names)
        if not self.repeated.isdisjoint(readers):
            return []  # they have no boxes of their own
        result = [self._path(reader, self.passes[reader, node], node) for reader in readers]
        if node in reverse.seeds:
            result.append(Path("v", None, norm_of(reverse.seeds[node])))
        return sorted(result, key=lambda path: -abs(path.contribution)) if len(result) > 1 else []

    def _path(self, reader: Node, passes: Sequence[Pass], node: Node) -> Path:
        reverse = self.trace.calls[0]
        total = np.asarray(sum(reverse.contributions[p] for p in passes))
        slopes = [reverse.slopes[p] for p in passes if p in reverse.slopes]
        if reader.shape or node.shape or len(slopes) < len(passes):
            return Path(self.names[reader], None, norm_of(total))
        return Path(self.names[reader], (float(reverse.adjoints[reader]), float(sum(slopes))), float(total))

    def _adjoint(self, node: Node) -> Array | str | None:
        if self.view.v is None or node not in self.varying:
            return None
        if node not in self.swept.adjoints and node not in self.trace.calls[0].adjoints:
            why = NO_GRADIENT if node in self.active else REQUIRES_NONE
            return f"{why} (a condition)" if node in self.active and _is_condition(node) else why
        result = self.trace.calls[0].adjoints.get(node)
        return result if result is None or result.dtype != object or readable(result, self.named) else None

    def _leaf(self, node: Node) -> None:
        self._add(self._box(node, None, ()), [node])

    def _arrows(self, node: Node) -> Iterator[Arrow]:
        """Yield an arrow for each argument that has a box; x*x has one, with the sum of both local derivatives.

        What stands in a box with others, leaves or the middle, has one arrow without a derivative.
        """
        seen = set()
        for argument in dict.fromkeys(node.args):
            if argument not in self.names:
                continue
            self._leaf_or_group(argument)
            if argument not in self.together:
                yield Arrow(self.index[argument], self._local(self.passes.get((node, argument), ())))
            elif self.index[argument] not in seen:
                seen.add(self.index[argument])
                yield Arrow(self.index[argument], None)

    def _leaf_or_group(self, argument: Node) -> None:
        """Add the box of a leaf, or of the group that it belongs to."""
        if argument in self.index:
            return
        if group := self.groups.get(argument):
            self._add(self._group(group, f"{len(group):,} leaves", ()), group)
        else:
            self._leaf(argument)

    def _sum(self, fold: Fold) -> None:
        """Add the box of a sum, with an arrow for each term; terms that share a box have one without a derivative."""
        root, inside = fold.nodes[-1], set(fold.nodes)
        signs: dict[Node, int] = {}
        for n in fold.nodes:
            for k, a in enumerate(n.args):
                if a not in inside and a in self.names:
                    passed = next((p for p in self.passes.get((n, a), ()) if p.position == k), None)
                    sign = textbook_slope(*standing_in(n, self.names)[:1], k).value
                    signs[a] = signs.get(a, 0) + int(sign or 0) * (passed is not None)
        arrows: dict[int, Math | None] = {}
        for a, sign in signs.items():
            self._leaf_or_group(a)
            slope = Equal((Partial(self.names[root], self.names[a], local=True), Value.of(sign)))
            is_alone = a in self.active and self.index[a] not in arrows and a not in self.together
            arrows[self.index[a]] = slope if is_alone else None
        names = {n: name for n, name in self.names.items() if n not in inside or n is root}
        short = len(signs) == len(arrows) <= _WRITTEN
        formula: Math = Computed(root, names) if short else f"sum of {len(fold.nodes) + 1:,} terms"
        self._add(self._box(root, formula, [Arrow(*pair) for pair in arrows.items()]), fold.nodes)

    def _loop(self, fold: Fold, loop: Recurrence) -> None:
        """Add the box of a loop: its statements, the element that it ends with, and what is said of each round."""
        assert self.view.loops is not None
        ends = {n: stem for stem, members in loop.members.items() for n in [members[max(members)]]}
        carried = [n for n, stem in ends.items() if stem in loop.carried]
        node = next((n for n in reversed(ends) if n in self.outputs), None) or (carried or [*ends])[-1]
        arrows = self._arrows_from_outside(fold.nodes)
        box = self._box(node, None, arrows, fold.times)
        statements = tuple(line.sides for line in recurrence_lines(loop))
        others = tuple(other for other in box.others if other not in loop.members)
        self._add(replace(box, statements=statements, rounds=(*self._rounds(loop),), others=others), fold.nodes)

    def _rounds(self, loop: Recurrence) -> Iterator[Rounds]:
        """Yield what each round adds to the adjoint of what all of them read, and the adjoints that are carried on."""
        assert self.view.loops is not None
        trace = self.trace.calls[0]
        contributions = {(p.node, p.position): a for p, a in trace.contributions.items()}
        passed = {*self.swept.adjoints, *((p.node, p.position) for p in self.swept.passes)}
        for name, reads in read_by_round(loop, self.view.loops.graph).items():
            if any(r not in passed for mine in reads.values() for r in mine):
                continue  # no gradient flows there
            is_known = self.view.at is not None and self.view.v is not None
            numbers = (numbers_by_round(reads, trace.adjoints, contributions) if is_known else None) or {}
            sizes = {k: abs(norm_of(a)) for k, a in numbers.items()}
            is_carried = name in loop.carried
            of = loop.members.get(name, {}).values() or [n for n in loop.shared if self.graph.labels.get(n) == name]
            has_axes = any(n.shape for n in of)
            what = ["added to ", "", "norms added to ", "norms of "][is_carried + 2 * has_axes]
            bar = self._bar(indexed_name(name, loop.index) if is_carried else name)
            yield Rounds(what, bar, loop.index, reads, sizes)

    def _arrows_from_outside(self, nodes: Sequence[Node]) -> list[Arrow]:
        """Return an arrow from each box that some nodes read, after the boxes of their leaves."""
        inside = set(nodes)
        outside = [a for n in nodes for a in n.args if a not in inside and a in self.names]
        for argument in sorted(outside, key=lambda argument: argument not in self.groups):
            self._leaf_or_group(argument)
        return [Arrow(source, None) for source in dict.fromkeys(self.index[a] for a in outside)]

    def _fold(self, fold: Fold) -> None:
        """Add the box of a fold."""
        nodes, inside = fold.nodes, set(fold.nodes)
        outside = [a for n in nodes for a in n.args if a not in inside and a in self.names]
        arrows = self._arrows_from_outside(nodes)
        if fold.middle:
            self._add(self._middle(nodes, arrows), nodes)
            return
        if fold.part:
            self._add(self._box(nodes[-1], self._part_of_model(fold), arrows), nodes)
            return
        if fold.side_by_side:
            formula = Words((Computed(nodes[0], self.names), f", {fold.times:,} alike"))
            self._add(self._group(nodes, formula, arrows), nodes)
            return
        if fold.period == 1 and len(set(outside)) == 1 and (slope := self._slope_of_all(nodes, outside[0])) is not None:
            whole = Partial(self.names[nodes[-1]], self.names[outside[0]])
            arrows = [Arrow(arrows[0].source, Equal((whole, slope)))]
        self._add(self._box(nodes[-1], self._part(fold), arrows, fold.times), nodes)

    def _middle(self, nodes: Sequence[Node], arrows: Sequence[Arrow]) -> Box:
        """Return the box of the operations in the middle, which has no value."""
        outputs = sum(n in self.outputs for n in nodes)
        self.middle = f"{len(nodes):,} more operations"
        if outputs:
            self.middle += f", of which {outputs:,} {'are outputs' if outputs > 1 else 'is an output'}"
        ends = (self.names[nodes[0]], self.names[nodes[-1]])
        name = ", …, ".join(ends)
        bars = tuple(map(self._bar, ends))
        return Box(name, "intermediate", self.middle, (), None, None, tuple(arrows), (), len(nodes), ends, bars)

    def _group(self, nodes: Sequence[Node], formula: Math, arrows: Sequence[Arrow]) -> Box:
        """Return the box of isomorphic operations, with the values and adjoints of all."""
        boxes = [self._box(n, formula, arrows, len(nodes)) for n in nodes]
        values, adjoints = [box.value for box in boxes], [box.adjoint for box in boxes]
        ends = (boxes[0].name, boxes[-1].name)
        name = (", …, " if len(nodes) > 2 else ", ").join(ends)
        bars = tuple(map(self._bar, ends))
        box = replace(boxes[0], name=name, value=_stacked(values), others=(), ends=ends, bars=bars)
        none = all(isinstance(a, str) for a in adjoints)
        return box if none else replace(box, adjoint=_stacked(adjoints))

    def _part_of_model(self, fold: Fold) -> Math:
        """Return the content of a module's box: the model's own text, a formula, or a number of operations."""
        last, inside = fold.nodes[-1], set(fold.nodes)
        names = {n: name for n, name in self.names.items() if n not in inside}
        if last in self.graph.spans and not any(n in self.graph.labels for n in fold.nodes[:-1]):
            return self.graph.spans[last].line
        if written_size(last, names) <= _WRITTEN:
            return Computed(last, names)
        return f"{len(fold.nodes):,} operations of {fold.part}"

    def _part(self, fold: Fold) -> str:
        """Return the content of a repeated part's box: its operations, and how many times each is done.

        A formula would be that of one part alone.
        """
        ops = [n.op for n in fold.nodes[: fold.period]]
        done = ", ".join(ops) if len(ops) <= _WRITTEN else f"{len(ops)} operations"
        return f"{done},{' each' * (len(ops) > 1)} {fold.times:,} times"

    def _slope_of_all(self, nodes: Sequence[Node], source: Node) -> Value | None:
        """Return the derivative of a chain of scalars by its first argument: the product of the slopes."""
        known, factors = self.trace.calls[0].slopes, []
        if any(source in n.args for n in nodes[1:]):
            return None
        for before, n in pairwise((source, *nodes)):
            if any(a is not before for a in n.args if not a.is_constant):
                return None  # by several ways
            slopes = [known[p] for p in self.passes.get((n, before), ()) if p in known]
            if not slopes or any(s.shape or s.dtype == object for s in slopes):
                return None
            factors.append(np.sum(slopes))  # x*x reads its argument twice
        return Value.of(np.prod(factors))


def _stacked(arrays: Sequence[Array | str | None]) -> Array | None:
    """Return single numbers as an array; None where one of them is missing, or a formula, or an array."""
    result = [a for a in arrays if isinstance(a, np.ndarray) and a.dtype != object and not a.shape]
    return np.stack(result) if len(result) == len(arrays) else None


def _is_condition(node: Node) -> bool:
    """Return whether a node is computed, and is true or false."""
    return bool(node.args) and OPERATIONS[node.op].kind == "condition"


def _is_weights(node: Node) -> bool:
    """Return whether a node is an array of numbers of a model, which a picture does not show."""
    return node.is_constant and isinstance(node.settings[0], Weights) and node.size > 1


def readable(formulas: Array, named: frozenset[str]) -> bool:
    """Return whether an array of formulas is short enough to be read in a picture, which has all that they name."""
    flat = formulas.reshape(-1)
    return sum(int(e.count_ops()) for e in flat) <= _LONG and {s.name for e in flat for s in e.free_symbols} <= named
