"""What `gradcli jvp` shows: J·u, and how each tangent comes about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import Notes
from gradcli.explain.origin import warn_of_values
from gradcli.explain.page import Grid, Heading, Section, lines, short, shown, system, terms
from gradcli.explain.results import Array, Named, Shown
from gradcli.explain.shared import dimensions, formulas_of, style, symbolic
from gradcli.graph.graph import Graph
from gradcli.graph.jvp import Push, push, structural
from gradcli.graph.names import dot, element_names
from gradcli.graph.node import Node, leaf, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import vjp
from gradcli.notation.nodes import Notation, node_names

_ENTRIES = 36  # of a Jacobian that is shown beside J·u
_FORMULAS = 2_000  # elements that are worked out as formulas for it
_STEPS = 200


@dataclass(frozen=True)
class TangentStep:
    """One node of the forward pass, with its tangent: `rule` says how it comes from those of its arguments."""

    node: Node
    name: str
    expression: str
    rule: str
    value: Array | None
    tangent: Array | None


@dataclass(frozen=True)
class JvpPoint:
    """J·u at a point; without a point, `at` and `value` are empty and J·u is formulas.

    `v` and `grad` are a cotangent with its vᵀJ, if one was given.
    """

    at: Named
    value: Named
    u: Named
    jvp: Named
    jacobian: Array | None
    steps: tuple[TangentStep, ...]
    v: Named
    grad: Named


@dataclass(frozen=True)
class JvpResult(Shown):
    """The result of `gradcli jvp`."""

    points: tuple[JvpPoint, ...] = ()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point."""
        for p in self.points:
            found: dict[str, Any] = {"at": p.at, "value": p.value} if p.at else {}
            found |= {"u": p.u, "jvp": p.jvp}
            if p.v:
                found |= {"v": p.v, "grad": p.grad, "pairing": np.asarray(pairing(p.v, p.jvp))}
            if p.steps:
                found["steps"] = {"forward": [_step_object(s) for s in p.steps]}
            if not p.at and self.symbolic is not None and self.symbolic.where:
                found["where"] = {name: np.array(e, dtype=object) for name, e in self.symbolic.where.items()}
            yield found

    def rows(self) -> Iterator[list[tuple[str, Array]]]:
        """Yield a row a point: names of arrays, whose elements are columns, with the arrays."""
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), *((f"{name}.jvp", value) for name, value in p.jvp.items())]

    def page(self) -> list[Section]:
        """Return what a reader sees."""
        return [section for p in self.points for section in _page(self, p)]


def pairing(v: Named, jvp: Named) -> float:
    """Return vᵀ(Ju)."""
    return float(sum(np.sum(v[name] * jvp[name]) for name in v))


def jvp(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    directions: Sequence[Named],
    cotangents: Sequence[Named],
    steps: bool,
    notes: Notes,
    formulas: bool = False,
    warn: bool = True,
) -> JvpResult:
    """Return J·u at each point, `directions[p]` being the tangents of the leaves `wrt` at point p; or as formulas.

    `cotangents`, one a point or none, add vᵀJ; `formulas` adds the Jacobian with its formulas where it is small.
    """
    pushed = push(graph, wrt)
    rows, columns = dimensions(graph, wrt)
    small = formulas and rows * columns <= _ENTRIES and formulas_of(graph) <= _FORMULAS
    entries = symbolic(graph, wrt) if small or not points else None
    found = [
        _point(graph, pushed, at, directions[k], cotangents[k] if cotangents else {}, steps, notes if warn else Notes())
        for k, at in enumerate(points)
    ]
    if entries is not None and points:
        from gradcli.engine.jacobian import NumericJacobian

        matrix = NumericJacobian(graph, wrt)
        found = [JvpPoint(**(vars(p) | {"jacobian": matrix(p.at)})) for p in found]
    if not points:
        found = [_in_formulas(graph, pushed, entries, directions[0], steps)]
    return JvpResult(graph, tuple(wrt), entries, *style(graph, directions), points=tuple(found))


