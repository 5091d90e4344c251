"""Arrays of integer indices as settings of nodes, and the operations that index by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array, Weights
from gradcli.graph.construct import Index, index, reshape, transpose
from gradcli.graph.node import Node
from gradcli.graph.shapes import MAX_RANK, Shape, broadcast_shapes, check_size, size_of

Nested = Sequence[Any]  # lists in lists, as they are typed

_SHOWN = 12


@dataclass(frozen=True, repr=False)
class IndexArray:
    """An array of indices from 0.  It is hashable, as settings are: the indices are one string of bytes.

    >>> indices = IndexArray.of([[0, 2], [1, 1]])
    >>> indices, indices == IndexArray.of(np.array([[0, 2], [1, 1]]))
    ([[0, 2], [1, 1]], True)
    """

    shape: Shape
    data: bytes  # the numbers as int64, row after row

    @classmethod
    def of(cls, numbers: Any) -> IndexArray:
        """Return the index array of an array of integers."""
        array = np.asarray(numbers, dtype=np.int64)
        return cls(array.shape, array.tobytes())

    @cached_property
    def numbers(self) -> Array:
        """The indices as a read-only array of int64."""
        return np.frombuffer(self.data, np.int64).reshape(self.shape)

    @cached_property
    def groups(self) -> tuple[Array, Array, Array]:
        """The groups of equal indices."""
        return groups_of(self.numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexArray, (self.shape, self.data)

    def __repr__(self) -> str:
        if len(self.shape) == 1 and self.shape[0] > _SHOWN:
            return f"[{', '.join(map(str, self.numbers[:_SHOWN].tolist()))}, …]"
        few = size_of(self.shape) <= 4 * _SHOWN
        return str(self.numbers.tolist()) if few else f"{'×'.join(map(str, self.shape))} indices"


def groups_of(indices: Array) -> tuple[Array, Array, Array]:
    """Return the stable argsort of indices, the start of each run of equal ones in it, and the distinct indices.

    >>> groups_of(np.array([2, 0, 2]))
    (array([1, 0, 2]), array([0, 1]), array([0, 2]))
    """
    order = np.argsort(indices, axis=None, kind="stable")
    in_order = indices.reshape(-1)[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])) if order.size else order
    return order, starts, in_order[starts]


# Reading what was typed


def flattened(numbers: Any) -> tuple[Shape, list[Any]]:
    """Return the shape of lists in lists, and their elements in order.

    Errors: `InputError` where lists differ in length, and where there is nothing in them.

    >>> flattened([[0, 1], [2, 0]])
    ((2, 2), [0, 1, 2, 0])
    """
    shape: list[int] = []
    elements = [numbers]
    while any(isinstance(e, list | tuple) for e in elements):
        lengths = {len(e) if isinstance(e, list | tuple) else -1 for e in elements}
        if len(lengths) > 1 or len(shape) == MAX_RANK:
            raise InputError("the lists of an index must be equally long", hint="for example `x[[0, 2]]`")
        shape += lengths
        elements = [inner for e in elements for inner in e]
    if not elements:
        raise InputError("an empty list takes no elements", hint="for example `x[[0, 2]]`")
    return tuple(shape), elements


def index_array(numbers: Any, size: int) -> IndexArray:
    """Return nested lists of integers as indices along an axis of `size` elements; negative ones count from its end.

    Errors: `InputError` for an element that is not an integer, or is out of range.

    >>> index_array([0, -1], 3)
    [0, 2]
    """
    shape, elements = flattened(numbers)
    for i in elements:
        if type(i) is not int:
            raise InputError("an index must consist of integers", hint="for example `x[[0, 2]]`")
        if not -size <= i < size:
            brief = str(i) if abs(i) < 10**20 else "of so large a number"
            raise InputError(
                f"there is no element {brief} among {size}", hint=f"elements are counted from 0 to {size - 1}"
            )
    return IndexArray.of(np.reshape([i % size for i in elements], shape))


def is_mask(numbers: Any) -> bool:
    """Return whether lists hold conditions: True and False only."""
    return isinstance(numbers, list | tuple) and all(type(e) is bool for e in flattened(numbers)[1])


def indices_where(mask: Nested, shape: Shape) -> list[IndexArray]:
    """Return the indices of the true elements of a mask, an index array for each axis, as `np.nonzero` does.

    Errors: `InputError` for a mask that has not this shape.

    >>> indices_where([[True, False], [False, True]], (2, 2))
    [[0, 1], [0, 1]]
    """
    size, elements = flattened(mask)
    if size != shape:
        raise InputError(
            f"a mask of shape {size} does not fit {'elements' if len(shape) == 1 else 'an array'} of shape {shape}",
            hint="a mask has True or False for each element",
        )
    return [IndexArray.of(along) for along in np.nonzero(np.reshape(elements, shape))]


# Nodes


def take(x: Node, axis: int, indices: IndexArray) -> Node:
    """Return the slices at these indices along an axis, as `np.take` does: the indices' axes replace that axis."""
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return Node("take", (x,), check_size(shape), (axis, indices))


