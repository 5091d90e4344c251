"""NumPy as a target: the function of each operation, of arrays whose last axis counts the points.

Axes and indices keep their meaning, since the added axis is the last.  A result that is not a view of the argument is
written into the array `out`, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import attrgetter

import numpy as np

from gradcli.engine import functions, linear_algebra, products
from gradcli.engine.functions import into, with_out
from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import Axes
from gradcli.graph.einsum import labels
from gradcli.graph.einsum import products as products_of
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

# Stable sorting along an axis, NaN last


def sort_indices(axis: int, descending: bool, x: Array) -> Array:
    """Return the indices that sort the elements; NaN is the largest.

    >>> sort_indices(0, True, np.array([[2.0], [np.nan], [3.0], [2.0]]))[:, 0]
    array([1, 2, 0, 3])
    """
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Of equal ones the first is to be first: in opposite order, they are sorted and reversed.
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.asarray(x.shape[axis] - 1 - np.flip(backwards, axis))


def sort(axis: int, descending: bool, x: Array, out: Array | None = None) -> Array:
    """Return the elements in order."""
    return into(out, np.take_along_axis(x, sort_indices(axis, descending, x), axis))


def argsort(axis: int, descending: bool, x: Array, out: Array | None = None) -> Array:
    """Return the indices that sort the elements, as float64."""
    return into(out, sort_indices(axis, descending, x).astype(float))


def take_along(axis: int, x: Array, order: Array, out: Array | None = None) -> Array:
    """Return the elements in that order."""
    x, order = np.broadcast_arrays(x, order)
    return into(out, np.take_along_axis(x, order.astype(np.intp), axis))


def put_along(axis: int, x: Array, order: Array, out: Array | None = None) -> Array:
    """Return the elements, each moved to the index that `order` has at its position."""
    x, order = np.broadcast_arrays(x, order)
    result = np.empty(x.shape, dtype=x.dtype) if out is None else out
    np.put_along_axis(result, order.astype(np.intp), x, axis)
    return result


def median(axes: Axes, ties: str, x: Array, out: Array | None = None) -> Array:
    """Return the lower one of the elements in the middle; NaN where one is NaN.

    >>> median((0,), "first", np.array([[4.0], [1.0], [3.0], [2.0]]))
    array([2.])
    """
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    lines = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *kept)
    middle = (len(lines) - 1) // 2
    result = np.partition(lines, middle, axis=0)[middle]
    return into(out, np.where(np.isnan(lines).any(axis=0), np.nan, result))


def median_index(axis: int, x: Array) -> Array:
    """Return the index of the median along an axis, or of the first NaN."""
    middle = np.take(sort_indices(axis, False, x), (x.shape[axis] - 1) // 2, axis=axis)
    lost = np.isnan(x)
    return np.asarray(np.where(lost.any(axis=axis), lost.argmax(axis=axis), middle))


def forward(node: Node) -> Callable[..., Array]:
    """Return the NumPy function of a node that is lowered: it takes the arrays of the arguments, and `out`."""
    if (function := _elementwise(node.op)) is not None:
        return function
    row = OPERATIONS[node.op]
    function = NUMPY.get(node.op) or row.move or _along(node.op)
    general = partial(function, *node.settings)
    if row.kind == "contraction" and node.dtype == "float64":
        if products_of(node) <= _SMALL:
            return partial(_small_product, labels(node))
        if products_of(node) >= LARGE:
            return partial(_large_product, labels(node), general)
    return general


@cache
def _elementwise(op: str) -> Callable[..., Array] | None:
    if not OPERATIONS[op].broadcasts:
        return None
    own: Callable[..., Array] | None = getattr(functions, op, None)
    function = own or _of_library(op)
    return function if own or isinstance(function, np.ufunc) else with_out(function)


@cache
def _along(op: str) -> Callable[..., Array]:
    """Return NumPy's function along the axes, or the axis, that are the first setting."""
    function = _of_library(op)
    return lambda axes, *more, out=None: function(more[-1], axis=axes, out=out)


def _of_library(op: str) -> Callable[..., Array]:
    """Return NumPy's own function by its name on the row.

    Errors: `InputError` where the row has none.
    """
    name = OPERATIONS[op].spelling_in("numpy")
    if not name:
        raise InputError(f"the NumPy engine has no function for `{op}`")
    function: Callable[..., Array] = attrgetter(name)(np)
    return function


_LONG = 4096  # terms from which float32 numbers are added as float64: NumPy's own error grows with their number


def _sum(axes: tuple[int, ...], x: Array, out: Array | None = None) -> Array:
    if x.size >= _LONG and x.dtype == np.float32 and math.prod(x.shape[a] for a in axes) >= _LONG:
        return into(out, x.sum(axis=axes, dtype=np.float64).astype(np.float32))
    return np.add.reduce(x, axis=axes, out=out)


