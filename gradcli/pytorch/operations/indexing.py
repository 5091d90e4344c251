"""`x[…]` and `x[…] = value`: whole numbers, slices, new axes, tensors of places and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.graph.places import Places, pick, put, take
from gradcli.graph.shapes import size_of
from gradcli.pytorch.calls import called, moved
from gradcli.pytorch.messages import refusal, typename
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor

_KINDS = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"


def checked_places(numbers: Any, size: int, dim: int = 0) -> Any:
    """Return places counted from the front.

    Errors: `IndexError` for one that is not there.
    """
    own = np.asarray(numbers, dtype=np.int64)
    bad = (own < -size) | (own >= size)
    if bad.any():
        raise IndexError(f"index {own[bad].reshape(-1)[0]} is out of bounds for dimension {dim} with size {size}")
    return np.where(own < 0, own + size, own)


def read(x: Tensor, key: Any) -> tuple[tuple[Any, ...], bool]:
    """Return an index as whole numbers, ranges, `None` and places, and whether there are places in it."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        used = sum(_width(k) for k in keys if k is not Ellipsis)
        keys[at : at + 1] = [slice(None)] * (x.dim() - used)
    found: list[Any] = []
    axis, placed = 0, False
    for k in keys:
        if k is None:
            found.append(None)
            continue
        if _width(k) and axis + _width(k) > x.dim():
            if not x.dim() and isinstance(key, slice):
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if not x.dim() and isinstance(key, int) and key:
                raise IndexError(f"index {key} is out of bounds for dimension 0 with size 0")
            if not x.dim() and isinstance(key, int):
                raise refusal("index of a number")
            raise IndexError(f"too many indices for tensor of dimension {x.dim()}")
        own, advanced = _key(x, axis, k)
        found += own
        placed = placed or advanced
        axis += _width(k)
    return tuple(found), placed


def _flag(key: Any) -> bool | None:
    """Return a condition that is the whole index, if it is one."""
    if isinstance(key, Tensor) and key._a.dtype == bool and not key.dim():
        return bool(key)
    return key if isinstance(key, bool) else None


def _width(k: Any) -> int:
    """Return how many axes a part of an index takes."""
    if k is None or isinstance(k, bool):
        return 0
    if isinstance(k, Tensor) and k._a.dtype in (bool, np.uint8):
        return k.dim()
    return np.asarray(k).ndim if isinstance(k, np.ndarray) and k.dtype == bool else 1


def _key(x: Tensor, axis: int, k: Any) -> tuple[list[Any], bool]:
    size = x.shape[axis] if axis < x.dim() else 0
    if isinstance(k, slice):
        parts = [int(v) if isinstance(v, Tensor) else v for v in (k.start, k.stop, k.step)]
        if parts[2] is not None and parts[2] <= 0:
            raise ValueError("step must be greater than zero")
        return [range(size)[slice(*parts)]], False
    if isinstance(k, Tensor) and k._a.dtype.kind in "iu" and not k.dim() and k._a.dtype != np.uint8:
        k = int(k)
    if isinstance(k, int | np.integer) and not isinstance(k, bool):
        if not -size <= k < size:
            raise IndexError(f"index {k} is out of bounds for dimension {axis} with size {size}")
        return [int(k) % size], False
    if isinstance(k, list | range | np.ndarray):
        k = np.asarray(k if not isinstance(k, list) else [int(v) if isinstance(v, Tensor) else v for v in k])
    elif isinstance(k, Tensor):
        k = k._a[..., 0]
    else:
        raise IndexError(_KINDS.format(type(k).__name__))
    if k.dtype in (bool, np.uint8) and (k.dtype == bool or k.ndim):
        own = tuple(x.shape[axis : axis + k.ndim])
        if k.shape != own:
            at = next(i for i, (m, n) in enumerate(zip(k.shape, own, strict=True)) if m != n)
            raise refusal("shape of a mask", list(k.shape), at, list(x.shape), axis + at)
        return [Places.of(p) for p in np.nonzero(k)], True
    if k.dtype.kind not in "iu":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return [Places.of(checked_places(k, size, axis))], True


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return elements: a view, unless places are asked for."""
    if (chosen := _flag(key)) is not None:
        return getitem(getitem(self, None), np.zeros(int(chosen), np.int64))
    own, placed = read(self, key)
    if placed:
        own = own + tuple(range(n) for n in self.shape[sum(k is not None for k in own) :])
        return apply("index_places", lambda n: pick(n, own), (self,), own, "IndexBackward0")
    name = _name(self, key)
    if name == "AliasBackward0":
        return moved("reshape", self, self.shape, tuple(self.shape), name)
    return apply("index", lambda n: _indexed(n, own), (self,), own, name)


def _indexed(n: Node, key: tuple[Any, ...]) -> Node:
    found = construct.index(n, key)
    return Node("index", (n,), found.shape, (key,)) if found is n else found


def _name(x: Tensor, key: Any) -> str:
    """Return the name of the last view that PyTorch makes for an index: beside others, a slice of all makes none."""
    name, axis = "AliasBackward0", 0
    keys = key if isinstance(key, tuple) else (key,)
    for i, k in enumerate(keys):
        if k is Ellipsis:
            axis = x.dim() - sum(map(_width, keys[i + 1 :]))
            continue
        if k is None:
            name = "UnsqueezeBackward0"
        elif not isinstance(k, slice):
            name = "SelectBackward0"
        elif k is key or range(x.shape[axis])[k] != range(x.shape[axis]):
            name = "SliceBackward0"
        axis += _width(k)
    return name


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Change elements in place."""
    if not isinstance(value, Tensor | int | float | np.integer | np.bool_):
        raise TypeError(f"can't assign a {typename(value)} to a torch.{self.dtype.tensor}")
    if isinstance(key, bool):
        if not key:
            return
        key = ...
    elif (chosen := _flag(key)) is not None:
        self, key = getitem(self, None), np.zeros(int(chosen), np.int64)
    own, placed = read(self, key)
    if placed:
        _set_places(self, own + tuple(range(n) for n in self.shape[sum(k is not None for k in own) :]), value)
    elif _name(self, key if isinstance(key, tuple) else (key,)) != "AliasBackward0":
        _set_part(getitem(self, key), value)
    else:
        _set_part(self, value)
        if not isinstance(value, Tensor):
            called(self, "FillBackward3")


