"""Views, which show the memory of another tensor, and what else only moves elements."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of
from gradcli.pytorch.calls import apply_move, set_grad_fn_name
from gradcli.pytorch.cuts import Kind, cut
from gradcli.pytorch.dtypes import contiguous_format
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn, warn_once
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.names import function
from gradcli.pytorch.operations.indexing import check_repeated
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.record import Recorder, Step, script_line
from gradcli.pytorch.running import apply, run
from gradcli.pytorch.tensor import Tensor, alias, axis_of


def refresh_view(view: Tensor) -> None:
    """Give a view a new step: its memory was changed since the old one was made."""
    source: Any = view._base
    if view._fn is None and not source.requires_grad:
        return
    if view._origin is not None:
        raise untracked_change_error(view, view._origin, since=True)
    view._seen = view._memory.version
    if source.requires_grad:
        with enable_grad():
            for recipe, numbers in view._how:
                source = run(recipe, (source,), "AsStridedBackward0", numbers)
    rebase(view, source._fn)


Tensor._refresh = refresh_view


def untracked_change_error(view: Tensor, origin: Origin, since: bool) -> Exception:
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


def rebase(x: Tensor, step: Step | None, number: int = 0) -> None:
    """Set the step that made a tensor, and the number of its result; a retained gradient moves to it."""
    if step is not None and x._fn is not None and x.retains_grad:
        x._fn.retained = {i: kept for i, kept in x._fn.retained.items() if kept() is not x}
        step.retained = {**step.retained, number: weakref.ref(x)}
    x._fn, x._output = step, number


def shape_of(sizes: Any) -> tuple[int, ...]:
    """Return sizes, of which some may be tensors, as integers."""
    return tuple(map(index, sizes))


def _infer_size(shape: Sequence[int], size: int, what: str, *values: Any) -> tuple[int, ...]:
    """Return sizes of so many elements in all, of which one may be -1."""
    raise_if(shape.count(-1) > 1, "two sizes to infer")
    known = size_of(tuple(n for n in shape if n != -1))
    result = tuple(size // (known or 1) if n == -1 else n for n in shape)
    if not known and not size and -1 in shape:
        raise torch_error("any size to infer", list(shape))
    if size_of(result) != size or (not known and -1 in shape):
        raise torch_error(f"sizes of a {what}", list(shape), *values)
    return result


def _reshape(x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    return apply_move("reshape", x, shape, shape, name)


def _view_shape(x: Tensor, sizes: Sequence[Any]) -> tuple[tuple[int, ...], bool]:
    """Return the shape that is meant by sizes, and whether a view of a tensor can have it."""
    shape = _infer_size(shape_of(sizes), x.numel(), "view", x.numel())
    return shape, x._a.flags.c_contiguous or np.may_share_memory(x._a.reshape(*shape, 1), x._a)


@function("view")
def view(self: Tensor, size: Any, dtype: Any = None) -> Tensor:
    missing_if(dtype is not None, "Tensor.view(dtype)")
    shape, is_view = _view_shape(self, size)
    raise_if(not is_view, "view of a split axis")
    return _reshape(self, shape, "ViewBackward0")


@function("reshape")
def reshape(input: Tensor, shape: Any) -> Tensor:
    sizes, is_view = _view_shape(input, shape)
    of_view = "ViewBackward0" if input.is_contiguous() else "ReshapeAliasBackward0"
    return _reshape(input, sizes, of_view if is_view else "UnsafeView(Clone(0))")


@function("flatten")
def flatten(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    sizes = tuple(input.shape) or (1,)
    first, last = axis_of(start_dim, len(sizes)), axis_of(end_dim, len(sizes))
    raise_if(first > last, "order of axes to flatten")
    shape = (*sizes[:first], size_of(sizes[first : last + 1]), *sizes[last + 1 :])
    return input if shape == input.shape else reshape(input, shape)


@function("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    axis, shape = axis_of(dim, self.dim()), self.shape
    result = _infer_size(sizes, shape[axis], "part", axis, shape[axis])
    return view(self, (*shape[:axis], *result, *shape[axis + 1 :]))


def _permute(x: Tensor, order: Sequence[int], name: str) -> Tensor:
    return apply_move("transpose", x, [x._a.shape[i] for i in order], tuple(order), name)


@function("sum_to_size")
def sum_to_size(self: Tensor, size: Any) -> Tensor:
    shape = shape_of(size)
    new = self.dim() - len(shape)
    fits = new >= 0 and all(n in (1, m) for n, m in zip(shape, self.shape[new:], strict=True))
    raise_if(not fits, "size of a sum", list(shape), list(self.shape))
    axes = [*range(new), *(i for i, n in enumerate(shape, new) if n == 1 != self.shape[i])]
    result = self.sum(axes, keepdim=True) if axes else self
    return result.view(shape) if new else result


@function("t")
def t(input: Tensor) -> Tensor:
    raise_if(input.dim() > 2, "rank of a t", input.dim())
    return _permute(input, range(input.dim())[::-1], "TBackward0")


@function("resize")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    warn("old resize")
    count = math.prod(sizes) if all(isinstance(n, int) for n in sizes) else sizes[0]
    raise_if(count != self.numel(), "size of an old resize", list(sizes), list(self.shape))
    return _reshape(self, tuple(sizes), "ResizeBackward")


def _reverse_axes(self: Tensor) -> Tensor:
    rank = self.dim()
    if rank != 2:
        warn_once("T of another rank" if rank else "T of a number")
    return _permute(self, range(rank)[::-1], "PermuteBackward0")


def _transpose_matrix(self: Tensor) -> Tensor:
    raise_if(self.dim() == 1, "mT of a vector")
    if not self.dim():
        warn_once("mT of a number")
    return transpose(self, -2, -1) if self.dim() else self


Tensor.T, Tensor.mT = property(_reverse_axes), property(_transpose_matrix)


@function("transpose", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    rank = input.dim()
    a, b = axis_of(dim0, rank), axis_of(dim1, rank)
    order = [b if i == a else a if i == b else i for i in range(rank)]
    return _permute(input, order, "TransposeBackward0")


function("swapaxes")(lambda input, axis0, axis1: transpose(input, axis0, axis1))


@function("permute")
def permute(input: Tensor, dims: Any) -> Tensor:
    order = list(shape_of(dims))
    raise_if(len(order) != input.dim(), "rank of a permute", input.dim(), len(order))
    return _permute(input, [axis_of(d, input.dim()) for d in order], "PermuteBackward0")


@function("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    if not (rank := input.dim()):
        return _permute(input, (), "AliasBackward0")
    axes = [[axis_of(d, rank) for d in (p if isinstance(p, tuple | list) else (p,))] for p in (source, destination)]
    return _permute(input, np.moveaxis(np.empty(range(rank)), *axes).shape, "PermuteBackward0")


@function("squeeze")
def squeeze(input: Tensor, dim: Any) -> Tensor:
    number = 0 if dim is None else 2 if isinstance(dim, tuple | list) else 1
    axes = [axis_of(d, input.dim()) for d in (range(input.dim()), (dim,), dim)[number]]
    shape = tuple(n for i, n in enumerate(input.shape) if i not in axes or n != 1)
    return _reshape(input, shape, f"SqueezeBackward{number}")


@function("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    axis = axis_of(dim, input.dim() + 1)
    return _reshape(input, (*input.shape[:axis], 1, *input.shape[axis:]), "UnsqueezeBackward0")


@function("expand")
def expand(self: Tensor, size: Any) -> Tensor:
    shape, sizes = shape_of(size), self.shape
    check_repeated(self, sizes, shape)
    new = len(shape) - len(sizes)
    full = tuple(sizes[i - new] if n == -1 and i >= new else n for i, n in enumerate(shape))
    return apply_move("broadcast", self, full, full, "ExpandBackward0")


@function("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    axis, array = axis_of(dimension, self.dim()), self._a
    if not self.dim():
        return set_grad_fn_name(unfold(reshape(self, (1,)), 0, size, step)[0], "UnfoldBackward0")
    raise_if(size < 0, "negative size of a window", size)
    raise_if(size > array.shape[axis], "size of a window", axis, array.shape[axis], size)
    raise_if(step <= 0, "step of a window", step)
    starts = np.arange(0, array.shape[axis] - size + 1, step)
    order = (*range(axis + 1), *range(axis + 2, array.ndim), axis + 1)

    def build(x: Node) -> Node:
        return construct.transpose(take(x, axis, IndexArray.of(starts[:, None] + np.arange(size))), order)

    windows = np.lib.stride_tricks.sliding_window_view(array, size, axis, writeable=array.flags.writeable)
    windows = np.moveaxis(windows, -1, -2)[(slice(None),) * axis + (slice(None, None, step),)]
    return apply("unfold", build, (self,), (axis, size, step), shown=windows)


function("view_as")(lambda self, other: view(self, other.shape))
function("reshape_as")(lambda self, other: reshape(self, other.shape))
function("expand_as")(lambda self, other: expand(self, other.shape))
function("broadcast_to")(lambda input, size: expand(input, size))


@function("diagonal")
def diagonal(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return diagonal_by("diagonal", input, offset, dim1, dim2)


def diagonal_by(op: str, x: Tensor, offset: int, dim1: int = 0, dim2: int = 1, name: str | None = None) -> Tensor:
    """Return a diagonal as a view, or by an operation that copies."""
    a, b = axis_of(dim1, x.dim()), axis_of(dim2, x.dim())
    rows, columns = (range(min(n, max(0, skip)), n) for n, skip in ((x.shape[a], -offset), (x.shape[b], offset)))

    def build(n: Node) -> Node:
        transposed = construct.transpose(n, (a, b, *(i for i in range(len(n.shape)) if i not in (a, b))))
        result = construct.diagonal(construct.index(transposed, (rows, columns)))
        return construct.transpose(result, (*range(1, len(result.shape)), 0))

    return apply(op, build, (x,), (offset, a, b), name)


@function("clone")
def clone(input: Tensor, memory_format: Any) -> Tensor:
    result = apply("clone", lambda x: Node("identity", (x,), x.shape), (input,))
    if memory_format is contiguous_format:
        result._a = np.ascontiguousarray(result._a)
    return result


@function("contiguous")
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    if self._a.flags.c_contiguous:
        return self
    return clone(self, contiguous_format)


@function("ravel")
def ravel(input: Tensor) -> Tensor:
    return view(contiguous(input), (-1,))


@function("detach")
def detach(input: Tensor, how: str = ".detach()") -> Tensor:
    result: Tensor = alias(input)
    result._detached = cut(input, Kind.DETACHED, how)
    return result


def _data(self: Tensor) -> Tensor:
    result = detach(self, how=".data")
    result._memory = self._memory.apart()
    return result


def _set_data(self: Tensor, value: Tensor) -> None:
    """Give a tensor the memory of another one; the old memory keeps its numbers, and no version changes."""
    raise_if(not isinstance(value, Tensor), "variable of no tensor", type(value).__name__)
    if Recorder.explains:
        self._memory.move(value._memory.storage, script_line())
    self._a = value._a


Tensor.data = property(_data, _set_data)


@function("detach_")
def detach_(self: Tensor) -> Tensor:
    raise_if(self._base is not None, "view detached in place")
    self._fn, self._requires = None, False
    return self
