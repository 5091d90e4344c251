"""Elements of a node by NumPy's indices, and a node with other elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.construct import array_const
from gradcli.graph.index_arrays import IndexArray, pick, scatter_add, take
from gradcli.graph.node import Node, is_const
from gradcli.graph.shapes import Shape, indices, size_of

Key = tuple[Any, ...]


def element(x: Node, key: Key) -> Node:
    """Return `x[key]` for an index of NumPy's whose integers, slices and arrays are known.

    Errors: `IndexError` where an element does not exist.

    >>> from gradcli.graph.node import leaf
    >>> element(leaf((3, 4)), (Ellipsis, -1)), element(leaf((3,)), (np.array([0, 0]),))
    (index(input), shape (3,), take(input), shape (2,))
    """
    plain = _plain(x.shape, key)
    if plain is not None:
        return construct.index(x, plain)
    if len(key) <= len(x.shape) and all(type(k) is slice or _is_indices(k) for k in key):
        keys = [_along(n, k) for n, k in zip(x.shape, key, strict=False)]
        if not _apart(keys):
            return pick(x, keys)
    flat = positions(x.shape, key)
    return take(construct.reshape(x, (x.size,)), 0, IndexArray.of(flat))


def replaced(x: Node, key: Key, new: Node) -> Node:
    """Return `x` after `x[key] = new`; the last of several values for one element counts, as in NumPy.

    >>> from gradcli.graph.node import const, leaf
    >>> replaced(const(0, (3,)), (slice(0, 2),), leaf((2,)))
    scatter(input), shape (3,)
    """
    flat = positions(x.shape, key)
    new = construct.broadcast(new, flat.shape)
    if flat.size == x.size and (flat.reshape(-1) == np.arange(x.size)).all():
        return construct.reshape(new, x.shape)
    mask = np.zeros(x.size, bool)
    mask[flat.reshape(-1)] = True
    plain = _plain(x.shape, key)
    if plain is not None and not is_const(new, 0):
        if is_const(x, 0):
            return construct.scatter(x.shape, [(plain, new)])
        if x.op == "scatter" and not (mask & _covered(x)).any():
            return construct.scatter(x.shape, [*zip(x.settings[1], x.args, strict=True), (plain, new)])
    order = dict(zip(flat.reshape(-1).tolist(), range(flat.size), strict=True))
    values = construct.reshape(new, (new.size,))
    if len(order) < flat.size:
        values = take(values, 0, IndexArray.of([*order.values()]))
    spread = construct.reshape(scatter_add(values, 0, IndexArray.of([*order]), x.size), x.shape)
    return spread if is_const(x, 0) else construct.where(array_const(mask.reshape(x.shape)), spread, x)


def stacked(x: Node, cells: Mapping[tuple[int, ...], Node], shape: Shape) -> Node:
    """Return `x` with single elements replaced.

    >>> from gradcli.graph.node import const, leaf
    >>> stacked(const(0, (2,)), {(1,): leaf()}, (2,))
    stack(const, input), shape (2,)
    """
    if 2 * len(cells) < x.size and x.size > construct.LISTED:
        keys = tuple(np.array(along) for along in zip(*cells, strict=True))
        return replaced(x, keys, construct.stack([*cells.values()]))
    listed = [cells[k] if k in cells else construct.index(x, k) for k in indices(shape)]
    return construct.reshape(construct.stack(listed), shape)


def positions(shape: Shape, key: Key) -> Array:
    """Return the row-major offsets of the elements at an index."""
    return np.asarray(np.arange(size_of(shape)).reshape(shape)[key])


def _covered(x: Node) -> Array:
    """Return which elements the parts of a scatter cover, flattened."""
    mask = np.zeros(x.shape, bool)
    for key in x.settings[1]:
        mask[
            tuple(slice(k.start, k.stop if k.stop >= 0 else None, k.step) if isinstance(k, range) else k for k in key)
        ] = True
    return mask.reshape(-1)


def is_basic(key: Key) -> bool:
    """Return whether an index takes a part of an array in its own memory."""
    return all(k is None or k is Ellipsis or type(k) in (int, slice) for k in key)


def _plain(shape: Shape, key: Key) -> construct.Index | None:
    """Return an index of integers, slices and new axes as `construct.index` takes it; None for another one."""
    if not is_basic(key):
        return None
    rank = sum(k is not None and k is not Ellipsis for k in key)
    if rank > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {rank} were indexed")
    rest = (slice(None),) * (len(shape) - rank)
    i = key.index(Ellipsis) if Ellipsis in key else len(key)
    sizes = iter(shape)
    return tuple(_index_of_axis(k, sizes) for k in (*key[:i], *rest, *key[i + 1 :]))


def _index_of_axis(k: Any, sizes: Iterator[int]) -> int | range | None:
    """Return an index of one axis without negative numbers: None for a new axis, which has no size in `sizes`."""
    if k is None:
        return None
    n: int = next(sizes)
    if type(k) is slice:
        return range(*k.indices(n))
    if not -n <= k < n:
        raise IndexError(f"index {k} is out of bounds for axis with size {n}")
    return int(k) % n


def _is_indices(k: Any) -> bool:
    array = np.asarray(k)
    return array.dtype.kind in "iu" and array.ndim > 0


def _along(n: int, k: Any) -> range | IndexArray:
    """Return a slice or an array of indices along an axis of that size."""
    if type(k) is slice:
        return range(*k.indices(n))
    array = np.asarray(k)
    if array.size and not (array.min() >= -n and array.max() < n):
        raise IndexError(f"index out of bounds for axis with size {n}")
    return IndexArray.of(np.where(array < 0, array + n, array))


def _apart(keys: list[range | IndexArray]) -> bool:
    """Return whether there are slices between arrays of indices, whose axes come first then."""
    chosen = [i for i, p in enumerate(keys) if isinstance(p, IndexArray)]
    return chosen[-1] - chosen[0] >= len(chosen)