def scatter_add(x: Node, axis: int, indices: IndexArray, size: int) -> Node:
    """Return zeros, `size` along the axis, to which slices are added at their indices: the pullback of `take`."""
    shape = (*x.shape[:axis], size, *x.shape[axis + len(indices.shape) :])
    return Node("scatter_add", (x,), check_size(shape), (axis, indices, size))


def gather(x: Node, axis: int, indices: Node) -> Node:
    """Return `take` at indices that are an argument: an array of integers, which may vary from call to call."""
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return Node("gather", (x, indices), check_size(shape), (axis,), x.dtype)


def index_add(x: Node, axis: int, indices: Node, size: int) -> Node:
    """Return `scatter_add` at indices that are an argument: the pullback of `gather`."""
    shape = (*x.shape[:axis], size, *x.shape[axis + len(indices.shape) :])
    return Node("index_add", (x, indices), check_size(shape), (axis, size), x.dtype)


def dynamic_slice(x: Node, key: Index, start: Node) -> Node:
    """Return `index` at positions that are an argument: a vector of what is added to each part of the key.

    A key that is equal for all positions has 0 for an integer, and ranges that begin at 0; a new axis has no start.
    """
    return Node("dynamic_slice", (x, start), shape_at(key, x.shape), (key,), x.dtype)


def dynamic_scatter(part: Node, key: Index, start: Node, shape: Shape) -> Node:
    """Return zeros of a shape with a part at positions that are an argument: the pullback of `dynamic_slice`."""
    return Node("dynamic_scatter", (part, start), shape, (shape, key), part.dtype)


def shape_at(key: Index, shape: Shape) -> Shape:
    """Return the shape of `x[key]` for an array of a shape.

    >>> shape_at((3, None, range(1, 5, 2)), (4, 6, 7))
    (1, 2, 7)
    """
    sizes = [1 if k is None else len(k) for k in key if not isinstance(k, int)]
    return (*sizes, *shape[sum(k is not None for k in key) :])


def shifted(key: Index, start: Sequence[int]) -> Index:
    """Return a key that begins at 0 with a start added to each part.

    >>> shifted((0, None, range(0, 4, 2)), (3, 1))
    (3, None, range(1, 5, 2))
    """
    starts = iter(start)
    return tuple(k if k is None else next(starts) + k if isinstance(k, int) else _moved(k, next(starts)) for k in key)


def _moved(k: range, start: int) -> range:
    return range(start, k.stop + start, k.step)


def at_zero(key: Index) -> tuple[Index, tuple[int, ...]]:
    """Return a key that begins at 0, and the start of each part: what `shifted` puts together.

    A range ends where its next element would be, and so equal ones are one: `range(4, 2)` is `range(0, 0)`, from 4 on.

    >>> at_zero((3, None, range(1, 4, 2)))
    ((0, None, range(0, 4, 2)), (3, 1))
    """
    parts = [k for k in key if k is not None]
    kind = tuple([k if k is None else 0 if isinstance(k, int) else range(0, len(k) * k.step, k.step) for k in key])
    return kind, tuple([k if isinstance(k, int) else k.start for k in parts])


