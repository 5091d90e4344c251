"""What `gradcli jvp` shows: J·u, and how each tangent comes about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import Notes
from gradcli.explain.origin import warn_of_values
from gradcli.explain.results import Array, Named, Row, Shown
from gradcli.explain.shared import dimensions, formulas_of, style_of, symbolic
from gradcli.graph.graph import Graph
from gradcli.graph.jvp import Push, push, structural
from gradcli.graph.names import dot
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import textbook_slope, vjp
from gradcli.notation.nodes import Notation, node_names

_ENTRIES = 36  # of a Jacobian that is shown beside J·u
_FORMULAS = 2_000  # elements that are worked out as formulas for it


@dataclass(frozen=True)
class TangentRule:
    """How a tangent comes about: a slope times a tangent for each `term`, or `whole` of a structural node.

    `names` are those of the nodes that the rule is written in.
    """

    terms: tuple[tuple[Node, str], ...]
    whole: Node | None
    names: Mapping[Node, str]

    def text(self) -> str:
        """Return the rule in the language of gradcli, with a dot for the product of slope and tangent.

        >>> from gradcli.graph.node import const
        >>> x = leaf()
        >>> TangentRule(((2 * x, "ẋ"), (const(1), "ȧ")), None, {x: "x"}).text()
        '(2*x)·ẋ + ȧ'
        """
        notation = Notation(self.names, times="*", implicit=True)
        if self.whole is not None:
            return notation.name(self.whole)
        parts = []
        for slope, tangent in self.terms:
            text = notation.name(slope)
            factor = f"({text})" if not text.replace("_", "").isalnum() and not text.endswith(")") else text
            parts.append({"1": tangent, "-1": f"-{tangent}"}.get(text, f"{factor}·{tangent}"))
        return " + ".join(parts).replace(" + -", " - ")


@dataclass(frozen=True)
class TangentStep:
    """One node of the forward pass, with its tangent and the rule that makes it; a leaf has none."""

    node: Node
    name: str
    rule: TangentRule | None
    moves: bool
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
                notation = Notation(node_names(self.graph), times="*")
                found["steps"] = {"forward": [_step_object(s, notation) for s in p.steps]}
            yield found if p.at else found | self.where_object

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
    return JvpResult(graph, tuple(wrt), style_of(graph, directions), tuple(found), symbolic=entries)


def _point(graph: Graph, pushed: Push, at: Named, u: Named, v: Named, steps: bool, notes: Notes) -> JvpPoint:
    wanted = [*graph.names.values(), *pushed.graph.outputs.values()]
    if steps:
        wanted += [*graph.nodes, *pushed.tangents.values()]
    found = at_point(pushed.graph, at | {f"{name}.u": tangent for name, tangent in u.items()}, wanted)
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
    found = at_point(swept, at | {f"{name}.v": weights for name, weights in v.items()}, swept.outputs.values())
    return {name.removesuffix(".grad"): found[n] for name, n in swept.outputs.items()}


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
    for n in graph.nodes:
        if n in names:
            tangent = pushed.tangents.get(n)
            rule = None if tangent is None or n.op == "input" else tangent_rule(n, names, pushed)
            yield TangentStep(
                n, names[n], rule, tangent is not None, found.get(n), None if tangent is None else found.get(tangent)
            )


def tangent_rule(node: Node, names: Mapping[Node, str], pushed: Push) -> TangentRule:
    """Return how a node's tangent comes from those of its arguments, written for nodes that stand for them."""
    stand_ins = [a if a.op == "const" else leaf(a.shape, a.dtype) for a in node.args]
    own = Node(node.op, tuple(stand_ins), node.shape, node.settings, node.dtype)
    known = {own: names[node]} | {s: names[a] for s, a in zip(stand_ins, node.args, strict=True) if a in names}
    moving = [i for i, a in enumerate(node.args) if a in pushed.tangents]
    row = OPERATIONS[node.op]
    if row.broadcasts:
        terms = [(textbook_slope(own, i), dot(names[node.args[i]])) for i in moving]
        return TangentRule(tuple(terms), None, known)
    given = {i: leaf(node.args[i].shape) for i in moving}
    tangents = {u: dot(names[node.args[i]]) for i, u in given.items()}
    return TangentRule((), structural(own, given), known | tangents)


def _step_object(step: TangentStep, notation: Notation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "node": step.name,
        "operation": "leaf" if step.node.op == "input" else step.node.op,
        "expression": "" if step.node.op == "input" else notation.expression(step.node),
        "shape": list(step.node.shape),
    }
    if step.value is not None:
        found["value"] = step.value
    found["rule"] = "" if step.rule is None else step.rule.text()
    if step.tangent is not None:
        found["tangent"] = step.tangent
    return found
