"""Elements taken from places that a tensor holds, and put there."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node, cast, const
from gradcli.graph.places import Places, put, take
from gradcli.pytorch.calls import exact
from gradcli.pytorch.dtypes import WORDS
from gradcli.pytorch.indexing import assigned, checked_places
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import both, function
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


def _flat(node: Node) -> Node:
    return node if len(node.shape) == 1 else Node("reshape", (node,), (node.size,), ((node.size,),))


def _taken(x: Tensor, places: Any, op: str) -> Tensor:
    """Return elements of a tensor that is read as one line."""
    own = Places.of(places)
    return apply(op, lambda n: take(_flat(n), 0, own), (x,), own)


def _each(x: Tensor, dim: int, index: Tensor) -> tuple[Any, int]:
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
        return own, axis
    at[axis] = own
    return np.ravel_multi_index(np.broadcast_arrays(*at), tuple(x.shape)), axis


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


@both("index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices at these places."""
    return _taken(input, _slices(input, dim, index), "index_select")


@both("gather")
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return for each place along an axis the element there."""
    return _taken(input, _each(input, dim, index)[0], "gather")


@both("take")
def take_(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements at these places, the tensor read as one line."""
    if index._a.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {WORDS[index.dtype.name]}")
    bad = [int(i) for i in index._a.reshape(-1) if not -input.numel() <= i < input.numel()]
    if bad:
        raise IndexError(f"out of range: tried to access index {bad[0]} on a tensor of {input.numel()} elements.")
    return _taken(input, checked_places(index._a[..., 0], input.numel()), "take_flat")


@both("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return for each place along an axis the element there."""
    return gather(input, dim, indices) if dim is not None else take_(input, indices)


@both("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask holds."""
    if mask._a.dtype != bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    numbers = np.broadcast_to(np.arange(input.numel()).reshape(input.shape), shape)
    return _taken(input, numbers[np.broadcast_to(mask._a[..., 0], shape)], "masked_select")


# Put there


def _filled(x: Tensor, places: Any, value: Any, name: str) -> Tensor:
    """Return a tensor with other numbers at places: those of a tensor, or one for all."""
    if isinstance(value, Tensor):
        if value._a.dtype != x._a.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
        return assigned(x, value, Places.of(places.reshape(-1)), places.shape, f"{_capital(name)}Backward0")
    own = of_array(np.asarray(value, x._a.dtype))
    number = 1 if name == "scatter" else 0
    return assigned(x, own, Places.of(places.reshape(-1)), places.shape, f"{_capital(name)}Backward{number}")


def _capital(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _added(x: Tensor, places: Any, value: Tensor, name: str, alpha: Any = 1) -> Tensor:
    """Return a tensor with other numbers added at places."""
    if value._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got (self) "
            f"{WORDS[x.dtype.name]} and (source) {WORDS[value.dtype.name]}"
        )
    own = Places.of(places.reshape(-1))

    def build(n: Node, v: Node) -> Node:
        scaled = v if alpha == 1 else v * cast(const(exact(alpha)), v.dtype)
        there = put(_flat(scaled), 0, own, n.size)
        return n + construct.reshape(there, n.shape)

    return apply(name, build, (x, value), (own, repr(alpha)))


@both("scatter")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    """Return the tensor with numbers put at places along an axis."""
    if reduce is not None:
        from gradcli.pytorch.missing import MissingError

        raise MissingError("scatter(reduce=…)", "did you mean `scatter_add`?")
    places, _ = _each(input, dim, index)
    own = value if src is None else src
    return _filled(input, places, _corner(own, index) if isinstance(own, Tensor) else own, "scatter")


def _corner(src: Tensor, index: Tensor) -> Tensor:
    """Return the part of a source that an index of a smaller shape uses."""
    return src if src.shape == index.shape else src[tuple(slice(n) for n in index.shape)]  # type: ignore[no-any-return]


@both("scatter_add")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return the tensor with numbers added at places along an axis."""
    return _added(input, _each(input, dim, index)[0], _corner(src, index), "scatter_add")


@both("index_add")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return the tensor with slices added at places."""
    return _added(input, _slices(input, dim, index), source, "index_add", alpha)


@both("index_copy")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return the tensor with slices put at places."""
    return _filled(input, _slices(input, dim, index), source, "index_copy")


@both("index_fill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return the tensor with slices at places filled with a number."""
    own = value.item() if isinstance(value, Tensor) else value
    return _filled(input, _slices(input, dim, index), own, "index_fill")


@both("index_put")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return the tensor with numbers put, or added, at places."""
    key = tuple(i._a[..., 0] if isinstance(i, Tensor) else i for i in indices)
    places = np.arange(input.numel()).reshape(input.shape)[key]
    if not accumulate:
        return _filled(input, places, values, "index_put")
    whole = values.expand(*places.shape)  # type: ignore[attr-defined]
    return _added(input, places, whole, "index_put")


@both("put")
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return the tensor, read as one line, with numbers put, or added, at places."""
    places = checked_places(index._a[..., 0], input.numel())
    return _added(input, places, source, "put") if accumulate else _filled(input, places, source, "put")


@both("masked_scatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return the tensor with the first numbers of another one where the mask holds."""
    if mask._a.dtype != bool:
        word = WORDS[mask.dtype.name]
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {word}")
    places = np.flatnonzero(np.broadcast_to(mask._a[..., 0], input.shape))
    return _filled(input, places, source.reshape(-1)[: len(places)], "masked_scatter")  # type: ignore[attr-defined]


@function("one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return rows that are 1 at the places that the tensor holds, and 0 elsewhere."""
    own = tensor._a[..., 0]
    if own.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if own.size and own.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    count = num_classes if num_classes > 0 else int(own.max()) + 1
    if own.size and own.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return of_array((own[..., None] == np.arange(count)).astype(np.int64))
