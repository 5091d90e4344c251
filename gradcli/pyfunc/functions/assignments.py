"""NumPy's functions that write into an array, which are composed of assignments, and those that ask about types."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph.construct import broadcast, reshape
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.pyfunc.elements import positions
from gradcli.pyfunc.functions.arguments import number
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import COMPOSED, Tracer, as_written, known_values, lift, traced, written_into


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    written_into(dst, np.broadcast_to(src, np.shape(dst)) if where is True else np.where(where, src, dst))


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    as_written(a).reshape(-1)[np.asarray(ind)] = v


def _putmask(a: Any, mask: Any, values: Any) -> None:
    written_into(a, np.where(mask, np.reshape(np.resize(values, np.size(a)), np.shape(a)), a))


def _place(arr: Any, mask: Any, vals: Any) -> None:
    mask = mask.decided() if isinstance(mask, Tracer) else np.asarray(mask)
    as_written(arr)[mask] = np.resize(vals, int(np.count_nonzero(mask)))


def _add_at(a: Any, indices: Any, b: Any, sign: float = 1.0) -> None:
    """Add numbers to the elements at an index, each as often as it occurs there."""
    key = indices if type(indices) is tuple else (indices,)
    where = positions(np.shape(a), tuple(np.asarray(k) if isinstance(k, list | Tracer) else k for k in key))
    values = broadcast(number(b), where.shape)
    flat = scatter_add(reshape(values, (where.size,)), 0, IndexArray.of(where.reshape(-1)), np.size(a))
    known = known_values([a, b])
    with aside():
        value = None if known is None else _added(np.shape(a), where, known[1])
    written_into(a, a + np.multiply(sign, traced(reshape(flat, np.shape(a)), value)))


def _added(shape: Any, where: Any, values: Any) -> Any:
    result = np.zeros(shape)
    np.add.at(result.reshape(-1), where, values)
    return result


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    where = np.asarray(x)
    n = max(int(minlength), int(where.max()) + 1 if where.size else 0)
    known = known_values(weights)
    with aside():
        value = None if known is None else np.bincount(where, known, minlength)
    return traced(scatter_add(number(weights), 0, IndexArray.of(where), n), value)


def _typed(function: Any) -> Any:
    """Return a function of types, for which a tracer counts as its type."""

    def call(*args: Any) -> Any:
        args = tuple(lift(a).dtype if isinstance(a, list | tuple) else a for a in args)
        return function(*(a.dtype if isinstance(a, Tracer) else a for a in args))

    return call


COMPOSED |= {
    np.copyto: _copyto,
    np.put: _put,
    np.putmask: _putmask,
    np.place: _place,
    np.bincount: _bincount,
    ("add", "at"): _add_at,
    ("subtract", "at"): lambda a, indices, b: _add_at(a, indices, b, -1.0),
    np.result_type: _typed(np.result_type),
    np.common_type: lambda *arrays: np.float64,
    np.iscomplexobj: lambda x: False,
    np.isrealobj: lambda x: True,
    np.shape: lambda a: a.shape if isinstance(a, Tracer) else lift(a).shape,
    np.ndim: lambda a: len(np.shape(a)),
    np.size: lambda a, axis=None: int(np.prod(np.shape(a), dtype=int)) if axis is None else np.shape(a)[axis],
    np.may_share_memory: lambda *_, **__: False,
    np.shares_memory: lambda *_, **__: False,
}
