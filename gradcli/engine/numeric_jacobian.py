"""The Jacobian at a point, in numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jacobian import jacobian, numbered
from gradcli.graph.node import Node
from gradcli.graph.rewrite import optimise


class NumericJacobian:
    """The Jacobian of the outputs with respect to the leaves `wrt`, ready to be evaluated at points.

    Called with an array of its shape for each leaf, it returns J[i, j] = ∂y_i/∂x_j, of shape (elements of all outputs,
    elements of the leaves).  It evaluates the graph of J: no finite differences are taken.
    """

    def __init__(self, graph: Graph, wrt: Sequence[str]) -> None:
        self._graph = optimise(jacobian(graph, wrt))
        self._shape = dimensions(graph, wrt)
        self._blocks = {
            f"d{y}/d{x}": (slice(rows.start, rows.stop), slice(columns.start, columns.stop))
            for y, rows in numbered(graph.outputs).items()
            for x, columns in numbered(graph.leaves(wrt)).items()
        }

    def __call__(self, at: Mapping[str, Array], same: Collection[str] = ()) -> Array:
        """Return the Jacobian at a point; `same` as for `at_points`."""
        return self.matrix(at_point(self._graph, at, self.blocks, same))

    @property
    def blocks(self) -> list[Node]:
        """The nodes of the blocks of the Jacobian: one for each output and leaf, unless it is 0."""
        return list(self._graph.outputs.values())

    def matrix(self, values: Mapping[Node, Array], several: bool = False) -> Array:
        """Return the Jacobian, given the values of its blocks: at one point, or at `several` along an added last axis.

        That axis has a length of 1 where all points have the same Jacobian.
        """
        tails = [values[node].shape[len(node.shape) :] for node in self.blocks]
        result = np.zeros((*self._shape, *max(tails, default=(1,) * several)))
        for (name, node), tail in zip(self._graph.outputs.items(), tails, strict=True):
            rows, columns = self._blocks[name]
            result[rows, columns] = values[node].reshape(*result[rows, columns].shape[:2], *tail)
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
