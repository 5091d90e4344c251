"""The Jacobian at a point, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import jacobian
from gradcli.graph.passes import optimise


class NumericJacobian:
    """The Jacobian of the outputs with respect to the leaves `wrt`, ready to be evaluated at points.

    Called with an array of its shape for each leaf, it returns J[i, j] = ∂y_i/∂x_j, of shape (elements of all outputs,
    elements of the leaves).
    """

    def __init__(self, graph: Graph, wrt: Sequence[str]) -> None:
        self._graph = optimise(jacobian(graph, wrt))
        rows = [0, *accumulate(y.size for y in graph.outputs.values())]
        columns = [0, *accumulate(graph.inputs[name].size for name in wrt)]
        self._shape = (rows[-1], columns[-1])
        self._places = {
            f"d{y}/d{x}": (slice(rows[i], rows[i + 1]), slice(columns[j], columns[j + 1]))
            for i, y in enumerate(graph.outputs)
            for j, x in enumerate(wrt)
        }

    def __call__(self, at: Mapping[str, Array]) -> Array:
        """Return the Jacobian at a point."""
        result = np.zeros(self._shape)
        found = evaluate(self._graph, {name: value[..., None] for name, value in at.items()})
        for name, value in found.items():
            place = self._places[name]
            result[place] = value.reshape(result[place].shape)
        return result


def numeric_jacobian(graph: Graph, wrt: Sequence[str], at: Mapping[str, Array]) -> Array:
    """Return J[i, j] = ∂y_i/∂x_j at a point, of shape (elements of all outputs, elements of the leaves `wrt`).

    `at` holds an array of its shape for each leaf.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> numeric_jacobian(Graph.of({"x": x}, {"y": 3 * x**2}), ["x"], {"x": np.array([1.0, 2.0])})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return NumericJacobian(graph, wrt)(at)
