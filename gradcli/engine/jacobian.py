"""The Jacobian at a point: one reverse sweep an output, its rows run as a batch of one-hot cotangents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    starts, width = {}, 0
    for name in wrt:
        starts[name] = width
        width += at[name].size
    result = np.zeros((sum(y.size for y in graph.outputs), width))
    row = 0
    for output in graph.outputs:
        for name, block in _blocks(graph, output, wrt, values):
            result[row : row + output.size, starts[name] : starts[name] + block.shape[1]] = block
        row += output.size
    return result


def _blocks(graph: Graph, output: Node, wrt: Sequence[str], values: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield the rows of one output by each leaf.  Only what it depends on is swept: a pole elsewhere is no concern."""
    needed = Graph.of((), [output])
    read = {n.name or "" for n in needed.nodes if n.op == "input"}
    names = [n for n in wrt if n in read]
    sweep = optimise(vjp(Graph.of([n for n in graph.inputs if n.name in read], [output]), names))
    live = sum(n.size for n in sweep.nodes)
    step = max(1, _BLOCK // max(1, live))
    blocks = {name: np.zeros((output.size, values[name].size)) for name in names}
    for start in range(0, output.size, step):
        count = min(step, output.size - start)
        v = np.zeros((output.size, count))
        v[np.arange(start, start + count), np.arange(count)] = 1
        found = evaluate(sweep, {**values, f"{output.name}.v": v.reshape(*output.shape, count)})
        for grad in sweep.outputs:
            name = (grad.name or "").removesuffix(".grad")
            rows = np.broadcast_to(found[grad], (*grad.shape, count)).reshape(-1, count).T
            blocks[name][start : start + count] = rows
    yield from blocks.items()
