"""The question of `gradcli jvp`, J·u; how each tangent comes about; and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jacobian import order_matters
from gradcli.graph.jvp import Push, push, structural
from gradcli.graph.names import adjoint_name, dot, element_names
from gradcli.graph.node import Node, is_const, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes, textbook_slope
from gradcli.notation.nodes import Notation, node_names
from gradcli.notation.writer import Binds
from gradcli.pages.backward.loss import any_loss, cotangent, flat
from gradcli.pages.backward.steps import ForwardStep, forward_steps, standing_in
from gradcli.pages.evaluation import Values, seeded
from gradcli.pages.formulas import formula_count, summed, symbolic
from gradcli.pages.jacobian.page import entry_cells, jacobian_sections
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Columns, Point, Result, TangentProduct
from gradcli.pages.results import Array, Named, tangent_of
from gradcli.pages.sections import (
    JVP,
    VJP,
    Computed,
    Equal,
    Equations,
    Formula,
    Grid,
    Line,
    Math,
    Name,
    Page,
    Product,
    Section,
    Sum,
    Text,
    Value,
    chosen,
    quantity,
)
from gradcli.pages.system import rates, system_section

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

_ENTRIES = 36  # of a Jacobian that is shown beside J·u: a matrix of 6 by 6
_COMPARED = 10_000  # entries of a Jacobian that is computed to be compared with J·u
_FORMULAS = 2_000  # elements whose formulas are computed for it: more would keep the reader waiting


class TangentStep(NamedTuple):
    """A step of the forward pass with its tangent, if it `moves`, and the rule that makes it; a leaf has none."""

    forward: ForwardStep
    moves: bool
    rule: Formula | None
    tangent: Array | None

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result = self.forward.data()
        del result["arguments"]  # the rule has them
        result["rule"] = "" if self.rule is None else self.rule.text
        return result if self.tangent is None else result | {"tangent": self.tangent}


@np.errstate(all="ignore")  # inf times 0 is nan
def pairing(v: Named, jvp: Named) -> float:
    """Return vᵀ(Ju)."""
    return float(sum(np.sum(v[name] * jvp[name]) for name in v))


@dataclass(eq=False, repr=False)
class JacobianProduct(TangentProduct):
    """J·u; `cotangents`, one a point or none, add vᵀJ.

    A page has the Jacobian with its formulas where it is small, by the leaves that move.
    """

    cotangents: Sequence[Named] = ()
    plural = "products J·u"
    product = "jvp"

    def columns(self) -> Columns:
        """Return the products."""
        return Columns(self._pushed.graph)

    @cached_property
    def _pushed(self) -> Push:
        return push(self.graph, self.wrt)

    @cached_property
    def by(self) -> Sequence[str]:
        """The leaves that move, or all where none does."""
        return [name for name in self.wrt if self.u and np.any(self.u[name])] or [*self.wrt]

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The leaves, the tangents, and the cotangents if there are some."""
        return {**super().inputs, **(self.swept.graph.inputs if self.cotangents else {})}

    def runs(self, k: int, point: Named) -> Sequence[Named]:
        """Return the tangents, and a cotangent."""
        (run,) = super().runs(k, point)
        return [run | seeded("v", self.cotangents[k])] if self.cotangents else [run]

    @cached_property
    def _is_small(self) -> bool:
        """Whether a page has the Jacobian beside J·u, with its formulas."""
        rows, columns = dimensions(self.graph, self.by)
        return self.wanted.page and rows * columns <= _ENTRIES and formula_count(self.graph) <= _FORMULAS

    @cached_property
    def _jacobian(self) -> NumericJacobian | None:
        """J, where it is shown, or where an element of J·u may be finite in one mode alone, and J is small enough."""
        rows, columns = dimensions(self.graph, self.by)
        may_differ = self.wanted.notes and rows * columns <= _COMPARED
        if may_differ and not self._is_small:
            may_differ = order_matters(active_nodes(self.graph, self.graph.leaves(self.by).values()))
        return NumericJacobian(self.graph, self.by) if self._is_small or may_differ else None

    def nodes(self) -> Iterator[Node]:
        """Yield the products, and what is shown beside: intermediates, steps, vᵀJ, J."""
        yield from self.graph.names.values()
        yield from super().nodes()
        if self.wanted.steps:
            yield from (*self.graph.nodes, *self._pushed.tangents.values())
        yield from self.swept.gradients.values() if self.cotangents else ()
        yield from self._jacobian.blocks if self._jacobian is not None else ()

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return J·u at a point."""
        ((run,), (computed,)) = runs, values
        u = tangent_of(run, self.wrt)
        product = self.products(computed)
        result: dict[str, Any] = {"u": u, "jvp": product}
        if self.cotangents:
            v = {name: run[f"{name}.v"] for name in self.graph.outputs}
            grad = {name: computed[n] for name, n in self.swept.gradients.items()}
            result |= {"v": v, "grad": grad, "pairing": np.asarray(pairing(v, product))}
        matrix = None if self._jacobian is None else self._jacobian.matrix(computed)
        differs = frozenset[int]() if matrix is None else self._differing(matrix, u, product)
        return self._with_steps(Point(at, outputs, result, matrix=matrix, more={"differs": differs}), computed)

    def _with_steps(self, p: Point, values: Values) -> Point:
        """Return a point with the steps, if they are wanted."""
        if not self.wanted.steps:
            return p
        steps = list(_steps(self.graph, self._pushed, values))
        data = {"steps": {"forward": [step.data() for step in steps]}}
        return p._replace(values={**p.values, **data}, more={**p.more, "steps": steps})

    def _differing(self, matrix: Array, u: Named, product: Named) -> frozenset[int]:
        """Return the elements of J·u that are finite in forward mode alone, or as J times u alone."""
        if self.wanted.block:
            return frozenset()
        weights = np.concatenate([u[name].reshape(-1) for name in self.by])
        used = weights != 0
        forward = np.concatenate([product[name].reshape(-1) for name in self.graph.outputs])
        by_entries = np.isfinite(matrix[:, used]).all(axis=1)
        return frozenset(np.flatnonzero(by_entries != np.isfinite(forward)).tolist())

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield a warning for each product that is not finite where the output is."""
        for name, product in p.values["jvp"].items():
            if not np.isfinite(product).all() and np.isfinite(p.outputs[name]).all():
                yield "warning", f"{name}.jvp is not finite: a local derivative is not finite"

    def remarks(self, p: Point, notes: Notes) -> Iterator[str]:
        """Yield that the modes differ, where they do."""
        if p.more["differs"] and self.wanted.notes:
            if self.wanted.page:
                notes.add("note", _DIFFERENT)
            yield _DIFFERENT

    def formulas(self, numeric: bool, notes: Notes) -> SymbolicJacobian | None:
        """Return the formulas of J by the leaves that move."""
        return None if numeric and not self._is_small else symbolic(self.graph, self.by, self.wanted.steps)

    def in_formulas(self, formulas: SymbolicJacobian | None) -> Point:
        """Return J·u as formulas, from the entries of the symbolic Jacobian."""
        from gradcli.algebra.functions import exact_number

        assert formulas is not None
        u = self.u or {}
        weights = [exact_number(e) for name in self.by for e in u[name].reshape(-1)]
        terms: dict[int, list[Any]] = {}
        for (i, j), entry in formulas.entries.items():
            terms.setdefault(i, []).append(entry * weights[j])
        return self._with_steps(Point({}, {}, {"u": u, "jvp": summed(terms, self.graph.outputs)}), {})


