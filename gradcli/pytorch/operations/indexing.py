"""`x[…]`: integers, slices, new axes, tensors of indices and masks; and elements at flat indices."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import (
    at_zero,
    dynamic_slice,
    flat_indices,
    gather,
    index_add,
    shape_at,
    with_axes_merged,
    without_arrays,
)
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.graph.operations.movement import basic
from gradcli.pytorch.messages import raise_if, torch_error, warn
from gradcli.pytorch.recipes import Recipe, recipe_for
from gradcli.pytorch.running import apply, noted, view_of
from gradcli.pytorch.tensor import Tensor, new


def checked_indices(numbers: Any, size: int, dim: int = 0) -> Any:
    """Return indices counted from the front.

    Errors: `IndexError` for one that is not there.
    """
    indices = np.asarray(numbers, dtype=np.int64)
    if indices.size and indices.view(np.uint64).max() < size:  # all are there, and none counts from the end
        return indices.copy()
    bad = indices[(indices < -size) | (indices >= size)]
    raise_if(bad.size, "index outside", *bad.reshape(-1)[:1], dim, size)
    return np.where(indices < 0, indices + size, indices)


# What makes a list a tuple of indices, and no tensor of them.
_PARTS = (list, tuple, range, slice, Tensor, np.ndarray, type(None))


def read(x: Tensor, key: Any) -> tuple[tuple[Any, ...], str]:
    """Return an index as integers, ranges, `None` and index arrays, and the last view that PyTorch makes for it.

    Its name is empty where there are index arrays.  Beside others, a slice of all makes no view.
    """
    result: list[Any] = []
    axis, name = 0, "AliasBackward0"
    for k in _parts(x, key):
        if axis + _width(k) > x.dim():  # an index of more axes than there are
            raise_if(x.dim() or not isinstance(key, int | slice), "too many indices", x.dim())
            raise_if(isinstance(key, slice), "slice of a number")
            raise_if(key, "index outside", key, 0, 0)
            raise torch_error("index of a number")
        parts = [None] if k is None else _key(x, axis, k)
        shows_all = isinstance(k, slice) and k is not key and parts[0] == range(x.shape[axis])
        if any(isinstance(p, np.ndarray) for p in parts):
            name = ""
        elif name and not shows_all:
            name = f"{'Unsqueeze' if k is None else 'Slice' if isinstance(k, slice) else 'Select'}Backward0"
        result += parts
        axis += _width(k)
    return tuple(result), name


def _parts(x: Tensor, key: Any) -> list[Any]:
    """Return the parts of an index, with a slice of all for each axis that dots stand for."""
    if isinstance(key, list) and len(key) < 32 and any(isinstance(k, _PARTS) or k is Ellipsis for k in key):
        warn("sequence of indices")
        key = tuple(key)
    keys = list(key) if isinstance(key, tuple) else [key]
    dots, more = [i for i, k in enumerate(keys) if k is Ellipsis], x.dim() - sum(map(_width, keys))
    for at in dots[:0:-1]:  # of several, each stands for as many axes: there is none left behind the first
        del keys[at : at + (not more or at + 1 == len(keys))]
    for at in dots[:1]:
        keys[at : at + 1] = [slice(None)] * more
    return keys


def flag(key: Any) -> bool | None:
    """Return a condition that is the whole index, if it is one."""
    if isinstance(key, Tensor) and key._a.dtype == bool and not key.dim():
        return bool(key)
    return key if isinstance(key, bool) else None


def _width(k: Any) -> int:
    """Return how many axes a part of an index takes."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    array = k._a[..., 0] if isinstance(k, Tensor) else k
    return array.ndim if isinstance(array, np.ndarray) and array.dtype in (bool, np.uint8) else 1


