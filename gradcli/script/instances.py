"""One step of a script as nodes of the graph that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.evaluate import at_point
from gradcli.graph.construct import stack
from gradcli.graph.graph import Graph
from gradcli.graph.node import ARITHMETIC, Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.record.definition import Definition

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
        case "transpose", (order,) if first.op == "transpose" and _are_back(order, *first.settings):
            return first.args[0]
    return _chosen(node, first)


def _chosen(node: Node, first: Node) -> Node | None:
    """Return an element of a list, a vector with one non-zero element as a list, or a constant choice."""
    match node.op, node.settings:
        case "scatter", ((int(size),), ((int(k),),)) if size <= _FEW and not first.shape:
            return stack([first if i == k else const(0) for i in range(size)])
        case "index", ((int(k),),) if first.op == "stack" and first.settings == (0,):
            return first.args[k]
        case "and", _:  # a constant false
            return next((a for a in node.args if a.is_constant and a.value == 0), None)
        case (("where" | "corner"), _) if first.is_constant and not first.shape:
            chosen = node.args[1 if first.settings[0] else 2]
            return chosen if chosen.shape == node.shape else None
    return None


def _are_back(order: Sequence[int], before: Sequence[int]) -> bool:
    """Return whether two transpositions cancel."""
    return [before[k] for k in order] == sorted(order)


def _beside(node: Node, neutral: int) -> Node | None:
    """Return the operand of the same shape beside the neutral element; a loop may begin with an array of zeros."""
    number = next((a for a in node.args if a.value == neutral and (neutral or not a.shape)), None)
    return number and next((a for a in node.args if a is not number and a.shape == node.shape), None)
