"""The steps of a run: the forward pass node by node, and the reverse pass adjoint by adjoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from gradcli.graph.names import bar, latex_index, latex_name
from gradcli.graph.node import Graph, Node
from gradcli.graph.vjp import Pass, Sweep
from gradcli.report.notation import LatexNotation, Notation, node_names, subscript, written_size
from gradcli.report.results import Array, ForwardStep, Named, ReverseStep

_READABLE = 15  # operations in a structural rule that is written out
# Rules that say less in formulas than in words.
_WORDS = {"max": "where {} is largest", "min": "where {} is smallest", "prod": "times the product of the others"}

Steps = tuple[tuple[ForwardStep, ...], tuple[ReverseStep, ...]]


def numeric(graph: Graph, swept: Sweep, inputs: Named, calls: int) -> Steps:
    """Return the forward steps and the reverse steps of each call at a point.

    `inputs` holds the leaves and the cotangents, the calls along the last axis of the cotangents.
    """
    traced = swept.traced()
    values = evaluate(traced, inputs, traced.nodes)
    names = node_names(graph)
    forward = _forward(graph, names, lambda n: values[n][..., 0].astype(float))

    def at(call: int) -> Any:
        return lambda n: values[n][..., min(call, values[n].shape[-1] - 1)].astype(float)

    reverse = [step for k in range(calls) for step in _reverse(swept, names, k, at(k))]
    return forward, tuple(reverse)


def symbolic(graph: Graph, swept: Sweep, calls: Sequence[Named]) -> Steps:
    """Return the same steps in formulas: primals stand under their names, adjoints as formulas in them."""
    from gradcli.algebra.formulas import formulas

    names = node_names(graph)
    bars = _bars(swept, names)
    traced = swept.traced()
    every = Graph(traced.nodes, traced.inputs, traced.nodes)
    reverse: list[ReverseStep] = []
    for k, call in enumerate(calls):
        outputs = formulas(every, cut=True, given=_given(traced, names, call), names=bars).outputs
        found = dict(zip(traced.nodes, outputs, strict=True))
        reverse += _reverse(swept, names, k, found.__getitem__)
    return _forward(graph, names, lambda n: None), tuple(reverse)


def retained_formulas(graph: Graph, swept: Sweep, calls: Sequence[Named], retain: Sequence[str]) -> Named:
    """Return the accumulated adjoints of intermediates as formulas in the names that the user gave.

    Errors: `InputError` when such a formula is too deep to be written.
    """
    from gradcli.algebra.formulas import TooDeepError, formulas

    wanted = {f"{name}.grad": name for name in retain}
    total: Named = {}
    named = {n: n.name for n in graph.nodes if n.name}
    for call in calls if retain else ():
        try:
            found = formulas(swept.graph, given=_given(swept.graph, named, call)).outputs
        except TooDeepError:
            raise InputError(
                "the formulas that --retain asks for are too deep to write", hint="give a point: --at works in numbers"
            ) from None
        for node, grad in zip(swept.graph.outputs, found, strict=True):
            if node.name in wanted:
                name = wanted[node.name]
                total[name] = _plus(total[name], grad) if name in total else grad
    return {name: total[name] for name in retain}


def _plus(a: Array, b: Array) -> Array:
    """Return the sum as an array; NumPy unwraps a scalar expression."""
    return np.asarray(a + b, dtype=a.dtype)


def _bars(swept: Sweep, names: Mapping[Node, str]) -> dict[Node, str]:
    """Return the names of the adjoints: t̄ of t."""
    return {p.adjoint: bar(names[p.node]) for p in swept.passes if p.node in names}


def _given(graph: Graph, names: Mapping[Node, str], call: Named) -> dict[Node, Array]:
    """Return what stands for nodes in the formulas of a sweep: primals their names, cotangents their numbers."""
    from gradcli.algebra.formulas import symbols
    from gradcli.algebra.functions import exact_number

    given = {n: symbols(n, name) for n, name in names.items()}
    for v in (n for n in graph.inputs if (n.name or "").endswith(".v")):
        weights = np.empty(v.shape, dtype=object)
        for place in np.ndindex(*v.shape):
            weights[place] = exact_number(float(call[(v.name or "").removesuffix(".v")][place]))
        given[v] = weights
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
    outputs = [n for n in swept.graph.inputs if (n.name or "").endswith(".v")]
    seeds = {
        v: "v" if len(outputs) == 1 and "v" not in names.values() else bar((v.name or "").removesuffix(".v"))
        for v in outputs
    }
    # An output that another one uses starts from its own v.
    totals: dict[Node, Array] = {}
    by_name = {n.name: n for n in swept.graph.nodes if n.name and n.op != "input"}
    for v in outputs:
        output = by_name.get((v.name or "").removesuffix(".v"))
        if output is not None:
            totals[output] = value(v)
    bars = _bars(swept, names) | seeds
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
                *_slope(p, names, bars),
                None if p.slope is None else value(p.slope),
                contribution,
                totals[p.argument],
            )
        )
    return found


def _slope(p: Pass, names: Mapping[Node, str], bars: Mapping[Node, str]) -> tuple[str, str]:
    """Return the local derivative as ∂t2/∂x0 = 2·x0, or a structural node's rule as dL/dx = v @ M.T; and as LaTeX."""
    node, argument = names[p.node], names[p.argument]
    if p.slope is None:
        # An intermediate's name is taken before its adjoint's, should both be one node.
        known = {**bars, **names}
        if p.contribution.op == "scatter":  # of an index: only the elements that were read get something
            key = subscript(p.node.params[0])
            return (
                f"dL/d{argument}[{key}] = {Notation(known).name(p.adjoint)}",
                f"{latex_index(latex_name(bar(argument)), key)} = {LatexNotation(known).name(p.adjoint)}",
            )
        left = latex_name(bar(argument))
        words = _WORDS.get(p.node.op)
        if words or written_size(p.contribution, known) > _READABLE:
            words = words or f"through the pullback of {p.node.op}"
            adjoint = LatexNotation(known).name(p.adjoint)
            return (
                f"dL/d{argument} = {Notation(known).name(p.adjoint)} {words.format(argument)}",
                rf"{left} = {adjoint} \text{{ {words.format(rf'${latex_name(argument)}$')}}}",
            )
        return (
            f"dL/d{argument} = {Notation(known).expression(p.contribution)}",
            f"{left} = {LatexNotation(known).expression(p.contribution)}",
        )
    left = rf"\frac{{\partial {latex_name(node)}}}{{\partial {latex_name(argument)}}}"
    return f"∂{node}/∂{argument} = {Notation(names).name(p.slope)}", f"{left} = {LatexNotation(names).name(p.slope)}"


