"""What an operation computes, in operations of the table, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node


class Step(NamedTuple):
    """One node: its operation, the positions of its arguments among operands and earlier steps, and the rest of it."""

    op: str
    args: tuple[int, ...]
    settings: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Definition:
    """A call in operations of the table, in their order, of operands of some shapes; `result` is a position.

    >>> from gradcli.graph.node import leaf
    >>> x, y = leaf((2,)), leaf((2,))
    >>> product = Definition.of([x, y], x * y + x)
    >>> [(step.op, step.args) for step in product.steps]
    [('mul', (0, 1)), ('add', (2, 0))]
    >>> a = leaf((2,))
    >>> node = product.node([a, a])
    >>> node.op, node.args[0].args == (a, a), node.args[1] is a
    ('add', True, True)
    """

    shapes: tuple[tuple[int, ...], ...]  # of the operands
    steps: tuple[Step, ...]
    result: int

    @classmethod
    def of(cls, inputs: Sequence[Node], output: Node) -> Definition:
        """Return the definition of a node in terms of its inputs, which are the operands in their order."""
        positions = {n: k for k, n in enumerate(inputs)}
        steps: list[Step] = []
        for node in scheduled([output], inputs):
            if node not in positions:
                args = tuple(positions[a] for a in node.args)
                positions[node] = len(inputs) + len(steps)
                steps.append(Step(node.op, args, node.settings, tuple(node.shape), node.dtype))
        return cls(tuple(tuple(n.shape) for n in inputs), tuple(steps), positions[output])

    @property
    def operands(self) -> int:
        """The number of operands."""
        return len(self.shapes)

    def nodes(self, operands: Sequence[Node]) -> list[Node]:
        """Return the operands and then the node of each step, of which `result` is the position of the result."""
        nodes = [*operands]
        for op, args, settings, shape, dtype in self.steps:
            nodes.append(Node(op, tuple(nodes[k] for k in args), shape, settings, dtype))  # type: ignore[arg-type]
        return nodes

    def node(self, operands: Sequence[Node]) -> Node:
        """Return the result for operands."""
        return self.nodes(operands)[self.result]
