"""IndexArray: elements taken from those that a tensor holds, and put there; elements in order, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.sorting import sort_indices as sorted_indices
from gradcli.graph import construct
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.graph.node import Node, cast, const
from gradcli.pytorch.calls import called, exact, named
from gradcli.pytorch.functions import capitals
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import calling, method, return_type, with_indices
from gradcli.pytorch.operations.indexing import assigned, checked_indices, flat, numbers_of, taken
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

Array = np.ndarray[Any, Any]


def _axis(x: Tensor, dim: int) -> tuple[int, int]:
    """Return an axis as counted from the front, and its size."""
    axis = axis_of(dim, x.dim())
    return axis, x.shape[axis] if x.dim() else 1


def _each(x: Tensor, dim: int, index: Tensor, *sources: Any) -> Array:
    """Return flat indices of the elements that indices along an axis mean: those to gather, or those to fill.

    Errors: PyTorch's, for indices of another rank than the tensor's, or of larger sizes.
    """
    indices = index._a[..., 0]
    axis, size = _axis(x, dim)
    shape, sizes = list(x.shape), list(indices.shape)
    raise_if(max(1, indices.ndim) != max(1, x.dim()), "axes of indices", "self" if sources else "input")
    wide = [i for i, (m, n) in enumerate(zip(sizes, shape, strict=False)) if m > n and i != axis]
    raise_if(wide and not sources, "sizes of indices to gather", wide[:1], sizes, shape, axis)
    tensors = [list(s.shape) for s in sources if isinstance(s, Tensor)]
    wide += [i for s in tensors for i, (m, n) in enumerate(zip(sizes, s, strict=False)) if m > n]
    more = f" and to be no larger size than src {tensors[0]}" if tensors else ""
    raise_if(wide and sources, "sizes of indices to fill", sizes, shape, axis, more)
    bad = indices[(indices < 0) | (indices >= size)]
    raise_if(bad.size, "index to gather outside", *bad[:1], dim, size)
    if not x.dim() or not indices.ndim:
        return indices
    there = numbers_of(x)[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    return np.take_along_axis(there, indices, axis)


def _slices(x: Tensor, dim: int, index: Tensor) -> Array:
    """Return the flat indices of the slices at indices along an axis."""
    (axis, size), indices = _axis(x, dim), index._a.reshape(-1)
    raise_if(((indices < 0) | (indices >= size)).any(), "slice outside")
    return np.take(numbers_of(x), indices, axis) if x.dim() else indices[0]


def _masked(x: Tensor, mask: Tensor) -> Array:
    """Return which elements a mask chooses."""
    numbers, chosen = np.broadcast_arrays(numbers_of(x), mask._a[..., 0])
    return numbers[chosen]


def _of_line(x: Tensor, index: Tensor) -> Array:
    return checked_indices(index._a[..., 0], x.numel())


# Put there


def _filled(x: Tensor, positions: Any, value: Any, name: str) -> Tensor:
    """Return a tensor with some elements replaced: by those of a tensor, or all by one number."""
    tensor = value if isinstance(value, Tensor) else of_array(np.asarray(value, x._a.dtype))
    number = int((name, tensor is value) in (("scatter", False), ("index_fill", True)))
    return assigned(x, tensor, positions, f"{capitals(name)}Backward{number}")


def _added(x: Tensor, positions: Any, value: Tensor, name: str, alpha: Any = 1) -> Tensor:
    """Return a tensor with numbers added to some of its elements."""
    indices = IndexArray.of(positions.reshape(-1))

    def build(n: Node, v: Node) -> Node:
        scaled = v if alpha == 1 else v * cast(const(exact(alpha)), v.dtype)
        return n + construct.reshape(scatter_add(flat(scaled), 0, indices, n.size), n.shape)

    return apply(name, build, (x, value), (indices, repr(alpha)))


def _corner(src: Any, index: Tensor) -> Any:
    """Return the part of a source that an index of a smaller shape uses."""
    part = isinstance(src, Tensor) and src.shape != index.shape
    return src[tuple(slice(n) for n in index.shape)] if part else src


def _scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    src = value if src is None else src
    return _filled(input, _each(input, dim, index, src), _corner(src, index), "scatter")


def _put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    positions = numbers_of(input)[tuple(i._a[..., 0] for i in indices)]
    if accumulate:
        return _added(input, positions, values.expand(*positions.shape), "index_put")
    return _filled(input, positions, values, "index_put")


_BOTH: dict[str, Callable[..., Tensor]] = {
    "index_select": lambda input, dim, index: taken(input, _slices(input, dim, index), "index_select"),
    "gather": lambda input, dim, index, *, sparse_grad=False: taken(input, _each(input, dim, index), "gather"),
    "take": lambda input, index: taken(input, _of_line(input, index), "take_flat"),
    "masked_select": lambda input, mask: taken(input, _masked(input, mask), "masked_select"),
    "scatter": _scatter,
    "scatter_add": lambda input, dim, index, src: _added(
        input, _each(input, dim, index, src), _corner(src, index), "scatter_add"
    ),
    "index_add": lambda input, dim, index, source, *, alpha=1: _added(
        input, _slices(input, dim, index), source, "index_add", alpha
    ),
    "index_copy": lambda input, dim, index, source: _filled(input, _slices(input, dim, index), source, "index_copy"),
    "index_fill": lambda input, dim, index, value: _filled(input, _slices(input, dim, index), value, "index_fill"),
    "index_put": _put,
}
for _name, _function in _BOTH.items():
    method(_name)(_function)


@method("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    if repeats is None:
        input, repeats = of_array(np.arange(len(input))), input
    if dim is None:
        input, dim = input.reshape(-1), 0
    if not isinstance(repeats, Tensor):
        raise_if(repeats < 0, "negative repeats")
        return named("repeat_interleave", input, repeats, dim)
    raise_if(repeats._a.dtype.kind != "i", "no kernel", "repeat_interleave_cpu", repeats.dtype.word)
    size, counts = input.shape[dim], repeats._a[..., 0]
    raise_if(counts.size not in (1, size), "count of repeats", counts.size, size)
    raise_if((counts < 0).any(), "negative repeat")
    return input.index_select(dim, of_array(np.repeat(np.arange(size), counts)))


@partial(calling, name="one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    classes = input._a[..., 0]
    raise_if(num_classes < 1 and not classes.size, "classes of no elements")
    count = num_classes if num_classes > 0 else int(classes.max()) + 1
    raise_if((classes >= count).any(), "class outside")
    return of_array((classes[..., None] == np.arange(count)).astype(np.int64))


# In order


def _order(input: Tensor, dim: int, descending: bool) -> tuple[Any, int]:
    at = axis_of(dim, input.dim())
    if not input.dim():
        return np.zeros((), np.int64), at
    return sorted_indices(at, descending, input._a)[..., 0], at


def _along(input: Tensor, order: Any, at: int, op: str, name: str) -> Tensor:
    """Return the elements at indices along an axis."""
    positions = np.take_along_axis(numbers_of(input), order, at) if input.dim() else order
    return taken(input, positions, op, name)


_SORT, _TOPK, _KTH = return_type("sort"), return_type("topk"), return_type("kthvalue")


@method("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order, at = _order(input, dim, descending)
    return with_indices(_SORT, _along(input, order, at, "sort", "SortBackward0"), order)


method("argsort")(lambda input, dim=-1, descending=False, stable=False: of_array(_order(input, dim, descending)[0]))


@method("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    order, at = _order(input, dim, largest)
    raise_if(not 0 <= k <= (input.shape or (1,))[at], "count of topk")
    order = np.take(order, range(k), axis=at) if input.dim() else order
    return with_indices(_TOPK, _along(input, order, at, "topk", "TopkBackward0"), order)


@method("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    order, at = _order(input, dim, False)
    raise_if(not 1 <= k <= (input.shape or (1,))[at], "number of kthvalue", at)
    order = np.take(order, [k - 1], axis=at) if input.dim() else order
    values: Any = _along(input, order, at, "topk", "KthvalueBackward0")
    if keepdim or not input.dim():
        return with_indices(_KTH, values, order)
    return with_indices(_KTH, called(values.squeeze(at), "KthvalueBackward0"), np.take(order, 0, axis=at))


@method("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    indices = np.nonzero(input._a)[:-1] if input.dim() or not as_tuple else np.nonzero(input._a)
    if as_tuple:
        return tuple(map(of_array, indices))
    count = int(np.count_nonzero(input._a))
    return of_array(np.stack(indices, axis=1) if indices else np.zeros((count, 0), np.int64))


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
    sums = None if weights is None else weights._a[..., 0]
    counts = np.bincount(input._a[..., 0], sums, minlength)
    return of_array(counts.astype(np.float32) if sums is not None and sums.dtype == np.float32 else counts)
