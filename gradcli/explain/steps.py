"""The steps of a run: the forward pass node by node, and the reverse pass adjoint by adjoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError
from gradcli.explain.results import Array, ForwardStep, Named, ReverseStep
from gradcli.explain.rules import rule
from gradcli.graph.graph import Graph
from gradcli.graph.names import bar
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep
from gradcli.notation.latex import LatexNotation
from gradcli.notation.nodes import Notation, node_names

Steps = tuple[tuple[ForwardStep, ...], tuple[ReverseStep, ...]]


def numeric(graph: Graph, swept: Sweep, inputs: Named, calls: int) -> Steps:
    """Return the forward steps and the reverse steps of each call at a point.

    `inputs` holds the leaves and the cotangents, the calls along the last axis of the cotangents.
    """
    values = values_of(swept.graph, inputs, swept.traced())
    names = node_names(graph)
    forward = _forward(graph, names, lambda n: values[n][..., 0].astype(float))

    def at(call: int) -> Any:
        return lambda n: values[n][..., min(call, values[n].shape[-1] - 1)].astype(float)

    reverse = [step for k in range(calls) for step in _reverse(swept, names, k, at(k))]
    return forward, tuple(reverse)


def symbolic(graph: Graph, swept: Sweep, calls: Sequence[Named]) -> Steps:
    """Return the same steps in formulas: primals stand under their names, adjoints as formulas in them."""
    from gradcli.algebra.display import READABLE
    from gradcli.algebra.formulas import Limits, formulas

    names = node_names(graph)
    bars = _bars(swept, names)
    limits = Limits(READABLE, READABLE, READABLE)
    reverse: list[ReverseStep] = []
    for k, call in enumerate(calls):
        exprs = formulas(swept.traced(), _given(swept, names, call), bars, limits, names.values()).exprs
        reverse += _reverse(swept, names, k, exprs.__getitem__)
    return _forward(graph, names, lambda n: None), tuple(reverse)


def retained_formulas(swept: Sweep, calls: Sequence[Named], retain: Sequence[str]) -> Named:
    """Return the accumulated adjoints of intermediates as formulas in the names that the user gave.

    Errors: `InputError` when such a formula is too deep to be written.
    """
    from gradcli.algebra.formulas import TooDeepError, formulas

    wanted = {name: swept.gradients[name] for name in retain}
    total: Named = {}
    for call in calls if retain else ():
        try:
            found = formulas(wanted.values(), _given(swept, swept.graph.labels, call), {}).exprs
        except TooDeepError:
            raise InputError(
                "the formulas that --retain asks for are too deep to write", hint="give a point: --at works in numbers"
            ) from None
        total = {name: _plus(total[name], found[g]) if name in total else found[g] for name, g in wanted.items()}
    return total


def _plus(a: Array, b: Array) -> Array:
    """Return the sum as an array; NumPy unwraps a scalar expression."""
    return np.asarray(a + b, dtype=a.dtype)


def _bars(swept: Sweep, names: Mapping[Node, str]) -> dict[Node, str]:
    """Return the names of the adjoints: t̄ of t."""
    return {p.adjoint: bar(names[p.node]) for p in swept.passes if p.node in names}


def _given(swept: Sweep, names: Mapping[Node, str], call: Named) -> dict[Node, Array]:
    """Return what stands for nodes in the formulas of a sweep: primals their names, cotangents their numbers."""
    from gradcli.algebra.formulas import symbols
    from gradcli.algebra.functions import exact_number

    given = {n: symbols(name, n.shape) for n, name in names.items()}
    for output, v in swept.cotangents.items():
        given[v] = np.empty(v.shape, dtype=object)
        for place in np.ndindex(*v.shape):
            given[v][place] = exact_number(float(call[output][place]))
    return given


def _forward(graph: Graph, names: Mapping[Node, str], value: Any) -> tuple[ForwardStep, ...]:
    notation, latex = Notation(names), LatexNotation(names)
    return tuple(
        ForwardStep(
            names[n],
            "leaf" if n.op == "input" else n.op,
            tuple(notation.arguments(n)),
            "" if n.op == "input" else notation.expression(n),
            "" if n.op == "input" else latex.expression(n),
            n.shape,
            value(n),
        )
        for n in graph.nodes
        if n in names
    )


def _reverse(swept: Sweep, names: Mapping[Node, str], call: int, value: Any) -> list[ReverseStep]:
    """Return one step for each pass; the adjoint of an argument grows from pass to pass."""
    # An output that another one uses starts from its own v.
    totals: dict[Node, Array] = {}
    for output, v in swept.cotangents.items():
        node = swept.graph.names[output]
        totals[node] = _plus(totals[node], value(v)) if node in totals else value(v)
    several = Counter([*totals, *(p.argument for p in swept.passes)])
    adjoints = _adjoint_names(swept, names)
    found = []
    for p in swept.passes:
        contribution = value(p.contribution)
        before = totals.get(p.argument)
        totals[p.argument] = contribution if before is None else _plus(before, contribution)
        found.append(
            ReverseStep(
                call,
                names[p.node],
                value(p.adjoint),
                names[p.argument],
                *rule(p, names, adjoints[p.node], several[p.argument] > 1),
                None if p.slope is None else value(p.slope),
                contribution,
                totals[p.argument],
            )
        )
    return found


def _adjoint_names(swept: Sweep, names: Mapping[Node, str]) -> dict[Node, str]:
    """Return what the adjoint of each node is called: t̄ of t, and v of the only output that nothing else uses."""
    found = {p.node: bar(names[p.node]) for p in swept.passes}
    if len(swept.cotangents) == 1 and "v" not in names.values():
        found |= {n: "v" for n, adjoint in swept.adjoints.items() if adjoint in swept.cotangents.values()}
    return found
