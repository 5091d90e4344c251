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
from gradcli.pytorch.names import TORCH, function, with_indices
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
    raise_if(counts.size not in (1, size), "count of repeats", counts.size, size)
    raise_if((counts < 0).any(), "negative repeat")
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


# Compositions


@function("masked_scatter")
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Return a tensor with the elements of another one, in their order, where a mask is true."""
    full = np.broadcast_to(mask._a[..., 0], np.broadcast_shapes(mask.shape, input.shape))
    count = int(full.sum())
    raise_if(count > source.numel(), "source of a masked_scatter")
    order = of_array(np.maximum(np.cumsum(full.reshape(-1)) - 1, 0).reshape(full.shape))
    values = source.reshape(-1)[order] if source.numel() else input
    return set_grad_fn_name(TORCH["where"](of_array(full.copy()), values, input), "MaskedScatterBackward0")


@function("scatter_reduce")
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Return sums, means or extremes of a source's elements at indices; ties share a gradient."""
    is_own = (input.detach().new_zeros(input.shape).scatter(dim, index, 1.0) == 0) | include_self
    own = TORCH["where"](is_own, input, 0)
    if reduce in ("amax", "amin"):
        result = _scattered_extremes(own, is_own, dim, index, src, reduce)
        is_extreme = src == result.gather(dim, index)
        counts = (input == result).to(input.dtype).scatter_add(dim, index, is_extreme.to(input.dtype))
        total = TORCH["where"](input == result, own, 0).scatter_add(dim, index, is_extreme * src)
        # An own element that is not included counts among the ties in PyTorch, too.
        total = result + (total - total.detach()) / counts
    elif reduce == "prod":
        total = TORCH["where"](is_own, input, 1) * _scattered_products(input, dim, index, src)
    else:
        total = own.scatter_add(dim, index, src)
        if reduce == "mean":
            total = total / is_own.to(input.dtype).scatter_add(dim, index, TORCH["ones_like"](src)).detach()
    return set_grad_fn_name(total, "ScatterReduceBackward0")


def _scattered_products(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return the products of a source's elements at indices, and 1 where there is none."""
    at, size = dim % input.dim(), input.shape[dim]
    part = src[tuple(map(slice, index.shape))]
    targets = TORCH["arange"](size).view([-1 if i == at else 1 for i in range(input.dim() + 1)])
    products = TORCH["where"](index.unsqueeze(at) == targets, part.unsqueeze(at), 1).prod(at + 1)
    ends = [n - m for n, m in zip(input.shape, products.shape, strict=True)]
    around = [n for end in ends[::-1] for n in (0, end)]
    return call_function("pad", products, around, "constant", 1) if any(ends) else products


def _scattered_extremes(input: Any, is_own: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    """Return the extremes of a source's elements at indices, and of those of a tensor that are its own."""
    best = np.where(is_own._a, input._a, -np.inf if reduce == "amax" else np.inf)[..., 0]
    indices = np.indices(index.shape)
    indices[dim] = index._a[..., 0]
    extreme = np.maximum if reduce == "amax" else np.minimum
    extreme.at(best, tuple(indices), src._a[tuple(map(slice, index.shape))][..., 0])
    return of_array(best.astype(input._a.dtype))


@function("fill_diagonal_")
def fill_diagonal_(self: Any, fill_value: float, wrap: bool) -> Any:
    """Fill the diagonal of a matrix in place."""
    missing_if(wrap or self.dim() != 2, "Tensor.fill_diagonal_(wrap=True), or of other than 2 axes")
    self.diagonal().fill_(fill_value)
    return self