_DIFFERENT = (
    "J·u is forward mode's here, as in torch.func.jvp: entries of J are backward's, and forward mode has 0 "
    "where backward multiplies 0 by infinity, or the other way round"
)


# Steps


def _steps(graph: Graph, pushed: Push, node_values: Mapping[Node, Array]) -> Iterator[TangentStep]:
    """Yield the steps of the nodes that have names, in the order in which they are computed."""
    names = node_names(graph)
    for step in forward_steps(graph, names, node_values):
        tangent = pushed.tangents.get(step.node)
        moves = tangent is not None
        rule = tangent_rule(step.node, names, pushed) if moves and not step.node.is_leaf else None
        yield TangentStep(step, moves, rule, None if tangent is None else node_values.get(tangent))


def tangent_rule(node: Node, names: Mapping[Node, str], pushed: Push) -> Formula:
    """Return the formula of a node's tangent: Σ slope·tangent over its arguments, or one formula of a structural node.

    >>> x, a = leaf(), leaf()
    >>> graph = Graph.of({"x": x, "a": a}, {"y": x**2 - a})
    >>> [tangent_rule(n, node_names(graph), push(graph, ["x", "a"])).text for n in graph.nodes[-2:]]
    ['(2*x)·ẋ', 'ṫ1 - ȧ']
    """
    alone, known = standing_in(node, names)
    tangents = {i: dot(names[a]) for i, a in enumerate(node.args) if a in pushed.tangents}
    if not OPERATIONS[node.op].broadcasts:
        leaves = {i: leaf(alone.args[i].shape) for i in tangents}
        whole = structural(alone, leaves)
        known |= {u: tangents[i] for i, u in leaves.items()}
        return Formula(Notation(known, implicit=True).name(whole), quantity(whole, known))
    notation, text, parts = Notation(known, implicit=True), "", list[Math]()
    for i, tangent in tangents.items():
        slope = textbook_slope(alone, i)
        minus = is_const(slope, -1)
        is_one = minus or is_const(slope, 1)
        sign = (" - " if minus else " + ") if text else "-" * minus
        text += sign + (tangent if is_one else f"{notation.argument(slope, Binds.ATOM)}·{tangent}")
        local = Value.of(-1.0) if minus else quantity(slope, known)
        parts.append(Name(tangent) if is_one and not minus else Product((local, Name(tangent))))
    return Formula(text, Sum(tuple(parts)))


