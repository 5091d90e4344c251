"""Index maps: how the elements of an array are numbered in the buffer that holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic


@dataclass(frozen=True)
class IndexMap:
    """An array in a buffer: `index`, of the array's shape, has the offset of each element, or -1 where it is 0.

    A view of an array is another index map of the same buffer.

    >>> IndexMap(np.arange(6).reshape(2, 3)).part((1,)).index
    array([3, 4, 5])
    """

    index: Array

    def seen(self, index: Array) -> Self:
        """Return the same buffer with another index."""
        return replace(self, index=index)

    def part(self, key: tuple[Any, ...]) -> Self:
        """Return the part that basic indexing selects; the key has integers and ranges."""
        return self.seen(np.asarray(self.index[basic(key)]))

    def last(self, axes: tuple[int, ...]) -> Self:
        """Return the array with these axes as its last ones."""
        return self.seen(np.moveaxis(self.index, axes, range(-len(axes), 0)))

    def moved(self, node: Node) -> Self:
        """Return the result of an operation that moves the elements of this array, with zeros beside them.

        >>> from gradcli.graph.construct import from_diagonal
        >>> from gradcli.graph.node import leaf
        >>> IndexMap(np.arange(2)).moved(from_diagonal(leaf((2,)), (2, 2))).index
        array([[ 0, -1],
               [-1,  1]])
        """
        row = OPERATIONS[node.op]
        if row.kind == "view":
            return self.seen(np.asarray(row.moved(node.settings, self.index)))
        return self.seen(np.asarray(row.moved(node.settings, self.index + 1)) - 1)

    @cached_property
    def strides(self) -> tuple[int, ...] | None:
        """The stride of each axis; None unless offsets are affine in the counters of the axes.

        >>> IndexMap(np.arange(6).reshape(2, 3).T).strides, IndexMap(np.array([0, 1, 4])).strides
        ((1, 3), None)
        """
        index = self.index
        if not index.ndim:
            return () if index >= 0 else None
        if (index < 0).any():
            return None
        offsets = first = index.flat[0]
        strides = [index.take(1, axis).flat[0] - first if n > 1 else 0 for axis, n in enumerate(index.shape)]
        for axis, (n, stride) in enumerate(zip(index.shape, strides, strict=True)):
            offsets = offsets + np.arange(n).reshape(-1, *[1] * (index.ndim - 1 - axis)) * stride
        return tuple(map(int, strides)) if np.array_equal(offsets, index) else None
