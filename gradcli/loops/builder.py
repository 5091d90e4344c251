"""The interface of a target of the loop form: the statements that it prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from gradcli.graph.shapes import Shape
from gradcli.loops.index_map import IndexMap

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
