"""The table of structural operations: those that move, gather or contract elements.

Each row holds the forward value and the pullback side by side.  `forward(*params, *arrays)` works on NumPy
arrays whose last axis counts the points, so that axes and indices keep their meaning; where the result is not a view
of the argument, it goes into the array `out`, if one is given.
`pullback(g, y, *params, *args)` gives for each argument the node that the adjoint `g` of `y` passes to it, written
in operations of the tables, so that a derivative can be derived again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.graph import products
from gradcli.graph.construct import (
    Axes,
    Index,
    broadcast,
    cumsum,
    diagonal,
    extremum,
    from_diagonal,
    index,
    inverse,
    matmul,
    outer,
    prod_others,
    reduce,
    reshape,
    scatter,
    spreadness,
    sum_to,
    swap,
    transpose,
)
from gradcli.graph.elementwise import call, equal, where
from gradcli.graph.node import Node, Shape, const, size_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Structural:
    """One row: the value, the adjoints that it passes on (none: its derivative is zero), and its definition.

    `definition` spells an operation in simpler ones, for formulas; an operation without a `forward` of its own gets its
    numbers from it too, or from `lowered`, where the textbook's definition is numerically poor.
    """

    forward: Callable[..., Array] | None = None
    pullback: Callable[..., Sequence[Node]] | None = None
    definition: Callable[..., Node] | None = None
    lowered: Callable[..., Node] | None = None


# Pullbacks that take more than a line


def spread(g: Node, shape: Shape, axes: Axes) -> Node:
    """Return `g`, reduced over `axes` of an array of that shape, broadcast back to the shape."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    if kept[len(shape) - len(g.shape) :] == g.shape:  # axes in front come by broadcasting alone
        return broadcast(g, shape)
    return broadcast(reshape(g, kept), shape)


def _count(shape: Shape, axes: Axes) -> int:
    return size_of(tuple(shape[i] for i in axes))


def _extremum_pullback(g: Node, y: Node, axes: Axes, ties: str, x: Node) -> list[Node]:
    # PyTorch: x.max() and x.amax(dim) share ties evenly, x.max(dim) gives all to the first.
    if ties == "first":
        mask = Node("argmax_mask" if y.op == "max" else "argmin_mask", (x,), x.shape, (axes[0],))
        return [where(mask, spread(g, x.shape, axes), 0)]
    mask = equal(x, spread(y, x.shape, axes))
    if ties == "even":  # a NaN is the extremum, and unlike anything, itself included
        mask = mask | call("ne", x, x)
    winners = reduce("sum", where(mask, 1, 0), axes)
    share = spread(g / winners, x.shape, axes)
    # PyTorch: amax multiplies where max selects, and nobody wins against a NaN.
    return [where(mask, share, 0) if ties == "even" else share * where(mask, 1, 0)]


def _norm_pullback(g: Node, y: Node, axes: Axes, x: Node) -> list[Node]:
    # PyTorch: the subgradient 0 at x = 0, where x/‖x‖ has no value.
    length = spread(y, x.shape, axes)
    return [spread(g, x.shape, axes) * where(equal(length, 0), 0, x / length)]


def _var_pullback(g: Node, y: Node, axes: Axes, correction: int, x: Node) -> list[Node]:
    centred = x - spread(reduce("mean", x, axes), x.shape, axes)
    return [spread(2 * g / _degrees(x.shape, axes, correction), x.shape, axes) * centred]


def _std_pullback(g: Node, y: Node, axes: Axes, correction: int, x: Node) -> list[Node]:
    # PyTorch: 0 where all elements are equal, as for the norm at 0.
    centred = x - spread(reduce("mean", x, axes), x.shape, axes)
    scale = where(equal(y, 0), 0, g / (_degrees(x.shape, axes, correction) * y))
    return [spread(scale, x.shape, axes) * centred]


def _degrees(shape: Shape, axes: Axes, correction: int) -> Node:
    """Return n - correction as a constant; never below 0, so that n = 1 gives 0/0 = nan as in PyTorch."""
    return const(max(0, _count(shape, axes) - correction))


def _softmax_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    return [y * (g - spread(reduce("sum", g * y, (axis,)), x.shape, (axis,)))]


def _matmul_pullback(g: Node, y: Node, a: Node, b: Node) -> list[Node]:
    if len(a.shape) == len(b.shape) == 1:
        return [g * b, g * a]
    if len(a.shape) == 2 and len(b.shape) == 1:
        return [outer(g, b), matmul(swap(a), g)]
    if len(a.shape) == 1 and len(b.shape) == 2:
        return [matmul(b, g), outer(a, g)]
    return _stacked_matmul_pullback(g, a, b)


def _stacked_matmul_pullback(g: Node, a: Node, b: Node) -> list[Node]:
    if len(b.shape) == 1:
        column = reshape(g, (*g.shape, 1))
        return [column * b, sum_to(reduce("sum", column * a, (len(a.shape) - 2,)), b.shape)]
    if len(a.shape) == 1:
        row = reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        inner = matmul(row, swap(b))
        whole = reshape(a, (*a.shape, 1)) * row
        return [sum_to(reshape(inner, (*inner.shape[:-2], inner.shape[-1])), a.shape), sum_to(whole, b.shape)]
    return [sum_to(matmul(g, swap(b)), a.shape), sum_to(matmul(swap(a), g), b.shape)]


