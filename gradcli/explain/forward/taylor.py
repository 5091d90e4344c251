"""Higher derivatives of a scalar by its one input, and the Taylor polynomial at a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import InputError, Notes
from gradcli.explain.corners import Corners
from gradcli.explain.evaluation import evaluated
from gradcli.explain.mentions import page_of
from gradcli.explain.results import Array, Named, Row, Shown, Wanted, noted
from gradcli.explain.sections import (
    Difference,
    Equal,
    Equations,
    Formula,
    Line,
    Name,
    Page,
    Partial,
    Polynomial,
    Section,
    Sum,
    Text,
    Value,
    assigned,
)
from gradcli.explain.shared import style_of
from gradcli.explain.system import system_section
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.hessian import gradient, scalar_output
from gradcli.graph.node import Node
from gradcli.graph.rewrite import common_subexpressions

_LONG = 10**6  # the largest number of a fraction that is written as one: a longer one is read more easily as a decimal
MAX_NODES = 20_000  # of a derivative: each is some times longer than the one before


class TaylorPoint(NamedTuple):
    """A point, the output's value and the derivatives there, and the coefficients of the Taylor polynomial.

    Coefficients are fractions where they are known exactly.
    """

    at: Named
    values: Array
    coefficients: tuple[Fraction | float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaylorResult(Shown):
    """The result of `gradcli jacobian --order N`: the derivatives from the first on, as formulas and at each point.

    A formula that is too long to be written is None.
    """

    output: str
    derivatives: tuple[Any, ...]
    points: tuple[TaylorPoint, ...]

    @property
    def names(self) -> list[str]:
        """The names of the derivatives, as in claims: df/dx, d2f/dx2."""
        (x,) = self.wrt
        orders = range(1, len(self.derivatives) + 1)
        return [f"d{k}{self.output}/d{x}{k}" if k > 1 else f"d{self.output}/d{x}" for k in orders]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; a single one without a point."""
        texts = [None if e is None else self.formula(e) for e in self.derivatives]
        common = {"derivatives": dict(zip(self.names, texts, strict=True))}
        for p in self.points:
            value, *numbers = p.values.tolist()
            values = dict(zip(self.names, numbers, strict=True))
            taylor = [float(c) for c in p.coefficients]
            yield common | {
                "at": p.at,
                "value": {self.output: value},
                "values": values,
                "taylor": taylor,
                **noted(p.notes),
            }
        if not self.points:
            yield common

    def rows(self) -> Iterator[Row]:
        """Yield a row a point; a row of formulas without a point."""
        for p in self.points:
            yield [*p.at.items(), *zip((self.output, *self.names), p.values, strict=True)]
        if not self.points:
            formulas = zip(self.names, self.derivatives, strict=True)
            yield [(n, np.asarray(e, dtype=object)) for n, e in formulas if e is not None]

    def pages(self) -> list[Page]:
        """Return a page for each point; a single one without a point."""
        return [page_of(self, self._sections(p)) for p in self.points or (None,)]

    def _sections(self, p: TaylorPoint | None) -> Iterator[Section]:
        yield system_section(self, p and p.at, {} if p is None else {self.output: p.values[0]})
        lines = []
        for k, (name, expr) in enumerate(zip(self.names, self.derivatives, strict=True), 1):
            number = [] if p is None else [Value(p.values[k])]
            formula = [Value.of(expr)] if expr is not None else [] if number else ["too long to write"]
            lines.append(Line((Formula(name, Partial(self.output, self.wrt[0], k)), *formula, *number)))
        yield Section("jacobian", (Equations(tuple(lines)),))
        if p is not None:
            yield self._polynomial(p)

    def _polynomial(self, p: TaylorPoint) -> Section:
        """Return Σ f⁽ᵏ⁾/k!·hᵏ, the output at a distance h of the point."""
        if not np.isfinite([float(c) for c in p.coefficients]).all():
            return Section("jacobian", (Text(("no Taylor polynomial: a derivative is not finite here",)),))
        h = "h" if "h" not in self.style.taken else "δ"
        (x,) = self.wrt
        value = p.at[x]
        away = Value.of(abs(float(value)))
        shift = Name(x) if not value else Difference(Name(x), away) if value > 0 else Sum((Name(x), away))
        distance = Equal((Name(h), shift))
        title = ("Taylor polynomial ", *assigned("about ", [(x, value)], signed_zero=True), ", with ", distance)
        line = Line((Name(self.output), Polynomial(p.coefficients, h)))
        return Section("jacobian", (Equations((line,)),), title)


