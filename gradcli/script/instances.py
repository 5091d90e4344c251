"""What one step of a script computes, as nodes of the graph that a page shows."""

from __future__ import annotations

from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node, const


def instance(output: Node, new: dict[Node, Node]) -> Node:
    """Return a node again, for other inputs, in float64."""
    for node in scheduled([output], new):
        if node in new:
            continue
        args = tuple(new[a] for a in node.args)
        if node.op == "cast":
            new[node] = args[0]
        elif node.op == "const" and node.dtype != "bool":
            new[node] = const(node.settings[0], node.shape)
        else:
            new[node] = Node(node.op, args, node.shape, node.settings, "bool" if node.dtype == "bool" else "float64")
    return new[output]


def given_already(node: Node) -> Node | None:
    """Return what an operation gives that is there already: its operand, an element of a list, or what is chosen."""
    first = node.args[0] if node.args else node
    match node.op, node.settings:
        case "reshape", _ if node.shape == first.shape:  # the hooks of modules put such in between
            return first
        case "index", ((int(k),),) if first.op == "stack" and first.settings == (0,):
            return first.args[k]
        case "where", _ if first.op == "const" and not node.shape:
            return node.args[1 if first.settings[0] else 2]
    return None