def _cumsum(axis: int, x: Array, out: Array | None = None) -> Array:
    if x.dtype == np.float32 and x.shape[axis] >= _LONG:
        return into(out, np.add.accumulate(x, axis=axis, dtype=np.float64).astype(np.float32))
    return np.add.accumulate(x, axis=axis, out=out)


def _recurrence(axis: int, a: Array, b: Array, out: Array | None = None) -> Array:
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    points = max(a.shape[-1], b.shape[-1])
    result = np.empty((*b.shape[:-1], points), dtype=b.dtype) if out is None else np.moveaxis(out, axis, 0)
    result[0] = b[0]
    for k in range(1, len(result)):
        result[k] = b[k] + a[k - 1] * result[k - 1]
    return np.moveaxis(result, 0, axis)


_SMALL = 32  # multiplications of a product, up to which BLAS is no faster
LARGE = 2**15  # from which a call of BLAS for each point takes less time than loops over the points


def _small_product(axes: Sequence[Sequence[object]], a: Array, b: Array, out: Array | None = None) -> Array:
    """Multiply and add in one order at all points, whether or not a factor is the same at all of them."""
    first, second, result = ([*labels, linear_algebra.POINTS] for labels in linear_algebra.numbered(axes))
    return np.asarray(np.einsum(a, first, b, second, result, out=out))


def _large_product(
    axes: Sequence[Sequence[object]], general: Callable[..., Array], a: Array, b: Array, out: Array | None = None
) -> Array:
    """Multiply by BLAS at each point alone, where both factors vary: its numbers do not depend on the other points."""
    if a.shape[-1] != b.shape[-1] or object in (a.dtype, b.dtype):
        return general(a, b, out=out)
    first, second, result = linear_algebra.numbered(axes)
    factors = (np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in (a, b))
    pairs = zip(*factors, strict=True)
    return into(out, np.stack([np.einsum(x, first, y, second, result, optimize=True) for x, y in pairs], axis=-1))


def _matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Multiply at all points: as one product of matrices where a factor is the same at all points."""
    if a.dtype == np.float32 and a.shape[-1] == b.shape[-1] == 1:
        # Of a script.  In float64 sums are added in an order that does not depend on the number of points.
        result = np.asarray(np.matmul(a[..., 0], b[..., 0]))[..., None]
    elif a.dtype == object or b.dtype == object or max(a.ndim, b.ndim) > len(("row", "column", "point")):
        result = linear_algebra.stacked_matmul(a, b)
    elif a.shape[-1] == 1 and b.shape[-1] > 1:
        flat = b.reshape(b.shape[0], -1)
        result = (a[..., 0] @ flat).reshape(*a.shape[:-2], *b.shape[1:])
    elif b.shape[-1] == 1 and a.shape[-1] > 1:
        return np.matmul(b[..., 0].T, a, out=out)
    else:
        rows, columns = "i" * (a.ndim - 2), "j" * (b.ndim - 2)
        return np.asarray(np.einsum(f"{rows}kp,k{columns}p->{rows}{columns}p", a, b, out=out))
    return into(out, result)


def _first_mask(axis: int, best: Array, x: Array, out: Array | None) -> Array:
    indices = np.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return np.asarray(np.equal(indices, np.expand_dims(best, axis), out=out))


NUMPY: dict[str, Callable[..., Array]] = {
    "sum": _sum,
    "prod": products.prod,
    "product_of_others": products.product_of_others,
    "cumsum": _cumsum,
    "recurrence": _recurrence,
    "argmax_mask": lambda axis, x, out=None: _first_mask(axis, x.argmax(axis=axis), x, out),
    "argmin_mask": lambda axis, x, out=None: _first_mask(axis, x.argmin(axis=axis), x, out),
    "argmedian_mask": lambda axis, x, out=None: _first_mask(axis, median_index(axis, x), x, out),
    "argmax": lambda axis, x, out=None: into(out, x.argmax(axis=axis).astype(float)),
    "argmin": lambda axis, x, out=None: into(out, x.argmin(axis=axis).astype(float)),
    **{f.__name__: f for f in (sort, argsort, take_along, put_along, median)},
    "matmul": _matmul,
    **{op: getattr(linear_algebra, op) for op in ("einsum", "det", "inv", "solve", "cofactors")},
    **{op: getattr(linear_algebra, op) for op in ("eigvalsh", "eigvecsh", "svdvals", "svd_u", "svd_vh")},
    "cast": lambda dtype, x, out=None: into(out, x if x.dtype == object else x.astype(dtype)),
}