@np.errstate(all="ignore")
def taylor(
    graph: Graph, wrt: Sequence[str], points: Sequence[Named], order: int, notes: Notes, wanted: Wanted
) -> TaylorResult:
    """Return the derivatives up to an order.  A formula is None where it is too long.

    Errors: `InputError` unless one scalar depends on one scalar input, and where derivatives are too long.
    """
    output, y = scalar_output(graph)
    if len(wrt) != 1 or graph.inputs[wrt[0]].shape or y.shape:
        raise InputError(
            "--order is for a scalar of one scalar input",
            hint=f"choose one with --wrt {next(iter(graph.inputs))}",
            options=("--order",),
        )
    nodes = [y, *_nodes(graph, output, wrt[0], order)]
    formulas = tuple(_formula(graph, n) for n in nodes)
    result = []
    corners = Corners(graph, wanted.notes)
    computed = [*nodes, *corners.nodes]
    for at, numbers in zip(points, evaluated(graph.inputs, points, computed, wanted.same), strict=True):
        noted_corners = corners.note(numbers, Notes(), notes, wanted.page)
        values = np.array([float(numbers[n]) for n in nodes]) + 0.0
        result.append(TaylorPoint(at, values, tuple(_coefficients(formulas, at, values)), noted_corners))
    return TaylorResult(graph, tuple(wrt), style_of(graph), output, formulas[1:], tuple(result))


def _coefficients(formulas: Sequence[Any], at: Named, values: Array) -> Iterator[Fraction | float]:
    """Yield f⁽ᵏ⁾/k!, a fraction where algebra has one; at decimals, what is a short decimal is that."""
    from gradcli.algebra.equality import plain
    from gradcli.algebra.functions import exact_number

    numbers = {name: exact_number(float(value)) for name, value in at.items() if not value.shape}
    whole = all(n.is_Integer for n in numbers.values())
    for k, (expr, value) in enumerate(zip(formulas, values.tolist(), strict=True)):
        result = None if expr is None else plain(expr).subs(numbers)
        exact = (
            Fraction(int(result.p), int(result.q)) / factorial(k) if result is not None and result.is_Rational else None
        )
        if exact is None or max(abs(exact.numerator), exact.denominator) > _LONG:
            yield value / factorial(k)
        else:
            yield exact if whole or _LONG % exact.denominator else float(exact)


def _nodes(graph: Graph, output: str, x: str, order: int) -> list[Node]:
    """Return the derivatives, each the gradient of the one before."""
    result: list[Node] = []
    current = graph
    for _ in range(order):
        node = gradient(current, [x]).outputs[x]
        node = common_subexpressions(scheduled([node], graph.inputs.values()))[node]
        current = Graph.of(graph.inputs, {output: node})
        if len(current.nodes) > MAX_NODES:
            raise InputError(
                f"the derivative of order {len(result) + 1} is too long", hint=f"--order {len(result)} fits"
            )
        result.append(node)
    return result


def _formula(graph: Graph, node: Node) -> Any:
    from gradcli.algebra.display import tidy
    from gradcli.algebra.formulas import TooDeepError, formulas, symbols

    leaves = {n: symbols(name, n.shape) for name, n in graph.inputs.items()}
    try:
        return tidy(formulas([node], leaves, {}).exprs[node][()])
    except TooDeepError:
        return None
