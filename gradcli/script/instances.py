"""The operations of a script as nodes of the graph that a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.construct import broadcast, index, stack
from gradcli.graph.graph import Graph
from gradcli.graph.node import ARITHMETIC, Node, const, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of
from gradcli.record.definition import Definition
from gradcli.record.record import Operation

_SMALL = 16  # elements of an array that is written as what it was and what was assigned
_MANY = 1000  # of one that is assembled
_FEW = 8  # elements of a vector with one that is not 0, which is written as a list


def instance(
    definition: Definition,
    operands: Sequence[Node],
    known: Sequence[Node] = (),
    shared: dict[tuple[Any, ...], Node] | None = None,
) -> list[Node]:
    """Return the operands, a copy of each step of a definition, in float64, and last that of its result.

    Comparisons of constants are folded, and so is arithmetic with numbers that are known here, and were not where the
    definition was made.  `shared` are the copies of the definitions of the operation's other results.
    """
    numbers: set[Node] = set()  # nodes that depend on no operand
    folding = {*known}
    nodes = [*operands]
    for op, positions, settings, shape, dtype in definition.steps:
        args = tuple(nodes[k] for k in positions)
        key = op, args, settings, shape
        if shared is not None and key in shared:
            nodes.append(shared[key])
        elif op == "cast":
            nodes.append(args[0])
        elif op == "const" and dtype != "bool":
            nodes.append(const(settings[0], shape, "int64" if dtype == "int64" else "float64"))
        else:
            copy = Node(op, args, shape, settings, "bool" if dtype == "bool" else "float64")
            static = OPERATIONS[op].definition if args and args[-1].dtype == "int64" else None
            if static is not None and OPERATIONS[op].kind != "call":  # of indices or positions, which are known here
                copy = static(*settings, *args) or copy
            elif not folding.isdisjoint(args) and op in ARITHMETIC:
                copy = ARITHMETIC[op](copy) or copy
                folding |= {copy} if copy.is_constant else set()
            if all(a.is_constant or a in numbers for a in args):
                copy = _decided(copy)
                numbers.add(copy)
            nodes.append((existing_result(copy) if len(nodes) != definition.result else None) or copy)
        if shared is not None:
            shared[key] = nodes[-1]
    return [*nodes, nodes[definition.result]]


def _decided(node: Node) -> Node:
    """Return a scalar condition of constants folded, and any other node as it is."""
    if node.dtype != "bool" or node.shape:
        return node
    return const(int(at_point(Graph.of({}, {"": node}), {}, [node])[node]), (), "bool")


def existing_result(node: Node) -> Node | None:
    """Return an existing node that an operation equals: an operand, an element of a list, or a constant choice."""
    first = node.args[0] if node.args else node
    match node.op, node.settings:
        case "add", _:  # 0 + x, where Python's sum begins
            return _beside(node, 0)
        case "mul", _:  # the seed of a gradient
            return _beside(node, 1)
        case "reshape", _:  # hooks of modules add such steps
            return first if node.shape == first.shape else None
        case "transpose", (order,) if first.op == "transpose":  # of a weight that PyTorch transposed once for two calls
            inner = first.settings[0]
            return first.args[0] if [inner[k] for k in order] == [*range(len(order))] else None
    return _chosen(node, first)


def _chosen(node: Node, first: Node) -> Node | None:
    """Return an element of a list, a vector with one non-zero element as a list, or a constant choice."""
    match node.op, node.settings:
        case "scatter", ((int(size),), ((int(k),),)) if size <= _FEW and not first.shape:
            return stack([first if i == k else const(0) for i in range(size)])
        case "index", ((int(k),),) if first.op == "stack" and first.settings == (0,):
            return first.args[k]
        case (("where" | "corner"), _) if first.is_constant and not first.shape:
            chosen = node.args[1 if first.settings[0] else 2]
            return chosen if chosen.shape == node.shape else None
    return None


def _beside(node: Node, neutral: int) -> Node | None:
    """Return the operand of the same shape beside the neutral element; a loop may begin with an array of zeros."""
    number = next((a for a in node.args if a.value == neutral and (neutral or not a.shape)), None)
    return number and next((a for a in node.args if a is not number and a.shape == node.shape), None)


# Arrays that a script fills part by part, y[0] = …, y[1] = …, as the lists that they are in the end


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
    node = operand(node, "identity") or node
    if (repeated := operand(node, "broadcast")) is not None:
        elements = _elements(repeated)
        positions = np.arange(len(elements)).reshape(repeated.shape)
        return [elements[k] for k in np.broadcast_to(positions, node.shape).flat]
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
