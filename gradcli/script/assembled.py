"""Arrays that a script fills part by part, y[0] = …, y[1] = …, as the lists that they are in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gradcli.graph.construct import broadcast, index, stack
from gradcli.graph.node import Node, operand
from gradcli.graph.shapes import size_of
from gradcli.pytorch.record import Step
from gradcli.script.operands import literal

_SMALL = 16  # elements of an array that is written as what it was and what was assigned
_MANY = 1000  # of one that is assembled


@dataclass
class Assembly:
    """The elements so far of each array that is being filled, by the step that filled a part."""

    parts: dict[Any, dict[int, Node]] = field(default_factory=dict)

    def whole(self, step: Step, operands: Sequence[Node]) -> Node | None:
        """Return an array whose elements were assigned part by part as a list, once the last of them is there."""
        if step.recipe.op != "assign" or not 0 < (count := size_of(step.shape)) <= _MANY:
            return None
        positions, shape = step.recipe.settings
        value = operands[1] if operands[1].shape == shape else broadcast(operands[1], shape)
        before = self.parts.get(step.edges[0], {}) if step.edges[0] is not None else {}
        if not before and count <= _SMALL:
            first: Any = step.operands and step.operands[0]
            start = operands[0] if operands[0].args or first is None else literal(first)
            before = dict(enumerate(_elements(start)))
        elements = dict(zip(positions.numbers.reshape(-1).tolist(), _elements(value), strict=True))
        self.parts[step] = parts = {**before, **elements}
        return _nested(parts, step.shape) if len(parts) == count else None


def _elements(node: Node) -> list[Node]:
    return [index(node, key) for key in product(*map(range, node.shape))] if node.shape else [node]


def _nested(parts: Mapping[int, Node], shape: tuple[int, ...], first: int = 0) -> Node:
    """Return an array as nested lists of its elements; all elements of one node, in order, are that node itself.

    `parts` has the elements by flat index, and the array begins at element `first` of them.
    """
    if not shape:
        return parts[first]
    rows = [_nested(parts, shape[1:], first + k * size_of(shape[1:])) for k in range(shape[0])]
    source = operand(rows[0], "index") or rows[0]
    is_source = source.shape == shape and all(r.args == (source,) and r.settings == ((k,),) for k, r in enumerate(rows))
    return source if is_source else stack(rows)
