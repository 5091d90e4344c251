"""The Jacobian at a point: one reverse sweep an output, its rows run as a batch of one-hot cotangents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.graph.node import Graph, Node
from gradcli.graph.passes import optimise
from gradcli.graph.vjp import vjp

Array = np.ndarray[Any, Any]

_BLOCK = 2**22  # numbers that live at once


def numeric_jacobian(graph: Graph, wrt: Sequence[str], at: Mapping[str, Array]) -> Array:
    """Return J[i, j] = ∂y_i/∂x_j, of shape (elements of all outputs, elements of the leaves `wrt`).

    `at` holds an array of its shape for each leaf.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf("x", (2,))
    >>> numeric_jacobian(Graph.of([x], [(3 * x**2).called("y")]), ["x"], {"x": np.array([1.0, 2.0])})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    values = {name: value[..., None] for name, value in at.items()}
    blocks = [_rows(graph, output, wrt, values) for output in graph.outputs]
    return np.concatenate(blocks)


def _rows(graph: Graph, output: Node, wrt: Sequence[str], values: Mapping[str, Array]) -> Array:
    """Return the rows of one output.  Only what it depends on is swept: a pole elsewhere is no concern of it."""
    sweep = optimise(vjp(Graph.of(graph.inputs, [output]), wrt))
    grads = {n.name: n for n in sweep.outputs}
    live = sum(n.size for n in sweep.nodes)
    step = max(1, _BLOCK // max(1, live))
    rows = []
    for start in range(0, output.size, step):
        count = min(step, output.size - start)
        v = np.zeros((output.size, count))
        v[np.arange(start, start + count), np.arange(count)] = 1
        found = evaluate(sweep, {**values, f"{output.name}.v": v.reshape(*output.shape, count)})
        columns = [np.broadcast_to(found[grads[f"{n}.grad"]], (*grads[f"{n}.grad"].shape, count)) for n in wrt]
        rows.append(np.concatenate([c.reshape(-1, count) for c in columns]).T)
    return np.concatenate(rows)
