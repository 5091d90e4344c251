"""The steps of a run: the VJP rule of each as a formula, their rows as data, and the section `steps` with their tables.

A rule is written in its own node's adjoint, the node and its arguments: it is the table's, applied to nodes that stand
for them, so that no simplification has mixed in what other nodes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from gradcli.errors import InputError
from gradcli.graph.graph import Graph, appearance, scheduled
from gradcli.graph.names import adjoint_name, indexed_name
from gradcli.graph.node import Node, leaf, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass, Sweep, contributions_of, textbook_slope
from gradcli.notation.nodes import Notation, written_size
from gradcli.notation.text import subscript
from gradcli.pages.backward.loss import array_of, cotangent, loss_name
from gradcli.pages.results import Array, Named
from gradcli.pages.sections import (
    Added,
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
    Words,
    quantity,
)
from gradcli.pages.trace import Trace, known_formulas, plus

_SHORT = 8  # operations of a rule that is written as it is
_LONG = 60  # operations of a call's rule that is not written: four lines

# Rules that say less in formulas than in words.
_WORDS = {
    "max": "where {} is largest",
    "min": "where {} is smallest",
    "median": "where {} is the median",
    "prod": "times the product of the others",
    **{f"max_pool{n}d": "where {} is largest in its window" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": "where {} is largest in its window" for n in (1, 2, 3)},
    **{f"avg_pool{n}d": "shared evenly in each window" for n in (1, 2, 3)},
}


def rule(p: Pass, names: Mapping[Node, str], adjoint: str, to: str, adds: bool) -> Formula:
    """Return the local derivative of an elementwise node, or the contribution of a structural one, as a formula.

    `names` are those of the graph's nodes, `adjoint` and `to` those of the adjoints of the node and of the argument;
    `adds` is whether the argument gets more contributions than this one.
    """
    if p.slope is not None:
        return slopes([p], names)
    pulled = _pulled(p.node)
    contribution = pulled.contributions[p.position]
    if OPERATIONS[p.node.op].kind == "call" and p.node.op not in _WORDS:
        contribution = shortened(contribution, [pulled.node, pulled.g, *pulled.originals])
    # Only the names that the rule reads: a stack of 5,000 numbers has 5,000 arguments, and a rule for each.
    called = {n: names.get(pulled.originals[n]) for n in scheduled([contribution]) if n in pulled.originals}
    known = {n: name for n, name in called.items() if name is not None}
    known |= {pulled.node: names[p.node], pulled.g: adjoint}
    return _contribution(pulled.node, contribution, known, (names[p.argument], to), adjoint, "+=" if adds else "=")


def shortened(contribution: Node, known: Sequence[Node]) -> Node:
    """Return a contribution in terms of known nodes as a formula of arrays, where it has a readable one."""
    names = {n: f"a{i}" for i, n in enumerate(known)}
    if written_size(contribution, names) <= _SHORT:
        return contribution
    from gradcli.pages.forms.gradients import readable_form

    return readable_form(contribution, names) or contribution


class _Pulled(NamedTuple):
    """A node whose arguments are leaves, the names of these, and its contribution for an adjoint g."""

    node: Node
    originals: Mapping[Node, Node]
    g: Node
    contributions: Sequence[Node]


@lru_cache(maxsize=1)  # rules of one node follow each other
def _pulled(node: Node) -> _Pulled:
    alone, arguments = _with_leaves(node)
    g = leaf(alone.shape)
    originals = dict(zip(arguments, node.args, strict=True))
    return _Pulled(alone, originals, g, contributions_of(alone, g))


def slopes(passes: Sequence[Pass], names: Mapping[Node, str]) -> Formula:
    """Return the local derivative of an elementwise node by an argument that it reads once or more: x + x of x*x."""
    alone, known = standing_in(passes[0].node, names)
    first, *more = (textbook_slope(alone, p.position) for p in passes)
    slope, node, argument = sum(more, first), names[passes[0].node], names[passes[0].argument]
    text = Notation(known, implicit=True).name(slope)
    number = slope.value if isinstance(slope.value, int | Decimal) else None
    return Formula(
        f"∂{node}/∂{argument} = {text}", Equal((Partial(node, argument, local=True), quantity(slope, known))), number
    )


def standing_in(node: Node, names: Mapping[Node, str]) -> tuple[Node, dict[Node, str]]:
    """Return a copy of a node whose arguments are leaves, and the names of the copy and the leaves."""
    alone, arguments = _with_leaves(node)
    return alone, {alone: names[node]} | {s: names[a] for s, a in zip(arguments, node.args, strict=True) if a in names}


def _with_leaves(node: Node) -> tuple[Node, list[Node]]:
    """Return a copy of a node whose arguments are leaves and constants, and these arguments."""
    arguments = [a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args]
    return node.with_args(tuple(arguments)), arguments


def _contribution(
    node: Node, contribution: Node, known: Mapping[Node, str], names: tuple[str, str], adjoint: str, equals: str
) -> Formula:
    argument, left = names
    before, _, after = _WORDS.get(node.op, "").partition("{}")
    part = operand(contribution, "scatter")
    kind = OPERATIONS[node.op].kind
    if part is not None and kind == "view":  # of an index: only the elements that were read get something
        left = indexed_name(left, subscript(node.settings[0], node.args[0].shape))
        contribution = part
    if before:
        text = f"{adjoint} {before}{argument if after else ''}{after}"
        what: Math = Words((Name(adjoint), f" {before}", *([Name(argument)] if after else []), after))
    elif kind == "call" and written_size(contribution, known) > _LONG:
        text = f"{adjoint}·∂{known[node]}/∂{argument}"
        what = Words((Name(adjoint), "·", Partial(known[node], argument, local=True)))
    else:
        text, what = Notation(known, implicit=True).name(contribution), quantity(contribution, known)
    return Formula(f"{left} {equals} {text}", Added(Name(left), what) if equals == "+=" else Equal((Name(left), what)))


@dataclass(frozen=True)
class ForwardStep:
    """One node of the forward pass: what it computes, as gradcli reads it, and its primal (None without a point)."""

    node: Node
    name: str
    arguments: tuple[str, ...]
    expression: str
    value: Array | None

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result = {
            "node": self.name,
            "operation": "leaf" if self.node.is_leaf else self.node.op,
            "arguments": self.arguments,
            "expression": self.expression,
            "shape": self.node.shape,
        }
        return result if self.value is None else result | {"value": self.value}


@dataclass(frozen=True)
class ReverseStep:
    """One pass in one `backward` call, with its numbers or formulas.

    `slope` is the local derivative of an elementwise node; a structural node has a rule alone.  `before` is the
    argument's adjoint before this contribution, if it had any, and `total` after it.
    """

    call: int
    passed: Pass
    node: str
    argument: str
    adjoints: tuple[str, str]  # their names, of the node and of the argument
    rule: Formula
    adjoint: Array
    slope: Array | None
    contribution: Array
    total: Array

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result: dict[str, Any] = {"call": self.call, "node": self.node, "adjoint": self.adjoint}
        result |= {"passes_to": self.argument, "rule": self.rule.text}
        result |= {} if self.slope is None else {"local_derivative": self.slope}
        return result | {"contribution": self.contribution, "adjoint_so_far": self.total}


def forward_steps(graph: Graph, names: Mapping[Node, str], values: Mapping[Node, Array]) -> Iterator[ForwardStep]:
    """Yield a step for each node that has a name, in the order in which they are computed."""
    notation = Notation(names)
    for n in graph.nodes:
        if n in names:
            expression = "" if n.is_leaf else notation.expression(n)
            yield ForwardStep(n, names[n], tuple(notation.arguments(n)), expression, values.get(n))


def reverse_steps(trace: Trace, call: int) -> Iterator[ReverseStep]:
    """Yield a step for each pass of a call."""
    result, names, bars = trace.calls[call], trace.names, trace.adjoint_names
    for p in trace.swept.passes:
        hook = result.hooks.get(p.node)
        adjoint, value = (bars[p.node], result.adjoints[p.node]) if hook is None else (hook.name, hook.after)
        formula = rule(p, names, adjoint, bars[p.argument], trace.several(p.argument))
        yield ReverseStep(
            call, p, names[p.node], names[p.argument], (adjoint, bars[p.argument]), formula, value,
            result.slopes.get(p), result.contributions[p], result.totals[p],
        )  # fmt: skip


def steps_objects(trace: Trace) -> dict[str, Any]:
    """Return the JSON object of the forward pass and the reverse passes."""
    reverse = [step.data() for call in range(len(trace.calls)) for step in reverse_steps(trace, call)]
    forward = [step.data() for step in forward_steps(trace.graph, trace.names, trace.values)]
    return {"forward": forward, "reverse": reverse}


def retained_formulas(swept: Sweep, calls: Sequence[Named], retain: Sequence[str]) -> Named:
    """Return the accumulated adjoints of intermediates as formulas in the names that the user gave.

    Errors: `InputError` when such a formula is too deep to be written.
    """
    from gradcli.algebra.formulas import TooDeepError, formulas

    wanted: Mapping[str, Node] = {name: swept.gradients[name] for name in retain}
    total: Named = {}
    for call in calls if retain else ():
        try:
            result = formulas(wanted.values(), known_formulas(swept, swept.graph.labels, call), {}).exprs
        except TooDeepError:
            raise InputError(
                "the formulas for --retain are nested too deeply", hint="give a point with --at to compute numbers"
            ) from None
        total = {name: plus(total[name], result[g]) if name in total else result[g] for name, g in wanted.items()}
    return total


_RULES = {"add": "sum", "sub": "difference", "mul": "product", "div": "quotient", "pow": "power", "matmul": "@"}


def steps_sections(
    trace: Trace, cotangents: Sequence[Named], names: Sequence[str] = (), marks: Mapping[Pass, Math] | None = None
) -> list[Section]:
    """Return the forward table and a reverse table for each call, with the call's entry of `names` as its title.

    `marks` stand behind the rows of some passes.
    """
    result = [forward_section(trace)]
    for k, v in enumerate(cotangents[: len(trace.calls)]):
        title = _meaning(trace, v)
        if names or len(trace.calls) > 1:
            which = f"for {names[k]}" if names else f"call {k + 1}"
            called = cotangent(trace.graph) or "cotangent"
            title = (f"reverse, {which}: ", Equal((Name(called), array_of(trace.graph.outputs, v))))
        grid = reverse_grid(trace, k, marks or {})
        if grid.rows:  # an output that is an input has nothing to pass back
            result.append(Section("steps", (grid,), title))
    return result


def _meaning(trace: Trace, v: Named) -> tuple[Math, ...]:
    """Return the title of a reverse table, which defines the adjoint."""
    inputs = trace.graph.inputs
    x = next((name for name, n in inputs.items() if n in trace.swept.incoming), next(iter(inputs)))
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


def reverse_grid(trace: Trace, call: int, marks: Mapping[Pass, Math]) -> Grid:
    """Return a row for each pass: its local derivative or VJP rule, the argument's adjoint so far, the rule's name."""
    before: dict[Node, Math] = {n: Value(v) for n, v in trace.calls[call].seeds.items()}
    rows = []
    for step in reverse_steps(trace, call):
        if step.adjoint.dtype != object and not step.adjoint.any() and not step.contribution.any():
            continue  # 0 adds nothing
        mark = (marks.get(step.passed, ""),) if marks else ()
        rows.append((with_number(step.rule, step.slope), _adjoint(step, before), _rule_name(step), *mark))
        before[step.passed.argument] = Value(step.total)
    headings = ("this line's derivative", "adjoint so far", "rule", *(("yours",) if marks else ()))
    return Grid(headings, tuple(rows))


def with_number(formula: Formula, slope: Array | None) -> Math:
    """Return a local derivative, ∂t/∂x = 2*x, and its value, where that is a scalar and the formula is no number."""
    if slope is None or slope.shape or slope.dtype == object or formula.number is not None:
        return formula
    return Equal((formula, Value(slope)))


def _adjoint(step: ReverseStep, before: Mapping[Node, Math]) -> Math:
    """Return the accumulation of an adjoint as an equation, x̄ = 1 + 1·6 = 7: before the pass, its product, the sum."""
    name = Name(step.adjoints[1])
    if step.contribution.dtype == object and step.contribution.shape:  # of formulas, each would be a page
        return _chain_rule(name, step, step.passed.argument in before)
    if step.slope is None or step.adjoint.shape or step.slope.shape:
        return Equal((name, Value(step.total)))
    product = Product((Value(step.adjoint), Value(step.slope)))
    there = before.get(step.passed.argument)
    total: Math = product if there is None else Sum((there, product))
    return Equal((name, total, Value(step.total)))


def _chain_rule(name: Name, step: ReverseStep, adds: bool) -> Math:
    """Return the update of an adjoint in symbols alone, t̄3 = t̄4·∂t4/∂t3: its formulas would fill a page.

    `adds` is whether an earlier pass has contributed to the adjoint.
    """
    if step.slope is None:
        return ""  # structural: the rule is in the row's first column
    product = Product((Name(step.adjoints[0]), Partial(step.node, step.argument, local=True)))
    return Equal((name, Sum((name, product)) if adds else product))


def _rule_name(step: ReverseStep) -> str:
    """Return the name of a differentiation rule: power, product, or that of the function."""
    op = step.passed.node.op
    spread = step.passed.node.shape != step.passed.argument.shape and step.slope is not None
    return _RULES.get(op, op) + (", broadcast" if spread else "")
