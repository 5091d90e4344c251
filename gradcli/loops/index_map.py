"""What the loop form is made of: index maps of arrays in buffers, and the statements that a target prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape


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


Counter = int | str  # the index along an axis: an integer, or the name of the counter of a loop
A = TypeVar("A", bound=IndexMap, contravariant=True)
V = TypeVar("V")


class Builder(Protocol[A, V]):
    """Prints loops, loads, stores and operations; `A` is its kind of arrays, `V` its kind of values.

    Counters belong to the last axes of an array, aligned from the right as in broadcasting.
    """

    def nest(self, shape: Shape, body: Callable[[list[Counter]], None], unroll: bool = False) -> None:
        """Print loops over a shape around what `body` prints for their counters; a short one may be unrolled."""

    def fold(self, shape: Shape, starts: tuple[V, ...], step: Callable[..., tuple[V, ...]]) -> tuple[V, ...]:
        """Print a loop that carries values, inside a nest, and return the values after it.

        `step(counters, *values)` returns the values after an iteration.  They are assigned one after the other: each
        may use its own old value, and what `let` has evaluated.
        """

    def total(self, shape: Shape, factors: Callable[[list[Counter]], Sequence[V]]) -> V:
        """Print a loop that adds up products of one or two factors, inside a nest."""

    def load(self, array: A, counters: Sequence[Counter]) -> V:
        """Return an element."""

    def store(self, array: A, counters: Sequence[Counter], value: V) -> None:
        """Print an assignment to an element."""

    def number(self, value: float) -> V:
        """Return a constant."""

    def op(self, op: str, *values: V) -> V:
        """Return an elementwise operation of values, by its name; `max` and `min` keep the first of equal values."""

    def position(self, counter: Counter) -> V:
        """Return a counter as a floating-point value."""

    def let(self, value: V) -> V:
        """Return a value that is evaluated here, once."""
