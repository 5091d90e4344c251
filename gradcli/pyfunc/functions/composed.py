"""NumPy's functions that are composed of others: their calls are traced."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.construct import broadcast, reshape
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.pyfunc.elements import positions
from gradcli.pyfunc.functions.arguments import axes_in, number
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import COMPOSED, Tracer, computed, known_values, lift, mutable, written_into

_ILL = 1e6  # a condition number from which the normal equations lose too many digits


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return what NumPy's returns: the solution, the sums of squares, the rank and the singular values."""
    value = known_values(a)
    if value is None or np.linalg.cond(value) > _ILL or np.shape(value)[0] < np.shape(value)[1]:
        raise InputError(
            "`np.linalg.lstsq` of a matrix that depends on the inputs is traced where its columns are independent",
            hint="`np.linalg.solve` of equations that have one solution",
        )
    depends = isinstance(a, Tracer) and not a.is_known
    x = np.linalg.solve(a.T @ a, a.T @ b) if depends else np.linalg.pinv(value) @ b
    rest = np.atleast_1d(np.sum((b - a @ x) ** 2, axis=0))
    n = np.shape(a)[1]
    return x, rest if np.shape(a)[0] > n else np.zeros(0), n, np.linalg.svd(a, compute_uv=False)


def _take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    if axis is None:
        return np.ravel(a)[np.asarray(indices)]
    return a[(slice(None),) * (axis % a.ndim) + (np.asarray(indices),)]


def _reduce(function: Any) -> Any:
    return lambda array, axis=0, dtype=None, out=None, keepdims=False: function(array, axis=axis, keepdims=keepdims)


_ALGEBRA: dict[Any, Any] = {
    np.linalg.lstsq: _lstsq,
    np.take: _take,
    ("add", "reduce"): _reduce(np.sum),
    ("multiply", "reduce"): _reduce(np.prod),
    ("maximum", "reduce"): _reduce(np.max),
    ("minimum", "reduce"): _reduce(np.min),
    ("logical_and", "reduce"): _reduce(np.all),
    ("logical_or", "reduce"): _reduce(np.any),
    ("add", "accumulate"): lambda array, axis=0, **_: np.cumsum(array, axis),
    ("multiply", "accumulate"): lambda array, axis=0, **_: np.cumprod(array, axis),
}  # fmt: skip
COMPOSED |= _ALGEBRA


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    (a0, a1, *a2), (b0, b1, *b2) = ([x[..., k] for k in range(np.shape(x)[-1])] for x in (a, b))
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    z, w = a2[0] if a2 else 0.0, b2[0] if b2 else 0.0
    parts = np.broadcast_arrays(a1 * w - z * b1, z * b0 - a0 * w, last)
    return np.moveaxis(np.stack(list(parts), -1), -1, axisc)


# Functions whose result is indices, or depends on the values' order: what is traced holds where these stay so


def _nonzero(a: Any) -> Any:
    return np.nonzero((a != 0).decided())


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    known = known_values([a])
    if sorter is None and known is not None and (np.diff(known[0]) < 0).any():
        raise InputError("`np.searchsorted` searches in a sorted array", hint="sort it before: `np.sort(…)`")
    column = np.reshape(v, (*np.shape(v), 1))
    return np.sum(a < column if side == "left" else a <= column, axis=-1)


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **settings: Any) -> Any:
    x, result = np.asarray(x), mutable(np.zeros(np.shape(x)))
    if isinstance(condlist, Tracer) or not isinstance(condlist[0], Tracer | np.ndarray | list):
        condlist = [condlist]
    conditions = [np.asarray(c.decided() if isinstance(c, Tracer) else c) for c in condlist]
    if len(funclist) > len(conditions):
        conditions.append(~np.logical_or.reduce(conditions))
    for condition, f in zip(conditions, funclist, strict=True):
        if condition.any():
            result[condition] = f(x[condition], *args, **settings) if callable(f) else f
    return result


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    xp, fp = np.asarray(xp) if not hasattr(xp, "decided") else xp, np.asarray(fp) if not hasattr(fp, "decided") else fp
    k = np.sum(np.reshape(x, (*np.shape(x), 1)) >= xp[1:-1], axis=-1)
    where = k.decided() if hasattr(k, "decided") else k
    where = where.astype(int) if np.ndim(where) else int(where)
    x = np.clip(x, xp[0], xp[-1])
    return fp[where] + (x - xp[where]) * (fp[where + 1] - fp[where]) / (xp[where + 1] - xp[where])


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return tuple(np.broadcast_to(x, shape) for x in arrays)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed([*zip(condlist, choicelist, strict=True)]):
        result = np.where(condition, choice, result)
    return result