def _key(x: Tensor, axis: int, k: Any) -> list[Any]:
    """Return a part of an index as an integer, a range, or index arrays along each axis that it takes."""
    size = x.shape[axis] if axis < x.dim() else 0
    if isinstance(k, slice):
        start, stop, step = map(_integer, (k.start, k.stop, k.step))
        raise_if(step is not None and step <= 0, "step of a slice")
        return [range(size)[start:stop:step]]
    if isinstance(k, Tensor):
        k = k._a[..., 0] if k.dim() or k._a.dtype.kind not in "i" else int(k)
    if isinstance(k, int | np.integer) and not isinstance(k, bool):
        return [int(checked_indices(k, size, axis))]
    raise_if(isinstance(k, str), "text as an index")
    raise_if(not isinstance(k, list | tuple | range | np.ndarray), "kind of an index", type(k).__name__)
    is_empty, array = isinstance(k, list) and not k, np.asarray(list(map(_integer, k)) if isinstance(k, list) else k)
    if array.dtype == bool or (array.dtype == np.uint8 and array.ndim):
        return _mask_indices(x, axis, array)
    raise_if(array.dtype.kind not in "iu" and not is_empty, "dtype of an index")
    return [checked_indices(array, size, axis)]


def _integer(v: Any) -> Any:
    return int(v) if isinstance(v, Tensor) else v


def _mask_indices(x: Tensor, axis: int, mask: np.ndarray[Any, Any]) -> list[Any]:
    """Return the indices of a mask's true elements along each of its axes, from an axis on."""
    if mask.dtype == np.uint8:
        warn("old mask")
    shape = tuple(x.shape[axis : axis + mask.ndim])
    at = next((i for i, (m, n) in enumerate(zip(mask.shape, shape, strict=True)) if m != n), 0)
    raise_if(mask.shape != shape, "shape of a mask", list(mask.shape), at, list(x.shape), axis + at)
    return [*np.nonzero(mask)]


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return elements: a view, unless the index has index arrays."""
    if (quick := along_first(self, key)) is not None:
        return quick
    if (chosen := flag(key)) is not None:
        return getitem(getitem(self, None), np.zeros(int(chosen), np.int64))
    index, name = read(self, key)
    if not name:
        shapes = [p.shape for p in index if isinstance(p, np.ndarray)]
        if any(len({*sizes} - {1}) > 1 for sizes in zip_longest(*(s[::-1] for s in shapes), fillvalue=1)):
            raise torch_error("shapes of indices", ", ".join(str(list(s)) for s in shapes))
        return _gather_at(self, index)
    return part(self, index, name)


def part(x: Tensor, key: tuple[Any, ...], name: str) -> Tensor:
    """Return a view of elements."""
    return _view_at(x, *at_zero(key), x._a[basic(key)], name)


_ELEMENT = (0,)


def along_first(x: Tensor, key: Any) -> Tensor | None:
    """Return elements along the first axis, for an integer, a simple slice or indices; None for another key."""
    array, kind = x._a, type(key)
    if array.ndim == 1 or (kind is not int and kind is not slice and kind is not Tensor):
        return None
    if kind is Tensor:
        if key._a.ndim == 1 or key._a.dtype != np.int64:
            return None
        indices = checked_indices(key._a, len(array))
        return apply("index_places", lambda n, at: gather(n, 0, at), (x,), _ALONG_FIRST, "IndexBackward0", (indices,))
    size = len(array)
    if kind is int:
        known = -size <= key < size
        return _view_at(x, _ELEMENT, (key % size,), array[key], "SelectBackward0") if known else None
    if key.step is not None or type(key.stop) is not int or not (key.start is None or type(key.start) is int):
        return None
    chosen = range(size)[key]
    return _view_at(x, (range(len(chosen)),), (chosen.start,), array[key], "SliceBackward0")


_ALONG_FIRST = (), (0,)


def unrecorded_part(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """Return a view of elements that is one of several results of a step."""
    kind, start = at_zero(key)
    recipe = recipe_for("index", kind, lambda n, s: dynamic_slice(n, kind, s), (x._a,), (start,))
    return view_of(x, x._a[basic(key)], recipe, (start,))


def _view_at(x: Tensor, kind: Any, start: tuple[int, ...], array: np.ndarray[Any, Any], name: str) -> Tensor:
    """Return a part of a tensor as a view: an array, which begins at a position."""
    return apply("index", lambda n, s: dynamic_slice(n, kind, s), (x,), kind, name, (start,), array)


def _gather_at(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """Return `x[key]`, where index arrays are among the keys."""
    plain, axes = without_arrays(key, x.shape)
    kind, start = at_zero(plain)
    sizes = shape_at(plain, x.shape)
    is_part = sizes != x.shape
    indices = flat_indices([k for k in key if isinstance(k, np.ndarray)], axes, sizes)

    def build(n: Node, at: Node, *first: Node) -> Node:
        whole, axis = with_axes_merged(dynamic_slice(n, kind, *first) if first else n, axes)
        return gather(whole, axis, at)

    numbers = [integers(indices), *([integers(start)] if is_part else [])]
    return apply("index_places", build, (x,), (kind if is_part else (), axes), "IndexBackward0", numbers)


def integers(values: Any) -> np.ndarray[Any, Any]:
    """Return indices or positions as numbers of an operation."""
    return np.asarray(values, np.int64)[..., None]


def check_repeated(x: Tensor, new_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Check that a tensor of shape `new_shape` expands to a shape; axes in front may be missing."""
    sizes = x.dtype.tensor, list(new_shape), list(shape), len(shape), len(new_shape)
    raise_if(len(new_shape) > len(shape), "rank of an expand", *sizes)
    for k in range(1, len(new_shape) + 1):
        if new_shape[-k] != 1 and shape[-k] not in (-1, new_shape[-k]):
            raise torch_error(
                "sizes of an expand", shape[-k], new_shape[-k], len(shape) - k, list(shape), list(new_shape)
            )
    new = shape[: len(shape) - len(new_shape)]
    raise_if(-1 in new, "new axis of an expand", len(new) - 1 - new[::-1].index(-1) if -1 in new else 0)
    raise_if(min(shape, default=0) < -1, "size below any")


