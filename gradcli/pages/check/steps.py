"""The right derivation of a claim, step by step as in `backward --steps`, and the step at which the claim leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.names import array_name
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import Pass, sweep
from gradcli.notation.nodes import Notation
from gradcli.pages.backward.loss import any_loss
from gradcli.pages.backward.steps import steps_objects, steps_sections
from gradcli.pages.check.claim import Case
from gradcli.pages.check.slip_text import SlipText
from gradcli.pages.results import Named
from gradcli.pages.sections import Section, Text
from gradcli.pages.trace import Trace, symbolic_trace

_LONGEST = 100  # operations of a derivation that is shown: nobody reads more
_ELEMENTS = 2_000  # of their values together, each of which is a formula


@dataclass(frozen=True)
class Steps:
    """The derivation of an entry of a claim, and of those that the same pass computes, and the slips in the claim."""

    case: Case
    entry: int
    slips: tuple[SlipText, ...] = ()

    @cached_property
    def _system(self) -> tuple[Graph, Node, Mapping[Node, str]]:
        """The graph of what the claim differentiates, the input that it differentiates by, and the user's names."""
        case = self.case
        named = {**case.graph.inputs, **case.graph.names}
        x = case.by if case.by.is_leaf else leaf(case.by.shape)
        y, *new = substituted([case.base, *named.values()], {} if case.by.is_leaf else {case.by: x})
        needed = {*scheduled([y], [x])}
        first = {n: name for name, n in reversed([*zip(named, new, strict=True)])}
        nodes = {name: n for n, name in first.items() if n in needed}
        inputs = {name: n for name, n in nodes.items() if n.is_leaf}
        names = {name: n for name, n in nodes.items() if n.args}
        output = next((name for name, n in names.items() if n is y), "") or self._name
        return Graph.of(inputs, {output: y}, names={**names, output: y} if y.args else names), x, first

    @property
    def _name(self) -> str:
        """The name of what a claim differentiates that has none: f_x of a second derivative, L of a pullback."""
        graph, names = self.case.graph, [array_name(name) for name, *_ in self.case.left]
        name = f"{names[0]}_{''.join(names[1:-1])}" if len(names) > 1 + 1 else ""
        return name if name and name not in {**graph.inputs, **graph.names} else any_loss(graph)

    @cached_property
    def _cotangent(self) -> Named:
        """The cotangent: 1 for the element, 0 for others."""
        ((name, y),) = self._system[0].outputs.items()
        row = self.case.cells[0][self.entry]
        return {name: np.eye(y.size)[row].reshape(y.shape)}

    @cached_property
    def trace(self) -> Trace | None:
        """The trace in formulas; None of a derivation that is too long."""
        from gradcli.algebra.formulas import TooDeepError

        graph, x, _ = self._system
        if len(graph.nodes) > _LONGEST or sum(n.size for n in graph.nodes) > _ELEMENTS:
            return None
        by = next(name for name, n in graph.inputs.items() if n is x)
        try:
            return symbolic_trace(graph, sweep(graph, [by]), [self._cotangent])
        except TooDeepError:
            return None

    @property
    def _entry_name(self) -> str:
        name = self.case.entry_name(self.entry)
        return f"{self.case.text}{name}" if name.startswith("[") else name or self.case.text

    @cached_property
    def slipped(self) -> dict[Pass, SlipText]:
        """The steps at which the claim leaves the derivation, and its slips there."""
        names = self._system[2]
        notation = Notation(names, implicit=True)
        result: dict[Pass, SlipText] = {}
        for p in self.trace.swept.passes if self.trace is not None else ():
            own = Notation({n: name for n, name in names.items() if n is not p.node}, implicit=True)
            step = own.name(p.node), notation.name(p.argument)
            slip = next((s for s in self.slips if (s.node, s.operand) == step), None)
            if slip is not None and (slip.times > 1 or slip not in result.values()):
                result[p] = slip
        return result

    def sections(self) -> Sequence[Section]:
        """Return the sections of a page."""
        if self.trace is None:
            return (Section("steps", (Text(("the derivation is too long to be shown",)),)),)
        if not self.trace.swept.passes:
            (name,) = self.trace.graph.outputs
            return (Section("steps", (Text((f"{name} does not depend on it: the derivative is 0",)),)),)
        marks = {p: _mark(slip) for p, slip in self.slipped.items()}
        return steps_sections(self.trace, [self._cotangent], [self._entry_name] if self.case.base.shape else (), marks)

    def data(self) -> dict[str, Any]:
        """Return its JSON object: what `backward --steps` has, with the claim's slip at the steps that it leaves."""
        if self.trace is None:
            return {}
        steps = steps_objects(self.trace)
        for p, step in zip(self.trace.swept.passes, steps["reverse"], strict=True):
            step |= {"yours": self.slipped[p].data()} if p in self.slipped else {}
        return {"steps": steps}


def _mark(slip: SlipText) -> str:
    """Return what a claim has at a step that it leaves."""
    if slip.kind == "path left out":
        return "← left out"
    return f"← {slip.wrote}" if slip.wrote and slip.wrote != slip.right else "← here"
