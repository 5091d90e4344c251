"""One step of a script as nodes of the graph that a page shows."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine.evaluate import at_point
from gradcli.graph.construct import matmul, stack
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, operand
from gradcli.graph.shapes import Shape

_FEW = 8  # elements of a vector with one that is not 0, which is written as a list


def instance(output: Node, new: dict[Node, Node]) -> Node:
    """Return a copy of a node for other inputs, in float64; comparisons of constants are folded."""
    numbers: set[Node] = set()  # nodes that depend on no input
    for node in scheduled([output], new):
        if node in new:
            continue
        args = tuple(new[a] for a in node.args)
        if node.op == "cast":
            new[node] = args[0]
        elif node.is_constant and node.dtype != "bool":
            new[node] = const(node.settings[0], node.shape)
        else:
            copy = Node(node.op, args, node.shape, node.settings, "bool" if node.dtype == "bool" else "float64")
            if all(a.is_constant or a in numbers for a in args):
                copy = _decided(copy)
                numbers.add(copy)
            new[node] = (existing_result(copy) if node is not output else None) or copy
    return new[output]


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
            return first if node.shape == first.shape else _layer(first, node.shape)
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
        case "where", _ if first.is_constant and not first.shape:
            chosen = node.args[1 if first.settings[0] else 2]
            return chosen if chosen.shape == node.shape else None
    return None


def _are_back(order: Sequence[int], before: Sequence[int]) -> bool:
    """Return whether two transpositions cancel."""
    return [before[k] for k in order] == sorted(order)


def _beside(node: Node, neutral: int) -> Node | None:
    """Return the operand of the same shape beside the neutral element."""
    number = next((a for a in node.args if a.value == neutral), None)
    return number and next((a for a in node.args if a is not number and a.shape == node.shape), None)


def _layer(added: Node, shape: Shape) -> Node | None:
    """Return a layer of a vector, or of batches of rows, which PyTorch reshapes to rows and back: x @ W.T + b."""
    if added.op != "add":
        return None
    product, bias = added.args
    summand = operand(bias, "broadcast") or bias
    if product.op != "matmul" or not product.shape[1:] == summand.shape == shape[-1:]:
        return None
    rows, weight = product.args
    if rows.is_constant:  # which has been reshaped already
        return matmul(const(rows.settings[0], (*shape[:-1], rows.shape[-1])), weight) + summand
    x = operand(rows, "reshape") or rows
    return matmul(x, weight) + summand if x.shape[:-1] == shape[:-1] else None