COMPOSED |= {
    np.piecewise: _piecewise,
    np.select: _select,
    np.broadcast_arrays: _broadcast_arrays,
    np.divmod: lambda a, b: (np.floor_divide(a, b), np.remainder(a, b)),
    np.cross: _cross,
    np.nonzero: _nonzero,
    np.searchsorted: _searchsorted,
    np.partition: lambda a, kth, axis=-1, **_: np.take_along_axis(a, np.argsort(a, axis), axis),
    np.interp: _interp,
}


def _block(arrays: Any) -> Any:
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))

    def joined(part: Any, level: int) -> Any:
        if not isinstance(part, list):
            part = np.asarray(part)
            return np.reshape(part, (*(1,) * (rank - np.ndim(part)), *np.shape(part)))
        return np.concatenate([joined(p, level + 1) for p in part], level - depth)

    return joined(arrays, 0)


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _rank(arrays: Any) -> int:
    return max(map(_rank, arrays)) if isinstance(arrays, list) else np.ndim(arrays)


def _moving(original: Any, *arrays: int) -> Any:
    """Return the rule of a function that moves elements: NumPy moves their numbers, by which they are then taken.

    `arrays` are the positions of its arguments that are arrays.
    """

    def call(*args: Any, **settings: Any) -> Any:
        given, parts = [*args], list[Any]()
        for i in arrays:
            x = np.asarray(given[i])
            with aside():
                given[i] = np.arange(x.size).reshape(x.shape) + sum(map(len, parts))
            parts.append(np.ravel(x))
        with aside():
            where = original(*given, **settings)
        return np.concatenate(parts)[where]

    return call


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = np.atleast_1d(np.asarray(a)), np.atleast_1d(np.asarray(v))
    if len(v) > len(a):
        a, v = v, a
    n, m = len(a), len(v)
    windows = np.pad(a, m - 1)[np.arange(n + m - 1)[:, None] + np.arange(m)]
    whole = windows @ v[::-1]
    kind = str(mode).lower()[:1]
    if kind == "f":
        return whole
    size = n if kind == "s" else n - m + 1
    start = (n + m - 1 - size) // 2
    return whole[start : start + size]


def _quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, **_: Any,
) -> Any:  # fmt: skip
    if method != "linear":
        raise InputError(f'`np.quantile` with `method="{method}"` cannot be traced', hint='`method="linear"` can')
    a, q = np.asarray(a), np.asarray(q.decided() if isinstance(q, Tracer) else q)
    axes = axes_in(axis, a.ndim)
    rest = [i for i in range(a.ndim) if i not in axes]
    ordered = np.sort(np.reshape(np.transpose(a, (*axes, *rest)), (-1, *(a.shape[i] for i in rest))), 0)
    place = q * (len(ordered) - 1)
    low = np.floor(place).astype(int)
    part = np.reshape(place - low, (*q.shape, *(1,) * len(rest)))
    first = ordered[low]
    result = first + (ordered[np.minimum(low + 1, len(ordered) - 1)] - first) * part
    return (
        np.reshape(result, (*q.shape, *(1 if i in axes else n for i, n in enumerate(a.shape)))) if keepdims else result
    )


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else [*range(n)]
    grids = [np.reshape(x, (*(1,) * order[k], -1, *(1,) * (n - 1 - order[k]))) for k, x in enumerate(xi)]
    return tuple(grids) if sparse else np.broadcast_arrays(*grids)


