"""NumPy's functions that are composed of others: their calls are traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.tracer import COMPOSED, Tracer, known_values, mutable


def _matrix_power(a: Any, n: int) -> Any:
    if n < 0:
        a, n = np.linalg.inv(a), -n
    result = None
    while n:
        if n & 1:
            result = a if result is None else result @ a
        a, n = a @ a, n >> 1
    return np.eye(a.shape[-1]) * np.ones(a.shape) if result is None else result


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


def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    if axis is None:
        return np.ravel(arr)[np.asarray(indices)]
    where = list(np.indices(np.shape(indices), sparse=True))
    where[axis] = np.asarray(indices)
    return arr[tuple(where)]


def _reduce(function: Any) -> Any:
    return lambda array, axis=0, dtype=None, out=None, keepdims=False: function(array, axis=axis, keepdims=keepdims)


_ALGEBRA: dict[Any, Any] = {
    np.linalg.matrix_power: _matrix_power,
    np.linalg.lstsq: _lstsq,
    np.take: _take,
    np.take_along_axis: _take_along_axis,
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
    np.compress: lambda condition, a, axis=None: np.take(a, np.flatnonzero(np.asarray(condition)), axis),
    np.cross: _cross,
    np.nonzero: _nonzero,
    np.flatnonzero: lambda a: _nonzero(np.ravel(a))[0],
    np.argwhere: lambda a: np.transpose(_nonzero(a)),
    np.searchsorted: _searchsorted,
    np.digitize: lambda x, bins, right=False: _searchsorted(bins, x, "left" if right else "right"),
    np.partition: lambda a, kth, axis=-1, **_: _take_along_axis(a, np.argsort(a, axis), axis),
    np.interp: _interp,
    np.ptp: lambda a, axis=None, out=None, keepdims=False: (
        np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)
    ),
}
