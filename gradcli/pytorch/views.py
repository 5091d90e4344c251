"""Views, which show the memory of another tensor, and what else only moves elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.node import Node
from gradcli.graph.places import Places, take
from gradcli.graph.shapes import size_of
from gradcli.pytorch.operators import both, function, method, to
from gradcli.pytorch.record import Make, apply
from gradcli.pytorch.tensor import Tensor, axis_of
from gradcli.vocabulary import FUNCTIONS


def refreshed(view: Tensor) -> None:
    """Give a view a new step: its memory was changed since the old one was made."""
    base = view._base
    assert base is not None
    view._seen = view._memory.version
    source = base
    if not base.requires_grad:
        view._fn = None
        return
    from gradcli.pytorch.modes import enable_grad

    with enable_grad():
        for recipe in view._how:
            source = apply(recipe.op, lambda *_, r=recipe: _like(r, *_), (source,), ("again", id(recipe)), _AS_STRIDED)
    view._fn = source._fn


_AS_STRIDED = "AsStridedBackward0"


def _like(recipe: Any, x: Node) -> Node:
    """Return the output of a recipe for another input."""
    from gradcli.graph.graph import scheduled

    new = {recipe.inputs[0]: x}
    for node in scheduled([recipe.output]):
        if node not in new:
            args = tuple(new[a] for a in node.args)
            new[node] = Node(node.op, args, node.shape, node.settings, node.dtype)
    return new[recipe.output]


def shape_of(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return sizes that are given one by one or as one sequence."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = sizes[0]
    return tuple(int(n) for n in sizes)


def _filled(x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    size = x.numel()
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = size_of(tuple(n for n in shape if n != -1))
    if (-1 in shape and (not known or size % known)) or (-1 not in shape and known != size):
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(size // known if n == -1 else n for n in shape)


def _reshaped(x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    return apply("reshape", lambda n: _reshape(n, shape), (x,), shape, name)


def _reshape(n: Node, shape: tuple[int, ...]) -> Node:
    return Node("reshape", (n,), shape, (shape,))


def _is_viewable(x: Tensor, shape: tuple[int, ...]) -> bool:
    if x._a.flags.c_contiguous:
        return True
    return bool(np.may_share_memory(x._a.reshape(*shape, 1), x._a))


@method("view")
def view(self: Tensor, *sizes: Any) -> Tensor:
    """Return the same memory in another shape."""
    if sizes and not isinstance(sizes[0], int | tuple | list | Tensor):
        raise TypeError("view() takes sizes")
    shape = _filled(self, shape_of(sizes))
    if not _is_viewable(self, shape):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _reshaped(self, shape, "ViewBackward0")


@method("view_as")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same memory in the shape of another tensor."""
    return view(self, other.shape)


