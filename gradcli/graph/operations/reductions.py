"""Reductions, and operations along an axis: softmax, cumulative sums, sorting, the indices of extrema.

Of elements that are equal, the first comes first, in PyTorch too where it is asked for (`stable=True`); NaN is the
largest of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.graph.construct import (
    Axes,
    along,
    argument_mask,
    broadcast,
    call,
    concatenate,
    corner,
    cumulative,
    equal,
    flip,
    index,
    inverse,
    ordered,
    product_of_others,
    recurrence,
    reduce,
    reshape,
    sliced,
    transpose,
    where,
)
from gradcli.graph.node import Node, compare, const
from gradcli.graph.operation import Corner, Operation, defined, spelled
from gradcli.graph.shapes import Shape, size_of


def broadcast_back(g: Node, shape: Shape, axes: Axes) -> Node:
    """Return `g`, reduced over `axes` of an array of that shape, broadcast back to the shape."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    if kept[len(shape) - len(g.shape) :] == g.shape:  # axes in front come by broadcasting alone
        return broadcast(g, shape)
    return broadcast(reshape(g, kept), shape)


def _count(shape: Shape, axes: Axes) -> int:
    return size_of(tuple(shape[i] for i in axes))


def extremum_pullback(g: Node, y: Node, axes: Axes, ties: str, x: Node) -> list[Node]:
    """Return the adjoint of an extremum's, or a median's, argument: all to the first equal element, or even shares."""
    # PyTorch: x.max() and x.amax(dim) share ties evenly, x.max(dim) gives all to the first.
    if ties == "first":
        return [where(argument_mask(f"arg{y.op}_mask", x, axes[0]), broadcast_back(g, x.shape, axes), 0)]
    mask = equal(x, broadcast_back(y, x.shape, axes))
    if ties == "even":  # a NaN is the extremum, and unlike anything, itself included
        mask = mask | compare("ne", x, x)
    one, none = const(1, (), y.dtype), const(0, (), y.dtype)
    winners = reduce("sum", where(mask, one, none), axes)
    share = broadcast_back(g / winners, x.shape, axes)
    # PyTorch: amax multiplies where max selects, and nobody wins against a NaN.
    return [where(mask, share, 0) if ties == "even" else share * where(mask, 1, 0)]


def _norm_pullback(g: Node, y: Node, axes: Axes, x: Node) -> list[Node]:
    # PyTorch: the subgradient 0 at x = 0, where x/‖x‖ has no value.
    length = broadcast_back(y, x.shape, axes)
    return [broadcast_back(g, x.shape, axes) * corner(equal(length, 0), 0, x / length)]


def _centred(x: Node, axes: Axes) -> Node:
    return x - broadcast_back(reduce("mean", x, axes), x.shape, axes)


def _var_pullback(g: Node, y: Node, axes: Axes, correction: int, x: Node) -> list[Node]:
    return [broadcast_back(2 * g / _degrees(x.shape, axes, correction), x.shape, axes) * _centred(x, axes)]


def _std_pullback(g: Node, y: Node, axes: Axes, correction: int, x: Node) -> list[Node]:
    # PyTorch: 0 where all elements are equal, as for the norm at 0.
    scale = corner(equal(y, 0), 0, g / (_degrees(x.shape, axes, correction) * y))
    return [broadcast_back(scale, x.shape, axes) * _centred(x, axes)]


def _degrees(shape: Shape, axes: Axes, correction: int) -> Node:
    """Return n - correction as a constant; never below 0, so that n = 1 gives 0/0 = nan as in PyTorch."""
    return const(max(0, _count(shape, axes) - correction))


def _softmax_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    return [y * (g - broadcast_back(reduce("sum", g * y, (axis,)), x.shape, (axis,)))]


def _cumsum_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    return [flip(cumulative("cumsum", flip(g, (axis,)), axis), (axis,))]


def _cumprod_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    # The product of those before x[k], times g[k] + x[k+1]·(g[k+1] + x[k+2]·(…)): nothing is divided by a 0.
    if x.shape[axis] == 1:
        return [g]
    n = x.shape[axis]
    behind = _backwards(sliced(x, axis, range(1, n)), g, axis)
    first = const(1, tuple(1 if i == axis else m for i, m in enumerate(x.shape)))
    return [concatenate([first, sliced(y, axis, range(n - 1))], axis) * behind]