def _point(graph: Graph, pushed: Push, at: Named, u: Named, v: Named, steps: bool, notes: Notes) -> JvpPoint:
    inputs = {name: value[..., None] for name, value in at.items()}
    inputs |= {f"{name}.u": value[..., None] for name, value in u.items()}
    wanted = [*graph.names.values(), *pushed.graph.outputs.values()]
    if steps:
        wanted += [*graph.nodes, *pushed.tangents.values()]
    found = {n: a[..., 0].astype(float) for n, a in values_of(pushed.graph, inputs, wanted).items()}
    value = {name: found[y] for name, y in graph.outputs.items()}
    warn_of_values(graph, at, value, notes)
    product = {name: found[pushed.graph.outputs[f"{name}.jvp"]] for name in graph.outputs}
    for name, tangent in product.items():
        if not np.isfinite(tangent).all() and np.isfinite(value[name]).all():
            notes.add("warning", f"{name}.jvp is not finite: a local derivative on the way is not")
    grad = _pulled(graph, list(u), at, v) if v else {}
    told = tuple(_steps(graph, pushed, found)) if steps else ()
    return JvpPoint(at, value, u, product, None, told, v, grad)


def _pulled(graph: Graph, wrt: Sequence[str], at: Named, v: Named) -> Named:
    swept = vjp(graph, wrt)
    inputs = {name: value[..., None] for name, value in at.items()}
    inputs |= {f"{name}.v": value[..., None] for name, value in v.items()}
    found = values_of(swept, inputs, swept.outputs.values())
    return {name.removesuffix(".grad"): found[n][..., 0].astype(float) for name, n in swept.outputs.items()}


def _in_formulas(graph: Graph, pushed: Push, entries: Any, u: Named, steps: bool) -> JvpPoint:
    """Return J·u as formulas, from the entries of the symbolic Jacobian."""
    import sympy

    from gradcli.algebra.display import tidy
    from gradcli.algebra.functions import exact_number

    weights = [exact_number(e) for value in u.values() for e in value.reshape(-1)]
    sums: dict[int, list[Any]] = {}
    for (i, j), entry in entries.entries.items():
        sums.setdefault(i, []).append(entry * weights[j])
    product, start = {}, 0
    for name, y in graph.outputs.items():
        elements = np.empty(y.size, dtype=object)
        elements[:] = [tidy(sympy.Add(*sums.get(start + k, []))) for k in range(y.size)]
        product[name], start = elements.reshape(y.shape), start + y.size
    return JvpPoint({}, {}, u, product, None, tuple(_steps(graph, pushed, {})) if steps else (), {}, {})


# Steps


def _steps(graph: Graph, pushed: Push, found: Mapping[Node, Array]) -> Iterator[TangentStep]:
    """Yield the steps of the nodes that have names, in the order in which they are computed."""
    names = node_names(graph)
    notation = Notation(names, times="*")
    for n in graph.nodes:
        if n not in names:
            continue
        tangent = pushed.tangents.get(n)
        expression = "" if n.op == "input" else notation.expression(n)
        rule = "" if tangent is None or n.op == "input" else tangent_rule(n, names, pushed)
        yield TangentStep(n, names[n], expression, rule, found.get(n), None if tangent is None else found.get(tangent))


def tangent_rule(node: Node, names: Mapping[Node, str], pushed: Push) -> str:
    """Return how a node's tangent comes from those of its arguments: `(2*x)·ẋ`, `Ẋ @ M`."""
    stand_ins = [a if a.op == "const" else leaf(a.shape, a.dtype) for a in node.args]
    own = Node(node.op, tuple(stand_ins), node.shape, node.settings, node.dtype)
    known = {own: names[node]} | {s: names[a] for s, a in zip(stand_ins, node.args, strict=True) if a in names}
    moving = [i for i, a in enumerate(node.args) if a in pushed.tangents]
    row = OPERATIONS[node.op]
    if row.broadcasts:
        notation = Notation(known, times="*", implicit=True)
        slopes = [notation.name(lift(row.slopes[i](own, *stand_ins))) for i in moving]
        return _products(slopes, [dot(names[node.args[i]]) for i in moving])
    given = {i: leaf(node.args[i].shape) for i in moving}
    tangents = {u: dot(names[node.args[i]]) for i, u in given.items()}
    return Notation(known | tangents, times="*", implicit=True).name(structural(own, given))


def _products(slopes: Sequence[str], tangents: Sequence[str]) -> str:
    """Return Σ slope·tangent without a factor 1."""
    parts = []
    for k, (slope, tangent) in enumerate(zip(slopes, tangents, strict=True)):
        minus = slope == "-1"
        text = tangent if slope in ("1", "-1") else terms([(slope, tangent)])
        sign = ("-" if minus else "") if k == 0 else (" - " if minus else " + ")
        parts.append(f"{sign}{text}")
    return "".join(parts)


def _step_object(step: TangentStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "node": step.name,
        "operation": "leaf" if step.node.op == "input" else step.node.op,
        "expression": step.expression,
        "shape": list(step.node.shape),
    }
    if step.value is not None:
        found["value"] = step.value
    found["rule"] = step.rule
    if step.tangent is not None:
        found["tangent"] = step.tangent
    return found


