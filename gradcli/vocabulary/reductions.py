"""Names of reductions, of functions along an axis, and of sorting."""

from __future__ import annotations

import math
from functools import partial

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import axes_of, call, one_axis, ordered, reshape, sliced
from gradcli.graph.node import Node
from gradcli.vocabulary.elementwise import folded
from gradcli.vocabulary.register import METHODS, Axis, each, flag, kept, named


@each("sum", "mean", "prod", "logsumexp")
def _reduced(op: str, x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    return _over(op, x, axis, keepdims)


def _over(op: str, x: Node, axis: Axis, keepdims: bool, *settings: int | str) -> Node:
    axes = axes_of(axis, len(x.shape))
    return kept(construct.reduce(op, x, axes, *settings), x, axes, keepdims)


def _extremum(op: str, x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    # PyTorch: max() and amax(dim) share a tie evenly, max(dim) gives the whole gradient to one index.
    return _over(op, x, axis, keepdims, "first" if isinstance(axis, int) else "even")


@each("max", "min", methods=())
def _extremum_of_any(op: str, *x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    if len(x) == 1:
        return _extremum(op, x[0], axis, keepdims)
    if not x:
        raise InputError(f"`{op}` is missing an argument", hint=f"for example `{op}(x)`")
    if axis is not None or keepdims:
        raise InputError(f"`{op}` of several values has no axis", hint=f"`{op}(x, axis=0)` reduces one array")
    return folded(f"{op}imum", *x)


METHODS.update({op: partial(_extremum, op) for op in ("max", "min")})


@each("amax", "amin")
def _shared_extremum(op: str, x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    return _over(op[1:], x, axis, keepdims, "factors")


@named("norm")
def _norm(x: Node, p: float = 2, axis: Axis = None, keepdims: bool = False) -> Node:
    if p == 2:
        return _over("norm", x, axis, keepdims)
    if p == 1:
        return _over("sum", call("abs", x), axis, keepdims)
    if p == math.inf:
        return _over("max", call("abs", x), axis, keepdims, "even")
    raise InputError("`norm` knows p=1, p=2 and p=inf", hint="another: `sum(abs(x)**p)**(1/p)`")


@each("var", "std")
def _variance(
    op: str, x: Node, axis: Axis = None, correction: int = 1, keepdims: bool = False, unbiased: bool | None = None
) -> Node:
    correction = correction if unbiased is None else int(unbiased)
    if type(correction) is not int:
        raise InputError("the correction must be an integer", hint="1 divides by n - 1, 0 by n")
    return _over(op, x, axis, keepdims, correction)


@each("softmax", "log_softmax")
def _softmax(op: str, x: Node, axis: int = -1) -> Node:
    return construct.softmax(op, x, one_axis(axis, len(x.shape)))


@each("cumsum", "cumprod", "cummax", "cummin")
def _cumulative(op: str, x: Node, axis: int | None = None) -> Node:
    if axis is None and len(x.shape) > 1:
        raise InputError(f"`{op}` of a matrix needs an axis", hint=f"for example `{op}(x, axis=0)`")
    return construct.cumulative(op, x, one_axis(axis or 0, len(x.shape)))


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
