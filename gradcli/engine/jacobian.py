"""The Jacobian at a point, in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import at_points
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jacobian import jacobian, numbered
from gradcli.graph.rewrite import optimise


class NumericJacobian:
    """The Jacobian of the outputs with respect to the leaves `wrt`, ready to be evaluated at points.

    Called with an array of its shape for each leaf, it returns J[i, j] = ∂y_i/∂x_j, of shape (elements of all outputs,
    elements of the leaves).
    """

    def __init__(self, graph: Graph, wrt: Sequence[str]) -> None:
        self._graph = optimise(jacobian(graph, wrt))
        self._shape = dimensions(graph, wrt)
        self._places = {
            f"d{y}/d{x}": (slice(rows.start, rows.stop), slice(columns.start, columns.stop))
            for y, rows in numbered(graph.outputs).items()
            for x, columns in numbered(graph.leaves(wrt)).items()
        }

    def __call__(self, at: Mapping[str, Array]) -> Array:
        """Return the Jacobian at a point."""
        return next(self.each([at]))

    def each(self, points: Sequence[Mapping[str, Array]]) -> Iterator[Array]:
        """Yield the Jacobian at each point."""
        outputs = self._graph.outputs
        for found in at_points(self._graph, points, list(outputs.values())):
            result = np.zeros(self._shape)
            for name, node in outputs.items():
                place = self._places[name]
                result[place] = found[node].reshape(result[place].shape)
            yield result


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
