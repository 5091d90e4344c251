"""`x[…]`: integers, slices, new axes, tensors of indices and masks; and elements by their flat indices."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import IndexArray, pick, scatter_add, take
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.pytorch.calls import moved
from gradcli.pytorch.messages import raise_if, torch_error, warn
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor


def checked_indices(numbers: Any, size: int, dim: int = 0) -> Any:
    """Return indices counted from the front.

    Errors: `IndexError` for one that is not there.
    """
    indices = np.asarray(numbers, dtype=np.int64)
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
        if any(isinstance(p, IndexArray) for p in parts):
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
        start, stop, step = map(_whole, (k.start, k.stop, k.step))
        raise_if(step is not None and step <= 0, "step of a slice")
        return [range(size)[start:stop:step]]
    if isinstance(k, Tensor):
        k = k._a[..., 0] if k.dim() or k._a.dtype.kind not in "i" else int(k)
    if isinstance(k, int | np.integer) and not isinstance(k, bool):
        return [int(checked_indices(k, size, axis))]
    raise_if(isinstance(k, str), "text as an index")
    raise_if(not isinstance(k, list | tuple | range | np.ndarray), "kind of an index", type(k).__name__)
    is_empty, array = isinstance(k, list) and not k, np.asarray(list(map(_whole, k)) if isinstance(k, list) else k)
    if array.dtype == bool or (array.dtype == np.uint8 and array.ndim):
        return _masked(x, axis, array)
    raise_if(array.dtype.kind not in "iu" and not is_empty, "dtype of an index")
    return [IndexArray.of(checked_indices(array, size, axis))]


def _whole(v: Any) -> Any:
    return int(v) if isinstance(v, Tensor) else v


def _masked(x: Tensor, axis: int, mask: np.ndarray[Any, Any]) -> list[Any]:
    """Return the indices of a mask's true elements along each of its axes, from an axis on."""
    if mask.dtype == np.uint8:
        warn("old mask")
    shape = tuple(x.shape[axis : axis + mask.ndim])
    at = next((i for i, (m, n) in enumerate(zip(mask.shape, shape, strict=True)) if m != n), 0)
    raise_if(mask.shape != shape, "shape of a mask", list(mask.shape), at, list(x.shape), axis + at)
    return [IndexArray.of(p) for p in np.nonzero(mask)]


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return elements: a view, unless the index has index arrays."""
    if (chosen := flag(key)) is not None:
        return getitem(getitem(self, None), np.zeros(int(chosen), np.int64))
    index, name = read(self, key)
    if not name:
        shapes = [p.shape for p in index if isinstance(p, IndexArray)]
        if any(len({*sizes} - {1}) > 1 for sizes in zip_longest(*(s[::-1] for s in shapes), fillvalue=1)):
            raise torch_error("shapes of indices", ", ".join(str(list(s)) for s in shapes))
        return apply("index_places", lambda n: pick(n, index), (self,), index, "IndexBackward0")
    return part(self, index, name)


def part(x: Tensor, key: tuple[Any, ...], name: str) -> Tensor:
    """Return a view of elements."""
    sizes = [1 if k is None else len(k) for k in key if not isinstance(k, int)]
    return moved("index", x, (*sizes, *x.shape[sum(k is not None for k in key) :]), key, name)


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


def assigned(base: Tensor, value: Tensor, numbers: np.ndarray[Any, Any], name: str) -> Tensor:
    """Return a tensor with the elements of these numbers replaced."""
    shape, indices = numbers.shape, IndexArray.of(numbers.reshape(-1))
    kept, chosen = _last(indices)

    def build(x: Node, v: Node) -> Node:
        part = flat(construct.broadcast(v, shape))
        part = part if chosen is None else take(part, 0, chosen)
        there, mask = (scatter_add(n, 0, kept, x.size) for n in (part, const(1, part.shape, x.dtype)))
        new = [construct.reshape(n, x.shape) for n in (there, compare("ne", mask, const(0, (), x.dtype)))]
        return elementwise("where", new[1], cast(new[0], x.dtype), x)

    return apply("assign", build, (base, value), (indices, shape), name)


def _last(indices: IndexArray) -> tuple[IndexArray, IndexArray | None]:
    """Return the distinct indices, and the positions of their last occurrences."""
    count = len(indices.numbers)
    distinct, last = np.unique(indices.numbers[::-1], return_index=True)
    if len(distinct) == count:
        return indices, None
    order = np.sort(count - 1 - last)
    return IndexArray.of(indices.numbers[order]), IndexArray.of(order)


def flat(n: Node) -> Node:
    """Return the elements in one line."""
    return construct.reshape(n, (n.size,))


def numbers_of(x: Tensor) -> np.ndarray[Any, Any]:
    """Return for each element its number among all, read as one line."""
    return np.arange(x.numel()).reshape(x.shape)


def taken(x: Tensor, positions: Any, op: str, name: str | None = None, key: Any = None) -> Tensor:
    """Return elements of a tensor that is read as one line."""
    indices = IndexArray.of(positions)
    return apply(op, lambda n: take(flat(n), 0, indices), (x,), indices if key is None else key, name)


Tensor.__getitem__ = getitem
