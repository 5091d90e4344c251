"""The page of `gradcli jvp`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gradcli.explain.backward.loss import any_loss, cotangent
from gradcli.explain.backward.weights import flat
from gradcli.explain.forward.jvp import JvpPoint, JvpResult, TangentStep, pairing
from gradcli.explain.jacobian.product import entry_cells, jacobian_sections
from gradcli.explain.mentions import page_of
from gradcli.explain.sections import (
    JVP,
    VJP,
    Computed,
    Equal,
    Equations,
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
)
from gradcli.explain.system import rates, system_section
from gradcli.graph.names import adjoint_name, dot, element_names
from gradcli.graph.node import Node
from gradcli.notation.nodes import node_names

_TERMS = 12  # of a sum that is written out: two lines
_STEPS = 200  # rows of the table of tangents: some screens


def jvp_pages(result: JvpResult, only: tuple[str, ...]) -> list[Page]:
    """Return a page for each point, with the sections `only`, or with all."""
    return [page_of(result, chosen(_sections(result, p), only)) for p in result.points]


def _sections(result: JvpResult, p: JvpPoint) -> dict[str, Callable[[], Sequence[Section]]]:
    return {
        "system": lambda: [system_section(result, p.at or None, p.value)],
        "u": lambda: [_tangents(p)],
        "jacobian": lambda: [] if result.symbolic is None else jacobian_sections(result, p.jacobian),
        "steps": lambda: _steps(result, p),
        "jvp": lambda: [Section("jvp", (Equations(tuple(_products(result, p))),))],
        "pairing": lambda: _pairing(result, p),
    }


def _tangents(p: JvpPoint) -> Section:
    """Return the tangents of the inputs, as rates of change."""
    return Section("u", (rates(p.u), Text((JVP, ": the rate at which each output changes"))))


def _products(result: JvpResult, p: JvpPoint) -> Iterator[Line]:
    """Yield each element of J·u with its sum, or each output's where J is not known."""
    if result.symbolic is None:
        for name, value in p.jvp.items():
            yield Line((Name(dot(name)), Value(value)), strong=True)
        return
    cells = entry_cells(result, p.jacobian)
    weights = flat({name: p.u[name] for name in result.wrt})
    names = [e for name, value in p.jvp.items() for e in element_names(dot(name), value.shape)]
    for i, (name, total) in enumerate(zip(names, flat(p.jvp), strict=True)):
        terms = [
            Product((_number(cells[i, j]), Value.of(weights[j])))
            for j in range(len(weights))
            if (i, j) in cells and weights[j] != 0
        ]
        yield Line((Name(name), *_sum(terms), Value.of(total)), strong=True)


def _sum(terms: Sequence[Math]) -> list[Math]:
    return [Sum(tuple(terms))] if 0 < len(terms) <= _TERMS else []


def _number(cell: Math) -> Math:
    """Return the number of an entry, or its formula where it has none."""
    return cell.sides[-1] if isinstance(cell, Equal) else cell


def _pairing(result: JvpResult, p: JvpPoint) -> list[Section]:
    """Return vᵀ(Ju) = (vᵀJ)u, both worked out."""
    if not p.v:
        return []
    title = ("the same number from both sides: forward mode gives ", JVP, ", reverse mode ", VJP)
    weights = [f"v_{name}" for name in p.v] if len(p.v) > 1 else [cotangent(result.graph)]
    adjoints = [adjoint_name(name, any_loss(result.graph)) for name in p.grad]
    sides = []
    for left, right, called in ((p.v, p.jvp, weights), (p.grad, p.u, adjoints)):
        pairs = [(w, e) for name in left for w, e in zip(left[name].flat, right[name].flat, strict=True) if w and e]
        terms = [Product((Value.of(w), Value.of(e))) for w, e in pairs]
        names = [Product((Name(factor), Name(dot(name)))) for factor, name in zip(called, left, strict=True)]
        sides.append(Line((Sum(tuple(names)), *_sum(terms), Value.of(pairing(left, right)))))
    return [Section("pairing", (Equations(tuple(sides)),), title)]


# Steps


def _steps(result: JvpResult, p: JvpPoint) -> list[Section]:
    if not p.steps:
        return []
    names = node_names(result.graph)
    rows = tuple(_row(step, names) for step in p.steps[:_STEPS])
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
