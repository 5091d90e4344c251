"""Elements at indices, gathered and scattered; sorted elements and their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import sort_indices as sorted_indices
from gradcli.graph import construct
from gradcli.graph.index_arrays import gather, index_add
from gradcli.graph.node import Node
from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.functions import capitals
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.names import function, with_indices
from gradcli.pytorch.operations.indexing import (
    assign_flat,
    checked_indices,
    flat,
    flat_index_of_each,
    integers,
    take_flat,
)
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

Array = np.ndarray[Any, Any]


def _axis(x: Tensor, dim: int) -> tuple[int, int]:
    """Return an axis as counted from the front, and its size."""
    axis = axis_of(dim, x.dim())
    return axis, x.shape[axis] if x.dim() else 1


def _indices_along(x: Tensor, dim: int, index: Tensor, *sources: Any) -> Array:
    """Return flat indices of the elements that indices along an axis mean: those to gather, or those to fill.

    Errors: PyTorch's, for indices of another rank than the tensor's, or of larger sizes.
    """
    indices = index._a[..., 0]
    wrong = indices.dtype not in (np.int32, np.int64)
    raise_if(wrong, "dtype of indices to gather", "scatter" if sources else "gather")
    for source in sources:
        raise_if(isinstance(source, Tensor) and source._a.dtype != x._a.dtype, "dtype of what is put")
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
    along: list[Array] = list(np.indices(indices.shape, sparse=True))
    along[axis] = indices
    return _flat_indices(x.shape, along)


def _flat_indices(shape: Sequence[int], along: Sequence[Any]) -> Array:
    """Return flat indices from the index arrays along each axis, which broadcast together."""
    result = np.zeros((), np.int64)
    for size, indices in zip(shape, along, strict=True):
        result = np.asarray(result * size + indices)
    return result


def _slice_indices(x: Tensor, dim: int, index: Tensor) -> tuple[int, Array]:
    """Return an axis, and the indices of slices along it."""
    (axis, size), indices = _axis(x, dim), index._a.reshape(-1)
    bad = indices[(indices < 0) | (indices >= size)]
    raise_if(bad.size, "slice outside", about=(bad, size))
    return axis, indices.copy()


def _flat_slice_indices(x: Tensor, dim: int, index: Tensor) -> Array:
    """Return the flat indices of the slices at indices along an axis."""
    axis, indices = _slice_indices(x, dim, index)
    if not x.dim():
        return np.asarray(indices[0])
    return _flat_indices(x.shape, np.ix_(*(indices if i == axis else np.arange(n) for i, n in enumerate(x.shape))))


def _index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    axis, indices = _slice_indices(input, dim, index)
    if not input.dim():
        return take_flat(input, indices[0], "index_select")
    return apply("index_select", lambda n, at: gather(n, axis, at), (input,), (axis,), None, (integers(indices),))


def _mask_indices(x: Tensor, mask: Tensor) -> Array:
    """Return the flat indices of the elements that a mask chooses; both broadcast together."""
    chosen = mask._a[..., 0]
    raise_if(chosen.dtype != bool, "mask of another dtype")
    chosen = np.broadcast_to(chosen, common_shape((chosen.shape, x.shape)))
    along = np.nonzero(chosen)[chosen.ndim - x.dim() :] if x.dim() else ()
    first = np.zeros(np.count_nonzero(chosen), np.int64)
    return first + _flat_indices(x.shape, [p if n > 1 else 0 for p, n in zip(along, x.shape, strict=True)])


def _checked_flat_indices(x: Tensor, index: Tensor) -> Array:
    raise_if(index._a.dtype != np.int64, "dtype of indices to take", index.dtype.word)
    return checked_indices(index._a[..., 0], x.numel())


# Put there


def _check_dtype(x: Tensor, value: Tensor, name: str) -> None:
    """Check that what is written into a tensor, or added to it, has its dtype."""
    if value._a.dtype != x._a.dtype and name in ("index_add", "index_copy", "index_put"):
        raise torch_error(f"dtype of the source of {name}", x.dtype.word, value.dtype.word)


def _fill(x: Tensor, positions: Any, value: Any, name: str) -> Tensor:
    """Return a tensor with some elements replaced: by those of a tensor, or all by one number."""
    tensor = value if isinstance(value, Tensor) else of_array(np.asarray(value, x._a.dtype))
    _check_dtype(x, tensor, name)
    number = int((name, tensor is value) in (("scatter", False), ("index_fill", True)))
    return assign_flat(x, tensor, positions, f"{capitals(name)}Backward{number}")


def _add(x: Tensor, positions: Any, value: Tensor, name: str, alpha: Any = 1) -> Tensor:
    """Return a tensor with numbers added to some of its elements."""
    _check_dtype(x, value, name)

    def build(n: Node, v: Node, at: Node, *factor: Node) -> Node:
        scaled = v * factor[0] if factor else v
        return n + construct.reshape(index_add(flat(scaled), 0, at, n.size), n.shape)

    factors = [] if alpha == 1 else [np.array([alpha], value._a.dtype)]
    return apply(name, build, (x, value), (), None, [integers(positions.reshape(-1)), *factors])


def _source_part(src: Any, index: Tensor) -> Any:
    """Return the part of a source that an index of a smaller shape uses."""
    part = isinstance(src, Tensor) and src.shape != index.shape
    return src[tuple(slice(n) for n in index.shape)] if part else src


def _scatter(input: Tensor, dim: int, index: Tensor, src: Any, value: Any, reduce: Any) -> Tensor:
    missing_if(reduce is not None, "Tensor.scatter(reduce=…)", "did you mean `scatter_add`?")
    src = value if src is None else src
    return _fill(input, _indices_along(input, dim, index, src), _source_part(src, index), "scatter")


def _index_put(input: Tensor, indices: Any, values: Any, accumulate: bool) -> Tensor:
    positions = flat_index_of_each(input)[tuple(i._a[..., 0] for i in indices)]
    if accumulate:
        return _add(input, positions, values.expand(*positions.shape), "index_put")
    return _fill(input, positions, values, "index_put")


_AT_INDICES: dict[str, Callable[..., Tensor]] = {
    "index_select": _index_select,
    "gather": lambda input, dim, index, sparse_grad: take_flat(input, _indices_along(input, dim, index), "gather"),
    "take": lambda input, index: take_flat(input, _checked_flat_indices(input, index), "take_flat"),
    "masked_select": lambda input, mask: take_flat(input, _mask_indices(input, mask), "masked_select"),
    "scatter": _scatter,
    "scatter_add": lambda input, dim, index, src: _add(
        input, _indices_along(input, dim, index, src), _source_part(src, index), "scatter_add"
    ),
    "index_add": lambda input, dim, index, source, alpha: _add(
        input, _flat_slice_indices(input, dim, index), source, "index_add", alpha
    ),
    "index_copy": lambda input, dim, index, source: _fill(
        input, _flat_slice_indices(input, dim, index), source, "index_copy"
    ),
    "index_fill": lambda input, dim, index, value: _fill(
        input, _flat_slice_indices(input, dim, index), value, "index_fill"
    ),
    "index_put": _index_put,
}
for _name, _function in _AT_INDICES.items():
    function(_name)(_function)


@function("repeat_interleave")
def repeat_interleave(input: Any, repeats: Any, dim: int | None, output_size: Any) -> Tensor:
    if input is None:
        input = of_array(np.arange(len(repeats)))
    if dim is None:
        input, dim = input.reshape(-1), 0
    if not isinstance(repeats, Tensor):
        raise_if(repeats < 0, "negative repeats")
        return call_function("repeat_interleave", input, repeats, dim)
    raise_if(repeats._a.dtype.kind != "i", "no kernel", "repeat_interleave_cpu", repeats.dtype.word)
    size, counts = input.shape[dim], repeats._a[..., 0]
    raise_if(counts.size not in (1, size) or (counts < 0).any(), "counts of repeats", counts.size, size)
    return input.index_select(dim, of_array(np.repeat(np.arange(size), counts)))


@function("one_hot", module=NN)
def one_hot(input: Tensor, num_classes: int) -> Tensor:
    classes = input._a[..., 0]
    raise_if(classes.dtype != np.int64, "dtype of classes")
    raise_if(classes.size and classes.min() < 0, "negative class")
    raise_if(num_classes < 1 and not classes.size, "classes of no elements")
    count = num_classes if num_classes > 0 else int(classes.max()) + 1
    raise_if((classes >= count).any(), "class outside", about=(classes, count))
    return of_array((classes[..., None] == np.arange(count)).astype(np.int64))


# In order


def _order(input: Tensor, dim: int, descending: bool) -> tuple[Any, int]:
    axis = axis_of(dim, input.dim())
    if not input.dim():
        return np.zeros((), np.int64), axis
    return sorted_indices(axis, descending, input._a)[..., 0], axis


def at_indices(op: str, x: Tensor, indices: Array, axis: int, keepdim: bool = True, recorded: str = "") -> Any:
    """Return the elements at indices along an axis, and the indices; without `keepdim`, the axis of size 1 goes.

    It may be `recorded` under another name.
    """
    positions = np.take_along_axis(flat_index_of_each(x), indices, axis) if x.dim() else indices
    name = f"{op.capitalize()}Backward0"
    values: Any = take_flat(x, positions, recorded or op, name)
    if x.dim() and not keepdim:
        values, indices = set_grad_fn_name(values.squeeze(axis), name), np.squeeze(indices, axis)
    return with_indices(op, values, indices)


@function("sort")
def sort(input: Tensor, dim: int, descending: bool, stable: bool) -> Any:
    return at_indices("sort", input, *_order(input, dim, descending))


function("argsort")(lambda input, dim, descending, stable: of_array(_order(input, dim, descending)[0]))


@function("topk")
def topk(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    order, axis = _order(input, dim, largest)
    raise_if(not 0 <= k <= (input.shape or (1,))[axis], "count of topk")
    return at_indices("topk", input, np.take(order, range(k), axis=axis) if input.dim() else order, axis)


@function("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int, keepdim: bool) -> Any:
    order, axis = _order(input, dim, False)
    raise_if(not 1 <= k <= (input.shape or (1,))[axis], "number of kthvalue", axis)
    order = np.take(order, [k - 1], axis=axis) if input.dim() else order
    return at_indices("kthvalue", input, order, axis, keepdim, "topk")


@function("nonzero")
def nonzero(input: Tensor, as_tuple: bool) -> Any:
    indices = np.nonzero(input._a)[:-1] if input.dim() or not as_tuple else np.nonzero(input._a)
    if as_tuple:
        return tuple(map(of_array, indices))
    count = int(np.count_nonzero(input._a))
    return of_array(np.stack(indices, axis=1) if indices else np.zeros((count, 0), np.int64))


@function("unique")
def unique(input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    values, first, inverse, counts = np.unique(input._a[..., 0], True, True, True, dim)
    shape = input._a.shape[:-1] if dim is None else (-1,)
    parts = [take_flat(input, first, "unique", "Unique2Backward0") if dim is None else of_array(values)]
    parts += [of_array(inverse.reshape(shape))] if return_inverse else []
    parts += [of_array(counts)] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)


@function("bincount")
def bincount(input: Tensor, weights: Any, minlength: int) -> Tensor:
    numbers = input._a[..., 0]
    raise_if(numbers.dtype.kind == "f", "no kernel", "bincount_cpu", input.dtype.word)
    raise_if(numbers.ndim != 1 or numbers.min(initial=0) < 0, "counts of bincount")
    sums = None if weights is None else weights._a[..., 0]
    counts = np.bincount(numbers, sums, minlength)
    return of_array(counts.astype(np.float32) if sums is not None and sums.dtype == np.float32 else counts)