# The page


def _page(result: JvpResult, p: JvpPoint) -> Iterator[Section]:
    yield from system(result, p.at, p.value)
    u = ", ".join(f"{name} = {shown(value, result)}" for name, value in p.u.items() if value.any()) or "0"
    yield lines(f"u: {u}", "how fast the inputs change; J·u is how fast the outputs change with them")
    if result.symbolic is not None:
        yield from _matrix(result, p)
    if p.steps:
        yield Heading("forward: each value with its tangent ṫ, how fast it changes")
        yield Grid(tuple(_step_row(result, s) for s in p.steps[:_STEPS]), ("value", "", "tangent", ""))
    yield Grid(tuple(_products_of_rows(result, p)))
    if p.v:
        yield from _both_ways(p)


def _matrix(result: JvpResult, p: JvpPoint) -> Iterator[Section]:
    """Yield J, with u below it."""
    symbolic = result.symbolic
    assert symbolic is not None
    rows = []
    for i, name in enumerate(symbolic.rows):
        formulas = _formulas(result, i)
        numbers = formulas if p.jacobian is None else [short(e) for e in p.jacobian[i]]
        rows.append((name, *(f if f in (n, "nan") else f"{f} = {n}" for f, n in zip(formulas, numbers, strict=True))))
    rows.append(("u", *(short(e) for value in p.u.values() for e in value.reshape(-1))))
    yield Grid(tuple(rows), ("J", *(f"∂/∂{c}" for c in symbolic.columns)), narrow=())
    if symbolic.where:
        yield Heading("where")
        yield Grid(tuple((name, f"= {result.formula(e)}") for name, e in symbolic.where.items()))


def _formulas(result: JvpResult, i: int) -> list[str]:
    """Return the entries of a row of J as text."""
    symbolic = result.symbolic
    assert symbolic is not None
    places = ((i, j) for j in range(len(symbolic.columns)))
    return [result.formula(symbolic.entries[place]) if place in symbolic.entries else "0" for place in places]


def _products_of_rows(result: JvpResult, p: JvpPoint) -> Iterator[tuple[str, ...]]:
    """Yield each element of J·u with its sum, or each output's where J is not known."""
    if result.symbolic is None:
        yield from ((f"{name}.jvp", f"= {shown(value, result)}") for name, value in p.jvp.items())
        return
    weights = [short(e) for value in p.u.values() for e in value.reshape(-1)]
    total = np.concatenate([value.reshape(-1) for value in p.jvp.values()])
    names = [f"{name}.jvp{e}" for name, value in p.jvp.items() for e in element_names("", value.shape)]
    for i, name in enumerate(names):
        numbers = _formulas(result, i) if p.jacobian is None else [short(e) for e in p.jacobian[i]]
        product = shown(total[i : i + 1].reshape(()), result)
        yield name, f"= {terms(list(zip(numbers, weights, strict=True)))}", f"= {product}"


def _step_row(result: JvpResult, s: TangentStep) -> tuple[str, ...]:
    left = f"{s.name} = {s.expression}" if s.expression else s.name
    value = "" if s.value is None else f"= {shown(s.value, result)}"
    moved = f"{dot(s.name)} = {s.rule}" if s.rule else dot(s.name)
    if s.tangent is None and not s.rule and s.node.op != "input":
        return left, value, "", ""
    return left, value, moved, "" if s.tangent is None else f"= {shown(s.tangent, result)}"


def _both_ways(p: JvpPoint) -> Iterator[Section]:
    """Yield vᵀ(Ju) = (vᵀJ)u, both worked out."""
    first = [(short(w), short(e)) for name in p.v for w, e in zip(p.v[name].flat, p.jvp[name].flat, strict=True)]
    second = [(short(g), short(e)) for name in p.u for g, e in zip(p.grad[name].flat, p.u[name].flat, strict=True)]
    names = [e for name, g in p.grad.items() for e in element_names(name, g.shape)]
    grad = ", ".join(f"{e}.grad = {g}" for e, (g, _) in zip(names[:12], second, strict=False))
    yield Heading("the same number from both sides: forward mode gives J·u, reverse mode vᵀJ")
    yield Grid(
        (
            ("vᵀ(J·u)", f"= {terms(first)}", f"= {short(pairing(p.v, p.jvp))}"),
            ("(vᵀJ)·u", f"= {terms(second)}", f"= {short(pairing(p.u, p.grad))}"),
        )
    )
    yield lines(f"where {grad}" + ", …" * (len(names) > 12))
