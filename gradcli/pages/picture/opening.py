"""Calls whose definitions are drawn in their places, by the names that a user gives."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.errors import InputError
from gradcli.graph.calls import is_call, opened
from gradcli.graph.graph import Graph
from gradcli.notation.nodes import node_names

_LISTED = 8  # calls in a message: a line


def opened_by_name(graph: Graph, names: Sequence[str]) -> Graph:
    """Return the graph with the definitions of the calls of these names in their places, of all calls for `all`.

    Errors: `InputError` for a name that is not that of a call.

    >>> from gradcli import parse
    >>> graph = parse("y = mse_loss(x, t)", x=(3,), t=(3,))
    >>> [n.op for n in opened_by_name(graph, ["y"]).nodes if n.args]
    ['sub', 'pow', 'mean']
    """
    if not names:
        return graph
    if "all" in names:
        return opened(graph)
    named = {name: node for node, name in node_names(graph).items()} | dict(graph.names)
    calls = {name: node for name, node in named.items() if is_call(node)}
    for name in names:
        if name not in calls:
            listed = f"{', '.join(list(calls)[:_LISTED])}{', …' * (len(calls) > _LISTED)}"
            why = "not a call: its box does not open" if name in named else "not in the picture"
            raise InputError(
                f"--open: `{name}` is {why}",
                hint=f"the calls are {listed}" if calls else None,
                options=("--open",),
                text=name,
            )
    return opened(graph, {calls[name] for name in names})