def _running_extremum_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    # PyTorch: to the last of equal elements, and to each NaN.
    begins = equal(x, y) | compare("ne", x, x)
    return [Node("sum_segments", (g, begins), g.shape, (axis,), g.dtype)]


def _recurrence_pullback(g: Node, y: Node, axis: int, a: Node, b: Node) -> list[Node]:
    n = y.shape[axis]
    behind = _backwards(a, g, axis)
    return [sliced(behind, axis, range(1, n)) * sliced(y, axis, range(n - 1)), behind]


def _backwards(a: Node, b: Node, axis: int) -> Node:
    """Return the recurrence that begins at the end of the axis."""
    return flip(recurrence(flip(a, (axis,)), flip(b, (axis,)), axis), (axis,))


def _log_softmax_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    return [g - call("exp", y) * broadcast_back(reduce("sum", g, (axis,)), x.shape, (axis,))]


# Definitions


def _var_definition(axes: Axes, correction: int, x: Node) -> Node:
    return reduce("sum", _centred(x, axes) ** 2, axes) / _degrees(x.shape, axes, correction)


def _softmax_definition(axis: int, x: Node) -> Node:
    weights = call("exp", x)
    return weights / broadcast_back(reduce("sum", weights, (axis,)), x.shape, (axis,))


def _log_softmax_definition(axis: int, x: Node) -> Node:
    return x - broadcast_back(reduce("logsumexp", x, (axis,)), x.shape, (axis,))


def _sum_segments(axis: int, x: Node, begins: Node) -> Node:
    """Return the sum of each segment at its first element, and zeros at the others.

    The sums of 1, 2, 4, … elements are put together (W. D. Hillis and G. L. Steele, "Data parallel algorithms", 1986):
    nothing is multiplied by 0, so that an infinite element stays in its segment.
    """
    n, step = x.shape[axis], 1
    ends = sliced(begins, axis, range(1, n))  # whether a segment ends on the way to the element so many steps ahead
    while step < n:
        near, far = range(n - step), range(n - step, n)
        total = sliced(x, axis, near) + where(ends, 0, sliced(x, axis, range(step, n)))
        x = concatenate([total, sliced(x, axis, far)], axis)
        if (rest := n - 2 * step) > 0:
            ends = sliced(ends, axis, range(rest)) | sliced(ends, axis, range(step, step + rest))
        step *= 2
    return where(begins, x, 0)


# The product of all elements but one


def in_front(axes: Axes, rank: int) -> Axes:
    """Return the order of all axes that begins with these."""
    return axes + tuple(i for i in range(rank) if i not in axes)


# A series is a value, alone or with its derivative along a direction.

Series = Sequence[Node]