def origin(swept: Sweep, inputs: Named) -> str:
    """Return where in a sweep the first number arose that is not finite, in words."""
    traced = swept.traced()
    values = evaluate(traced, inputs, traced.nodes)

    def bad(node: Node) -> bool:
        return node.op != "const" and not np.isfinite(values[node]).all()

    if any(bad(n) for n in swept.graph.inputs if (n.name or "").endswith(".v")):
        return "v itself is not finite"
    for p in swept.passes:
        if bad(p.contribution):
            if (known := next(filter(bad, (p.node, *p.node.args)), None)) is not None:
                return value_origin(known, values)
            return f"it arises in {_words(p.node)}, whose local derivative is not finite here"
    return "it arises where contributions are added"


def value_origin(y: Node, values: Mapping[Node, Array]) -> str:
    """Return where a node's first number arose that is not finite, in words; `values` has all that it depends on."""
    node = y
    while (reads := _not_finite_argument(node, values)) is not None:
        node = reads
    if node.op == "input":
        return f"the input {node.name} itself is not finite"
    return f"it arises in {_words(node)}, whose value is not finite"


def _not_finite_argument(node: Node, values: Mapping[Node, Array]) -> Node | None:
    """Return an argument that is not finite where the node reads it."""
    for k, argument in enumerate(node.args):
        bad = ~np.isfinite(values[argument])
        if node.op == "where" and k > 0:
            bad = bad & (values[node.args[0]].astype(bool) == (k == 1))
        if bad.any() and argument.op != "const":
            return argument
    return None


def _words(node: Node) -> str:
    """Return an operation with the place where the user wrote it."""
    return f"`{node.op}` ({' '.join(node.span.text.split())[:60]})" if node.span else f"`{node.op}`"