def _set_part(part: Tensor, value: Any) -> None:
    """Change all elements of a view."""
    from gradcli.pytorch.operations.inplace import check, check_assigned, copied_into, fill

    if not isinstance(value, Tensor):
        fill(part, value)
        return
    check(part)
    check_assigned(value, part)
    extra = value.dim() - part.dim()
    if extra > 0 and set(value.shape[:extra]) == {1}:
        value = value.reshape(value.shape[extra:])  # type: ignore[attr-defined]
    copied_into(part, value)


def _set_places(x: Tensor, key: tuple[Any, ...], value: Any) -> None:
    """Change the elements at places."""
    from gradcli.pytorch.operations.creation import as_tensor
    from gradcli.pytorch.operations.inplace import check, rebased

    check(x)
    numbers = np.arange(x.numel()).reshape(x.shape)[_numpy(key)]
    new = value if isinstance(value, Tensor) else as_tensor(value, dtype=x.dtype)
    if new.dtype is not x.dtype:
        raise refusal("dtype of what is assigned", x.dtype.word, new.dtype.word)
    while new.dim() > numbers.ndim and new.shape[0] == 1:
        new = new[0]
    if not _fits(new.shape, numbers.shape):
        raise refusal("shape of what is assigned", list(new.shape), list(numbers.shape))
    places = Places.of(numbers.reshape(-1))
    rebased(x, lambda old: assigned(old, new, places, numbers.shape, "IndexPutBackward0"))


def _fits(own: tuple[int, ...], there: tuple[int, ...]) -> bool:
    """Tell whether an array of a shape can be repeated to another one."""
    return len(own) <= len(there) and all(m in (1, n) for m, n in zip(own[::-1], there[::-1], strict=False))


def _numpy(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        k.numbers if isinstance(k, Places) else slice(k.start, k.stop, k.step) if isinstance(k, range) else k
        for k in key
    )


def assigned(base: Tensor, value: Tensor, places: Places, shape: tuple[int, ...], name: str) -> Tensor:
    """Return a tensor with other numbers at these places, which are those of an array of a shape."""
    kept, chosen = _last(places)

    def build(x: Node, v: Node) -> Node:
        part = construct.broadcast(v, shape) if v.shape != shape else v
        flat = construct.reshape(part, (size_of(shape),)) if len(shape) != 1 else part
        if chosen is not None:
            flat = take(flat, 0, chosen)
        there = put(flat, 0, kept, x.size)
        mask = compare("ne", put(const(1, flat.shape, x.dtype), 0, kept, x.size), const(0, (), x.dtype))
        new = [there, mask] if len(x.shape) == 1 else [_shaped(n, x.shape) for n in (there, mask)]
        return elementwise("where", new[1], cast(new[0], x.dtype), x)

    return apply("assign", build, (base, value), (places, shape), name)


def _last(places: Places) -> tuple[Places, Places | None]:
    """Return the places without those that are there again, and which of them stay: the last ones."""
    count = len(places.numbers)
    distinct, last = np.unique(places.numbers[::-1], return_index=True)
    if len(distinct) == count:
        return places, None
    own = np.sort(count - 1 - last)
    return Places.of(places.numbers[own]), Places.of(own)


def flat(n: Node) -> Node:
    """Return the elements in one line."""
    return n if len(n.shape) == 1 else _shaped(n, (n.size,))


def taken(x: Tensor, places: Any, op: str, name: str | None = None, key: Any = None) -> Tensor:
    """Return elements of a tensor that is read as one line."""
    own = Places.of(places)
    return apply(op, lambda n: take(flat(n), 0, own), (x,), own if key is None else key, name)


def _shaped(n: Node, shape: tuple[int, ...]) -> Node:
    return Node("reshape", (n,), shape, (shape,))


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem
