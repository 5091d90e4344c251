"""Subscripts: `x[0]`, `x[-1]`, `x[1:3]`, `x[..., None]`, `x[[0, 2]]`, as non-negative indices and ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.index_arrays import IndexArray, flattened, index_array, indices_where, is_mask
from gradcli.graph.node import Node
from gradcli.lang.settings import read_setting

Key = int | range | IndexArray | None


def whole_key(key: ast.expr) -> tuple[int, ...] | None:
    """Return a subscript of integers alone; None for any other."""
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    values = tuple(p.value for p in parts if isinstance(p, ast.Constant) and type(p.value) is int)
    return values if len(values) == len(parts) else None


def index_of(key: ast.expr, x: Node, written: ast.expr) -> list[Key]:
    """Return a subscript of a node: integers, ranges and lists of indices.

    Errors: `InputError` for an index outside of the array, or too many of them.
    """
    keys = [_read(k) for k in (key.elts if isinstance(key, ast.Tuple) else [key])]
    dots = [i for i, k in enumerate(keys) if k is ...]
    axes = sum(_axes_of(k) for k in keys)
    rank = len(x.shape)
    if axes > rank or len(dots) > 1:
        raise too_many(x, written)
    if dots:
        keys[dots[0] : dots[0] + 1] = [slice(None)] * (rank - axes)
    sizes = iter(x.shape)
    return [result for k in keys for result in _one_index(k, sizes)]


def too_many(x: Node, written: ast.expr) -> InputError:
    """Return the error of a subscript with more axes than the array has."""
    rank, name = len(x.shape), written.id if isinstance(written, ast.Name) else ""
    what = f"an array of {rank} dimension{'s' * (rank > 1)}" if rank else "a scalar and has no elements"
    is_leaf = name and not rank and x.is_leaf
    hint = f"give it a shape: --shape {name}=3, or --at {name}=[1,2,3]" if is_leaf else None
    return InputError(f"{f'`{name}`' if name else 'this'} is {what}", hint=hint)


def _read(key: ast.expr) -> Any:
    """Return a part of a subscript as it was typed: a number, a slice, `None`, `...`, or lists."""
    if isinstance(key, ast.Slice):
        ends = [None if part is None else _integer(read_setting(part)) for part in (key.lower, key.upper, key.step)]
        if ends[2] == 0:
            raise InputError("a slice cannot have step 0")
        return slice(*ends)
    if isinstance(key, ast.Constant) and key.value in (None, ...):
        return key.value
    try:
        value = read_setting(key)
    except InputError:
        raise InputError(
            "an index must consist of plain numbers",
            hint="for example `x[0]` or `x[[0, 2]]`; by their values, elements are chosen with `where(x > 0, x, 0)`",
        ) from None
    return value if isinstance(value, list) else _integer(value)


def _axes_of(key: Any) -> int:
    """Return the number of axes that a part of a subscript indexes."""
    if is_mask(key):
        return len(flattened(key)[0])
    return int(key is not None and key is not ...)


def _one_index(key: Any, sizes: Iterator[int]) -> Sequence[Key]:
    if key is None:
        return [None]
    if is_mask(key):
        return indices_where(key, tuple(islice(sizes, _axes_of(key))))
    size = next(sizes)
    if isinstance(key, slice):
        return [range(*key.indices(size))]
    if isinstance(key, list):
        return [index_array(key, size)]
    if not -size <= key < size:
        raise InputError(f"there is no element {key} among {size}", hint=f"elements are counted from 0 to {size - 1}")
    return [key % size]


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise InputError("an index must be an integer", hint="for example `x[0]`, `x[-1]`, `x[1:3]`, `x[[0, 2]]`")
    return value
