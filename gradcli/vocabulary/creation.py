"""Names of functions that create arrays."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.node import Constant, Exact, Node, const, fold
from gradcli.graph.shapes import Shape, check_size, size_of
from gradcli.vocabulary.register import Axis, each, integers, named

_ONE = const(1)
MAX_LISTED = 2**20  # elements of an array that are numbers of their own


def _shape(sizes: Axis | Sequence[Axis], example: str = "`zeros(2, 3)` or `zeros((2, 3))`") -> Shape:
    shape = integers(sizes, example)
    if any(n < 1 for n in shape):
        raise InputError("an array needs at least one element", hint="sizes are counted from 1")
    return check_size(shape)


def _listed(shape: Shape) -> Shape:
    if size_of(shape) > MAX_LISTED:
        raise InputError(
            f"{size_of(shape):,} numbers are too many to list",
            hint=f"at most {MAX_LISTED:,}; a longer array is an input, whose value is read from a file: x=@x.npy",
        )
    return check_size(shape)


@each("zeros", "ones", methods=())
def _zeros(name: str, *size: Axis) -> Node:
    return const(int(name == "ones"), _shape(size))


@named("full", methods=())
def _full(size: Axis, fill_value: Node) -> Node:
    return construct.broadcast(fill_value, _shape(size, "`full((2, 3), 1/2)`"))


@each("zeros_like", "ones_like", methods=())
def _zeros_like(name: str, x: Node) -> Node:
    return const(int(name == "ones_like"), x.shape)


@named("eye", methods=())
def _eye(n: int, m: int | None = None) -> Node:
    rows, columns = _listed(_shape((n, n if m is None else m), "`eye(3)`"))
    return const(tuple(int(i == j) for i in range(rows) for j in range(columns)), (rows, columns))


@named("one_hot", methods=())
def _one_hot(input: Node, num_classes: int) -> Node:
    if num_classes < 1:
        raise InputError("`one_hot` needs at least one class", hint="for example `one_hot(t, 3)`")
    classes = const(tuple(range(num_classes)), _listed((num_classes,)))
    return construct.where(construct.equal(construct.reshape(input, (*input.shape, 1)), classes), 1, 0)


@named("arange", methods=())
def _arange(start: Node, end: Node | None = None, step: Node = _ONE) -> Node:
    if end is None:
        start, end = const(0), start
    first, last, by = (_exact("arange", n) for n in (start, end, step))
    if not by:
        raise InputError("the step of `arange` is 0")
    count = ceil((Fraction(last) - Fraction(first)) / Fraction(by))
    if count < 1:
        raise InputError("this range is empty", hint="`arange(start, end, step)` ends before the end")
    return const(_spaced(first, by, _listed((count,))[0]), (count,))


@named("linspace", methods=())
def _linspace(start: Node, end: Node, steps: int) -> Node:
    if type(steps) is not int or steps < 1:
        raise InputError("the size of `linspace` must be an integer", hint="for example `linspace(0, 1, 5)`")
    (count,) = _listed((steps,))
    step = (end - start) / max(1, count - 1)
    if start.shape or end.shape:
        raise InputError("`linspace` goes from a scalar to a scalar")
    if isinstance(start.value, Exact) and isinstance(step.value, Exact):
        return const(_spaced(start.value, step.value, count), (count,))
    return start + step * const(tuple(range(count)), (count,))


def _exact(name: str, node: Node) -> Exact:
    if node.shape or not isinstance(node.value, Exact):
        raise InputError(f"the bounds of `{name}` must be plain numbers", None, "for example `arange(0, 1, 0.1)`", node)
    return node.value


def _spaced(first: Exact, step: Exact, count: int) -> tuple[Constant, ...]:
    """Return `first`, `first + step`, … in exact arithmetic."""
    if isinstance(first, int) and isinstance(step, int):
        return tuple(range(first, first + step * count, step)) if step else (first,) * count
    decimal = Decimal(1) if isinstance(first, Decimal) or isinstance(step, Decimal) else 1
    values = (Fraction(first) + k * Fraction(step) for k in range(count))
    return tuple(fold("mul", [v, decimal]) or 0 for v in values)
