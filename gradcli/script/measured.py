"""The gradients that the record of a call has, for the nodes and the names of the system behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradcli.explain.results import Measured
from gradcli.graph.node import Node
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Edge
from gradcli.script.system import Recorded
from gradcli.script.written import decimal

Array = np.ndarray[Any, Any]

_EXACT = 1_000  # elements that are converted by their decimals


def measured(call: Call, recorded: Recorded) -> Measured:
    """Return the adjoints and contributions of a call, as far as no hook has changed them on the way.

    Those within an operation that PyTorch has as one step are not in the record.
    """
    altered = behind_hooks(call)
    hooked = {change.edge for change in call.changes if change.step is None}  # and the hook ran before the step
    arrived = {e: numbers(g) for e, g in call.adjoints.items() if e not in altered and not isinstance(g, dict)}
    gradients = {name: arrived[e] for e, name in recorded.steps.items() if e in arrived}
    adjoints = {recorded.graph.inputs[n]: gradients[n] for n in recorded.graph.inputs if n in gradients}
    contributions: dict[tuple[Node, int], Array] = {}
    for node, (step, operands) in recorded.results.items():
        if step in arrived:
            adjoints[node] = arrived[step]
        pulled = call.pulled_steps.get(step)
        if pulled is not None and step not in altered | hooked and _is_one_operation(node, operands):
            grads = enumerate(pulled.grad_inputs)
            contributions |= {(node, i): numbers(g) for i, g in grads if g is not None}
    return Measured(gradients, adjoints, contributions)


def _is_one_operation(node: Node, operands: Iterable[Any]) -> bool:
    """Return whether the operands of a step are the arguments of its node: no other node is between them."""
    return [*map(id, node.args)] == [*map(id, operands)]


def numbers(g: Any) -> Array:
    """Return the numbers of a gradient in float64; few of them as the decimals that the script prints."""
    array = g._a[..., 0]
    return decimal(array) if array.size <= _EXACT else array.astype(float)


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