def _others(axes: Axes, x: Node, direction: Node | None = None) -> Node:
    """Return the products of all other elements, by a tree of pairs; with a `direction`, their derivative along it."""
    order = in_front(axes, len(x.shape))
    count, rest = size_of(tuple(x.shape[i] for i in axes)), tuple(x.shape[i] for i in order[len(axes) :])
    if count < 2:
        return const(0 if direction else 1, x.shape)
    level: Series = [reshape(transpose(n, order), (count, *rest)) for n in (x, direction) if n is not None]
    pairs: list[tuple[Series, Series]] = []
    while (half := level[0].shape[0] // 2) > 0:
        a, b = _rows(level, 0, half), _rows(level, half, 2 * half)
        pairs.append((a, b))
        level = _joined(_times(a, b), _rows(level, 2 * half, level[0].shape[0]))
    a, b = pairs.pop()
    factor = _joined(b, a)
    for a, b in reversed(pairs):
        half = a[0].shape[0]
        head, tail = _rows(factor, 0, half), _rows(factor, half, factor[0].shape[0])
        factor = _joined(_times(head, b), _times(head, a), tail)
    return transpose(reshape(factor[-1], tuple(x.shape[i] for i in order)), inverse(order))


def _times(a: Series, b: Series) -> Series:
    return [a[0] * b[0], *(da * b[0] + a[0] * db for da, db in zip(a[1:], b[1:], strict=True))]


def _rows(series: Series, start: int, stop: int) -> Series:
    return [index(n, (range(start, stop),)) for n in series]


def _joined(*parts: Series) -> Series:
    return [concatenate(same, 0) for same in zip(*parts, strict=True)]


# For engines: exp of what is at most 0 does not overflow


def _shifted(axis: int, x: Node) -> Node:
    return x - broadcast_back(reduce("max", x, (axis,), "even"), x.shape, (axis,)) if x.shape[axis] else x


def _lowered_softmax(axis: int, x: Node) -> Node:
    return _softmax_definition(axis, _shifted(axis, x))


def _lowered_log_softmax(axis: int, x: Node) -> Node:
    x = _shifted(axis, x)
    return x - broadcast_back(call("log", reduce("sum", call("exp", x), (axis,))), x.shape, (axis,))


def _lowered_logsumexp(axes: Axes, x: Node) -> Node:
    top = reduce("max", x, axes, "even")
    top = where((top < const(math.inf)) & (top > const(-math.inf)), top, 0)
    return call("log", reduce("sum", call("exp", x - broadcast_back(top, x.shape, axes)), axes)) + top


# Corners


def _is_0(y: Node, axes: Axes, *others: Any) -> Node:
    """Return where a norm or a deviation is 0; its argument comes last."""
    return equal(broadcast_back(y, others[-1].shape, axes), 0)


def extremum_corner(what: str) -> Corner:
    """Return the corner of an extremum: a tie, in which several elements are equal to it."""

    def at(y: Node, axes: Axes, ties: str, x: Node) -> Node:
        winners = equal(x, broadcast_back(y, x.shape, axes))
        return winners & (broadcast_back(reduce("sum", where(winners, 1, 0), axes), x.shape, axes) > 1)

    shares = f"an equal share for each of {what}"
    return Corner(at, lambda axes, ties: f"the first of {what}" if ties == "first" else shares)


_LAST = "the last of equal elements so far"


def _equals_the_one_before(y: Node, axis: int, x: Node) -> Node:
    n = y.shape[axis]
    tied = where(equal(sliced(x, axis, range(1, n)), sliced(y, axis, range(n - 1))), 1, 0)
    first = const(0, tuple(1 if i == axis else size for i, size in enumerate(y.shape)))
    return concatenate([first, tied], axis) > 0


def _ties(y: Node, axis: int, descending: bool, x: Node) -> Node:
    """Return where an element is equal to another one: neighbours in order, at their indices in `x`."""
    n = y.shape[axis]
    tied = where(equal(sliced(y, axis, range(1, n)), sliced(y, axis, range(n - 1))), 1, 0)
    none = const(0, tuple(1 if i == axis else size for i, size in enumerate(y.shape)))
    in_order = concatenate([none, tied], axis) + concatenate([tied, none], axis)
    return along("put_along", in_order, ordered("argsort", x, axis, descending), axis) > 0


ROWS: dict[str, Operation] = {
    "sum": Operation(
        "reduction",
        ("axes",),
        lambda g, y, axes, x: [broadcast_back(g, x.shape, axes)],
        linear=(0,),
        joins="add",
        spelling=spelled(numpy="sum", torch="sum", onnx="ReduceSum"),
    ),
    "mean": Operation(
        "reduction",
        ("axes",),
        lambda g, y, axes, x: [broadcast_back(g / _count(x.shape, axes), x.shape, axes)],
        definition=lambda axes, x: reduce("sum", x, axes) / _count(x.shape, axes),
        linear=(0,),
    ),
    "prod": Operation(
        "reduction",
        ("axes",),
        lambda g, y, axes, x: [broadcast_back(g, x.shape, axes) * product_of_others(x, axes)],
        joins="mul",
        spelling=spelled(numpy="prod", onnx="ReduceProd"),
    ),
    # The sum of the g[i]·∂(product of all but i)/∂x[k] is the derivative of the product of all but k along g.
    "product_of_others": Operation(
        "whole", ("axes",), lambda g, y, axes, x: [_others(axes, x, direction=g)], formula=_others
    ),
    "max": Operation(
        "reduction",
        ("axes", "ties"),
        extremum_pullback,
        exact=True,
        corner=extremum_corner("the largest"),
        joins="maximum",
        spelling=spelled(numpy="max", torch="amax", onnx="ReduceMax", latex=r"\max"),
    ),
    "min": Operation(
        "reduction",
        ("axes", "ties"),
        extremum_pullback,
        exact=True,
        corner=extremum_corner("the smallest"),
        joins="minimum",
        spelling=spelled(numpy="min", torch="amin", onnx="ReduceMin", latex=r"\min"),
    ),
    "norm": Operation(
        "reduction",
        ("axes",),
        _norm_pullback,
        definition=lambda axes, x: call("sqrt", reduce("sum", x**2, axes)),
        corner=Corner(_is_0, "0, the smallest of all subgradients"),
    ),
    "var": Operation("reduction", ("axes", "correction"), _var_pullback, definition=_var_definition, degree=2),
    "std": Operation(
        "reduction",
        ("axes", "correction"),
        _std_pullback,
        definition=lambda axes, correction, x: call("sqrt", reduce("var", x, axes, correction)),
        corner=Corner(_is_0, "0, as for norm"),
    ),
    "logsumexp": Operation(
        "reduction",
        ("axes",),
        lambda g, y, axes, x: [broadcast_back(g, x.shape, axes) * call("exp", x - broadcast_back(y, x.shape, axes))],
        definition=lambda axes, x: call("log", reduce("sum", call("exp", x), axes)),
        lowered=_lowered_logsumexp,
    ),
    "softmax": Operation(
        "whole", ("axis",), _softmax_pullback, definition=_softmax_definition, lowered=_lowered_softmax
    ),
    "log_softmax": Operation(
        "whole", ("axis",), _log_softmax_pullback, definition=_log_softmax_definition, lowered=_lowered_log_softmax
    ),
    "cumsum": Operation(
        "scan", ("axis",), _cumsum_pullback, linear=(0,), joins="add", spelling=spelled(numpy="cumsum", torch="cumsum")
    ),
    "cumprod": Operation(
        "scan", ("axis",), _cumprod_pullback, joins="mul", spelling=spelled(numpy="cumprod", torch="cumprod")
    ),
    "cummax": Operation(
        "scan",
        ("axis",),
        _running_extremum_pullback,
        exact=True,
        corner=Corner(_equals_the_one_before, _LAST),
        joins="maximum",
        spelling=spelled(numpy="maximum.accumulate", jax="jax.lax.cummax", torch="torch.cummax({}, dim={axis})[0]"),
    ),
    "cummin": Operation(
        "scan",
        ("axis",),
        _running_extremum_pullback,
        exact=True,
        corner=Corner(_equals_the_one_before, _LAST),
        joins="minimum",
        spelling=spelled(numpy="minimum.accumulate", jax="jax.lax.cummin", torch="torch.cummin({}, dim={axis})[0]"),
    ),
    "sum_segments": defined(_sum_segments, "axis", linear=(0,)),
    "recurrence": Operation("scan", ("axis",), _recurrence_pullback),
    "argmax_mask": Operation("mask", ("axis",)),
    "argmin_mask": Operation("mask", ("axis",)),
    "sort": Operation(
        "along",
        ("axis", "descending"),
        lambda g, y, axis, descending, x: [along("put_along", g, ordered("argsort", x, axis, descending), axis)],
        corner=Corner(_ties, "the first of equal elements as the first of them in order"),
    ),
    "argsort": Operation("index", ("axis", "descending")),
    # Along the axis, x[order], and zeros in which z[order] is x.  The order is one of all elements.
    "take_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("put_along", g, order, axis), const(0, order.shape)],
        linear=(0,),
    ),
    "put_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("take_along", g, order, axis), const(0, order.shape)],
        linear=(0,),
    ),
    "median": Operation(
        "reduction", ("axes", "ties"), extremum_pullback, exact=True, corner=extremum_corner("those in the middle")
    ),
    "argmedian_mask": Operation("mask", ("axis",)),
    "argmax": Operation("index", ("axis",), spelling=spelled(numpy="argmax")),
    "argmin": Operation("index", ("axis",), spelling=spelled(numpy="argmin")),
}
