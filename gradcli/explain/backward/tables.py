"""The section `steps`: the forward pass node by node, and the reverse pass edge by edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli.explain.backward.loss import cotangent, loss_name
from gradcli.explain.backward.steps import ReverseStep, reverse_steps
from gradcli.explain.backward.weights import array_of
from gradcli.explain.results import Array, Named
from gradcli.explain.sections import (
    Computed,
    Equal,
    Equations,
    Formula,
    Grid,
    Line,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Value,
)
from gradcli.explain.trace import Trace
from gradcli.graph.graph import appearance
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node

_RULES = {"add": "sum", "sub": "difference", "mul": "product", "div": "quotient", "pow": "power", "matmul": "@"}


def steps_sections(trace: Trace, cotangents: Sequence[Named], names: Sequence[str] = ()) -> list[Section]:
    """Return the forward table and a reverse table for each call, with the call's entry of `names` as its title."""
    result = [forward_section(trace)]
    for k, v in enumerate(cotangents[: len(trace.calls)]):
        title = _meaning(trace, v)
        if names or len(trace.calls) > 1:
            which = f"for {names[k]}" if names else f"call {k + 1}"
            called = cotangent(trace.graph) or "cotangent"
            title = (f"reverse, {which}: ", Equal((Name(called), array_of(trace.graph.outputs, v))))
        grid = reverse_grid(trace, k)
        if grid.rows:  # an output that is an input has nothing to pass back
            result.append(Section("steps", (grid,), title))
    return result


def _meaning(trace: Trace, v: Named) -> tuple[Math, ...]:
    """Return the title of a reverse table, which defines the adjoint."""
    x = next((name for name, n in trace.graph.inputs.items() if n in trace.incoming), next(iter(trace.graph.inputs)))
    loss = loss_name(trace.graph, v)
    whole = Partial(loss, x)
    adjoint = adjoint_name(x, loss)
    named = Equal((Name(adjoint), whole)) if adjoint.barred else whole
    return ("reverse pass, last operation first: ", named, " sums adjoint × local derivative")


def forward_section(trace: Trace) -> Section:
    """Return a table of the nodes: their names, operations, and values at a point."""
    lines = []
    leaves = [trace.graph.inputs[name] for name in appearance(trace.graph)]
    for node in dict.fromkeys([*leaves, *trace.graph.nodes]):
        if node in trace.names:
            formula = () if node.is_leaf else (Computed(node, trace.names),)
            value = (Value(trace.values[node]),) if node in trace.values else ()
            if formula or value:
                lines.append(Line((Name(trace.names[node]), *formula, *value)))
    return Section("steps", (Equations(tuple(lines)),), ("forward",))


def reverse_grid(trace: Trace, call: int) -> Grid:
    """Return a row for each pass: its local derivative or VJP rule, the argument's adjoint so far, the rule's name."""
    before: dict[Node, Math] = {n: Value(v) for n, v in trace.calls[call].seeds.items()}
    rows = []
    for step in reverse_steps(trace, call):
        if _adds_nothing(step):
            continue
        rows.append((local_derivative(step), _adjoint(step, before), _rule_name(step)))
        before[step.passed.argument] = Value(step.total)
    return Grid(("this line's derivative", "adjoint so far", "rule"), tuple(rows))


def _adds_nothing(step: ReverseStep) -> bool:
    """Return whether a pass adds a contribution of 0 from an adjoint of 0."""
    return step.adjoint.dtype != object and not step.adjoint.any() and not step.contribution.any()


def local_derivative(step: ReverseStep) -> Math:
    """Return the local derivative of a pass as an equation, ∂t/∂x = 2*x, with its value where it is a scalar."""
    return with_number(step.rule, step.slope)


def with_number(formula: Formula, slope: Array | None) -> Math:
    """Return a formula and its value, where that is a scalar and the formula is not that number."""
    if slope is None or slope.shape or slope.dtype == object or formula.number is not None:
        return formula
    return Equal((formula, Value(slope)))


def _adjoint(step: ReverseStep, before: Mapping[Node, Math]) -> Math:
    """Return the accumulation of an adjoint as an equation, x̄ = 1 + 1·6 = 7: before the pass, its product, the sum."""
    name = Name(step.adjoints[1])
    if step.contribution.dtype == object and step.contribution.shape:  # of formulas, each would be a page
        return _unwritten(name, step, step.passed.argument in before)
    if step.slope is None or step.adjoint.shape or step.slope.shape:
        return Equal((name, Value(step.total)))
    product = Product((Value(step.adjoint), Value(step.slope)))
    there = before.get(step.passed.argument)
    total: Math = product if there is None else Sum((there, product))
    return Equal((name, total, Value(step.total)))


def _unwritten(name: Name, step: ReverseStep, adds: bool) -> Math:
    """Return an adjoint whose formulas are too long by the chain rule: t̄3 = t̄4·∂t4/∂t3."""
    if step.slope is None:
        return ""  # the rule says it
    product = Product((Name(step.adjoints[0]), Partial(step.node, step.argument, local=True)))
    return Equal((name, Sum((name, product)) if adds else product))


def _rule_name(step: ReverseStep) -> str:
    """Return the name of a differentiation rule: power, product, or that of the function."""
    op = step.passed.node.op
    spread = step.passed.node.shape != step.passed.argument.shape and step.slope is not None
    return _RULES.get(op, op) + (", broadcast" if spread else "")