_TERMS = 12  # of a sum that is written out: two lines
_STEPS = 200  # rows of the table of tangents: some screens


def jvp_pages(result: Result, only: tuple[str, ...]) -> list[Page]:
    """Return a page for each point, with the sections `only`, or with all."""
    return [page_of(result, chosen(_sections(result, p), only)) for p in result.points]


def _sections(result: Result, p: Point) -> dict[str, Callable[[], Sequence[Section]]]:
    return {
        "system": lambda: [system_section(result, p.at or None, p.outputs)],
        "u": lambda: [Section("u", (rates(p.values["u"]), Text((JVP, ": the rate at which each output changes"))))],
        "jacobian": lambda: [] if result.symbolic is None else jacobian_sections(result, p.matrix),
        "steps": lambda: _steps_section(result, p),
        "jvp": lambda: [Section("jvp", (Equations(tuple(_products(result, p))),))],
        "pairing": lambda: _pairing(result, p),
    }


def _products(result: Result, p: Point) -> Iterator[Line]:
    """Yield each element of J·u with its sum, or each output's where J is not known."""
    if result.symbolic is None:
        for name, value in p.values["jvp"].items():
            yield Line((Name(dot(name)), Value(value)), strong=True)
        return
    cells = entry_cells(result, p.matrix)
    weights = flat({name: p.values["u"][name] for name in result.wrt})
    names = [e for name, value in p.values["jvp"].items() for e in element_names(dot(name), value.shape)]
    for i, (name, total) in enumerate(zip(names, flat(p.values["jvp"]), strict=True)):
        terms = [
            Product((cell.sides[-1] if isinstance(cell, Equal) else cell, Value.of(weights[j])))
            for j in range(len(weights))
            if (cell := cells.get((i, j))) is not None and weights[j] != 0
        ]
        sides = [] if i in p.more.get("differs", ()) else _sum(terms)
        yield Line((Name(name), *sides, Value.of(total)), strong=True)


def _sum(terms: Sequence[Math]) -> list[Math]:
    return [Sum(tuple(terms))] if 0 < len(terms) <= _TERMS else []


def _pairing(result: Result, p: Point) -> list[Section]:
    """Return vᵀ(Ju) = (vᵀJ)u, both worked out."""
    if "v" not in p.values or p.more["differs"]:
        return []
    v, grad, u, jvp = (p.values[name] for name in ("v", "grad", "u", "jvp"))
    title = ("the same number from both sides: forward mode gives ", JVP, ", reverse mode ", VJP)
    weights = [f"v_{name}" for name in v] if len(v) > 1 else [cotangent(result.graph)]
    adjoints = [adjoint_name(name, any_loss(result.graph)) for name in grad]
    sides = []
    for left, right, called in ((v, jvp, weights), (grad, u, adjoints)):
        pairs = [(w, e) for name in left for w, e in zip(left[name].flat, right[name].flat, strict=True) if w and e]
        terms = [Product((Value.of(w), Value.of(e))) for w, e in pairs]
        names = [Product((Name(factor), Name(dot(name)))) for factor, name in zip(called, left, strict=True)]
        sides.append(Line((Sum(tuple(names)), *_sum(terms), Value.of(pairing(left, right)))))
    return [Section("pairing", (Equations(tuple(sides)),), title)]


# Steps


def _steps_section(result: Result, p: Point) -> list[Section]:
    steps: Sequence[TangentStep] = p.more.get("steps", ())
    if not steps:
        return []
    names = node_names(result.graph)
    rows = tuple(_row(step, names) for step in steps[:_STEPS])
    title = ("forward: each value with its tangent, its rate of change, marked by a dot",)
    return [Section("steps", (Grid(("value", "tangent"), rows),), title)]


def _row(step: TangentStep, names: Mapping[Node, str]) -> tuple[Math, Math]:
    node, name, value = step.forward.node, step.forward.name, step.forward.value
    formula = [] if node.is_leaf else [Computed(node, names)]
    number = [] if value is None else [Value(value)]
    rule = [] if step.rule is None else [step.rule.math]
    tangent = [] if step.tangent is None else [Value(step.tangent)]
    moved: Math = Equal((Name(dot(name)), *rule, *tangent)) if step.moves else ""
    return Equal((Name(name), *formula, *number)), moved
