"""Elements taken from places that a tensor holds, and put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node, cast, const
from gradcli.graph.places import Places, put
from gradcli.pytorch.calls import exact
from gradcli.pytorch.gradnames import capitals
from gradcli.pytorch.messages import refuse_if
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.operations.indexing import assigned, checked_places, flat, numbers_of, taken
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import function, method
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

Array = np.ndarray[Any, Any]


def _axis(x: Tensor, dim: int) -> tuple[int, int]:
    """Return an axis as counted from the front, and its size."""
    axis = axis_of(dim, x.dim())
    return axis, x.shape[axis] if x.dim() else 1


def _each(x: Tensor, dim: int, index: Tensor) -> Array:
    """Return for each place along an axis which element is meant."""
    own = index._a[..., 0]
    refuse_if(own.dtype.kind != "i", "dtype of places to gather")
    axis, size = _axis(x, dim)
    bad = own[(own < 0) | (own >= size)]
    refuse_if(bad.size, "place to gather outside", *bad[:1], dim, size)
    if not x.dim():
        return own
    there = numbers_of(x)[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(own.shape))]
    return np.take_along_axis(there, own, axis)


def _slices(x: Tensor, dim: int, index: Tensor) -> Array:
    """Return which elements the slices at places along an axis have."""
    (axis, size), own = _axis(x, dim), index._a.reshape(-1)
    refuse_if(((own < 0) | (own >= size)).any(), "slice outside")
    return np.take(numbers_of(x), own, axis) if x.dim() else own[0]


def _masked(x: Tensor, mask: Tensor) -> Array:
    """Return which elements a mask chooses."""
    refuse_if(mask._a.dtype != bool, "mask of another dtype")
    numbers, own = np.broadcast_arrays(numbers_of(x), mask._a[..., 0])
    return numbers[own]


def _of_line(x: Tensor, index: Tensor) -> Array:
    return checked_places(index._a[..., 0], x.numel())


# Put there


def _filled(x: Tensor, places: Any, value: Any, name: str) -> Tensor:
    """Return a tensor with other numbers at places: those of a tensor, or one for all."""
    own = value if isinstance(value, Tensor) else of_array(np.asarray(value, x._a.dtype))
    number = int((name, own is value) in (("scatter", False), ("index_fill", True)))
    refuse_if(own._a.dtype != x._a.dtype and name != "index_fill", "dtype of what is put", name)
    return assigned(x, own, places, f"{capitals(name)}Backward{number}")


def _added(x: Tensor, places: Any, value: Tensor, name: str, alpha: Any = 1) -> Tensor:
    """Return a tensor with other numbers added at places."""
    refuse_if(value._a.dtype != x._a.dtype, "source of another dtype", name, x.dtype.word, value.dtype.word)
    own = Places.of(places.reshape(-1))

    def build(n: Node, v: Node) -> Node:
        scaled = v if alpha == 1 else v * cast(const(exact(alpha)), v.dtype)
        return n + construct.reshape(put(flat(scaled), 0, own, n.size), n.shape)

    return apply(name, build, (x, value), (own, repr(alpha)))


def _corner(src: Any, index: Tensor) -> Any:
    """Return the part of a source that an index of a smaller shape uses."""
    part = isinstance(src, Tensor) and src.shape != index.shape
    return src[tuple(slice(n) for n in index.shape)] if part else src


def _scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    if reduce is not None:
        raise MissingError("scatter(reduce=…)", "did you mean `scatter_add`?")
    return _filled(input, _each(input, dim, index), _corner(value if src is None else src, index), "scatter")


def _put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    places = numbers_of(input)[tuple(i._a[..., 0] for i in indices)]
    if accumulate:
        return _added(input, places, values.expand(*places.shape), "index_put")
    return _filled(input, places, values, "index_put")


_BOTH: dict[str, Callable[..., Tensor]] = {
    "index_select": lambda input, dim, index: taken(input, _slices(input, dim, index), "index_select"),
    "gather": lambda input, dim, index: taken(input, _each(input, dim, index), "gather"),
    "take": lambda input, index: taken(input, _of_line(input, index), "take_flat"),
    "masked_select": lambda input, mask: taken(input, _masked(input, mask), "masked_select"),
    "scatter": _scatter,
    "scatter_add": lambda input, dim, index, src: _added(
        input, _each(input, dim, index), _corner(src, index), "scatter_add"
    ),
    "index_add": lambda input, dim, index, source, *, alpha=1: _added(
        input, _slices(input, dim, index), source, "index_add", alpha
    ),
    "index_copy": lambda input, dim, index, source: _filled(input, _slices(input, dim, index), source, "index_copy"),
    "index_fill": lambda input, dim, index, value: _filled(input, _slices(input, dim, index), value, "index_fill"),
    "index_put": _put,
}
for _name, _made in _BOTH.items():
    method(_name)(_made)


@function("one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    own = tensor._a[..., 0]
    refuse_if(own.dtype != np.int64, "dtype of classes")
    refuse_if((own < 0).any(), "negative class")
    count = num_classes if num_classes > 0 else int(own.max()) + 1
    refuse_if((own >= count).any(), "class outside")
    return of_array((own[..., None] == np.arange(count)).astype(np.int64))