def _cumsum_pullback(g: Node, y: Node, axis: int, x: Node) -> list[Node]:
    return [_flip(cumsum(_flip(g, axis), axis), axis)]


def _flip(x: Node, axis: int) -> Node:
    backwards = range(x.shape[axis] - 1, -1, -1)
    return index(x, tuple(backwards if i == axis else range(n) for i, n in enumerate(x.shape)))


def _concatenate_pullback(g: Node, y: Node, axis: int, *parts: Node) -> list[Node]:
    passed, start = [], 0
    for part in parts:
        stop = start + part.shape[axis]
        passed.append(index(g, (*map(range, part.shape[:axis]), range(start, stop))))
        start = stop
    return passed


# Forward values that take more than a line


def _basic(key: Index) -> tuple[Any, ...]:
    """Return the index as NumPy takes it: a range that counts down to 0 has no stop that a slice can name."""
    return tuple(slice(k.start, k.stop if k.stop >= 0 else None, k.step) if isinstance(k, range) else k for k in key)


def _same_points(arrays: Iterable[Array]) -> list[Array]:
    """Return the arrays with one number of points: constants have a single one."""
    arrays = list(arrays)
    points = max(a.shape[-1] for a in arrays)
    return [np.broadcast_to(a, (*a.shape[:-1], points)) for a in arrays]


def _scatter(shape: Shape, keys: tuple[Index, ...], *parts: Array, out: Array | None = None) -> Array:
    points = max(p.shape[-1] for p in parts)
    result = np.empty((*shape, points), dtype=np.result_type(*parts)) if out is None else out
    result[...] = 0
    for key, part in zip(keys, parts, strict=True):
        result[_basic(key)] += part
    return result


def _matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Multiply at all points: as one product of matrices where a factor is the same at all points."""
    if a.dtype == object or b.dtype == object or max(a.ndim, b.ndim) > len(("row", "column", "point")):
        result = _stacked_matmul(a, b)
    elif a.shape[-1] == 1 and b.shape[-1] > 1:
        flat = b.reshape(b.shape[0], -1)
        result = (a[..., 0] @ flat).reshape(*a.shape[:-2], *b.shape[1:])
    elif b.shape[-1] == 1 and a.shape[-1] > 1:
        return np.matmul(b[..., 0].T, a, out=out)
    else:
        rows, columns = "i" * (a.ndim - 2), "j" * (b.ndim - 2)
        return np.asarray(np.einsum(f"{rows}kp,k{columns}p->{rows}{columns}p", a, b, out=out))
    return _into(out, result)


def _into(out: Array | None, result: Array) -> Array:
    if out is None:
        return result
    out[...] = result
    return out


def _stacked_matmul(a: Array, b: Array) -> Array:
    """Multiply with the points in front, where NumPy's matmul takes them as a stack."""
    a_vector, b_vector = a.ndim == 2, b.ndim == 2
    a = np.moveaxis(a, -1, 0)[:, None] if a_vector else np.moveaxis(a, -1, 0)
    b = np.moveaxis(b, -1, 0)[..., None] if b_vector else np.moveaxis(b, -1, 0)
    rank = max(a.ndim, b.ndim)
    a, b = (m.reshape(m.shape[:1] + (1,) * (rank - m.ndim) + m.shape[1:]) for m in (a, b))
    result = np.matmul(a, b)
    if b_vector:
        result = result[..., 0]
    if a_vector:
        result = result[..., 0] if b_vector else result[..., 0, :]
    return np.asarray(np.moveaxis(result, 0, -1))


def _first_mask(axis: int, best: Array, x: Array, out: Array | None) -> Array:
    places = np.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return np.asarray(np.equal(places, np.expand_dims(best, axis), out=out))


def _diagonal(x: Array) -> Array:
    return np.moveaxis(np.diagonal(x, axis1=0, axis2=1), -1, 0)


def _from_diagonal(shape: Shape, x: Array, out: Array | None = None) -> Array:
    result = np.empty((*shape, x.shape[-1]), dtype=x.dtype) if out is None else out
    result[...] = 0
    places = np.arange(min(shape))
    result[places, places] = x
    return result


# Definitions, for formulas


def _mask(op: str, axis: int, x: Node) -> Node:
    """Return where the extremum stands, ties aside."""
    return equal(x, spread(extremum(op, x, (axis,), "first"), x.shape, (axis,)))


def _var_definition(axes: Axes, correction: int, x: Node) -> Node:
    centred = x - spread(reduce("mean", x, axes), x.shape, axes)
    return reduce("sum", centred**2, axes) / _degrees(x.shape, axes, correction)


def _softmax_definition(axis: int, x: Node) -> Node:
    weights = call("exp", x)
    return weights / spread(reduce("sum", weights, (axis,)), x.shape, (axis,))


