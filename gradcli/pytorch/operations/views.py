"""Views, which show the memory of another tensor, and what else only moves elements."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of
from gradcli.graph.substitute import substituted
from gradcli.pytorch.calls import moved
from gradcli.pytorch.cuts import cut
from gradcli.pytorch.messages import refusal, told, warn, warn_once
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.operations.indexing import taken
from gradcli.pytorch.record import Step, apply
from gradcli.pytorch.registry import both, method
from gradcli.pytorch.tensor import Tensor, alias, axis_of


def refreshed(view: Tensor) -> None:
    """Give a view a new step: its memory was changed since the old one was made."""
    base = view._base
    assert base is not None
    view._seen = view._memory.version
    source = base
    if not base.requires_grad:
        view._fn = None
        return
    with enable_grad():
        for recipe in view._how:
            source = _again(recipe, source)
    rebase(view, source._fn)


def rebase(x: Tensor, step: Step | None) -> None:
    """Let another step have made a tensor: the gradient that is retained is that of its new numbers."""
    if step is not None and x.retains_grad:
        assert x._fn is not None
        step.retained, x._fn.retained = x._fn.retained, None
    x._fn = step


def _again(recipe: Any, x: Tensor) -> Tensor:
    """Return the output of a recipe for another input."""

    def build(n: Node) -> Node:
        return substituted([recipe.output], {recipe.inputs[0]: n})[0]

    return apply(recipe.op, build, (x,), ("again", id(recipe)), "AsStridedBackward0")


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
    return moved("reshape", x, shape, shape, name)


def _is_viewable(x: Tensor, shape: tuple[int, ...]) -> bool:
    if x._a.flags.c_contiguous:
        return True
    return bool(np.may_share_memory(x._a.reshape(*shape, 1), x._a))


@method("view")
def view(self: Tensor, *sizes: Any) -> Tensor:
    if sizes and not isinstance(sizes[0], int | tuple | list | Tensor):
        raise TypeError("view() takes sizes")
    shape = _filled(self, shape_of(sizes))
    if not _is_viewable(self, shape):
        raise refusal("view of a split axis")
    return _reshaped(self, shape, "ViewBackward0")


@both("reshape")
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    shape = _filled(input, shape_of(sizes or (shape,)))
    return _reshaped(input, shape, "ViewBackward0" if _is_viewable(input, shape) else "UnsafeViewBackward0")


@both("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    rank = input.dim()
    if not rank:
        return reshape(input, (1,))
    first, last = axis_of(start_dim, rank), axis_of(end_dim, rank)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    sizes = input.shape
    return reshape(input, (*sizes[:first], size_of(tuple(sizes[first : last + 1])), *sizes[last + 1 :]))


@method("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    axis = axis_of(dim, self.dim())
    n = self.shape[axis]
    known = size_of(tuple(k for k in sizes if k != -1))
    if (known != n) if -1 not in sizes else (not known or n % known):
        raise refusal("sizes of an unflatten", list(sizes), axis, n)
    return view(self, (*self.shape[:axis], *(n // known if k == -1 else k for k in sizes), *self.shape[axis + 1 :]))


def _permuted(x: Tensor, order: Sequence[int], name: str) -> Tensor:
    return moved("transpose", x, [x.shape[i] for i in order], tuple(order), name)


@method("sum_to_size")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    shape = shape_of(size)
    return apply("sum", lambda n: construct.sum_to(n, shape), (self,), ("to", shape), "SumBackward1")


@both("t")
def t(input: Tensor) -> Tensor:
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return _permuted(input, range(input.dim())[::-1], "TBackward0")


def _reversed(self: Tensor) -> Tensor:
    rank = self.dim()
    if rank != 2:
        warn_once("T of another rank" if rank else "T of a number")
    return _permuted(self, range(rank)[::-1], "PermuteBackward0")


@method("resize")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    warn("old resize")
    count = math.prod(sizes) if all(isinstance(n, int) for n in sizes) else sizes[0]
    if count != self.numel():
        text, own = ("x".join(map(str, n)) for n in (sizes, self.shape))
        raise RuntimeError(told("size of an old resize", text, count, own, self.numel()) + " ")
    return _reshaped(self, tuple(sizes), "ResizeBackward")


def _turned(name: str, what: str) -> property:
    def read(self: Tensor) -> Tensor:
        rank = self.dim()
        if rank == 1 or (rank > 2 and name == "H"):
            raise RuntimeError(f"tensor.{name} is only supported on {what}. Got {rank}-D tensor.")
        if not rank:
            more = " Consider using x.conj()." if name == "H" else " This function is the identity in these cases."
            warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors.{more}", UserWarning, stacklevel=2)
            return self
        return transpose(self, -2, -1)

    return property(read)


Tensor.T = property(_reversed)
Tensor.mT = _turned("mT", "matrices or batches of matrices")
setattr(Tensor, "H", _turned("H", "matrices (2-D tensors)"))  # noqa: B010


@both("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    rank = input.dim()
    a, b = axis_of(dim0, rank), axis_of(dim1, rank)
    order = [b if i == a else a if i == b else i for i in range(rank)]
    return _permuted(input, order, "TransposeBackward0")


@both("permute")
def permute(input: Tensor, *dims: Any) -> Tensor:
    order = list(shape_of(dims))
    if len(order) != input.dim():
        raise refusal("rank of a permute", input.dim(), len(order))
    return _permuted(input, [axis_of(d, input.dim()) for d in order], "PermuteBackward0")


@both("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    rank = input.dim()
    if not rank:
        return moved("index", input, (), (), "AliasBackward0")
    pairs = zip(*((d,) if isinstance(d, int) else d for d in (source, destination)), strict=True)
    sources = {axis_of(to, rank): axis_of(at, rank) for at, to in pairs}
    rest = iter(i for i in range(rank) if i not in sources.values())
    return _permuted(input, [sources[i] if i in sources else next(rest) for i in range(rank)], "PermuteBackward0")


@both("squeeze")
def squeeze(input: Tensor, dim: Any = None, *more: Any) -> Tensor:
    dim = (dim, *more) if more else tuple(dim) if isinstance(dim, list) else dim
    rank = input.dim()
    axes = range(rank) if dim is None else [axis_of(d, rank) for d in (dim if isinstance(dim, tuple) else (dim,))]
    shape = tuple(n for i, n in enumerate(input.shape) if i not in axes or n != 1)
    name = "SqueezeBackward0" if dim is None else "SqueezeBackward2" if isinstance(dim, tuple) else "SqueezeBackward1"
    return _reshaped(input, shape, name)


@both("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    axis = axis_of(dim, input.dim() + 1)
    return _reshaped(input, (*input.shape[:axis], 1, *input.shape[axis:]), "UnsqueezeBackward0")


def check_repeated(x: Tensor, own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse to repeat a tensor, whose own shape may leave out axes in front, to a shape that it does not fit."""
    if len(own) > len(shape):
        raise refusal("rank of an expand", x.dtype.tensor, list(own), list(shape), len(shape), len(own))
    if -1 in shape[: len(shape) - len(own)]:
        where = f"a leading, non-existing dimension {shape.index(-1)}"
        raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in {where}")
    for k in range(1, len(own) + 1):
        if own[-k] != 1 and shape[-k] not in (-1, own[-k]):
            raise refusal("sizes of an expand", shape[-k], own[-k], len(shape) - k, list(shape), list(own))


