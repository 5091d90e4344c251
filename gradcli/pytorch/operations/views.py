"""Views, which show the memory of another tensor, and what else only moves elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node
from gradcli.graph.rewrite import substituted
from gradcli.graph.shapes import size_of
from gradcli.pytorch.calls import called, moved
from gradcli.pytorch.cuts import Kind, cut
from gradcli.pytorch.dtypes import dtype
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn, warn_once
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.names import method
from gradcli.pytorch.operations.indexing import check_repeated
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.record import Make, Step, apply, shown_by
from gradcli.pytorch.tensor import Tensor, alias, axis_of, listed


def refreshed(view: Tensor) -> None:
    """Give a view a new step: its memory was changed since the old one was made."""
    source: Any = view._base
    if view._fn is None and not source.requires_grad:
        return
    if view._origin is not None:
        raise unfollowed(view, view._origin, since=True)
    view._seen = view._memory.version
    if source.requires_grad:
        with enable_grad():
            for recipe in view._how:
                source = _again(recipe, source)
    rebase(view, source._fn)


Make.refreshed = refreshed


def unfollowed(view: Tensor, origin: Origin, since: bool) -> Exception:
    """Return the error for a change in place that autograd cannot follow.

    `since` is whether the change was made before, to the memory that the view shares; else it is being made now.
    """
    how = "its base or another view of its base has been" if since else "is being"
    step = view._fn
    output = f"Output {origin.number} of {origin.name}"
    if step is not None and (origin.in_mode or origin.is_inner):
        output = f"Output 0 of {step.name().partition('Backward')[0]}"
    head = f"{output} is a view and {how} modified inplace."
    if step is None or origin.in_mode:
        which = f"{output} is a view of a view which was" if step is not None else "A view was"
        is_inference = origin.maker is Maker.INFERENCE
        mode, now = ("inference", "in normal mode") if is_inference else ("no_grad", "with grad mode enabled")
        head = f"{which} created in {mode} mode and {how} modified inplace {now}."
    match origin.maker:
        case Maker.FUNCTION:
            return torch_error("view of a function changed in place", head, about=(view, since))
        case Maker.SEVERAL:
            return torch_error("one of several views changed in place", head, about=(view, since))
    block = "inference_mode" if origin.maker is Maker.INFERENCE else "no_grad"
    return torch_error("view of no_grad changed in place", head, block, about=(view, since))


def rebase(x: Tensor, step: Step | None) -> None:
    """Set the step that made a tensor; a retained gradient moves to it."""
    if step is not None and x._fn is not None and x.retains_grad:
        step.retained, x._fn.retained = x._fn.retained, None
    x._fn = step


def _again(recipe: Any, x: Tensor) -> Tensor:
    """Return the output of a recipe for another input."""

    def build(n: Node) -> Node:
        return substituted([recipe.output], {recipe.inputs[0]: n})[0]

    return apply(recipe.op, build, (x,), ("again", id(recipe)), "AsStridedBackward0")


def shape_of(sizes: Any) -> tuple[int, ...]:
    """Return sizes that are arguments of their own, as in `x.view(2, 3)`, or one sequence, as in `x.view((2, 3))`.

    Errors: `TypeError` for a size that is not an integer.
    """
    numbers: Any = (None if isinstance(n, bool) else n for n in listed(sizes))
    return tuple(map(index, numbers))


def _filled(shape: Sequence[int], size: int, what: str, *values: Any) -> tuple[int, ...]:
    """Return sizes of so many elements in all, of which one may be -1."""
    raise_if(shape.count(-1) > 1, "two sizes to infer")
    known = size_of(tuple(n for n in shape if n != -1))
    result = tuple(size // (known or 1) if n == -1 else n for n in shape)
    raise_if(not known and not size and -1 in shape, "any size to infer", list(shape))
    fits = size_of(result) == size and (known or -1 not in shape)
    raise_if(not fits, f"sizes of a {what}", list(shape), *values)
    return result


def _reshaped(x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    return moved("reshape", x, shape, shape, name)


def _shaped(x: Tensor, sizes: Sequence[Any]) -> tuple[tuple[int, ...], bool]:
    """Return the shape that is meant by sizes, and whether a view of a tensor can have it."""
    shape = _filled(shape_of(sizes), x.numel(), "view", x.numel())
    return shape, x._a.flags.c_contiguous or np.may_share_memory(x._a.reshape(*shape, 1), x._a)


@method("view")
def view(self: Tensor, *size: Any) -> Tensor:
    missing_if(size and isinstance(size[0], dtype), "Tensor.view(dtype)")
    shape, is_view = _shaped(self, size)
    raise_if(not is_view, "view of a split axis")
    return _reshaped(self, shape, "ViewBackward0")


@method("reshape")
def reshape(input: Tensor, *shape: Any) -> Tensor:
    sizes, is_view = _shaped(input, shape)
    return _reshaped(input, sizes, "ViewBackward0" if is_view else "UnsafeViewBackward0")


@method("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    sizes = tuple(input.shape) or (1,)
    first, last = axis_of(start_dim, len(sizes)), axis_of(end_dim, len(sizes))
    raise_if(first > last, "order of axes to flatten")
    shape = (*sizes[:first], size_of(sizes[first : last + 1]), *sizes[last + 1 :])
    return input if shape == input.shape else reshape(input, shape)


@method("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    axis, shape = axis_of(dim, self.dim()), self.shape
    result = _filled(sizes, shape[axis], "part", axis, shape[axis])
    return view(self, (*shape[:axis], *result, *shape[axis + 1 :]))


def _permuted(x: Tensor, order: Sequence[int], name: str) -> Tensor:
    return moved("transpose", x, [x._a.shape[i] for i in order], tuple(order), name)


@method("sum_to_size")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    shape = shape_of(size)
    new = self.dim() - len(shape)
    fits = new >= 0 and all(n in (1, m) for n, m in zip(shape, self.shape[new:], strict=True))
    raise_if(not fits, "size of a sum", list(shape), list(self.shape))
    axes = [*range(new), *(i for i, n in enumerate(shape, new) if n == 1 != self.shape[i])]
    result = self.sum(axes, keepdim=True) if axes else self
    return result.view(shape) if new else result


@method("t")
def t(input: Tensor) -> Tensor:
    return _permuted(input, range(input.dim())[::-1], "TBackward0")


@method("resize")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    warn("old resize")
    count = math.prod(sizes) if all(isinstance(n, int) for n in sizes) else sizes[0]
    if count != self.numel():
        text, before = ("x".join(map(str, n)) for n in (sizes, self.shape))
        raise torch_error("size of an old resize", text, count, before, self.numel())
    return _reshaped(self, tuple(sizes), "ResizeBackward")


def _reversed(self: Tensor) -> Tensor:
    rank = self.dim()
    if rank != 2:
        warn_once("T of another rank" if rank else "T of a number")
    return _permuted(self, range(rank)[::-1], "PermuteBackward0")


def _transposed(self: Tensor) -> Tensor:
    raise_if(self.dim() == 1, "mT of a vector")
    if not self.dim():
        warn_once("mT of a number")
    return transpose(self, -2, -1) if self.dim() else self


Tensor.T, Tensor.mT = property(_reversed), property(_transposed)


@method("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    rank = input.dim()
    a, b = axis_of(dim0, rank), axis_of(dim1, rank)
    order = [b if i == a else a if i == b else i for i in range(rank)]
    return _permuted(input, order, "TransposeBackward0")


@method("permute")
def permute(input: Tensor, *dims: Any) -> Tensor:
    order = list(shape_of(dims))
    raise_if(len(order) != input.dim(), "rank of a permute", input.dim(), len(order))
    return _permuted(input, [axis_of(d, input.dim()) for d in order], "PermuteBackward0")


@method("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    if not (rank := input.dim()):
        return _permuted(input, (), "AliasBackward0")
    axes = [[axis_of(d, rank) for d in (p if isinstance(p, tuple | list) else (p,))] for p in (source, destination)]
    return _permuted(input, np.moveaxis(np.empty(range(rank)), *axes).shape, "PermuteBackward0")


@method("squeeze")
def squeeze(input: Tensor, dim: Any = None, *more: Any) -> Tensor:
    dims = (dim, *more) if more else dim
    number = 0 if dims is None else 2 if isinstance(dims, tuple | list) else 1
    axes = [axis_of(d, input.dim()) for d in (range(input.dim()), (dims,), dims)[number]]
    shape = tuple(n for i, n in enumerate(input.shape) if i not in axes or n != 1)
    return _reshaped(input, shape, f"SqueezeBackward{number}")


@method("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    axis = axis_of(dim, input.dim() + 1)
    return _reshaped(input, (*input.shape[:axis], 1, *input.shape[axis:]), "UnsqueezeBackward0")


@method("expand")
def expand(self: Tensor, *size: Any) -> Tensor:
    shape, sizes = shape_of(size), self.shape
    check_repeated(self, sizes, shape)
    new = len(shape) - len(sizes)
    full = tuple(sizes[i - new] if n == -1 and i >= new else n for i, n in enumerate(shape))
    return moved("broadcast", self, full, full, "ExpandBackward0")


@method("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    axis, array = axis_of(dimension, self.dim()), self._a
    if not self.dim():
        return called(unfold(reshape(self, (1,)), 0, size, step)[0], "UnfoldBackward0")
    raise_if(size < 0, "negative size of a window", size)
    raise_if(size > array.shape[axis], "size of a window", axis, array.shape[axis], size)
    raise_if(step <= 0, "step of a window", step)
    starts = np.arange(0, array.shape[axis] - size + 1, step)
    order = (*range(axis + 1), *range(axis + 2, array.ndim), axis + 1)

    def build(x: Node) -> Node:
        return construct.transpose(take(x, axis, IndexArray.of(starts[:, None] + np.arange(size))), order)

    windows = np.lib.stride_tricks.sliding_window_view(array, size, axis, writeable=array.flags.writeable)
    windows = np.moveaxis(windows, -1, -2)[(slice(None),) * axis + (slice(None, None, step),)]
    return shown_by(windows, "unfold", build, self, (axis, size, step))


method("view_as")(lambda self, other: view(self, other.shape))
method("reshape_as")(lambda self, other: reshape(self, other.shape))
method("expand_as")(lambda self, other: expand(self, other.shape))
method("broadcast_to")(lambda input, *size: expand(input, *size))
method("ravel")(lambda input: reshape(input, (-1,)))


@method("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return diagonal_by("diagonal", input, offset, dim1, dim2)


def diagonal_by(op: str, x: Tensor, offset: int, dim1: int = 0, dim2: int = 1, name: str | None = None) -> Tensor:
    """Return a diagonal as a view, or by an operation that copies."""
    a, b = axis_of(dim1, x.dim()), axis_of(dim2, x.dim())
    raise_if(a == b, "axes of a diagonal alike", dim1, dim2)
    rows, columns = (range(min(n, max(0, skip)), n) for n, skip in ((x.shape[a], -offset), (x.shape[b], offset)))

    def build(n: Node) -> Node:
        transposed = construct.transpose(n, (a, b, *(i for i in range(len(n.shape)) if i not in (a, b))))
        result = construct.diagonal(construct.index(transposed, (rows, columns)))
        return construct.transpose(result, (*range(1, len(result.shape)), 0))

    return apply(op, build, (x,), (offset, a, b), name)


@method("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    return apply("clone", lambda x: Node("identity", (x,), x.shape), (input,))


@method("contiguous")
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    if self._a.flags.c_contiguous:
        return self
    copy = clone(self)
    copy._a = np.ascontiguousarray(copy._a)
    return copy


@method("detach")
def detach(input: Tensor, *, how: str = ".detach()") -> Tensor:
    result: Tensor = alias(input)
    result._detached = cut(input, Kind.DETACHED, how)
    return result


def _data(self: Tensor) -> Tensor:
    result = detach(self, how=".data")
    result._memory = type(self._memory)()  # whose changes nobody counts
    return result


Tensor.data = property(_data, lambda self, value: setattr(self, "_a", value._a))


@method("detach_")
def detach_(self: Tensor) -> Tensor:
    raise_if(self._base is not None, "view detached in place")
    self._fn, self._requires = None, False
    return self
