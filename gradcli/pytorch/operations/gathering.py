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
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.operations.indexing import assigned, checked_places, flat, taken
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import both, function
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


def _each(x: Tensor, dim: int, index: Tensor) -> Any:
    """Return for each place along an axis which element of the tensor, read as one line, is meant."""
    axis = axis_of(dim, x.dim())
    own = index._a[..., 0]
    if own.dtype.kind != "i":
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    size = x.shape[axis] if x.dim() else 1
    if own.size and not 0 <= own.min() <= own.max() < size:
        bad = own[(own < 0) | (own >= size)][0]
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    at: list[Any] = list(np.indices(own.shape, sparse=True))
    if not x.dim():
        return own
    at[axis] = own
    return np.ravel_multi_index(np.broadcast_arrays(*at), tuple(x.shape))


def _slices(x: Tensor, dim: int, index: Tensor) -> Any:
    """Return which elements the slices at places along an axis have."""
    axis = axis_of(dim, x.dim())
    own = index._a[..., 0].reshape(-1)
    size = x.shape[axis] if x.dim() else 1
    if own.size and not 0 <= own.min() <= own.max() < size:
        raise IndexError("index out of range in self")
    if not x.dim():
        return own[0]
    return np.take(np.arange(x.numel()).reshape(x.shape), own, axis)


def _masked(input: Tensor, mask: Tensor) -> Tensor:
    if mask._a.dtype != bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    numbers = np.broadcast_to(np.arange(input.numel()).reshape(input.shape), shape)
    return taken(input, numbers[np.broadcast_to(mask._a[..., 0], shape)], "masked_select")


# Put there


def _filled(x: Tensor, places: Any, value: Any, name: str) -> Tensor:
    """Return a tensor with other numbers at places: those of a tensor, or one for all."""
    if isinstance(value, Tensor):
        if value._a.dtype != x._a.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
        return assigned(x, value, Places.of(places.reshape(-1)), places.shape, f"{capitals(name)}Backward0")
    own = of_array(np.asarray(value, x._a.dtype))
    number = 1 if name == "scatter" else 0
    return assigned(x, own, Places.of(places.reshape(-1)), places.shape, f"{capitals(name)}Backward{number}")


def _added(x: Tensor, places: Any, value: Tensor, name: str, alpha: Any = 1) -> Tensor:
    """Return a tensor with other numbers added at places."""
    if value._a.dtype != x._a.dtype:
        raise refusal("source of another dtype", name, x.dtype.word, value.dtype.word)
    own = Places.of(places.reshape(-1))

    def build(n: Node, v: Node) -> Node:
        scaled = v if alpha == 1 else v * cast(const(exact(alpha)), v.dtype)
        there = put(flat(scaled), 0, own, n.size)
        return n + construct.reshape(there, n.shape)

    return apply(name, build, (x, value), (own, repr(alpha)))


def _scattered(input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any) -> Tensor:
    if reduce is not None:
        raise MissingError("scatter(reduce=…)", "did you mean `scatter_add`?")
    places = _each(input, dim, index)
    return _filled(input, places, _corner(src, index) if isinstance(src, Tensor) else src, "scatter")


def _corner(src: Tensor, index: Tensor) -> Tensor:
    """Return the part of a source that an index of a smaller shape uses."""
    return src if src.shape == index.shape else src[tuple(slice(n) for n in index.shape)]  # type: ignore[no-any-return]


def _put(input: Any, places: Any, values: Any, accumulate: bool, name: str) -> Tensor:
    if not accumulate:
        return _filled(input, places, values, name)
    return _added(input, places, values.expand(*places.shape) if name == "index_put" else values, name)


def _indexed(input: Tensor, indices: Any) -> Any:
    return np.arange(input.numel()).reshape(input.shape)[
        tuple(i._a[..., 0] if isinstance(i, Tensor) else i for i in indices)
    ]


def _masked_scatter(input: Tensor, mask: Tensor, source: Any) -> Tensor:
    places = np.flatnonzero(np.broadcast_to(mask._a[..., 0], input.shape))
    return _filled(input, places, source.reshape(-1)[: len(places)], "masked_scatter")


_BOTH: dict[str, Callable[..., Tensor]] = {
    "index_select": lambda input, dim, index: taken(input, _slices(input, dim, index), "index_select"),
    "gather": lambda input, dim, index: taken(input, _each(input, dim, index), "gather"),
    "take": lambda input, index: taken(input, checked_places(index._a[..., 0], input.numel()), "take_flat"),
    "take_along_dim": lambda input, indices, dim=None: (
        input.gather(dim, indices) if dim is not None else input.take(indices)
    ),
    "masked_select": lambda input, mask: _masked(input, mask),
    "scatter": lambda input, dim, index, src=None, *, value=None, reduce=None: _scattered(
        input, dim, index, value if src is None else src, reduce
    ),
    "scatter_add": lambda input, dim, index, src: _added(
        input, _each(input, dim, index), _corner(src, index), "scatter_add"
    ),
    "index_add": lambda input, dim, index, source, *, alpha=1: _added(
        input, _slices(input, dim, index), source, "index_add", alpha
    ),
    "index_copy": lambda input, dim, index, source: _filled(input, _slices(input, dim, index), source, "index_copy"),
    "index_fill": lambda input, dim, index, value: _filled(
        input, _slices(input, dim, index), value.item() if isinstance(value, Tensor) else value, "index_fill"
    ),
    "index_put": lambda input, indices, values, accumulate=False: _put(
        input, _indexed(input, indices), values, accumulate, "index_put"
    ),
    "put": lambda input, index, source, accumulate=False: _put(
        input, checked_places(index._a[..., 0], input.numel()), source, accumulate, "put"
    ),
    "masked_scatter": lambda input, mask, source: _masked_scatter(input, mask, source),
}
for _name, _made in _BOTH.items():
    both(_name)(_made)


@function("one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    own = tensor._a[..., 0]
    if own.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if own.size and own.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    count = num_classes if num_classes > 0 else int(own.max()) + 1
    if own.size and own.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return of_array((own[..., None] == np.arange(count)).astype(np.int64))
