"""Higher derivatives of a scalar by its one input, and the Taylor polynomial at a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.hessian import gradient, scalar_output
from gradcli.graph.node import Node
from gradcli.graph.rewrite import common_subexpressions
from gradcli.pages.evaluation import Values
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Columns, Point, Question, Result
from gradcli.pages.results import Array, Named, Row
from gradcli.pages.sections import (
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
from gradcli.pages.system import system_section

_LONG = 10**6  # the largest number of a fraction that is written as one: a longer one is read more easily as a decimal
MAX_NODES = 20_000  # of a derivative: each is some times longer than the one before


@dataclass(eq=False, repr=False)
class Taylor(Question):
    """The derivatives of a scalar by its one input, a scalar, up to an order, and its Taylor polynomial at each point.

    Errors: `InputError` unless one scalar depends on one scalar input, and where derivatives are too long.
    """

    order: int
    plural = "derivatives"
    warns = False  # the page says so

    @cached_property
    def output(self) -> str:
        """The name of the output."""
        output, y = scalar_output(self.graph)
        if len(self.wrt) != 1 or self.graph.inputs[self.wrt[0]].shape or y.shape:
            raise InputError(
                "--order is for a scalar of one scalar input",
                hint=f"choose one with --wrt {next(iter(self.graph.inputs))}",
                options=("--order",),
            )
        return output

    @property
    def names(self) -> list[str]:
        """The names of the derivatives, as in claims: df/dx, d2f/dx2."""
        of, (x,) = self.output, self.wrt
        return [f"d{k}{of}/d{x}{k}" if k > 1 else f"d{of}/d{x}" for k in range(1, self.order + 1)]

    @cached_property
    def _nodes(self) -> list[Node]:
        """The output and its derivatives, each the gradient of the one before."""
        result, current = [self.graph.outputs[self.output]], self.graph
        (x,) = self.wrt
        for order in range(1, self.order + 1):
            node = gradient(current, [x]).outputs[x]
            node = common_subexpressions(scheduled([node], self.graph.inputs.values()))[node]
            current = Graph.of(self.graph.inputs, {self.output: node})
            if len(current.nodes) > MAX_NODES:
                raise InputError(f"the derivative of order {order} is too long", hint=f"--order {order - 1} fits")
            result.append(node)
        return result

    @cached_property
    def _written(self) -> list[Any]:
        """The output and its derivatives as formulas; None for what is too long."""
        return [_formula(self.graph, n) for n in self._nodes]

    @property
    def derivatives(self) -> Mapping[str, Any]:
        """The derivatives as formulas, by their names."""
        return dict(zip(self.names, self._written[1:], strict=True))

    def columns(self) -> Columns:
        """Return the derivatives."""
        return Columns(Graph.of(self.graph.inputs, dict(zip(self.names, self._nodes[1:], strict=True))))

    def nodes(self) -> Sequence[Node]:
        """Return the derivatives."""
        return self._nodes

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return the derivatives at a point, and the coefficients of the polynomial: exact ones are fractions."""
        numbers = np.array([float(values[0][n]) for n in self._nodes]) + 0.0
        coefficients = tuple(_coefficients(self._written, at, numbers))
        value, *others = numbers.tolist()
        results = {"values": dict(zip(self.names, others, strict=True)), "taylor": [float(c) for c in coefficients]}
        return Point(at, {self.output: np.asarray(value)}, results, more={"coefficients": coefficients})

    def first(self, result: Result) -> dict[str, Any]:
        """Return the derivatives as formulas."""
        texts = {name: None if e is None else result.formula(e) for name, e in self.derivatives.items()}
        return {"derivatives": texts}

    def cells(self, result: Result, p: Point) -> Row:
        """Return the derivatives; without a point formulas."""
        if p.at:
            return [(name, np.asarray(value)) for name, value in p.values["values"].items()]
        return [(name, np.asarray(e, dtype=object)) for name, e in self.derivatives.items() if e is not None]


def taylor_pages(result: Result) -> list[Page]:
    """Return a page for each point."""
    return [page_of(result, _sections(result, p)) for p in result.points]


def _sections(result: Result, p: Point) -> Iterator[Section]:
    question = result.question
    assert isinstance(question, Taylor)
    yield system_section(result, p.at or None, p.outputs)
    lines = []
    for k, (name, expr) in enumerate(question.derivatives.items(), 1):
        number = [Value.of(p.values["values"][name])] if p.at else []
        formula = [Value.of(expr)] if expr is not None else [] if number else ["too long to write"]
        lines.append(Line((Formula(name, Partial(question.output, result.wrt[0], k)), *formula, *number)))
    yield Section("jacobian", (Equations(tuple(lines)),))
    if p.at:
        yield _polynomial(result, question.output, p)


def _polynomial(result: Result, output: str, p: Point) -> Section:
    """Return Σ f⁽ᵏ⁾/k!·hᵏ, the output at a distance h of the point."""
    if not np.isfinite(p.values["taylor"]).all():
        return Section("jacobian", (Text(("no Taylor polynomial: a derivative is not finite here",)),))
    h = "h" if "h" not in result.style.taken else "δ"
    (x,) = result.wrt
    value = p.at[x]
    away = Value.of(abs(float(value)))
    shift = Name(x) if not value else Difference(Name(x), away) if value > 0 else Sum((Name(x), away))
    distance = Equal((Name(h), shift))
    title = ("Taylor polynomial ", *assigned("about ", [(x, value)], signed_zero=True), ", with ", distance)
    line = Line((Name(output), Polynomial(p.more["coefficients"], h)))
    return Section("jacobian", (Equations((line,)),), title)


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


def _formula(graph: Graph, node: Node) -> Any:
    from gradcli.algebra.display import tidy
    from gradcli.algebra.formulas import TooDeepError, formulas, symbols

    leaves = {n: symbols(name, n.shape) for name, n in graph.inputs.items()}
    try:
        return tidy(formulas([node], leaves, {}).exprs[node][()])
    except TooDeepError:
        return None
