"""Elements in order, and where elements are: sorting, the largest few, counting and searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.pytorch.calls import called
from gradcli.pytorch.operations.indexing import taken
from gradcli.pytorch.registry import both, found, function, return_type
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


def _order(input: Tensor, dim: int, descending: bool) -> tuple[Any, int]:
    own = input._a[..., 0]
    at = axis_of(dim, own.ndim)
    if not own.ndim:
        return np.zeros((), np.int64), at
    from gradcli.engine.sorting import places

    return places(at, descending, input._a)[..., 0], at


def along(input: Tensor, order: Any, at: int, op: str, name: str) -> Tensor:
    """Return the elements at places along an axis."""
    where: list[Any] = list(np.indices(order.shape, sparse=True))
    if where:
        where[at] = order
        order = np.ravel_multi_index(np.broadcast_arrays(*where), tuple(input.shape))
    return taken(input, order, op, name)


_SORT, _TOPK, _KTH = return_type("sort"), return_type("topk"), return_type("kthvalue")


@both("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order, at = _order(input, dim, descending)
    return found(_SORT, along(input, order, at, "sort", "SortBackward0"), order)


both("msort")(lambda input: sort(input, 0)[0])
both("argsort")(
    lambda input, dim=-1, descending=False, stable=False: of_array(
        np.asarray(_order(input, dim, descending)[0], np.int64)
    )
)


@both("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    order, at = _order(input, dim, largest)
    if not 0 <= k <= (input.shape[at] if input.dim() else 1):
        raise RuntimeError("selected index k out of range")
    order = np.take(order, range(k), axis=at) if input.dim() else order
    return found(_TOPK, along(input, order, at, "topk", "TopkBackward0"), order)


@both("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    order, at = _order(input, dim, False)
    if not 1 <= k <= (input.shape[at] if input.dim() else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    order = np.take(order, [k - 1], axis=at)
    values = along(input, order, at, "topk", "KthvalueBackward0")
    if keepdim:
        return found(_KTH, values, order)
    return found(_KTH, called(values.squeeze(at), "KthvalueBackward0"), np.take(order, 0, axis=at))  # type: ignore[attr-defined]


def _running(name: str, replaces: Callable[[Any, Any], Any]) -> None:
    kind = return_type(name)

    def made(input: Tensor, dim: int) -> Any:
        at = axis_of(dim, input.dim())
        own = np.moveaxis(input._a[..., 0], at, 0) if input.dim() else input._a
        order = np.zeros(own.shape, np.int64)
        for i in range(1, len(own)):
            order[i] = np.where(replaces(own[i], np.take_along_axis(own, order[i - 1][None], 0)[0]), i, order[i - 1])
        order = np.moveaxis(order, 0, at) if input.dim() else order[0]
        return found(kind, along(input, order, at, name, f"{name.capitalize()}Backward0"), order)

    both(name)(made)


_running("cummax", lambda new, old: (new >= old) | np.isnan(new))
_running("cummin", lambda new, old: (new <= old) | np.isnan(new))


@both("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    places = np.nonzero(input._a)[:-1] if input.dim() or not as_tuple else np.nonzero(input._a)
    if as_tuple:
        return tuple(map(of_array, places))
    count = int(np.count_nonzero(input._a))
    return of_array(np.stack(places, axis=1) if places else np.zeros((count, 0), np.int64))


both("argwhere")(lambda input: nonzero(input))


@both("unique")
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    values, first, inverse, counts = np.unique(input._a[..., 0], True, True, True, dim)
    shape = input._a.shape[:-1] if dim is None else (-1,)
    parts = [taken(input, first, "unique", "Unique2Backward0") if dim is None else of_array(values)]
    parts += [of_array(inverse.reshape(shape))] if return_inverse else []
    parts += [of_array(counts)] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)


@both("unique_consecutive")
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    own = input._a.reshape(-1)
    starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]])[: len(own)])
    counts = np.diff([*starts, len(own)])
    parts = [of_array(own[starts])]
    parts += [of_array(np.repeat(np.arange(len(starts)), counts).reshape(input.shape))] if return_inverse else []
    parts += [of_array(counts.astype(np.int64))] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)


@both("bincount")
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    own = None if weights is None else weights._a[..., 0]
    if input._a.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{input.dtype.word}'")
    if input.dim() != 1 or (input._a < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    counts = np.bincount(input._a[..., 0], own, minlength)
    return of_array(counts if own is None else counts.astype(own.dtype))


@both("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    span = (min, max) if min != max else (float(input._a.min()), float(input._a.max()))
    return of_array(np.histogram(input._a, bins, span)[0].astype(input._a.dtype))


@function("searchsorted")
def searchsorted(sorted_sequence: Tensor, values: Any, *, right: bool = False, side: str | None = None) -> Tensor:
    own = values._a[..., 0] if isinstance(values, Tensor) else np.asarray(values)
    how = side or ("right" if right else "left")
    return of_array(np.asarray(np.searchsorted(sorted_sequence._a[..., 0], own, how), np.int64))  # type: ignore[call-overload]


function("bucketize")(lambda input, boundaries, *, right=False: searchsorted(boundaries, input, right=right))


@function("isin")
def isin(elements: Any, test_elements: Any) -> Tensor:
    own, other = (x._a[..., 0] if isinstance(x, Tensor) else np.asarray(x) for x in (elements, test_elements))
    return of_array(np.asarray(np.isin(own, other)))
