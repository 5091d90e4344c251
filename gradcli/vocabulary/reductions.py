"""Names of reductions, and of what goes along an axis."""

from __future__ import annotations

import math

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import axes_of, call, one_axis
from gradcli.graph.node import Node
from gradcli.vocabulary.elementwise import folded
from gradcli.vocabulary.register import METHODS, Axis, Builder, add, kept, named


def _reduction(op: str) -> Builder:
    def build(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        axes = axes_of(axis, len(x.shape))
        return kept(construct.reduce(op, x, axes), x, axes, keepdims)

    return build


for _op in ("sum", "mean", "prod", "logsumexp"):
    add(_reduction(_op), _op)


def _extremum(op: str, x: Node, axis: Axis, keepdims: bool, ties: str = "") -> Node:
    # PyTorch: max() and amax(dim) share a tie evenly, max(dim) gives the whole gradient to one index.
    ties = ties or ("first" if isinstance(axis, int) else "even")
    axes = axes_of(axis, len(x.shape))
    return kept(construct.extremum(op, x, axes, ties), x, axes, keepdims)


def _extremum_function(op: str, pairwise: str) -> Builder:
    def build(*x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        if len(x) == 1:
            return _extremum(op, x[0], axis, keepdims)
        if not x:
            raise InputError(f"`{op}` lacks an argument", hint=f"for example `{op}(x)`")
        if axis is not None or keepdims:
            raise InputError(f"`{op}` of several values has no axis", hint=f"`{op}(x, axis=0)` reduces one array")
        return folded(pairwise, *x)

    return build


def _extremum_of_one(op: str, ties: str = "") -> Builder:
    def build(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        return _extremum(op, x, axis, keepdims, ties)

    return build


for _op, _pairwise in (("max", "maximum"), ("min", "minimum")):
    add(_extremum_function(_op, _pairwise), _op, methods=())
    METHODS[_op] = _extremum_of_one(_op)
    add(_extremum_of_one(_op, "factors"), f"a{_op}")


@named("norm")
def _norm(x: Node, p: float = 2, axis: Axis = None, keepdims: bool = False) -> Node:
    axes = axes_of(axis, len(x.shape))
    if p == 2:
        return kept(construct.reduce("norm", x, axes), x, axes, keepdims)
    if p == 1:
        return kept(construct.reduce("sum", call("abs", x), axes), x, axes, keepdims)
    if p == math.inf:
        return _extremum("max", call("abs", x), axis, keepdims, "even")
    raise InputError("`norm` knows p=1, p=2 and p=inf", hint="another: `sum(abs(x)**p)**(1/p)`")


def _spreadness(op: str) -> Builder:
    def build(
        x: Node, axis: Axis = None, correction: int = 1, keepdims: bool = False, unbiased: bool | None = None
    ) -> Node:
        axes = axes_of(axis, len(x.shape))
        correction = correction if unbiased is None else int(unbiased)
        if type(correction) is not int:
            raise InputError("the correction is a whole number", hint="1 divides by n - 1, 0 by n")
        return kept(construct.spreadness(op, x, axes, correction), x, axes, keepdims)

    return build


add(_spreadness("var"), "var")
add(_spreadness("std"), "std")


@named("softmax")
def _softmax(x: Node, axis: int = -1) -> Node:
    return construct.softmax(x, one_axis(axis, len(x.shape)))


def _cumulative(op: str) -> Builder:
    def build(x: Node, axis: int | None = None) -> Node:
        if axis is None and len(x.shape) > 1:
            raise InputError(f"`{op}` of a matrix needs an axis", hint=f"for example `{op}(x, axis=0)`")
        return construct.cumulative(op, x, one_axis(axis or 0, len(x.shape)))

    return build


add(_cumulative("cumsum"), "cumsum")
add(_cumulative("cumprod"), "cumprod")


@named("log_softmax")
def _log_softmax(x: Node, axis: int = -1) -> Node:
    return construct.log_softmax(x, one_axis(axis, len(x.shape)))
