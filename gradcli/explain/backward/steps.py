"""The steps of a run as rows, from its trace: the forward pass node by node, the reverse pass edge by edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.errors import InputError
from gradcli.explain.results import Array, Named
from gradcli.explain.rules import rule
from gradcli.explain.sections import Formula
from gradcli.explain.trace import Trace, known_formulas, plus
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.vjp import Pass, Sweep
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
    for p in trace.passes:
        yield reverse_step(trace, call, p, trace.adjoint_names[p.node])


def reverse_step(trace: Trace, call: int, p: Pass, adjoint: str) -> ReverseStep:
    """Return the step of a pass in a call; `adjoint` is the name of its node's adjoint."""
    result = trace.calls[call]
    return ReverseStep(
        call,
        p,
        trace.names[p.node],
        trace.names[p.argument],
        (trace.adjoint_names[p.node], trace.adjoint_names[p.argument]),
        rule(p, trace.names, adjoint, trace.adjoint_names[p.argument], trace.several(p.argument)),
        result.adjoints[p.node],
        result.slopes.get(p),
        result.contributions[p],
        result.totals[p],
    )


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
