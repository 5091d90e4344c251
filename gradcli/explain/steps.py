"""The steps of a run as rows, from its trace: the forward pass node by node, the reverse pass edge by edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.errors import InputError
from gradcli.explain.results import Array, Named
from gradcli.explain.rules import Rule, rule
from gradcli.explain.trace import Edge, Trace, given, plus
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep
from gradcli.notation.nodes import Notation


@dataclass(frozen=True)
class ForwardStep:
    """One node of the forward pass: what it computes, as gradcli reads it, and its primal (None without a point)."""

    node: Node
    name: str
    arguments: tuple[str, ...]
    expression: str
    value: Array | None

    def data(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        found = {
            "node": self.name,
            "operation": "leaf" if self.node.op == "input" else self.node.op,
            "arguments": self.arguments,
            "expression": self.expression,
            "shape": self.node.shape,
        }
        return found if self.value is None else found | {"value": self.value}


@dataclass(frozen=True)
class ReverseStep:
    """One adjoint passed on along an edge, in one `backward` call.

    `slope` is the local derivative of an elementwise node; a structural node has a rule alone.  `before` is the
    argument's adjoint before this contribution, if it had any, and `total` after it.
    """

    call: int
    edge: Edge
    node: str
    argument: str
    rule: Rule
    adjoint: Array
    slope: Array | None
    contribution: Array
    total: Array

    def data(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        found: dict[str, Any] = {"call": self.call, "node": self.node, "adjoint": self.adjoint}
        found |= {"passes_to": self.argument, "rule": self.rule.text}
        found |= {} if self.slope is None else {"local_derivative": self.slope}
        return found | {"contribution": self.contribution, "adjoint_so_far": self.total}


def forward_steps(trace: Trace) -> Iterator[ForwardStep]:
    """Yield a step for each node that has a name of its own, in the order in which they are computed."""
    notation = Notation(trace.names, times="*")
    for n in trace.graph.nodes:
        if n in trace.names:
            expression = "" if n.op == "input" else notation.expression(n)
            yield ForwardStep(n, trace.names[n], tuple(notation.arguments(n)), expression, trace.values.get(n))


def reverse_steps(trace: Trace, call: int) -> Iterator[ReverseStep]:
    """Yield a step for each pass of a call."""
    for edge in trace.passes:
        yield reverse_step(trace, call, edge, trace.adjoint_names[edge.node])


def reverse_step(trace: Trace, call: int, edge: Edge, adjoint: str) -> ReverseStep:
    """Return the pass of a call along an edge; `adjoint` is what the adjoint of its node is called."""
    found = trace.calls[call]
    return ReverseStep(
        call,
        edge,
        trace.names[edge.node],
        trace.names[edge.argument],
        rule(trace.passes[edge], trace.names, adjoint, trace.several(edge.argument)),
        found.adjoints[edge.node],
        found.slopes.get(edge),
        found.contributions[edge],
        found.totals[edge],
    )


def steps_objects(trace: Trace) -> dict[str, Any]:
    """Return what JSON says of the forward pass, and of the reverse passes."""
    reverse = [step.data() for call in range(len(trace.calls)) for step in reverse_steps(trace, call)]
    return {"forward": [step.data() for step in forward_steps(trace)], "reverse": reverse}


def retained_formulas(swept: Sweep, calls: Sequence[Named], retain: Sequence[str]) -> Named:
    """Return the accumulated adjoints of intermediates as formulas in the names that the user gave.

    Errors: `InputError` when such a formula is too deep to be written.
    """
    from gradcli.algebra.formulas import TooDeepError, formulas

    wanted: Mapping[str, Node] = {name: swept.gradients[name] for name in retain}
    total: Named = {}
    for call in calls if retain else ():
        try:
            found = formulas(wanted.values(), given(swept, swept.graph.labels, call), {}).exprs
        except TooDeepError:
            raise InputError(
                "the formulas that --retain asks for are too deep to write", hint="give a point: --at works in numbers"
            ) from None
        total = {name: plus(total[name], found[g]) if name in total else found[g] for name, g in wanted.items()}
    return total
