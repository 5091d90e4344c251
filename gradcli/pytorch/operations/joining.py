"""What makes several tensors of one, and one of several."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node, cast
from gradcli.pytorch.calls import called, moved, named
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.operations.views import expand, reshape, shape_of, transpose, view
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import both, function, method
from gradcli.pytorch.tensor import Tensor, axis_of

# Parts


def _part(x: Tensor, axis: int, start: int, stop: int, name: str) -> Tensor:
    shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
    return moved("index", x, shape, (*map(range, x.shape[:axis]), range(start, stop)), name)


def _selected(x: Tensor, axis: int, i: int, name: str = "SelectBackward0") -> Tensor:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return moved("index", x, shape, (*map(range, x.shape[:axis]), i), name)


def _several(parts: list[Tensor], name: str) -> tuple[Tensor, ...]:
    """Return the parts of a tensor: each has a step, which scripts see as one for all, whose hooks all steps call."""
    hooks: list[Any] = []
    for i, part in enumerate(parts):
        part._made = f"{i} {name}"
        if part._fn is not None:
            part._fn.whole, part._fn.number, part._fn._posts = parts[0]._fn, i, hooks
    return tuple(parts)


def _axis_of(name: str, x: Tensor, dim: int) -> int:
    if not x.dim():
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    return axis_of(dim, x.dim())


@both("split", "split_with_sizes")
def split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    axis = _axis_of("split", tensor, dim)
    n = tensor.shape[axis]
    if isinstance(split_size, list | tuple):
        if sum(split_size) != n:
            raise refusal("sizes of a split", n, axis, list(split_size))
        ends, name = np.cumsum([0, *split_size]).tolist(), "SplitWithSizes"
    else:
        if split_size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
        if not split_size and n:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        ends, name = [*range(0, n, split_size), n] if n else [0, 0], "Split"
    return _several([_part(tensor, axis, a, b, f"{name}Backward0") for a, b in pairwise(ends)], name)


@both("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    axis = _axis_of("chunk", input, dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return split(input, max(1, -(-input.shape[axis] // chunks)), dim)


@both("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    axis = axis_of(dim, input.dim())
    n, how = input.shape[axis], indices_or_sections
    if isinstance(how, int):
        places = [i * (n // how) + min(i, n % how) for i in range(how + 1)]
    else:
        places = [0, *(min(i, n) for i in how), n]
    return tuple(_part(input, axis, a, b, "SliceBackward0") for a, b in pairwise(places))


@both("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    if not input.dim():
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = axis_of(dim, input.dim())
    return _several([_selected(input, axis, i, "UnbindBackward0") for i in range(input.shape[axis])], "Unbind")


@method("__iter__")
def _iterated(self: Tensor) -> Any:
    if not self.dim():
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


@both("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    if not input.dim():
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, input.dim())
    if not -input.shape[axis] <= index < input.shape[axis]:
        raise refusal("place of a select", index, list(input.shape), axis)
    return _selected(input, axis, index % input.shape[axis])


@both("narrow")
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    if not input.dim():
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, input.dim())
    if start + length > input.shape[axis]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[axis]}).")
    return _part(input, axis, start, start + length, "SliceBackward0")


@method("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    axis = axis_of(dimension, self.dim())
    parts = [_part(self, axis, i, i + size, "UnfoldBackward0") for i in range(0, self.shape[axis] - size + 1, step)]
    return apply("unfold", lambda *n: _windows(n, axis), parts, axis)


def _windows(parts: Any, axis: int) -> Node:
    node = construct.stack(parts, axis)
    rank = len(node.shape)
    order = (*(i for i in range(rank) if i != axis + 1), axis + 1)
    return Node("transpose", (node,), tuple(node.shape[i] for i in order), (order,))


# Joined


def _checked(tensors: Any, name: str) -> list[Tensor]:
    if not isinstance(tensors, list | tuple):
        kind = type(tensors).__name__
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    found = list(tensors)
    if not found and name == "cat":
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for i, x in enumerate(found):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return found


def _joined(op: str, parts: list[Tensor], at: int, make: Any, whole: list[Tensor]) -> Tensor:
    dtype = result_dtype(whole).name
    return apply(op, lambda *n: cast(make([cast(p, dtype) for p in n], at), dtype), parts, (at, dtype))


@function("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    whole = _checked(tensors, "cat")
    for i, p in enumerate(whole):
        if not p.dim():
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    parts = [p for p in whole if p.shape != (0,)] or whole[:1]
    at = axis_of(dim if axis is None else axis, parts[0].dim())
    for i, p in enumerate(parts[1:], 1):
        if p.dim() != parts[0].dim():
            raise RuntimeError(f"Tensors must have same number of dimensions: got {parts[0].dim()} and {p.dim()}")
        for k, (m, n) in enumerate(zip(parts[0].shape, p.shape, strict=True)):
            if k != at and m != n:
                raise refusal("sizes of a cat", at, m, n, i)
    return _joined("cat", parts, at, construct.concatenate, whole)


@function("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    parts = _checked(tensors, "stack")
    at = axis_of(dim, parts[0].dim() + 1)
    for i, p in enumerate(parts):
        if p.shape != parts[0].shape:
            raise refusal("sizes of a stack", list(parts[0].shape), list(p.shape), i)
    return _joined("stack", parts, at, construct.stack, parts)


def _at_least(rank: int) -> Any:
    def made(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return _raised(tensors[0], rank)
        parts = tensors[0] if len(tensors) == 1 else tensors
        return tuple(_raised(p, rank) for p in parts)

    return made


def _raised(x: Tensor, rank: int) -> Tensor:
    """Return a tensor with as many axes at least, as NumPy adds them."""
    if x.dim() >= rank:
        return x
    if not x.dim():
        return reshape(x, (1,) * rank)
    found = x.unsqueeze(0) if rank == 2 or x.dim() == 1 else x  # type: ignore[attr-defined]
    return found.unsqueeze(-1) if rank == 3 else found  # type: ignore[no-any-return]


for _rank in (1, 2, 3):
    function(f"atleast_{_rank}d")(_at_least(_rank))


def _stacked(name: str, rank: int, axis: int) -> Any:
    def made(tensors: Any) -> Tensor:
        parts = [_raised(p, rank) for p in _checked(tensors, name)]
        return cat(parts, axis if parts[0].dim() > 1 or not axis else 0)

    return made


function("vstack", "row_stack")(_stacked("vstack", 2, 0))
function("hstack")(_stacked("hstack", 1, 1))
function("dstack")(_stacked("dstack", 3, 2))


@function("column_stack")
def column_stack(tensors: Any) -> Tensor:
    return cat([p if p.dim() > 1 else reshape(p, (p.numel(), 1)) for p in _checked(tensors, "column_stack")], 1)


@function("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    shape = common_shape([x.shape for x in parts])
    return tuple(x if x.shape == shape else expand(x, shape) for x in parts)


@function("meshgrid")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    if indexing is None:
        warnings.warn(_INDEXING, UserWarning, stacklevel=2)
    parts = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    sizes = [p.numel() for p in parts]
    found = [expand(view(p, [n if k == i else 1 for k, n in enumerate(sizes)]), sizes) for i, p in enumerate(parts)]
    return tuple(transpose(p, 0, 1) for p in found) if indexing == "xy" else tuple(found)


_INDEXING = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."


@method("repeat")
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    if not repeats:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    times = shape_of(repeats)
    if len(times) < self.dim():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if min(times, default=1) < 0:
        shape = [n * k for n, k in zip((1,) * (len(times) - self.dim()) + tuple(self.shape), times, strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    found = named("repeat", self, *(max(1, n) for n in times))
    if 0 not in times:
        return found
    return called(found[tuple(slice(None if n else 0) for n in times)], "RepeatBackward0")  # type: ignore[no-any-return]
