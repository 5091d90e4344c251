"""Elements in order, and where elements are: sorting, the largest few, counting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import refuse_if
from gradcli.pytorch.operations.indexing import taken
from gradcli.pytorch.registry import found, method, return_type
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


def _order(input: Tensor, dim: int, descending: bool) -> tuple[Any, int]:
    at = axis_of(dim, input.dim())
    if not input.dim():
        return np.zeros((), np.int64), at
    from gradcli.engine.sorting import places

    return places(at, descending, input._a)[..., 0], at


def _along(input: Tensor, order: Any, at: int, op: str, name: str) -> Tensor:
    """Return the elements at places along an axis."""
    where: list[Any] = list(np.indices(order.shape, sparse=True))
    if where:
        where[at] = order
        order = np.ravel_multi_index(np.broadcast_arrays(*where), tuple(input.shape))
    return taken(input, order, op, name)


_SORT, _TOPK, _KTH = return_type("sort"), return_type("topk"), return_type("kthvalue")


@method("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order, at = _order(input, dim, descending)
    return found(_SORT, _along(input, order, at, "sort", "SortBackward0"), order)


method("argsort")(lambda input, dim=-1, descending=False, stable=False: of_array(_order(input, dim, descending)[0]))


@method("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    order, at = _order(input, dim, largest)
    refuse_if(not 0 <= k <= (input.shape[at] if input.dim() else 1), "count of topk")
    order = np.take(order, range(k), axis=at) if input.dim() else order
    return found(_TOPK, _along(input, order, at, "topk", "TopkBackward0"), order)


@method("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    order, at = _order(input, dim, False)
    refuse_if(not 1 <= k <= (input.shape[at] if input.dim() else 1), "number of kthvalue", at)
    order = np.take(order, [k - 1], axis=at)
    values: Any = _along(input, order, at, "topk", "KthvalueBackward0")
    if keepdim:
        return found(_KTH, values, order)
    return found(_KTH, called(values.squeeze(at), "KthvalueBackward0"), np.take(order, 0, axis=at))


@method("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    places = np.nonzero(input._a)[:-1] if input.dim() or not as_tuple else np.nonzero(input._a)
    if as_tuple:
        return tuple(map(of_array, places))
    count = int(np.count_nonzero(input._a))
    return of_array(np.stack(places, axis=1) if places else np.zeros((count, 0), np.int64))


@method("unique")
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    values, first, inverse, counts = np.unique(input._a[..., 0], True, True, True, dim)
    shape = input._a.shape[:-1] if dim is None else (-1,)
    parts = [taken(input, first, "unique", "Unique2Backward0") if dim is None else of_array(values)]
    parts += [of_array(inverse.reshape(shape))] if return_inverse else []
    parts += [of_array(counts)] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)


@method("bincount")
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    own = None if weights is None else weights._a[..., 0]
    refuse_if(input._a.dtype.kind not in "iu", "no kernel", "bincount_cpu", input.dtype.word)
    refuse_if(input.dim() != 1 or (input._a < 0).any(), "counts of bincount")
    counts = np.bincount(input._a[..., 0], own, minlength)
    return of_array(counts if own is None else counts.astype(own.dtype))