def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **settings: Any) -> Any:
    moved = np.moveaxis(np.asarray(arr), axis, -1)
    outer = moved.shape[:-1]
    results = [np.asarray(func1d(moved[k], *args, **settings)) for k in np.ndindex(outer)]
    inner = np.shape(results[0])
    result = np.reshape(np.stack(results), (*outer, *inner))
    # What takes the place of the axis is where the axis was.
    return np.moveaxis(
        result, [*range(len(outer), result.ndim)], [axis % (len(outer) + 1) + i for i in range(len(inner))]
    )


def _nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    return np.nansum(a, axis, keepdims=keepdims) / np.sum(~np.isnan(a), axis, keepdims=keepdims)


def _nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    squares = (a - _nanmean(a, axis, keepdims=True)) ** 2
    return np.nansum(squares, axis, keepdims=keepdims) / (np.sum(~np.isnan(a), axis, keepdims=keepdims) - ddof)


COMPOSED |= {
    np.block: _block,
    np.insert: _moving(np.insert, 0, 2),
    np.delete: _moving(np.delete, 0),
    np.compress: _moving(np.compress, 1),
    np.convolve: _convolve,
    np.correlate: lambda a, v, mode="valid": _convolve(a, np.atleast_1d(np.asarray(v))[::-1], mode),
    np.quantile: _quantile,
    np.percentile: lambda a, q, *more, **settings: _quantile(a, np.asarray(q) / 100, *more, **settings),
    np.meshgrid: _meshgrid,
    np.apply_along_axis: _apply_along_axis,
    np.nanmean: _nanmean,
    np.nanvar: _nanvar,
    np.nanstd: lambda a, *more, **settings: np.sqrt(_nanvar(a, *more, **settings)),
    np.lib.stride_tricks.sliding_window_view: _moving(np.lib.stride_tricks.sliding_window_view, 0),
}


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    written_into(dst, np.broadcast_to(src, np.shape(dst)) if where is True else np.where(where, src, dst))


def _add_at(a: Any, indices: Any, b: Any, sign: float = 1.0) -> None:
    """Add numbers to the elements at an index, each as often as it occurs there."""
    key = indices if type(indices) is tuple else (indices,)
    where = positions(np.shape(a), tuple(np.asarray(k) if isinstance(k, list | Tracer) else k for k in key))
    values = broadcast(number(b), where.shape)
    flat = scatter_add(reshape(values, (where.size,)), 0, IndexArray.of(where.reshape(-1)), np.size(a))
    sums = computed(reshape(flat, np.shape(a)), partial(_added, np.shape(a), where), b)
    written_into(a, a + np.multiply(sign, sums))


def _added(shape: Any, where: Any, values: Any) -> Any:
    result = np.zeros(shape)
    np.add.at(result.reshape(-1), where, values)
    return result


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    where = np.asarray(x)
    n = max(int(minlength), int(where.max()) + 1 if where.size else 0)
    node = scatter_add(number(weights), 0, IndexArray.of(where), n)
    return computed(node, lambda numbers: np.bincount(where, numbers, minlength), weights)


def _typed(function: Any, *args: Any) -> Any:
    """Call a function of types, for which a tracer counts as its type."""
    args = tuple(lift(a).dtype if isinstance(a, list | tuple) else a for a in args)
    return function(*(a.dtype if isinstance(a, Tracer) else a for a in args))


COMPOSED |= {
    np.copyto: _copyto,
    np.bincount: _bincount,
    ("add", "at"): _add_at,
    ("subtract", "at"): lambda a, indices, b: _add_at(a, indices, b, -1.0),
    np.result_type: partial(_typed, np.result_type),
    np.common_type: lambda *arrays: np.float64,
    np.iscomplexobj: lambda x: False,
    np.isrealobj: lambda x: True,
    np.shape: lambda a: a.shape if isinstance(a, Tracer) else lift(a).shape,
    np.ndim: lambda a: len(np.shape(a)),
    np.size: lambda a, axis=None: int(np.prod(np.shape(a), dtype=int)) if axis is None else np.shape(a)[axis],
    np.may_share_memory: lambda *_, **__: False,
    np.shares_memory: lambda *_, **__: False,
}
