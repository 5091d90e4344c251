"""The numbers that the record of a call has, for the nodes and the names of the system behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradcli.explain.results import Measured
from gradcli.graph.node import Node
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Edge, edge_of
from gradcli.script.system import Recorded
from gradcli.script.written import decimal

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-3  # of the largest number: above it, float32 has lost more than digits


def measured(call: Call, recorded: Recorded) -> Measured:
    """Return the numbers of a call, which are converted once, for its page and its picture."""
    if recorded.measured is None:
        recorded.measured = _measured(call, recorded)
    return recorded.measured


def _measured(call: Call, recorded: Recorded) -> Measured:
    """Return the values of a call, and its adjoints and contributions where no hook has changed them on the way."""
    altered = behind_hooks(call)
    hooked = {change.edge for change in call.changes if change.step is None}  # and the hook ran before the step
    arrived = {e: numbers(g._a) for e, g in call.adjoints.items() if e not in altered and not isinstance(g, dict)}
    gradients = {name: arrived[e] for e, name in recorded.steps.items() if e in arrived}
    adjoints = {recorded.graph.inputs[n]: gradients[n] for n in recorded.graph.inputs if n in gradients}
    contributions: dict[tuple[Node, int], Array] = {}
    for node, step in recorded.results.items():
        if step in arrived:
            adjoints[node] = arrived[step]
        pulled = call.pulled_steps.get(step)
        if pulled is not None and step not in altered | hooked:
            copies = {n: c for n, c in recorded.copies[step].items() if _is_copy(n, c, recorded.copies[step])}
            contributions |= {(copies[n], i): numbers(a) for (n, i), a in pulled.contributions.items() if n in copies}
            adjoints |= {copies[n]: numbers(a) for n, a in pulled.adjoints.items() if n in copies}
    return Measured(gradients, adjoints, contributions, values(recorded, recorded.graph.nodes))


def answered(call: Call, recorded: Recorded) -> Measured:
    """Return the record of a call that is one of several for what a script asked for by name, with the result of all.

    The script's result has a block for each input of the call; those that the system does not have are left out.
    """
    known, result = measured(call, recorded), call.request.result if call.request is not None else ()
    positions = {recorded.steps.get(edge_of(x), ""): k for k, x in enumerate(call.inputs or ())}
    order = [(positions[name], recorded.at[name].size) for name in recorded.wrt]
    match call.request and call.request.name:
        case _ if not result:
            return known
        case "jvp":
            return known._replace(products={recorded.roots[0]: numbers(result[0]._a)})
        case "hvp":
            return known._replace(products={name: numbers(result[positions[name]]._a) for name in recorded.wrt})
        case "hessian":
            rows = [[numbers(result[i][j]._a).reshape(m, n) for j, n in order] for i, m in order]
            return known._replace(matrix=np.block(rows))
    blocks = [numbers(result[i]._a).reshape(-1, n) for i, n in order]
    return known._replace(matrix=np.hstack(blocks))


def differ(formulas: Array, record: Array) -> bool:
    """Return whether the numbers of a record are other ones than those of their formulas, by more than digits."""
    largest = np.abs(record[np.isfinite(record)]).max(initial=0)
    return not np.allclose(formulas, record, 0, _ROUNDING * largest, equal_nan=True)


def values(recorded: Recorded, nodes: Iterable[Node]) -> dict[Node, Array]:
    """Return the numbers that the script has computed for nodes of the system, as far as they are recorded.

    Those within the recipe of a step are computed as the step did, from the operands that it has read.
    """
    nodes = {*nodes}
    result = {n: recorded.values[n] for n in nodes if n in recorded.values}
    for step, arrays in recorded.read.items():
        copies = recorded.copies[step]
        if not nodes.isdisjoint(copies.values() - result.keys()):
            inner = step.recipe.inner_values(arrays)
            result = {copies[n]: a for n, a in inner.items() if _is_copy(n, copies.get(n), copies)} | result
    return {n: numbers(a) for n, a in result.items() if n in nodes and a.shape[:-1] == n.shape and n.dtype != "bool"}


def _is_copy(node: Node, copy: Node | None, copies: Mapping[Node, Node]) -> bool:
    """Return whether a node of a recipe is the same operation in the system, and not replaced by a simpler one."""
    return copy is not None and copy.op == node.op and copy.args == tuple(map(copies.__getitem__, node.args))


def numbers(a: Array) -> Array:
    """Return the numbers of a tensor in float64; few of them as the decimals that the script prints."""
    return decimal(a[..., 0])


def behind_hooks(call: Call) -> set[Edge]:
    """Return the edges whose gradient is another one because of a hook on the way to them."""
    waiting: list[Edge | None] = []
    for change in call.changes:
        # A hook of a step itself runs when its gradient has arrived; one behind a step changes what arrives next.
        waiting += change.edge.edges if change.step is None else [change.edge]
    result: set[Edge] = set()
    while waiting:
        edge = waiting.pop()
        if edge is not None and edge not in result:
            result.add(edge)
            waiting += edge.edges
    return result
