"""Calls: nodes of functions that users call as a whole, and that their definitions say in simpler operations."""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any

from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter, interpret


def call_of(op: str, settings: tuple[Any, ...], *args: Node) -> Node:
    """Return the node of a call, of the shape of its definition.

    Errors: `InputError` of the definition's, for arguments that do not fit.

    >>> call_of("mse_loss", ("none",), leaf((3,)), leaf())
    mse_loss(input, input), shape (3,)
    """
    result = definition_of(Node(op, args, (), settings, args[0].dtype))  # with a dtype, no argument is cast
    return Node(op, args, result.shape, settings, result.dtype)


def call_with(op: str, settings: tuple[Any, ...], args: Sequence[Node], **options: Node | None) -> Node:
    """Return the node of a call with those options that are not None, whose names are its first setting.

    >>> call_with("nll_loss", (-100, "mean"), (leaf((2, 3)), leaf((2,))), weight=None).settings
    ((), -100, 'mean')
    """
    given = {name: x for name, x in options.items() if x is not None}
    return call_of(op, (tuple(given), *settings), *args, *given.values())


def definition_of(node: Node) -> Node:
    """Return a call in simpler operations."""
    result: Node = OPERATIONS[node.op].definition(*node.settings, *node.args)  # type: ignore[misc,assignment]
    return result


def definition_alone(node: Node) -> tuple[Sequence[Node], Node]:
    """Return the definition of a call of leaves in place of its arguments, which may be equal or depend on each other.

    Constants stay what they are.
    """
    alone = tuple(a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args)
    return alone, definition_of(node.with_args(alone))


def is_call(node: Node) -> bool:
    """Return whether a node is a call, which has a definition."""
    return bool(node.args) and OPERATIONS[node.op].kind == "call"


_DEFINITIONS = {op: definition_of for op, row in OPERATIONS.items() if row.kind == "call"}


def opened(graph: Graph, calls: Container[Node] | None = None) -> Graph:
    """Return the graph with the definitions of calls in their places, under the same names: of some calls, or of all.

    >>> x, t = leaf((3,)), leaf((3,))
    >>> graph = opened(Graph.of({"x": x, "t": t}, {"y": call_of("mse_loss", ("mean",), x, t)}))
    >>> [n.op for n in graph.nodes if n.args]
    ['sub', 'pow', 'mean']
    """
    inside = [n for n in graph.nodes if is_call(n)]
    wanted = {_written_as(n) for n in inside if calls is None or n in calls}
    chosen = {n for n in inside if _written_as(n) in wanted}
    if not chosen:
        return graph
    rewriter = Rewriter(definitions=_DEFINITIONS, sharing=False)

    def step(node: Node, args: list[Node]) -> Node:
        result = node if args == [*node.args] else node.with_args(tuple(args))
        return rewriter.node(result) if node in chosen else result

    new = interpret(graph.nodes, step, {})
    outputs, names = ({name: new[n] for name, n in d.items() if n in new} for d in (graph.outputs, graph.names))
    # All calls are opened for their entries, which are told of the call as it is typed; some, to be drawn.
    kept = {n: span for n, span in graph.spans.items() if n in new and (calls is None or n not in chosen)}
    spans = {new[n]: span for n, span in kept.items()}
    parts = {new[n]: part for n, part in graph.parts.items() if n in new and n not in chosen}
    nodes = scheduled(new.values(), graph.inputs.values())
    return Graph(nodes, graph.inputs, outputs, names, spans, parts)


def _written_as(node: Node) -> Hashable:
    """Return a key that is equal for the results of one call."""
    return (node.op, node.args, node.settings[:-1]) if OPERATIONS[node.op].results > 1 else node
