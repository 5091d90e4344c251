"""The loops of each structural operation, in any language, and what they are made of: index maps and statements.

A rule is called with a builder, the node, the array that takes the result, and the arrays of the arguments.  Views
need no rule: they are index maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.einsum import aligned
from gradcli.graph.node import Node
from gradcli.graph.operations import JOINS, OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape, size_of


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


AnyBuilder = Builder[Any, Any]
Rule = Callable[..., None]
Load = Callable[[list[Counter]], Any]  # the element at these counters
Reduce = Callable[[AnyBuilder, Shape, Load], Any]

# The operation that joins the elements of a reduction, and the value that it starts from.
REDUCTIONS = {"sum": ("add", 0.0), "max": ("max", -np.inf), "min": ("min", np.inf)}


def axes_of(node: Node) -> tuple[int, ...]:
    """Return the axes of a node whose first setting is one axis, or several."""
    first = node.settings[0]
    return first if isinstance(first, tuple) else (first,)


def fill(b: AnyBuilder, out: IndexMap, value: float) -> None:
    """Print the assignment of a number to all elements of an array."""
    flat = out.seen(out.index.reshape(-1))
    b.nest(flat.index.shape, lambda k: b.store(flat, k, b.number(value)), unroll=True)


def copy(b: AnyBuilder, out: IndexMap, x: IndexMap) -> None:
    """Print a copy of an array."""
    b.nest(out.index.shape, lambda k: b.store(out, k, b.load(x, k)), unroll=True)


def _moved(b: AnyBuilder, node: Node, out: IndexMap, x: IndexMap) -> None:
    copy(b, out, x.moved(node))


# Reductions


def _reduction(value: Reduce, b: AnyBuilder, node: Node, out: IndexMap, x: IndexMap) -> None:
    """Write a reduction; `value` prints one element of it, from the elements of an array."""
    x = x.last(axes_of(node))
    inner = x.index.shape[len(node.shape) :]
    b.nest(node.shape, lambda k: b.store(out, k, value(b, inner, lambda m: b.load(x, [*k, *m]))))


def _sum(b: AnyBuilder, shape: Shape, load: Load) -> Any:
    return b.total(shape, lambda m: (load(m),))


def _joined(op: str, b: AnyBuilder, shape: Shape, load: Load) -> Any:
    """Print a reduction that starts from the first element."""
    first = load([0] * len(shape))
    if size_of(shape) == 1:
        return first
    return b.fold(shape, (first,), lambda m, joined: (b.op(op, joined, load(m)),))[0]


def _prod(b: AnyBuilder, shape: Shape, load: Load) -> Any:
    if size_of(shape) == 1:
        return load([0] * len(shape))
    return b.fold(shape, (b.number(1.0),), lambda m, joined: (b.op("mul", joined, load(m)),))[0]


def _first(better: str, b: AnyBuilder, shape: Shape, load: Load) -> Any:
    """Print the index of the first extremum; as in NumPy, NaN exceeds every number."""

    def step(m: list[Counter], best: Any, at: Any) -> tuple[Any, Any]:
        x = b.let(load(m))
        taken = b.let(b.op(better, x, best))
        return b.op("where", taken, x, best), b.op("where", taken, b.position(m[0]), at)

    return b.fold(shape, (load([0]), b.number(0.0)), step)[1]


def _mask(better: str, b: AnyBuilder, node: Node, out: IndexMap, x: IndexMap) -> None:
    """Write a one-hot array: which element is the first extremum along an axis."""
    axes = axes_of(node)
    out, x = out.last(axes), x.last(axes)
    *outer, n = x.index.shape

    def body(k: list[Counter]) -> None:
        at = _first(better, b, (n,), lambda m: b.load(x, [*k, *m]))

        def step(m: list[Counter]) -> tuple[()]:
            b.store(out, [*k, *m], b.op("eq", at, b.position(m[0])))
            return ()

        b.fold((n,), (), step)

    b.nest(tuple(outer), body)


def _contraction(b: AnyBuilder, node: Node, out: IndexMap, x: IndexMap, y: IndexMap) -> None:
    left, right = (a.seen(index) for a, index in zip((x, y), aligned(node, (x.index, y.index)), strict=True))
    inner = np.broadcast_shapes(left.index.shape, right.index.shape)[len(node.shape) :]

    def body(k: list[Counter]) -> None:
        b.store(out, k, b.total(inner, lambda m: (b.load(left, [*k, *m]), b.load(right, [*k, *m]))))

    b.nest(node.shape, body)


# Scans


def _scan(update: Callable[..., Any], b: AnyBuilder, node: Node, out: IndexMap, *args: IndexMap) -> None:
    """Write a scan, whose first result is the first element.

    `update` has the builder, the result so far, the next element and, if there are two arguments, the element of the
    first one before that.
    """
    axes = axes_of(node)
    out, x, before = (a.last(axes) for a in (out, args[-1], args[0]))
    *outer, n = out.index.shape
    next_out, next_x = (a.seen(a.index[..., 1:]) for a in (out, x))

    def body(k: list[Counter]) -> None:
        first = b.load(x, [*k, 0])
        b.store(out, [*k, 0], first)

        def step(m: list[Counter], so_far: Any) -> tuple[Any]:
            more = [b.load(before, [*k, *m])] if len(args) > 1 else []
            result = b.let(update(b, so_far, b.load(next_x, [*k, *m]), *more))
            b.store(next_out, [*k, *m], result)
            return (result,)

        if n > 1:
            b.fold((n - 1,), (first,), step)

    b.nest(tuple(outer), body)


def _joining(op: str) -> Callable[..., Any]:
    return lambda b, so_far, x: b.op(op, so_far, x)


# Scatters


def _added(b: AnyBuilder, out: IndexMap, parts: Iterable[tuple[IndexMap, IndexMap]]) -> None:
    """Print zeros, and the addition of each array to a part of them."""
    fill(b, out, 0.0)
    for target, x in parts:
        _add(b, target, x)


def _add(b: AnyBuilder, target: IndexMap, x: IndexMap) -> None:
    b.nest(target.index.shape, lambda k: b.store(target, k, b.op("add", b.load(target, k), b.load(x, k))), unroll=True)


def _scatter(b: AnyBuilder, node: Node, out: IndexMap, *args: IndexMap) -> None:
    _added(b, out, ((out.part(key), x) for key, x in zip(node.settings[1], args, strict=True)))


def _scatter_add(b: AnyBuilder, node: Node, out: IndexMap, x: IndexMap) -> None:
    axis, indices, _ = node.settings
    _added(b, out, [(out.seen(out.index.take(indices.numbers, axis=axis)), x)])


# Several arrays as one


def _concatenate(b: AnyBuilder, node: Node, out: IndexMap, *args: IndexMap) -> None:
    (axis,) = node.settings
    stops = np.cumsum([x.index.shape[axis] for x in args])
    for index, x in zip(np.split(out.index, stops[:-1], axis), args, strict=True):
        copy(b, out.seen(index), x)


def _stack(b: AnyBuilder, node: Node, out: IndexMap, *args: IndexMap) -> None:
    for index, x in zip(np.moveaxis(out.index, node.settings[0], 0), args, strict=True):
        copy(b, out.seen(index), x)


RULES: dict[str, Rule] = {
    "sum": partial(_reduction, _sum),
    "prod": partial(_reduction, _prod),
    "max": partial(_reduction, partial(_joined, "max")),
    "min": partial(_reduction, partial(_joined, "min")),
    "argmax": partial(_reduction, partial(_first, "exceeds")),
    "argmin": partial(_reduction, partial(_first, "undercuts")),
    "argmax_mask": partial(_mask, "exceeds"),
    "argmin_mask": partial(_mask, "undercuts"),
    "matmul": _contraction,
    "einsum": _contraction,
    **{op: partial(_scan, _joining(name)) for op, name in JOINS["scan"].items()},
    "recurrence": partial(_scan, lambda b, so_far, x, a: b.op("add", x, b.op("mul", a, so_far))),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "concatenate": _concatenate,
    "stack": _stack,
    **dict.fromkeys(("take", "triu", "tril", "from_diagonal"), _moved),
}
