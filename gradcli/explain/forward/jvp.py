"""The result of `gradcli jvp`: J·u, and how each tangent comes about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.explain.backward.steps import ForwardStep, forward_steps
from gradcli.explain.columns import Columns
from gradcli.explain.corners import Corners
from gradcli.explain.evaluation import Values, evaluated, seeded
from gradcli.explain.origin import warn_of_values
from gradcli.explain.protocol import first_not_finite, tangent_of, without_seeds
from gradcli.explain.results import UNMEASURED, Array, Measured, Named, Row, Shown, Wanted, noted
from gradcli.explain.rules import standing_in
from gradcli.explain.sections import Formula, Math, Name, Product, Sum, Value, quantity
from gradcli.explain.shared import formulas_of, style_of, summed, symbolic
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jvp import Push, push, structural
from gradcli.graph.names import dot
from gradcli.graph.node import Node, is_const, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Sweep, sweep, textbook_slope
from gradcli.notation.nodes import Notation, node_names
from gradcli.notation.writer import Binds

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

_ENTRIES = 36  # of a Jacobian that is shown beside J·u: a matrix of 6 by 6
_FORMULAS = 2_000  # elements whose formulas are computed for it: more would keep the reader waiting


@dataclass(frozen=True)
class TangentStep:
    """A step of the forward pass with its tangent, if it `moves`, and the rule that makes it; a leaf has none."""

    forward: ForwardStep
    moves: bool = False
    rule: Formula | None = None
    tangent: Array | None = None

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result = self.forward.data()
        del result["arguments"]  # the rule has them
        result["rule"] = "" if self.rule is None else self.rule.text
        return result if self.tangent is None else result | {"tangent": self.tangent}


@dataclass(frozen=True)
class JvpPoint:
    """J·u at a point; without a point, `at` and `value` are empty and J·u is formulas.

    `v` and `grad` are a cotangent with its vᵀJ, if one was given.
    """

    at: Named
    value: Named
    u: Named
    jvp: Named
    steps: tuple[TangentStep, ...]
    v: Named = field(default_factory=dict)
    grad: Named = field(default_factory=dict)
    jacobian: Array | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class JvpResult(Shown):
    """The result of `gradcli jvp`."""

    points: tuple[JvpPoint, ...] = ()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point."""
        for p in self.points:
            result: dict[str, Any] = {"at": p.at, "value": p.value} if p.at else {}
            result |= {"u": p.u, "jvp": p.jvp}
            if p.v:
                result |= {"v": p.v, "grad": p.grad, "pairing": np.asarray(pairing(p.v, p.jvp))}
            if p.steps:
                result["steps"] = {"forward": [step.data() for step in p.steps]}
            result |= noted(p.notes)
            yield result if p.at else result | self.where_object

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: names of arrays, whose elements are columns, with the arrays."""
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), *((f"{name}.jvp", value) for name, value in p.jvp.items())]


@np.errstate(all="ignore")  # inf times 0 is nan
def pairing(v: Named, jvp: Named) -> float:
    """Return vᵀ(Ju)."""
    return float(sum(np.sum(v[name] * jvp[name]) for name in v))


def jvp(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    directions: Sequence[Named],
    cotangents: Sequence[Named],
    notes: Notes,
    wanted: Wanted,
    measured: Measured = UNMEASURED,
) -> JvpResult:
    """Return J·u at each point, `directions[p]` being the tangents of the leaves `wrt` at point p; or as formulas.

    `cotangents`, one a point or none, add vᵀJ; a page has the Jacobian with its formulas where it is small, by the
    leaves that move.  What was `measured`, at one point, is not computed.
    """
    pushed = push(graph, wrt)
    moving = [name for name in wrt if any(np.any(u[name]) for u in directions)] or [*wrt]
    style = style_of(graph, directions)
    if not points:
        formulas = symbolic(graph, moving, wanted.steps)
        result = _in_formulas(graph, pushed, formulas, moving, directions[0], wanted.steps)
        return JvpResult(graph, tuple(moving), style, (result,), symbolic=formulas)
    small = wanted.page and _is_small(graph, moving)
    matrix = NumericJacobian(graph, moving) if small else None
    pulled = sweep(graph, wrt) if cotangents else None
    numbers = _Numbers(graph, pushed, pulled, matrix, wanted, notes, measured)
    written = symbolic(graph, moving, wanted.steps) if small else None
    results = tuple(numbers.points(points, directions, cotangents or [{}] * len(points)))
    return JvpResult(graph, tuple(moving), style, results, symbolic=written)


def _is_small(graph: Graph, moving: Sequence[str]) -> bool:
    """Return whether the Jacobian by the leaves that move can be shown beside J·u, with its formulas."""
    rows, columns = dimensions(graph, moving)
    return rows * columns <= _ENTRIES and formulas_of(graph) <= _FORMULAS


@dataclass(frozen=True)
class _Numbers:
    """J·u in numbers, with vᵀJ and J where they are shown: all of it is computed together, for all points at once."""

    graph: Graph
    pushed: Push
    pulled: Sweep | None
    jacobian: NumericJacobian | None
    wanted: Wanted
    notes: Notes
    measured: Measured

    @cached_property
    def corners(self) -> Corners:
        """The corners of the system, if they are noted."""
        return Corners(self.graph, self.wanted.notes)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes whose values the results have."""
        yield from self.graph.names.values()
        yield from self.pushed.graph.outputs.values() if self.measured.products is None else ()
        if self.wanted.steps:
            yield from (*self.graph.nodes, *self.pushed.tangents.values())
        yield from self.corners.nodes
        if self.pulled is not None:
            yield from self.pulled.gradients.values()
        if self.jacobian is not None:
            yield from self.jacobian.blocks

    def points(
        self, points: Sequence[Named], directions: Sequence[Named], cotangents: Sequence[Named]
    ) -> Iterator[JvpPoint]:
        """Yield the results at all points."""
        inputs = {**self.pushed.graph.inputs, **(self.pulled.graph.inputs if self.pulled else {})}
        seeds = list(zip(points, directions, cotangents, strict=True))
        columns = [at | seeded("u", u) | seeded("v", v) for at, u, v in seeds]
        known = self.measured.values
        computed = evaluated(inputs, columns, self.nodes(), self.wanted.same, self.wanted.block, known)
        for (at, u, v), values in zip(seeds, computed, strict=True):
            yield self.point(at, u, v, values)

    def point(self, at: Named, u: Named, v: Named, values: Values) -> JvpPoint:
        """Return the result at one point, given the values of the nodes."""
        value = {name: values[y] for name, y in self.graph.outputs.items()}
        outputs = {name: self.pushed.graph.outputs[f"{name}.jvp"] for name in self.graph.outputs}
        product = self.measured.products or {name: values[n] for name, n in outputs.items()}
        own = Notes()
        if self.wanted.warn:
            warn_of_values(self.graph, at, value, own)
            _warn_of_products(value, product, own)
        on_values = self.corners.note(values, own, self.notes, self.wanted.page)
        grad = {} if self.pulled is None else {name: values[n] for name, n in self.pulled.gradients.items()}
        steps = tuple(_steps(self.graph, self.pushed, values)) if self.wanted.steps else ()
        matrix = None if self.jacobian is None else self.jacobian.matrix(values)
        return JvpPoint(at, value, u, product, steps, v, grad, matrix, on_values)


