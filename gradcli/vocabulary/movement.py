"""Names of what moves elements."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import one_axis
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape
from gradcli.vocabulary.register import Axis, named, whole_numbers


@named("transpose", "t")
def _transpose(x: Node, *axes: Axis) -> Node:
    rank = len(x.shape)
    if not axes:
        return construct.transpose(x, tuple(reversed(range(rank))))
    if len(axes) == 1:
        return _permute(x, *axes)
    first, second = (one_axis(a, rank) for a in _pair(axes))  # PyTorch: x.transpose(0, 1) exchanges two axes
    exchanged = {first: second, second: first}
    return construct.transpose(x, tuple(exchanged.get(i, i) for i in range(rank)))


def _pair(axes: Sequence[Axis]) -> tuple[int, int]:
    if len(axes) != 2:
        raise InputError("`transpose` exchanges two axes", hint="`permute(x, 2, 0, 1)` puts all in a new order")
    return _sizes(axes)[0], _sizes(axes)[1]


@named("permute")
def _permute(x: Node, *axes: Axis) -> Node:
    return construct.transpose(x, tuple(one_axis(a, len(x.shape)) for a in _sizes(axes)))


def _sizes(given: Sequence[Axis]) -> Shape:
    return whole_numbers(given, "`reshape(x, 2, 3)` or `reshape(x, (2, 3))`")


@named("reshape", "view")
def _reshape(x: Node, *shape: Axis) -> Node:
    return construct.reshape(x, _sizes(shape))


@named("flatten", "ravel")
def _flatten(x: Node) -> Node:
    return construct.reshape(x, (-1,))


@named("concatenate", "cat", "concat", methods=())
def _concatenate(parts: Sequence[Node], axis: int = 0) -> Node:
    rank = len(parts[0].shape) if parts else 0
    if not rank or any(len(p.shape) != rank for p in parts):
        raise InputError(
            "`concatenate` joins arrays of equally many dimensions", hint="`stack([a, b])` makes a vector of scalars"
        )
    return construct.concatenate(parts, one_axis(axis, rank))


@named("stack", methods=())
def _stack(parts: Sequence[Node], axis: int = 0) -> Node:
    if not parts:
        raise InputError("`stack` needs at least one element")
    return construct.stack(parts, one_axis(axis, len(parts[0].shape) + 1))
