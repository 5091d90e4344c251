"""NumPy's functions of sequences that are composed of others: blocks, insertions, convolutions, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.functions.arguments import axes_in
from gradcli.pyfunc.tracer import COMPOSED, Tracer


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


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    arr, values = np.asarray(arr), np.asarray(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    n, rank = arr.shape[axis], arr.ndim
    if np.ndim(obj) == 0 and values.ndim:  # as for a slice, the first axis of the values is that which is inserted
        values = np.moveaxis(np.reshape(values, (*(1,) * (rank - values.ndim), *values.shape)), 0, axis)
    values = np.reshape(values, (*(1,) * (rank - values.ndim), *values.shape))
    count = values.shape[axis] if np.ndim(obj) == 0 else len(np.zeros(n)[obj]) if isinstance(obj, slice) else len(obj)
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    both = np.concatenate([arr, np.broadcast_to(values, shape)], axis)
    return np.take(both, np.insert(np.arange(n), obj, n + np.arange(count)), axis)


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    arr = np.asarray(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    return np.take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis)


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


def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    a = np.asarray(a.decided() if isinstance(a, Tracer) else a)
    return np.take_along_axis(np.stack(np.broadcast_arrays(*choices)), a[None], 0)[0]


def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None, **_: Any) -> Any:
    x = np.asarray(x)
    where = np.lib.stride_tricks.sliding_window_view(np.arange(x.size).reshape(x.shape), window_shape, axis)
    return np.ravel(x)[where]


COMPOSED |= {
    np.block: _block,
    np.insert: _insert,
    np.delete: _delete,
    np.convolve: _convolve,
    np.correlate: lambda a, v, mode="valid": _convolve(a, np.atleast_1d(np.asarray(v))[::-1], mode),
    np.quantile: _quantile,
    np.percentile: lambda a, q, *more, **settings: _quantile(a, np.asarray(q) / 100, *more, **settings),
    np.meshgrid: _meshgrid,
    np.apply_along_axis: _apply_along_axis,
    np.choose: _choose,
    np.nanmean: _nanmean,
    np.nanvar: _nanvar,
    np.nanstd: lambda a, *more, **settings: np.sqrt(_nanvar(a, *more, **settings)),
    np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
}
