"""A system as a script has recorded it: its graph, its point, its cotangents, and the names of its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.explain.results import Measured
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.pytorch.autograd.function import FunctionStep
from gradcli.pytorch.record import Edge, Leaf, Step
from gradcli.pytorch.tensor import Tensor
from gradcli.script.expressions import Expression

Array = np.ndarray[Any, Any]


@dataclass
class Use:
    """A call of a custom function: its arguments, and the names of its outputs, by position."""

    step: FunctionStep
    written: list[Any]
    outputs: dict[int, str] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[int, Node]:
        """The arguments that gradients flow to, by position."""
        return {i: self.written[i] for i, edge in enumerate(self.step.edges) if edge is not None}


@dataclass
class Recorded:
    """A system as it was recorded: its graph, the values of its inputs, its cotangents, and which inputs are leaves."""

    graph: Graph = field(default_factory=lambda: Graph.of({}, {}))
    wrt: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)  # intermediates that are asked for, beside what they came from
    at: dict[str, Array] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # those of the inputs that the script still has
    has_packed: bool = False  # whether hooks have packed what a step keeps for its backward
    earlier: dict[str, str] = field(default_factory=dict)  # of leaves whose names are others' now: those names
    v: dict[str, Array] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)  # what the call flowed from, one by one
    steps: dict[Edge, str] = field(default_factory=dict)  # the names of leaves and of named results
    functions: dict[Step, Use] = field(default_factory=dict)  # the calls of custom functions
    producer: dict[Node, Step] = field(default_factory=dict)
    results: dict[Node, Step] = field(default_factory=dict)  # the step of each result
    copies: dict[Step, dict[Node, Node]] = field(default_factory=dict)  # of the nodes of each step's recipe
    read: dict[Step, Sequence[Array]] = field(default_factory=dict)  # the numbers of each step's operands
    values: dict[Node, Array] = field(default_factory=dict)  # the numbers of results, in the layout of tensors
    assigned: dict[Step, Expression] = field(default_factory=dict)  # of steps whose results are assigned to names
    measured: Measured | None = None  # the numbers of the call, in float64, once they are converted

    def forget_values(self) -> None:
        """Forget the recorded values, which tensors no longer have."""
        self.values.clear()
        self.read.clear()
        self.measured = None

    @property
    def leaves(self) -> set[str]:
        """The names of the inputs that gradients flow into, requested or not."""
        return {name for edge, name in self.steps.items() if isinstance(edge, Leaf)}

    @property
    def retained(self) -> tuple[str, ...]:
        """The names of the intermediates that keep their gradients, or whose gradients are requested."""
        names = [n for n, x in self._retaining() if n not in self.graph.inputs and n not in self.graph.outputs]
        return (*names, *(n for n in self.requested if n not in names))

    def kept_gradients(self) -> dict[str, Tensor]:
        """Return the gradients that intermediates keep, by name."""
        return {n: x._grad for n, x in self._retaining() if x._grad is not None}

    def _retaining(self) -> Iterator[tuple[str, Tensor]]:
        for e, n in self.steps.items():
            x = e.retained() if isinstance(e, Step) and e.retained is not None else None
            if x is not None:
                yield n, x

    def target(self, node: Node) -> str | None:
        """Return the name that the script assigns a node to, or what is computed of it in the same statement."""
        step = self.producer.get(node)
        return self.assigned[step].target or None if step in self.assigned else None


def reachable(roots: Iterable[Edge], cut: Collection[Edge] = ()) -> list[Step]:
    """Return the steps that lead to roots, in the order in which they were recorded; none beyond those in `cut`."""
    result: set[Step] = set()
    waiting: list[Edge | None] = [*roots]
    while waiting:
        edge = waiting.pop()
        if isinstance(edge, Step) and edge not in result and edge not in cut:
            result.add(edge)
            waiting += edge.edges
    return sorted(result, key=lambda s: s.seq)