@method("reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same numbers in the shape of another tensor."""
    return reshape(self, other.shape)


@both("reshape")
def reshape(self: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Return the same numbers in another shape: a view where that is possible."""
    shape = _filled(self, shape_of(sizes or (shape,)))
    return _reshaped(self, shape, "ViewBackward0" if _is_viewable(self, shape) else "UnsafeViewBackward0")


@both("flatten")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with some of its axes as one."""
    rank = self.dim()
    if not rank:
        return reshape(self, (1,))
    first, last = axis_of(start_dim, rank), axis_of(end_dim, rank)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return self
    sizes = self.shape
    return reshape(self, (*sizes[:first], size_of(tuple(sizes[first : last + 1])), *sizes[last + 1 :]))


@both("ravel")
def ravel(self: Tensor) -> Tensor:
    """Return the tensor with one axis."""
    return flatten(self) if self.dim() != 1 else self


@method("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with an axis as several."""
    axis = axis_of(dim, self.dim())
    return view(self, (*self.shape[:axis], *sizes, *self.shape[axis + 1 :]))


def _permuted(x: Tensor, order: Sequence[int], name: str) -> Tensor:
    order = tuple(order)
    return apply("transpose", lambda n: _transpose(n, order), (x,), order, name)


def _transpose(n: Node, order: tuple[int, ...]) -> Node:
    return Node("transpose", (n,), tuple(n.shape[i] for i in order), (order,))


@both("t")
def t(self: Tensor) -> Tensor:
    """Return a matrix with rows and columns exchanged."""
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return _permuted(self, range(self.dim())[::-1], "TBackward0")


def _turned(self: Tensor) -> Tensor:
    return transpose(self, -2, -1)


Tensor.T = property(lambda self: _permuted(self, range(self.dim())[::-1], "PermuteBackward0"))
Tensor.mT = property(_turned)


@both("transpose", "swapaxes", "swapdims")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return the tensor with two axes exchanged."""
    rank = self.dim()
    a, b = axis_of(dim0, rank), axis_of(dim1, rank)
    order = [b if i == a else a if i == b else i for i in range(rank)]
    return _permuted(self, order, "TransposeBackward0")


@both("permute")
def permute(self: Tensor, *dims: Any) -> Tensor:
    """Return the tensor with its axes in another order."""
    order = [axis_of(d, self.dim()) for d in shape_of(dims)]
    if len(order) != self.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(order)}"
        )
    return _permuted(self, order, "PermuteBackward0")


@both("movedim", "moveaxis")
def movedim(self: Tensor, source: int, destination: int) -> Tensor:
    """Return the tensor with an axis moved."""
    order = list(range(self.dim()))
    order.insert(axis_of(destination, self.dim()), order.pop(axis_of(source, self.dim())))
    return _permuted(self, order, "PermuteBackward0")


@both("squeeze")
def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """Return the tensor without axes of one element."""
    rank = self.dim()
    axes = range(rank) if dim is None else [axis_of(d, rank) for d in (dim if isinstance(dim, tuple) else (dim,))]
    shape = tuple(n for i, n in enumerate(self.shape) if i not in axes or n != 1)
    name = "SqueezeBackward0" if dim is None else "SqueezeBackward2" if isinstance(dim, tuple) else "SqueezeBackward1"
    return _reshaped(self, shape, name)


@both("unsqueeze")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return the tensor with a new axis of one element."""
    axis = axis_of(dim, self.dim() + 1)
    return _reshaped(self, (*self.shape[:axis], 1, *self.shape[axis:]), "UnsqueezeBackward0")


@method("expand")
def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor repeated along axes of one element, without copies."""
    shape = shape_of(sizes)
    new = len(shape) - self.dim()
    own = self.shape
    full = tuple(own[i - new] if n == -1 and i >= new else n for i, n in enumerate(shape))
    for i, n in enumerate(full):
        if i >= new >= 0 and own[i - new] not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own[i - new]}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(shape)}.  Tensor sizes: {list(own)}"
            )
    return apply("broadcast", lambda n: Node("broadcast", (n,), full, (full,)), (self,), full, "ExpandBackward0")


@method("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor repeated to the shape of another."""
    return expand(self, other.shape)


@both("broadcast_to")
def broadcast_to(self: Tensor, size: Any) -> Tensor:
    """Return the tensor repeated to a shape."""
    return expand(self, size)


@both("diagonal")
def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a matrix's diagonal."""
    if (offset, dim1, dim2) != (0, 0, 1) or self.dim() != 2:
        from gradcli.pytorch.missing import MissingError

        raise MissingError("diagonal of anything but a matrix's main one")
    return apply("diagonal", construct.diagonal, (self,))


@both("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy, through which gradients flow."""
    return apply("clone", lambda x: Node("identity", (x,), x.shape), (input,))


@method("contiguous")
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return the tensor, or a copy whose elements stand in memory in their order."""
    if self._a.flags.c_contiguous:
        return self
    copy = clone(self)
    copy._a = np.ascontiguousarray(copy._a).reshape(copy._a.shape)
    return copy


def cut_off(x: Tensor, how: str) -> Tensor:
    """Return a tensor that shows the same memory and has no history."""
    found = Make.tensor(x._a)
    found._memory = x._memory
    from gradcli.pytorch.record import Recorder, script_line

    if Recorder.explains and x.requires_grad:
        found._detached = (script_line(), how)
    return found


@both("detach")
def detach(input: Tensor) -> Tensor:
    """Return the same memory, cut off from what made it."""
    return cut_off(input, "detach()")


def _data(self: Tensor) -> Tensor:
    found = cut_off(self, ".data")
    found._memory = type(self._memory)()
    return found


def _set_data(self: Tensor, value: Tensor) -> None:
    self._a = value._a


Tensor.data = property(_data, _set_data)


@method("detach_")
def detach_(self: Tensor) -> Tensor:
    """Cut the tensor off from what made it."""
    if self._base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead")
    self._fn = None
    self._requires = False
    return self


# What makes several tensors, and one of several


def _part(x: Tensor, axis: int, start: int, stop: int, name: str) -> Tensor:
    key = (*map(range, x.shape[:axis]), range(start, stop))
    return apply("index", lambda n: Node("index", (n,), _sliced(n.shape, axis, stop - start), (key,)), (x,), key, name)


def _sliced(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*shape[:axis], n, *shape[axis + 1 :])


@both("split")
def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return parts of that size, or of those sizes, along an axis."""
    axis = axis_of(dim, self.dim())
    n = self.shape[axis]
    sizes = list(split_size) if isinstance(split_size, list | tuple) else [split_size] * -(-n // split_size)
    ends = np.minimum(np.cumsum([0, *sizes]), n).tolist()
    name = "SplitBackward0" if not isinstance(split_size, list | tuple) else "SplitWithSizesBackward0"
    return _several([_part(self, axis, a, b, name) for a, b in pairwise(ends)], "Split")


@both("chunk")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most so many parts along an axis."""
    return split(self, -(-self.shape[axis_of(dim, self.dim())] // chunks), dim)


@both("unbind")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis."""
    axis = axis_of(dim, self.dim())
    return _several([_selected(self, axis, i, "UnbindBackward0") for i in range(self.shape[axis])], "Unbind")


def _several(parts: list[Tensor], name: str) -> tuple[Tensor, ...]:
    for i, part in enumerate(parts):
        part._made = f"{i} {name}"
    return tuple(parts)


def _selected(x: Tensor, axis: int, i: int, name: str = "SelectBackward0") -> Tensor:
    key = (*map(range, x.shape[:axis]), i)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return apply("index", lambda n: Node("index", (n,), shape, (key,)), (x,), key, name)


def _iterated(self: Tensor) -> Any:
    if not self.dim():
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


Tensor.__iter__ = _iterated


@both("select")
def select(self: Tensor, dim: int, index: int) -> Tensor:
    """Return a slice along an axis."""
    axis = axis_of(dim, self.dim())
    return _selected(self, axis, index % self.shape[axis])


@both("narrow")
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a part along an axis."""
    return _part(self, axis_of(dim, self.dim()), start, start + length, "SliceBackward0")


def _checked(tensors: Any) -> list[Tensor]:
    found = list(tensors)
    if not found:
        raise RuntimeError("expected a non-empty list of Tensors")
    return found


@function("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Return tensors joined along an axis."""
    parts = [p for p in _checked(tensors) if p.shape != (0,)] or list(tensors)[:1]
    if any(not p.dim() for p in parts):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    at = axis_of(dim if axis is None else axis, parts[0].dim())
    for i, p in enumerate(parts[1:], 1):
        if p.dim() != parts[0].dim():
            raise RuntimeError(f"Tensors must have same number of dimensions: got {parts[0].dim()} and {p.dim()}")
        for k, (m, n) in enumerate(zip(parts[0].shape, p.shape, strict=True)):
            if k != at and m != n:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {at}. Expected size {m} but got size {n} "
                    "for tensor "
                    f"number {i} in the list."
                )
    return apply("cat", lambda *n: construct.concatenate(n, at), parts, at)


@function("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Return tensors of one shape as slices of a new axis."""
    parts = _checked(tensors)
    at = axis_of(dim, parts[0].dim() + 1)
    for i, p in enumerate(parts):
        if p.shape != parts[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(parts[0].shape)} at entry 0 and "
                f"{list(p.shape)} at entry {i}"
            )
    return apply("stack", lambda *n: construct.stack(n, at), parts, at)


@function("vstack")
def vstack(tensors: Any) -> Tensor:
    """Return tensors joined as rows."""
    return cat([p if p.dim() > 1 else reshape(p, (1, -1)) for p in tensors])


@function("hstack")
def hstack(tensors: Any) -> Tensor:
    """Return tensors joined side by side."""
    parts = list(tensors)
    return cat(parts, 1 if parts[0].dim() > 1 else 0)


@function("broadcast_tensors")
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors repeated to a shape that all have together."""
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    return tuple(expand(x, shape) for x in tensors)


@function("meshgrid")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid."""
    parts = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    sizes = [p.numel() for p in parts]
    found = []
    for i, p in enumerate(parts):
        found.append(expand(view(p, [n if k == i else 1 for k, n in enumerate(sizes)]), sizes))
    return tuple(transpose(p, 0, 1) for p in found) if indexing == "xy" else tuple(found)


# By tensors of places


def _places(index: Tensor, size: int) -> Places:
    from gradcli.pytorch.indexing import checked_places

    return Places.of(checked_places(index._a[..., 0], size))


@both("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices at these places."""
    axis = axis_of(dim, self.dim())
    places = _places(index, self.shape[axis])
    return apply("index_select", lambda n: take(n, axis, places), (self,), (axis, places))


@both("gather")
def gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return for each place along an axis the element there."""
    axis = axis_of(dim, self.dim())
    own = index._a[..., 0]
    if own.size and not 0 <= own.min() <= own.max() < self.shape[axis]:
        bad = own[(own < 0) | (own >= self.shape[axis])][0]
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {self.shape[axis]}")
    at: list[Any] = list(np.indices(own.shape, sparse=True))
    at[axis] = own
    flat = Places.of(np.ravel_multi_index(np.broadcast_arrays(*at), tuple(self.shape)))
    return apply("gather", lambda n: take(_reshape(n, (n.size,)), 0, flat), (self,), flat)


@both("take")
def take_(self: Tensor, index: Tensor) -> Tensor:
    """Return the elements at these places, the tensor read as one line."""
    places = _places(index, self.numel())
    return apply("take", lambda n: take(_reshape(n, (n.size,)), 0, places), (self,), places, "TakeBackward0")


@both("take_along_dim")
def take_along_dim(self: Tensor, indices: Tensor, dim: int) -> Tensor:
    """Return for each place along an axis the element there."""
    return gather(self, dim, indices)


@both("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask holds."""
    places = Places.of(np.flatnonzero(np.broadcast_to(mask._a[..., 0], self.shape)))
    return apply("masked_select", lambda n: take(_reshape(n, (n.size,)), 0, places), (self,), places)


def vocabulary_view(name: str, *args: Any) -> Tensor:
    """Return what a function of the vocabulary that moves elements makes."""
    from gradcli.pytorch.calls import vocabulary_call

    try:
        return vocabulary_call(name, FUNCTIONS[name], args, {})
    except InputError as error:
        raise RuntimeError(error.message) from None


@method("repeat")
def repeat(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor repeated so often along each axis."""
    times = shape_of(sizes)
    if len(times) < self.dim():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return vocabulary_view("repeat", self, *times)


@method("sum_to_size")
def sum_to_size(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor, summed along axes until it has a shape."""
    shape = shape_of(sizes)
    return apply("sum", lambda n: construct.sum_to(n, shape), (self,), ("to", shape), "SumBackward1")


@function("one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return rows that are 1 at the places that the tensor holds, and 0 elsewhere."""
    from gradcli.pytorch.tensor import of_array

    own = tensor._a[..., 0]
    count = num_classes if num_classes > 0 else int(own.max()) + 1
    if own.size and own.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return to(of_array(own[..., None] == np.arange(count)), _long())


def _long() -> Any:
    from gradcli.pytorch.dtypes import int64

    return int64