def assign_flat(base: Tensor, value: Tensor, indices: np.ndarray[Any, Any], name: str) -> Tensor:
    """Return a tensor with the elements at flat indices replaced."""
    recipe, positions = assignment(base, value, indices)
    array = base._a.copy("C")
    array.reshape(-1)[indices.reshape(-1)] = np.broadcast_to(value._a[..., 0], indices.shape).reshape(-1)
    return noted(new(array), recipe, (base, value), name, positions)


def assignment(base: Tensor, value: Tensor, indices: np.ndarray[Any, Any]) -> tuple[Recipe, list[np.ndarray[Any, Any]]]:
    """Return the recipe of an assignment to the elements at flat indices, and the indices that it takes.

    They are distinct; where an element is assigned twice, further indices choose the last values.
    """
    shape = indices.shape

    def build(x: Node, v: Node, kept: Node, *chosen: Node) -> Node:
        part = flat(construct.broadcast(v, shape))
        part = gather(part, 0, *chosen) if chosen else part
        there, mask = (index_add(n, 0, kept, x.size) for n in (part, const(1, part.shape, x.dtype)))
        new = [construct.reshape(n, x.shape) for n in (there, compare("ne", mask, const(0, (), x.dtype)))]
        return elementwise("where", new[1], cast(new[0], x.dtype), x)

    positions = [integers(p) for p in _last_occurrences(indices.reshape(-1), base.numel())]
    return recipe_for("assign", shape, build, (base._a, value._a), positions), positions


def _last_occurrences(indices: np.ndarray[Any, Any], size: int) -> list[np.ndarray[Any, Any]]:
    """Return the distinct ones of indices below a size, and where their last occurrences are if some occur twice."""
    occurs = np.zeros(size, bool)
    occurs[indices] = True
    if np.count_nonzero(occurs) == len(indices):
        return [indices]
    _, last = np.unique(indices[::-1], return_index=True)
    order = np.sort(len(indices) - 1 - last)
    return [indices[order], order]


def flat(n: Node) -> Node:
    """Return a node of one axis with the same elements."""
    return construct.reshape(n, (n.size,))


def flat_index_of_each(x: Tensor) -> np.ndarray[Any, Any]:
    """Return the flat index of each element."""
    return np.arange(x.numel()).reshape(x.shape)


def take_flat(x: Tensor, positions: Any, op: str, name: str | None = None) -> Tensor:
    """Return the elements at flat indices."""
    return apply(op, lambda n, at: gather(flat(n), 0, at), (x,), (), name, (integers(positions),))


Tensor.__getitem__ = getitem
