"""Higher derivatives of a scalar by its one input, and the Taylor polynomial at a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError
from gradcli.explain.results import Array, Named, Row, Shown
from gradcli.explain.sections import (
    Equations,
    Formula,
    Line,
    Math,
    Name,
    Page,
    Partial,
    Polynomial,
    Section,
    Text,
    Value,
)
from gradcli.explain.shared import style_of
from gradcli.explain.system import point_parts, system_section
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.hessian import gradient, scalar_output
from gradcli.graph.node import Node
from gradcli.graph.passes import representatives

_LONG = 10**6  # of a fraction, whose numbers are written
MAX_NODES = 20_000  # of a derivative: each is longer than the one before


@dataclass(frozen=True)
class TaylorResult(Shown):
    """The result of `gradcli jacobian --order N`: the derivatives from the first on, as formulas and at each point.

    A formula that is too long to be written is None.  `values[p]` are the output's value and the derivatives at
    point p, `coefficients[p]` those of the Taylor polynomial there, as fractions where they are known exactly.
    """

    output: str
    derivatives: tuple[Any, ...]
    points: tuple[Named, ...] = ()
    values: tuple[Array, ...] = ()
    coefficients: tuple[tuple[Fraction | float, ...], ...] = ()

    @property
    def names(self) -> list[str]:
        """What the derivatives are called, as claims call them: df/dx, d2f/dx2."""
        (x,) = self.wrt
        return [f"d{k}{self.output}/d{x}{k}" if k > 1 else f"d{self.output}/d{x}" for k in self._orders]

    @property
    def _orders(self) -> range:
        return range(1, len(self.derivatives) + 1)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; a single one without a point."""
        texts = [None if e is None else self.formula(e) for e in self.derivatives]
        common = {"derivatives": dict(zip(self.names, texts, strict=True))}
        for at, found, exact in zip(self.points, self.values, self.coefficients, strict=True):
            taylor = [float(c) for c in exact]
            numbers = dict(zip(self.names, found[1:].tolist(), strict=True))
            yield common | {"at": at, "value": {self.output: float(found[0])}, "values": numbers, "taylor": taylor}
        if not self.points:
            yield common

    def rows(self) -> Iterator[Row]:
        """Yield a row a point; a row of formulas without a point."""
        for at, found in zip(self.points, self.values, strict=True):
            yield [*at.items(), (self.output, found[0]), *zip(self.names, found[1:], strict=True)]
        if not self.points:
            formulas = zip(self.names, self.derivatives, strict=True)
            yield [(n, np.asarray(e, dtype=object)) for n, e in formulas if e is not None]

    def pages(self) -> list[Page]:
        """Return a page for each point."""
        points: list[int | None] = [*range(len(self.points))]
        return [Page.of(self, self._sections(p)) for p in points or [None]]

    def _sections(self, p: int | None) -> Iterator[Section]:
        at, found = (None, None) if p is None else (self.points[p], self.values[p])
        yield system_section(self, at, {} if found is None else {self.output: found[0]})
        lines = []
        for k, name in zip(self._orders, self.names, strict=True):
            expr = self.derivatives[k - 1]
            formula: Math = "too long to write" if expr is None else Value.of(expr)
            number: tuple[Math, ...] = () if found is None else (Value(found[k]),)
            left = Formula(name, Partial(self.output, self.wrt[0], k))
            lines.append(Line((left, *(() if expr is None and number else (formula,)), *number)))
        yield Section("jacobian", (Equations(tuple(lines)),))
        if at is not None and p is not None:
            yield self._polynomial(at, self.coefficients[p])

    def _polynomial(self, at: Named, coefficients: tuple[Fraction | float, ...]) -> Section:
        """Return Σ f⁽ᵏ⁾/k!·hᵏ, the output at a distance h of the point."""
        if not np.isfinite([float(c) for c in coefficients]).all():
            return Section("jacobian", (Text(("no Taylor polynomial: a derivative is not finite here",)),))
        h = "h" if "h" not in self.style.taken else "δ"
        title = ("Taylor polynomial ", *point_parts(at), ", in the distance ", Name(h), " from there")
        line = Line((Name(self.output), Polynomial(coefficients, h)))
        return Section("jacobian", (Equations((line,)),), title)


@np.errstate(all="ignore")
def taylor(graph: Graph, wrt: Sequence[str], points: Sequence[Named], order: int) -> TaylorResult:
    """Return the derivatives up to an order.  A formula is None where it is too long.

    Errors: `InputError` unless one scalar depends on one scalar input, and where derivatives are too long.
    """
    output, y = scalar_output(graph)
    if len(wrt) != 1 or graph.inputs[wrt[0]].shape or y.shape:
        raise InputError(
            "--order is for a scalar of one scalar input", hint=f"choose one with --wrt {next(iter(graph.inputs))}"
        )
    nodes = _nodes(graph, output, wrt[0], order)
    found = []
    for at in points:
        numbers = at_point(graph, at, [y, *nodes])
        found.append(np.array([float(numbers[n]) for n in (y, *nodes)]) + 0.0)
    formulas = tuple(_formula(graph, n) for n in (y, *nodes))
    exact = tuple(tuple(_coefficients(formulas, at, v)) for at, v in zip(points, found, strict=True))
    return TaylorResult(graph, tuple(wrt), style_of(graph), output, formulas[1:], tuple(points), tuple(found), exact)


def _coefficients(formulas: Sequence[Any], at: Named, values: Array) -> Iterator[Fraction | float]:
    """Yield f⁽ᵏ⁾/k!, a fraction where algebra has one; at decimals, what is a short decimal is that."""
    from gradcli.algebra.equality import plain
    from gradcli.algebra.functions import exact_number

    numbers = {name: exact_number(float(value)) for name, value in at.items() if not value.shape}
    whole = all(n.is_Integer for n in numbers.values())
    for k, (expr, value) in enumerate(zip(formulas, values.tolist(), strict=True)):
        found = None if expr is None else plain(expr).subs(numbers)
        exact = Fraction(int(found.p), int(found.q)) / factorial(k) if found is not None and found.is_Rational else None
        if exact is None or max(abs(exact.numerator), exact.denominator) > _LONG:
            yield value / factorial(k)
        else:
            yield exact if whole or _LONG % exact.denominator else float(exact)


def _nodes(graph: Graph, output: str, x: str, order: int) -> list[Node]:
    """Return the derivatives, each the gradient of the one before."""
    found: list[Node] = []
    current = graph
    for _ in range(order):
        node = gradient(current, [x]).outputs[x]
        node = representatives(scheduled([node], graph.inputs.values()))[node]
        current = Graph.of(graph.inputs, {output: node})
        if len(current.nodes) > MAX_NODES:
            raise InputError(f"the derivative of order {len(found) + 1} is too long", hint=f"--order {len(found)} fits")
        found.append(node)
    return found


def _formula(graph: Graph, node: Node) -> Any:
    from gradcli.algebra.display import tidy
    from gradcli.algebra.formulas import TooDeepError, formulas, symbols

    leaves = {n: symbols(name, n.shape) for name, n in graph.inputs.items()}
    try:
        return tidy(formulas([node], leaves, {}).exprs[node][()])
    except TooDeepError:
        return None