@method("expand")
def expand(self: Tensor, *sizes: Any) -> Tensor:
    shape, own = shape_of(sizes), self.shape
    check_repeated(self, own, shape)
    new = len(shape) - len(own)
    full = tuple(own[i - new] if n == -1 and i >= new else n for i, n in enumerate(shape))
    return moved("broadcast", self, full, full, "ExpandBackward0")


method("view_as")(lambda self, other: view(self, other.shape))
method("reshape_as")(lambda self, other: reshape(self, other.shape))
method("expand_as")(lambda self, other: expand(self, other.shape))
both("broadcast_to")(lambda input, *size: expand(input, *size))
both("ravel")(lambda input: reshape(input, (-1,)))


@both("diagonal")
def diagonal(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, name: str = "DiagonalBackward0"
) -> Tensor:
    a, b = axis_of(dim1, input.dim()), axis_of(dim2, input.dim())
    if (offset, a, b, input.dim()) == (0, 0, 1, 2):
        return apply("diagonal", construct.diagonal, (input,), (), name)
    numbers = np.diagonal(np.arange(input.numel()).reshape(input.shape), offset, a, b)
    return taken(input, numbers, "diagonal", name, (offset, a, b))


@both("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    return apply("clone", lambda x: Node("identity", (x,), x.shape), (input,))


@method("contiguous")
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    if self._a.flags.c_contiguous:
        return self
    copy = clone(self)
    copy._a = np.ascontiguousarray(copy._a).reshape(copy._a.shape)
    return copy


def cut_off(x: Tensor, how: str) -> Tensor:
    """Return a tensor that shows the same memory and has no history."""
    found: Tensor = alias(x)
    found._detached = cut(x, how)
    return found


@both("detach")
def detach(input: Tensor) -> Tensor:
    return cut_off(input, ".detach()")


def _data(self: Tensor) -> Tensor:
    found = cut_off(self, ".data")
    found._memory = type(self._memory)()
    return found


Tensor.data = property(_data, lambda self, value: setattr(self, "_a", value._a))


@method("detach_")
def detach_(self: Tensor) -> Tensor:
    if self._base is not None:
        raise refusal("view detached in place")
    self._fn = None
    self._requires = False
    return self
