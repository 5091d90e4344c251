"""Names of functions that sort elements, or return the indices that sort them."""

from __future__ import annotations

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import axes_of, one_axis, ordered, reshape, sliced
from gradcli.graph.node import Node
from gradcli.vocabulary.register import each, flag, kept, named


@each("sort", "argsort")
def _ordered(op: str, x: Node, axis: int = -1, descending: bool = False) -> Node:
    return ordered(op, x, one_axis(axis, len(x.shape)), flag("descending", descending))


@named("topk")
def _topk(x: Node, k: int, axis: int = -1, largest: bool = True) -> Node:
    axis = one_axis(axis, len(x.shape))
    if type(k) is not int or not 0 < k <= x.shape[axis]:
        raise InputError(f"`topk` takes from 1 to {x.shape[axis]} of {x.shape[axis]} elements", hint="`topk(x, k)`")
    whole = ordered("sort", x, axis, flag("largest", largest))
    return sliced(whole, axis, range(k))


@named("median")
def _median(x: Node, axis: int | None = None, keepdims: bool = False) -> Node:
    # PyTorch: median() shares a tie evenly, median(dim) gives the whole gradient to one index.
    axes = axes_of(axis, len(x.shape)) if axis is None else (one_axis(axis, len(x.shape)),)
    return kept(construct.reduce("median", x, axes, "even" if axis is None else "first"), x, axes, keepdims)


@each("argmax", "argmin")
def _argument(op: str, x: Node, axis: int | None = None, keepdims: bool = False) -> Node:
    if axis is None:
        result = construct.argument(op, reshape(x, (x.size,)), 0)
        return kept(result, x, axes_of(None, len(x.shape)), keepdims)
    axis = one_axis(axis, len(x.shape))
    return kept(construct.argument(op, x, axis), x, (axis,), keepdims)
