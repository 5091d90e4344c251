"""Splitting and joining of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, combinations, combinations_with_replacement
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import shape_at
from gradcli.graph.node import Node, cast
from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import function
from gradcli.pytorch.operations.indexing import part, unrecorded_part
from gradcli.pytorch.operations.views import expand, reshape, shape_of, view
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.recipes import common_shape, recipe_for
from gradcli.pytorch.running import apply, noted_results
from gradcli.pytorch.tensor import Tensor, as_sequence, axis_of, of_array

# Parts


def _part(x: Tensor, axis: int, indices: int | range, name: str = "SliceBackward0") -> Tensor:
    """Return the slice of a tensor at an index along an axis, or those at a range of indices."""
    return part(x, (*map(range, x.shape[:axis]), indices), name)


def _parts(x: Tensor, axis: int, slices: Iterable[int | range], name: str, op: str = "parts") -> tuple[Tensor, ...]:
    """Return parts of a tensor as the results of one step."""
    keys = [(*map(range, x.shape[:axis]), k) for k in slices]
    parts = tuple(unrecorded_part(x, key) for key in keys)
    for i, y in enumerate(parts):
        y._origin = Origin(Maker.SEVERAL, name, i) if Mode.grad else y._origin
    if not parts:
        return parts
    recipe = parts[0]._how[-1][0]  # which tells what nothing is recorded of
    if Mode.dual is not None or (Mode.grad and x.requires_grad):
        sizes = tuple(len(k[-1]) if isinstance(k[-1], range) else -1 for k in keys)  # -1: an element
        recipe = recipe_for(op, (axis, sizes), lambda n: tuple(_at(n, key) for key in keys), (x._a,))
    return noted_results(parts, recipe, (x,), f"{name}Backward0")


def _at(n: Node, key: tuple[Any, ...]) -> Node:
    return Node("index", (n,), shape_at(key, n.shape), (key,), n.dtype)


def _axis_of(name: str, x: Tensor, dim: int) -> int:
    """Return an axis as counted from the front; a number has none."""
    raise_if(not x.dim(), f"{name} of a number")
    return axis_of(dim, x.dim())


@function("split")
def split(self: Tensor, split_size: Any, dim: int) -> tuple[Tensor, ...]:
    axis = _axis_of("split", self, dim)
    n = self.shape[axis]
    if isinstance(split_size, list | tuple):
        raise_if(sum(split_size) != n, "sizes to split", n, axis, list(split_size))
        ends, name = [0, *accumulate(split_size)], "SplitWithSizes"
    else:
        raise_if(split_size < 0, "negative size to split", split_size)
        raise_if(not split_size and n, "no size to split", n)
        ends, name = [*range(0, n, split_size), n] if n else [0, 0], "Split"
    return _parts(self, axis, map(range, ends, ends[1:]), name)


function("split", module="torch")(lambda tensor, split_size_or_sections, dim: tensor.split(split_size_or_sections, dim))
function("split_with_sizes")(lambda input, split_sizes, dim: split(input, split_sizes, dim))


@function("chunk")
def chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    raise_if(chunks <= 0, "count of chunks", chunks)
    axis = _axis_of("chunk", input, dim)
    return split(input, max(1, -(-input.shape[axis] // chunks)), dim)


@function("tensor_split")
def tensor_split(
    input: Tensor, tensor_indices_or_sections: Any, indices: Any, sections: Any, dim: int
) -> tuple[Tensor, ...]:
    raise_if(not input.dim(), "tensor_split of a number")
    cuts = indices if sections is None else sections
    if tensor_indices_or_sections is not None:
        dtype = tensor_indices_or_sections.dtype
        raise_if(dtype.name != "int64", "dtype of a tensor_split", dtype.word)
        cuts = tensor_indices_or_sections.tolist()
    raise_if(isinstance(cuts, int) and cuts <= 0, "sections of a tensor_split", cuts)
    axis = axis_of(dim, input.dim())
    size = input.shape[axis]
    rest = size % cuts if isinstance(cuts, int) else 0
    ends = [k * (size // cuts) + min(k, rest) for k in range(1, cuts)] if isinstance(cuts, int) else list(cuts)
    slices = [range(size)[start:end] for start, end in zip([0, *ends], [*ends, size], strict=True)]
    return tuple(_part(input, axis, piece) for piece in slices)


_SPLIT = {"hsplit": (1, 1), "vsplit": (0, 2), "dsplit": (2, 3)}  # along which axis, and how many there are at least


@function(*_SPLIT)
def split_along(input: Tensor, sections: Any, indices: Any, op: str) -> tuple[Tensor, ...]:
    axis, least = _SPLIT[op]
    raise_if(input.dim() < least, "axes to split", op, least, input.dim())
    at = axis if input.dim() > 1 else 0
    unequal = sections is not None and (sections <= 0 or input.shape[at] % sections)
    raise_if(unequal, "sections of unequal sizes", op, at, input.shape[at], sections)
    return tensor_split(input, None, indices, sections, at)


@function("unbind")
def unbind(input: Tensor, dim: int) -> tuple[Tensor, ...]:
    axis = _axis_of("unbind", input, dim)
    return _parts(input, axis, range(input.shape[axis]), "Unbind")


def lanes_of(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """Return the elements along an axis that `vmap` maps over."""
    return _parts(x, axis, range(x.shape[axis]), "Unbind", "lanes")


@function("__iter__")
def _iterate(self: Tensor) -> Any:
    raise_if(not self.dim(), "iteration over a number")
    return iter(unbind(self, 0))


@function("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    axis = _axis_of("select", input, dim)
    size = input.shape[axis]
    raise_if(not -size <= index < size, "index of a select", index, list(input.shape), axis)
    return _part(input, axis, index % size, "SelectBackward0")


@function("narrow")
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    raise_if(length < 0, "negative length of a narrow")
    axis = _axis_of("narrow", input, dim)
    size, whole = input.shape[axis], not isinstance(start, Tensor) or not (start.dim() or start.is_floating_point())
    raise_if(not whole, "start of a narrow")
    raise_if(not -size <= start <= size, "start out of range", -size, size, int(start))
    start = int(start) % size if start < 0 else int(start)
    raise_if(start + length > size, "end of a narrow", start, length, size)
    return _part(input, axis, range(start, start + length))


# Joined


def _check_tensors(tensors: Any, name: str) -> list[Tensor]:
    raise_if(not isinstance(tensors, list | tuple), "kind of parts", name, type(tensors).__name__)
    raise_if(not tensors, f"{name} of nothing" if name == "cat" else "no parts", name)
    return _all_tensors(tensors)


def _all_tensors(tensors: Any) -> list[Tensor]:
    for i, x in enumerate(tensors):
        raise_if(not isinstance(x, Tensor), "kind of a part", i, type(x).__name__)
    return list(tensors)


def _join(op: str, parts: list[Tensor], axis: int, make: Any, whole: list[Tensor]) -> Tensor:
    dtype = result_dtype(whole).name
    return apply(op, lambda *n: cast(make([cast(p, dtype) for p in n], axis), dtype), parts, (axis, dtype))


@function("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Tensor:
    whole = _check_tensors(tensors, "cat")
    for i, p in enumerate(whole):
        raise_if(not p.dim(), "cat of a number", i)
    parts = [p for p in whole if p.shape != (0,)] or whole[:1]
    axis = axis_of(dim, parts[0].dim())
    for i, p in enumerate(parts[1:], 1):
        raise_if(p.dim() != parts[0].dim(), "ranks of a cat", parts[0].dim(), p.dim(), about=(axis, parts))
        for k, (m, n) in enumerate(zip(parts[0].shape, p.shape, strict=True)):
            raise_if(k != axis and m != n, "sizes of a cat", axis, m, n, i, about=(axis, parts))
    return _join("cat", parts, axis, construct.concatenate, whole)


@function("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    parts = _check_tensors(tensors, "stack")
    axis = axis_of(dim, parts[0].dim() + 1)
    for i, p in enumerate(parts):
        sizes = list(parts[0].shape), list(p.shape)
        raise_if(p.shape != parts[0].shape, "sizes of a stack", *sizes, i, about=(axis, parts))
    return _join("stack", parts, axis, construct.stack, parts)


def _at_least(rank: int, x: Any) -> Any:
    """Return a tensor with as many axes at least, as NumPy adds them."""
    x = x.reshape(1) if not x.dim() else x
    x = x.unsqueeze(0) if rank > 1 and x.dim() == 1 else x
    return x.unsqueeze(-1) if rank > 2 and x.dim() == 2 else x


@function("atleast_1d", "atleast_2d", "atleast_3d")
def at_least(tensors: Any, op: str) -> Any:
    """Return one tensor, or several, with as many axes at least."""
    xs = [_at_least(int(op[-2]), x) for x in as_sequence(tensors)]
    return xs[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else tuple(xs)


@function("hstack", "vstack", "row_stack", "dstack")
def stack_along(tensors: Any, op: str) -> Tensor:
    rank, axis = {"hstack": (1, 1), "dstack": (3, 2)}.get(op, (2, 0))
    parts = [_at_least(rank, p) for p in _check_tensors(tensors, op.replace("row_", "v"))]
    return cat(parts, min(axis, parts[0].dim() - 1))


@function("column_stack")
def column_stack(tensors: Any) -> Tensor:
    return cat([p if p.dim() > 1 else reshape(p, (p.numel(), 1)) for p in _check_tensors(tensors, "column_stack")], 1)


@function("broadcast_tensors")
def broadcast_tensors(tensors: Any) -> tuple[Tensor, ...]:
    parts = _all_tensors(as_sequence(tensors))
    shape = common_shape([x.shape for x in parts])
    return tuple(x if x.shape == shape else expand(x, shape) for x in parts)


@function("meshgrid")
def meshgrid(tensors: Any, indexing: str | None) -> tuple[Tensor, ...]:
    if indexing is None:
        warn("axes of a grid")
    parts = _all_tensors(as_sequence(tensors))
    order = list(range(len(parts)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    sizes = [parts[i].numel() for i in order]
    grids = [view(p, [p.numel() if i == k else 1 for i in order]) for k, p in enumerate(parts)]
    return tuple(expand(grid, sizes) for grid in grids)


@function("repeat")
def repeat(self: Tensor, repeats: Any) -> Tensor:
    raise_if(not repeats, "repeat without times")
    times = shape_of(repeats)
    raise_if(len(times) < self.dim(), "rank of a repeat")
    shape = [n * k for n, k in zip((1,) * (len(times) - self.dim()) + tuple(self.shape), times, strict=True)]
    raise_if(min(times, default=1) < 0, "negative size", min(shape, default=0), shape)
    result = call_function("repeat", self, tuple(max(1, n) for n in times))
    some = tuple(slice(None if n else 0) for n in times)
    return result if 0 not in times else set_grad_fn_name(result[some], "RepeatBackward0")


@function("cartesian_prod")
def cartesian_prod(tensors: Any) -> Any:
    """Return the rows of all combinations of the elements of vectors."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(tensors, "ij")], -1)  # type: ignore[attr-defined]


@function("combinations")
def choices(input: Any, r: int, with_replacement: bool) -> Any:
    """Return the rows of all choices of r elements of a vector."""
    choose = combinations_with_replacement if with_replacement else combinations
    indices = np.array([*choose(range(len(input)), r)], np.int64).reshape(-1, r)
    return set_grad_fn_name(input[of_array(indices)], "StackBackward0")


@function("block_diag")
def block_diag(tensors: Any) -> Any:
    """Return matrices along the diagonal of one of zeros."""
    blocks = [x.reshape(1, -1) if x.dim() < 2 else x for x in tensors]
    ends = [*accumulate((b.shape[1] for b in blocks), initial=0)]
    pairs = zip(blocks, ends[:-1], strict=True)
    rows = [call_function("pad", b, (left, ends[-1] - left - b.shape[1]), "constant", 0) for b, left in pairs]
    return set_grad_fn_name(cat(rows), "BlockDiagBackward0")
