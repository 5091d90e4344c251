"""Arrays that a script fills part by part, y[0] = …, y[1] = …, as the lists that they are in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from gradcli.graph.construct import broadcast, index, stack
from gradcli.graph.node import Node, operand
from gradcli.graph.shapes import size_of
from gradcli.record.record import Operation

_SMALL = 16  # elements of an array that is written as what it was and what was assigned
_MANY = 1000  # of one that is assembled


@dataclass
class Assembly:
    """The elements so far of each array that is being filled, by the result that filled a part."""

    parts: dict[int, dict[int, Node]] = field(default_factory=dict)

    def whole(self, operation: Operation, operands: Sequence[Node], start: Node) -> Node | None:
        """Return an array whose elements are assigned part by part as a list, once the last of them is there.

        `start` is what it was before the first of them.
        """
        (definition,), (result,) = operation.definitions, operation.results
        size = definition.steps[-1].shape if definition.steps else ()
        if not 0 < (count := size_of(size)) <= _MANY:
            return None
        first, _, *numbers = operation.operands
        positions, *chosen = (n.whole.reshape(-1).tolist() for n in numbers)  # type: ignore[union-attr]
        shape = operation.settings
        value = operands[1] if operands[1].shape == shape else broadcast(operands[1], shape)
        before = self.parts.get(first, {}) if isinstance(first, int) else {}
        if not before and count <= _SMALL:
            before = dict(enumerate(_elements(start)))
        assigned = _elements(value)
        elements = dict(zip(positions, [assigned[k] for k in chosen[0]] if chosen else assigned, strict=True))
        self.parts[result] = parts = {**before, **elements}
        return _nested(parts, size) if len(parts) == count else None


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
