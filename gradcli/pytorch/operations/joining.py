"""Splitting and joining of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import cast
from gradcli.pytorch.calls import called, moved, named
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import calling, function, method
from gradcli.pytorch.operations.indexing import part
from gradcli.pytorch.operations.views import expand, reshape, shape_of, view
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, axis_of, listed

# Parts


def _part(x: Tensor, axis: int, indices: int | range, name: str = "SliceBackward0") -> Tensor:
    """Return the slice of a tensor at an index along an axis, or those at a range of indices."""
    return part(x, (*map(range, x.shape[:axis]), indices), name)


def _parts(x: Tensor, axis: int, slices: Iterable[int | range], name: str) -> tuple[Tensor, ...]:
    """Return parts of a tensor: each has a step, which scripts see as one for all, whose hooks all steps call."""
    parts = tuple(_part(x, axis, indices, f"{name}Backward0") for indices in slices)
    hooks: list[Any] = []
    for i, x in enumerate(parts):
        x._origin = Origin(Maker.SEVERAL, name, i) if Mode.grad else x._origin
        if x._fn is not None:
            x._fn.whole, x._fn.number, x._fn._posts = parts[0]._fn, i, hooks
    return parts


def _axis_of(name: str, x: Tensor, dim: int) -> int:
    """Return an axis as counted from the front; a number has none."""
    raise_if(not x.dim(), f"{name} of a number")
    return axis_of(dim, x.dim())


@method("split", "split_with_sizes")
def split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    axis = _axis_of("split", tensor, dim)
    n = tensor.shape[axis]
    if isinstance(split_size, list | tuple):
        raise_if(sum(split_size) != n, "sizes to split", n, axis, list(split_size))
        ends, name = [0, *accumulate(split_size)], "SplitWithSizes"
    else:
        raise_if(split_size < 0, "negative size to split", split_size)
        raise_if(not split_size and n, "no size to split", n)
        ends, name = [*range(0, n, split_size), n] if n else [0, 0], "Split"
    return _parts(tensor, axis, map(range, ends, ends[1:]), name)


function("split")(lambda tensor, split_size_or_sections, dim=0: tensor.split(split_size_or_sections, dim))


@method("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    axis = _axis_of("chunk", input, dim)
    return split(input, max(1, -(-input.shape[axis] // chunks)), dim)


@method("tensor_split")
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    cuts = next(x for x in (indices_or_sections, indices, sections) if x is not None)
    cuts = cuts.tolist() if isinstance(cuts, Tensor) else cuts
    axis = axis_of(dim, input.dim())
    size = input.shape[axis]
    rest = size % cuts if isinstance(cuts, int) else 0
    ends = [k * (size // cuts) + min(k, rest) for k in range(1, cuts)] if isinstance(cuts, int) else list(cuts)
    slices = [range(size)[start:end] for start, end in zip([0, *ends], [*ends, size], strict=True)]
    return tuple(_part(input, axis, piece) for piece in slices)


def _split_along(name: str, axis: int) -> None:
    def function(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        at, sections = axis if input.dim() > 1 else 0, indices_or_sections
        unequal = isinstance(sections, int) and (sections <= 0 or input.shape[at] % sections)
        raise_if(unequal, "sections of unequal sizes", name, at, input.shape[at], sections)
        return tensor_split(input, sections, at)

    method(name)(function)


for _name, _axis in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)):
    _split_along(_name, _axis)


@method("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    axis = _axis_of("unbind", input, dim)
    return _parts(input, axis, range(input.shape[axis]), "Unbind")


@method("__iter__")
def _iterated(self: Tensor) -> Any:
    raise_if(not self.dim(), "iteration over a number")
    return iter(unbind(self))


@method("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    axis = _axis_of("select", input, dim)
    size = input.shape[axis]
    raise_if(not -size <= index < size, "index of a select", index, list(input.shape), axis)
    return _part(input, axis, index % size, "SelectBackward0")


@method("narrow")
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    axis = _axis_of("narrow", input, dim)
    size, whole = input.shape[axis], not isinstance(start, Tensor) or not (start.dim() or start.is_floating_point())
    raise_if(not whole, "start of a narrow")
    raise_if(not -size <= start <= size, "start out of range", -size, size, int(start))
    start = int(start) % size if start < 0 else int(start)
    raise_if(start + length > size, "end of a narrow", start, length, size)
    return _part(input, axis, range(start, start + length))


# Joined


def _checked(tensors: Any, name: str) -> list[Tensor]:
    raise_if(not isinstance(tensors, list | tuple), "kind of parts", name, type(tensors).__name__)
    raise_if(not tensors, f"{name} of nothing" if name == "cat" else "no parts", name)
    return _all_tensors(tensors)


def _all_tensors(tensors: Any) -> list[Tensor]:
    for i, x in enumerate(tensors):
        raise_if(not isinstance(x, Tensor), "kind of a part", i, type(x).__name__)
    return list(tensors)


def _joined(op: str, parts: list[Tensor], at: int, make: Any, whole: list[Tensor]) -> Tensor:
    dtype = result_dtype(whole).name
    return apply(op, lambda *n: cast(make([cast(p, dtype) for p in n], at), dtype), parts, (at, dtype))


def cat(tensors: Any, dim: int = 0) -> Tensor:
    whole = _checked(tensors, "cat")
    for i, p in enumerate(whole):
        raise_if(not p.dim(), "cat of a number", i)
    parts = [p for p in whole if p.shape != (0,)] or whole[:1]
    at = axis_of(dim, parts[0].dim())
    for i, p in enumerate(parts[1:], 1):
        raise_if(p.dim() != parts[0].dim(), "ranks of a cat", parts[0].dim(), p.dim())
        for k, (m, n) in enumerate(zip(parts[0].shape, p.shape, strict=True)):
            raise_if(k != at and m != n, "sizes of a cat", at, m, n, i)
    return _joined("cat", parts, at, construct.concatenate, whole)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    parts = _checked(tensors, "stack")
    at = axis_of(dim, parts[0].dim() + 1)
    for i, p in enumerate(parts):
        raise_if(p.shape != parts[0].shape, "sizes of a stack", list(parts[0].shape), list(p.shape), i)
    return _joined("stack", parts, at, construct.stack, parts)


function("cat", "concat", "concatenate")(calling(cat, "cat", out=True))
function("stack")(calling(stack, "stack", out=True))


def _raised(x: Tensor, rank: int) -> Tensor:
    """Return a tensor with as many axes at least, as NumPy adds them."""
    shape = getattr(np, f"atleast_{rank}d")(x._a[..., 0]).shape
    return x if x.dim() >= rank else moved("reshape", x, shape, shape, f"{'Unsqueeze' if x.dim() else 'View'}Backward0")


def _stacked(name: str, rank: int, axis: int) -> Any:
    def function(tensors: Any) -> Tensor:
        parts = [_raised(p, rank) for p in _checked(tensors, name)]
        return cat(parts, min(axis, parts[0].dim() - 1))

    return function


function("vstack", "row_stack")(_stacked("vstack", 2, 0))
function("hstack")(_stacked("hstack", 1, 1))
function("dstack")(_stacked("dstack", 3, 2))


@function("column_stack")
def column_stack(tensors: Any) -> Tensor:
    return cat([p if p.dim() > 1 else reshape(p, (p.numel(), 1)) for p in _checked(tensors, "column_stack")], 1)


@function("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    parts = _all_tensors(listed(tensors))
    shape = common_shape([x.shape for x in parts])
    return tuple(x if x.shape == shape else expand(x, shape) for x in parts)


@function("meshgrid")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    if indexing is None:
        warn("axes of a grid")
    parts = _all_tensors(listed(tensors))
    order = list(range(len(parts)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    sizes = [parts[i].numel() for i in order]
    grids = [view(p, [p.numel() if i == k else 1 for i in order]) for k, p in enumerate(parts)]
    return tuple(expand(grid, sizes) for grid in grids)


@method("repeat")
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    raise_if(not repeats, "repeat without times")
    times = shape_of(repeats)
    raise_if(len(times) < self.dim(), "rank of a repeat")
    shape = [n * k for n, k in zip((1,) * (len(times) - self.dim()) + tuple(self.shape), times, strict=True)]
    raise_if(min(times, default=1) < 0, "negative size", min(shape, default=0), shape)
    result = named("repeat", self, *(max(1, n) for n in times))
    some = tuple(slice(None if n else 0) for n in times)
    return result if 0 not in times else called(result[some], "RepeatBackward0")