# Lowered definitions: exp of what is at most 0 does not overflow


def _lowered_softmax(axis: int, x: Node) -> Node:
    return _softmax_definition(axis, x - spread(extremum("max", x, (axis,), "even"), x.shape, (axis,)))


def _lowered_logsumexp(axes: Axes, x: Node) -> Node:
    top = extremum("max", x, axes, "even")
    top = where((top < const(math.inf)) & (top > const(-math.inf)), top, 0)
    return call("log", reduce("sum", call("exp", x - spread(top, x.shape, axes)), axes)) + top


STRUCTURAL: dict[str, Structural] = {
    # Reductions
    "sum": Structural(
        lambda axes, x, out=None: x.sum(axis=axes, out=out), lambda g, y, axes, x: [spread(g, x.shape, axes)]
    ),
    "mean": Structural(
        None,
        lambda g, y, axes, x: [spread(g / _count(x.shape, axes), x.shape, axes)],
        lambda axes, x: reduce("sum", x, axes) / _count(x.shape, axes),
    ),
    "prod": Structural(products.prod, lambda g, y, axes, x: [spread(g, x.shape, axes) * prod_others(x, axes)]),
    # The sum of the g[i]·∂(product of all but i)/∂x[k] is the derivative of the product of all but k along g.
    "prod_others": Structural(
        products.prod_others,
        lambda g, y, axes, x: [products.others(axes, x, along=g)],
        products.others,
    ),
    "max": Structural(lambda axes, ties, x, out=None: x.max(axis=axes, out=out), _extremum_pullback),
    "min": Structural(lambda axes, ties, x, out=None: x.min(axis=axes, out=out), _extremum_pullback),
    "norm": Structural(
        None,
        _norm_pullback,
        lambda axes, x: call("sqrt", reduce("sum", x**2, axes)),
    ),
    "var": Structural(None, _var_pullback, _var_definition),
    "std": Structural(
        None,
        _std_pullback,
        lambda axes, correction, x: call("sqrt", spreadness("var", x, axes, correction)),
    ),
    "logsumexp": Structural(
        None,
        lambda g, y, axes, x: [spread(g, x.shape, axes) * call("exp", x - spread(y, x.shape, axes))],
        lambda axes, x: call("log", reduce("sum", call("exp", x), axes)),
        _lowered_logsumexp,
    ),
    "softmax": Structural(None, _softmax_pullback, _softmax_definition, _lowered_softmax),
    "cumsum": Structural(lambda axis, x, out=None: np.add.accumulate(x, axis=axis, out=out), _cumsum_pullback),
    "argmax_mask": Structural(
        lambda axis, x, out=None: _first_mask(axis, x.argmax(axis=axis), x, out),
        definition=lambda axis, x: _mask("max", axis, x),
    ),
    "argmin_mask": Structural(
        lambda axis, x, out=None: _first_mask(axis, x.argmin(axis=axis), x, out),
        definition=lambda axis, x: _mask("min", axis, x),
    ),
    # Linear algebra
    "matmul": Structural(_matmul, _matmul_pullback),
    "outer": Structural(
        None,
        lambda g, y, a, b: [matmul(g, b), matmul(a, g)],
        lambda a, b: reshape(a, (*a.shape, 1)) * b,
    ),
    "trace": Structural(
        None,
        lambda g, y, x: [from_diagonal(broadcast(g, (min(x.shape),)), x.shape)],
        lambda x: reduce("sum", diagonal(x), (0,)),
    ),
    "diagonal": Structural(_diagonal, lambda g, y, x: [from_diagonal(g, x.shape)]),
    "from_diagonal": Structural(_from_diagonal, lambda g, y, shape, x: [diagonal(g)]),
    # Movement
    "transpose": Structural(
        lambda order, x: x.transpose(*order, x.ndim - 1), lambda g, y, order, x: [transpose(g, inverse(order))]
    ),
    "reshape": Structural(
        lambda shape, x: x.reshape(*shape, x.shape[-1]), lambda g, y, shape, x: [reshape(g, x.shape)]
    ),
    "broadcast": Structural(
        lambda shape, x: np.broadcast_to(x.reshape((1,) * (len(shape) + 1 - x.ndim) + x.shape), (*shape, x.shape[-1])),
        lambda g, y, shape, x: [sum_to(g, x.shape)],
    ),
    "index": Structural(lambda key, x: x[_basic(key)], lambda g, y, key, x: [scatter(x.shape, [(key, g)])]),
    "scatter": Structural(_scatter, lambda g, y, shape, keys, *parts: [index(g, key) for key in keys]),
    "concatenate": Structural(
        lambda axis, *parts, out=None: np.concatenate(_same_points(parts), axis=axis, out=out), _concatenate_pullback
    ),
    "stack": Structural(
        lambda axis, *parts, out=None: np.stack(_same_points(parts), axis=axis, out=out),
        lambda g, y, axis, *parts: [index(g, (*map(range, g.shape[:axis]), i)) for i in range(len(parts))],
    ),
}