def _warn_of_products(value: Named, product: Named, notes: Notes) -> None:
    for name, tangent in product.items():
        if not np.isfinite(tangent).all() and np.isfinite(value[name]).all():
            notes.add("warning", f"{name}.jvp is not finite: a local derivative is not finite")


def _in_formulas(
    graph: Graph, pushed: Push, symbolic: SymbolicJacobian, wrt: Sequence[str], u: Named, steps: bool
) -> JvpPoint:
    """Return J·u as formulas, from the entries of the symbolic Jacobian."""
    from gradcli.algebra.functions import exact_number

    weights = [exact_number(e) for name in wrt for e in u[name].reshape(-1)]
    terms: dict[int, list[Any]] = {}
    for (i, j), entry in symbolic.entries.items():
        terms.setdefault(i, []).append(entry * weights[j])
    return JvpPoint({}, {}, u, summed(terms, graph.outputs), tuple(_steps(graph, pushed, {})) if steps else ())


@dataclass(frozen=True)
class JacobianProduct:
    """J·u; `u` is None where points hold their tangents (`x.u`).  `cotangents`, one a point or none, add vᵀJ."""

    graph: Graph
    wrt: Sequence[str]
    u: Named | None
    cotangents: Sequence[Named]
    wanted: Wanted
    plural = "products J·u"

    @property
    def seeds(self) -> Named:
        """The tangents."""
        return seeded("u", self.u or {})

    def columns(self) -> Columns:
        """Return the products."""
        return Columns(push(self.graph, self.wrt).graph)

    def result(self, points: Sequence[Named], notes: Notes) -> JvpResult:
        """Return J·u at each point, or as formulas where there is none."""
        tangents = [self.u if self.u and not self.wanted.block else tangent_of(p, self.wrt) for p in points or [{}]]
        at = without_seeds(self.graph, points)
        return jvp(self.graph, self.wrt, at, tangents, self.cotangents, notes, self.wanted)

    def origin(self, point: Named, results: Named) -> str:
        """Return which product is not finite."""
        return first_not_finite(results)


# Steps


def _steps(graph: Graph, pushed: Push, node_values: Mapping[Node, Array]) -> Iterator[TangentStep]:
    """Yield the steps of the nodes that have names, in the order in which they are computed."""
    names = node_names(graph)
    for step in forward_steps(graph, names, node_values):
        tangent = pushed.tangents.get(step.node)
        if tangent is None:
            yield TangentStep(step)
        else:
            rule = None if step.node.is_leaf else tangent_rule(step.node, names, pushed)
            yield TangentStep(step, True, rule, node_values.get(tangent))


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