def known_integers(node: Node) -> Array | None:
    """Return the integers of a constant as an array; None for any other node."""
    if not node.is_constant:
        return None
    known = node.settings[0]
    values: Any = known.array if isinstance(known, Weights) else known
    result = np.asarray(values, np.int64)
    return result.reshape(node.shape) if result.size == node.size else np.broadcast_to(result, node.shape)


def segment_sum(x: Node, ids: IndexArray, n: int) -> Node:
    """Return n sums of slices along the first axis: slice i is added to sum `ids[i]`, as `jax.ops.segment_sum` does.

    Errors: `InputError` unless there is one id for each slice.
    """
    if not x.shape or ids.shape != x.shape[:1]:
        raise InputError(
            f"segment ids of shape {ids.shape} do not fit an array of shape {x.shape}",
            hint="each slice along the first axis has one id: `segment_sum(x, [0, 0, 1], 2)`",
        )
    return Node("segment_sum", (x,), check_size((n, *x.shape[1:])), (ids, n))


def gather_along(x: Node, axis: int, numbers: Any) -> Node:
    """Return the array of `x[i, index[i, j], k]`, for axis 1: PyTorch's `gather`.

    Errors: `InputError` for an index of another rank, or one that is longer than `x` along another axis.
    """
    indices = index_array(numbers, x.shape[axis]).numbers
    fits = indices.ndim == len(x.shape) and all(
        n <= m for i, (n, m) in enumerate(zip(indices.shape, x.shape, strict=True)) if i != axis
    )
    if not fits:
        raise InputError(
            f"an index of shape {indices.shape} does not fit an array of shape {x.shape}",
            hint=f"it has as many axes, and no more elements along any but axis {axis}",
        )
    at: list[Array] = list(np.indices(indices.shape, sparse=True))
    at[axis] = indices
    flat = np.ravel_multi_index(np.broadcast_arrays(*at), x.shape)
    return take(reshape(x, (x.size,)), 0, IndexArray.of(flat))


def pick(x: Node, key: Sequence[int | range | IndexArray | None]) -> Node:
    """Return `x[key]`, where index arrays may be among the keys: PyTorch's advanced indexing.

    Index arrays broadcast together.  Their axes replace the axes that they index, or come first where these are not
    adjacent.  NumPy's result differs only where an integer is among the keys.

    Errors: `InputError` for index arrays that do not broadcast.
    """
    arrays = [k.numbers if isinstance(k, IndexArray) else k for k in key]
    plain, axes = without_arrays(arrays, x.shape)
    x = index(x, plain)
    if not axes:
        return x
    indices = IndexArray.of(flat_indices([k for k in arrays if isinstance(k, np.ndarray)], axes, x.shape))
    x, axis = with_axes_merged(x, axes)
    return take(x, axis, indices)


def without_arrays(key: Sequence[Any], shape: Shape) -> tuple[Index, tuple[int, ...]]:
    """Return a key with all elements in place of each index array, and the axes of `x[key]` that the arrays index."""
    sizes = iter(shape)
    plain: list[int | range | None] = []
    axes: list[int] = []
    for k in key:
        size = 0 if k is None else next(sizes)
        if isinstance(k, np.ndarray):
            axes.append(sum(not isinstance(p, int) for p in plain))
        plain.append(range(size) if isinstance(k, np.ndarray) else k)
    return tuple(plain), tuple(axes)


def flat_indices(arrays: Sequence[Array], axes: Sequence[int], shape: Shape) -> Array:
    """Return index arrays along several axes as one along these axes merged.

    Errors: `InputError` for index arrays that do not broadcast.
    """
    if len(arrays) == 1:
        return arrays[0]
    common = broadcast_shapes([a.shape for a in arrays])
    return np.ravel_multi_index([np.broadcast_to(a, common) for a in arrays], [shape[axis] for axis in axes])


def with_axes_merged(x: Node, axes: Sequence[int]) -> tuple[Node, int]:
    """Return an array with some axes made one, and where it stands: first, unless the axes are adjacent."""
    start = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    rest = [i for i in range(len(x.shape)) if i not in axes]
    x = transpose(x, (*rest[:start], *axes, *rest[start:]))
    size = size_of(x.shape[start : start + len(axes)])
    return reshape(x, (*x.shape[:start], size, *x.shape[start + len(axes) :])), start
