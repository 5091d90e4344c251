"""A system as a record has it: its graph, its point, its cotangents, and the names of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.pages.results import Measured
from gradcli.record.naming import FreshNames
from gradcli.record.record import NOWHERE, Backward, CallSite, Operation, Quantity, Record
from gradcli.script.expressions import Expression, Expressions

Array = np.ndarray[Any, Any]


@dataclass
class Use:
    """An operation that has no formula: its arguments, and the names of its outputs, by position.

    It is a call of a custom function; an operation that has a formula, whose backward reads other numbers than it read
    itself; or a change of numbers that no operation is recorded of, before the `readers` read these.
    """

    operation: Operation
    written: list[Any]
    outputs: dict[int, str] = field(default_factory=dict)
    formula: Node | None = None
    # What the backward reads changed, of such an operation: the positions of operands, and behind them that of the
    # result, each with the place of the change, where that is known.
    changed: dict[int, CallSite] = field(default_factory=dict)
    differentiable: frozenset[int] = frozenset()  # the positions of arguments that gradients flow to

    @property
    def is_change(self) -> bool:
        """Whether it is a change of numbers that no operation is recorded of."""
        return self.operation.row == WRITTEN

    @property
    def arguments(self) -> dict[int, Node]:
        """The arguments that gradients flow to, by position."""
        return {i: self.written[i] for i in sorted(self.differentiable)}

    def of(self, recorded: Recorded) -> str:
        """Return the name of the first argument."""
        return recorded.graph.labels.get(self.written[0], "the same")

    def backward(self, i: int, cotangents: Sequence[str]) -> str:
        """Return the gradient of an argument as text: Square.backward(ȳ), or ȳ where it passes unchanged."""
        if self.is_change:
            return cotangents[0]
        name = f"{self.operation.row}.backward" if self.formula is None else self.operation.grad_fn
        result = f"{name}({', '.join(cotangents)})"
        return result if len(self.written) == 1 else f"{result}[{i}]"


WRITTEN = "written"  # the row of a change of numbers that no operation is recorded of
_NOTHING = Backward(0, 0, NOWHERE, (), ())


@dataclass
class Recorded:
    """A system as it was recorded: its graph, the values of its inputs, its cotangents, and which inputs are leaves."""

    record: Record = field(default_factory=Record)
    call: Backward = _NOTHING
    graph: Graph = field(default_factory=lambda: Graph.of({}, {}))
    wrt: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)  # intermediates that are asked for, beside what they came from
    at: dict[str, Array] = field(default_factory=dict)
    quantities: dict[str, Quantity] = field(default_factory=dict)  # those of the inputs
    # Inputs that have changed in place since a line read them: with that line, and that of the change.
    since: dict[str, tuple[CallSite, CallSite]] = field(default_factory=dict)
    earlier: dict[str, str] = field(default_factory=dict)  # of leaves whose names are others' now: those names
    literals: dict[int, Node] = field(default_factory=dict)  # of quantities that are written as their numbers
    v: dict[str, Array] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)  # what the call flowed from, one by one
    names: dict[int, str] = field(default_factory=dict)  # of leaves and of named results, by quantity
    functions: dict[int, Use] = field(default_factory=dict)  # what has no formula, by its operation
    producer: dict[Node, Operation] = field(default_factory=dict)
    results: dict[Node, int] = field(default_factory=dict)  # the quantity of each result
    copies: dict[int, list[Node]] = field(default_factory=dict)  # the nodes of each result's definition
    assigned: dict[int, Expression] = field(default_factory=dict)  # of operations whose results are assigned to names
    expressions: Expressions = field(default_factory=Expressions)  # of the script's files
    measured: Measured | None = None  # the numbers of the call, in float64, once they are converted

    def name(self, quantity: int, otherwise: str = "x") -> str:
        """Return the name of a quantity in the system, or else in the script."""
        return self.names.get(quantity) or self.record.quantities[quantity].name or otherwise

    def label(self, node: Node) -> str:
        """Return the name of a node, after naming one without a name."""
        if node not in self.graph.labels:
            name = FreshNames(self.graph.inputs, self.graph.names).like("h")
            positions = {n: k for k, n in enumerate(self.graph.nodes)}
            names = sorted({**self.graph.names, name: node}.items(), key=lambda pair: positions[pair[1]])
            self.graph = replace(self.graph, names=dict(names))
        return self.graph.labels[node]

    def rename_inputs(self, names: Mapping[str, str]) -> None:
        """Give inputs that are no leaves other names."""
        if names:
            self.graph = replace(self.graph, inputs={names.get(n, n): x for n, x in self.graph.inputs.items()})
            self.at = {names.get(n, n): a for n, a in self.at.items()}
            self.quantities = {names.get(n, n): x for n, x in self.quantities.items()}
            self.since = {names.get(n, n): line for n, line in self.since.items()}

    def node(self, quantity: int) -> Node | None:
        """Return the node of a leaf or a result; None where the system does not have it."""
        name = self.names.get(quantity, "")
        if name in self.leaves:
            return self.graph.inputs.get(name)
        return next((n for n, q in self.results.items() if q == quantity), None)

    @property
    def has_packed(self) -> bool:
        """Whether hooks have packed what an operation keeps for its backward."""
        return any(getattr(e, "mode", "") == "saved_tensors_hooks" for e in self.record.events)

    @property
    def leaves(self) -> set[str]:
        """The names of the inputs that gradients flow into, requested or not."""
        return {name for q, name in self.names.items() if q not in self.record.producers}

    @property
    def retained(self) -> tuple[str, ...]:
        """The names of the intermediates that keep their gradients, or whose gradients are requested."""
        kept = [name for q, name in self.names.items() if self.record.quantities[q].retains]
        names = [n for n in kept if n not in self.graph.inputs and n not in self.graph.outputs]
        return (*names, *(n for n in self.requested if n not in names))

    @property
    def kept_gradients(self) -> dict[int, Array]:
        """The gradients that intermediates keep, by quantity."""
        kept = [*self.call.retained, *(c for c in self.call.leaves if c.quantity in self.record.producers)]
        return {c.quantity: c.after.array for c in kept if c.after is not None}

    def target(self, node: Node) -> str | None:
        """Return the name that the script assigns a node to, or what is computed of it in the same statement."""
        operation = self.producer.get(node)
        return self.assigned[operation.id].target or None if operation and operation.id in self.assigned else None
