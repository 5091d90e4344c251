"""Subscripts: `x[0]`, `x[-1]`, `x[1:3]`, `x[..., None]`, as whole numbers from the front and ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.node import Node
from gradcli.lang.settings import read_setting


def element_name(name: str, key: ast.expr) -> str | None:
    """Return `y[0]` for a subscript of whole numbers, under which an assembled element is known."""
    keys = key.elts if isinstance(key, ast.Tuple) else [key]
    if all(isinstance(k, ast.Constant) and type(k.value) is int for k in keys):
        return f"{name}[{','.join(str(k.value) for k in keys if isinstance(k, ast.Constant))}]"
    return None


def index_of(key: ast.expr, x: Node, written: ast.expr) -> construct.Index:
    """Return a subscript of a node, which was written so, as whole numbers from the front and ranges.

    Errors: `InputError` for an index outside of the array, or too many of them.
    """
    keys = list(key.elts) if isinstance(key, ast.Tuple) else [key]
    dots = [i for i, k in enumerate(keys) if isinstance(k, ast.Constant) and k.value is ...]
    axes = sum(1 for k in keys if not (isinstance(k, ast.Constant) and k.value is None)) - len(dots)
    rank = len(x.shape)
    if axes > rank or len(dots) > 1:
        name = f"`{written.id}`" if isinstance(written, ast.Name) else "this"
        what = "a scalar and has no elements" if not rank else f"an array of {rank} dimension{'s' * (rank > 1)}"
        hint = None
        if not rank and x.op == "input" and isinstance(written, ast.Name):
            hint = f"give it a shape: --shape {written.id}=3, or --at {written.id}=[1,2,3]"
        raise InputError(f"{name} is {what}", hint=hint)
    if dots:
        keys[dots[0] : dots[0] + 1] = [ast.Slice()] * (rank - axes)
    sizes = iter(x.shape)
    return tuple(_one_index(k, sizes) for k in keys)


def _one_index(key: ast.expr, sizes: Iterator[int]) -> int | range | None:
    if isinstance(key, ast.Constant) and key.value is None:
        return None
    size = next(sizes)
    if isinstance(key, ast.Slice):
        ends = [None if part is None else _whole(part) for part in (key.lower, key.upper, key.step)]
        if ends[2] == 0:
            raise InputError("a slice cannot have step 0")
        return range(*slice(*ends).indices(size))
    i = _whole(key)
    if not -size <= i < size:
        raise InputError(f"there is no element {i} among {size}", hint=f"elements are counted from 0 to {size - 1}")
    return i % size


def _whole(tree: ast.expr) -> int:
    value = read_setting(tree)
    if type(value) is not int:
        raise InputError("an index is a whole number", hint="for example `x[0]`, `x[-1]`, `x[1:3]`")
    return value
