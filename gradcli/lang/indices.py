"""Subscripts: `x[0]`, `x[-1]`, `x[1:3]`, `x[..., None]`, `x[[0, 2]]`, as non-negative indices and ranges.

Settings of calls, such as `axis=0`, are read here, too: plain values, and expressions that become nodes.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.index_arrays import IndexArray, flattened, index_array, indices_where, is_mask
from gradcli.graph.node import Node
from gradcli.lang.loops import integers_of
from gradcli.vocabulary import KEYWORDS, Builder


@cache
def signature_of(function: Builder) -> inspect.Signature:
    """Return the signature of a function of the language; its annotations are text."""
    return inspect.signature(function)


def arguments(function: Builder, values: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the function's parameters.

    Errors: `TypeError` where they do not fit.
    """
    named = {KEYWORDS.get(k.arg or "**", k.arg or "**"): k.value for k in keywords}
    return signature_of(function).bind(*values, **named).arguments


@cache
def takes_nodes(function: Builder) -> int | None:
    """Return how many arguments a function takes, if all are numbers that it must have; None for any other function."""
    parameters = signature_of(function).parameters.values()
    plain = all(
        p.annotation == "Node" and p.name != "condition" and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        for p in parameters
    )
    return len(parameters) if plain else None


def plan(annotation: str, tree: Any, parts: list[ast.expr]) -> Any:
    """Return the plan of a parameter's value: an expression, added to `parts`, a list of them, or a setting."""
    if isinstance(tree, tuple):
        return tuple(plan(annotation, g, parts) for g in tree)
    if annotation == "Sequence[Node]":
        if not isinstance(tree, ast.List | ast.Tuple):
            raise InputError("a list of expressions is needed here", hint="for example `stack([a, b])`")
        return [plan("Node", g, parts) for g in tree.elts]
    if "None" in annotation and isinstance(tree, ast.Constant) and tree.value is None:
        return _Setting(None)
    if "Node" in annotation:
        parts.append(tree)
        return _EXPRESSION
    if annotation == "str" and isinstance(tree, ast.Name):
        raise InputError("a word in quotes is needed here", hint=f"write '{tree.id}'")
    value = read_setting(tree)
    if isinstance(value, bool) and annotation.startswith("int"):
        raise InputError(f"{value} is not an integer", hint=f"write {int(value)}")
    return _Setting(value)


_EXPRESSION = object()


class _Setting:
    """A plain value, as opposed to an expression that will be a node."""

    def __init__(self, value: Any) -> None:
        self.value = value


def take(slot: Any, rest: Iterator[Node]) -> Any:
    """Return the value for an entry of the plan; expressions have become nodes, which come in order."""
    if isinstance(slot, _Setting):
        return slot.value
    if isinstance(slot, tuple | list):
        return type(slot)(take(s, rest) for s in slot)
    return next(rest)


def read_setting(tree: ast.expr) -> Any:
    """Return a plain value: a number, a tuple of them, integers combined, a word in quotes, True, False or None."""
    if isinstance(tree, ast.Name) and tree.id == "inf":
        return math.inf
    if isinstance(tree, ast.Tuple):
        return tuple(map(read_setting, tree.elts))
    if isinstance(tree, ast.BinOp):
        with suppress(InputError):
            return integers_of(tree, {})
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        raise InputError("a plain number is needed here", hint="write it out: `3`, or `axis=0`") from None


def complaint(name: str, error: str) -> str:
    """Return the message for a call whose arguments do not fit, from that of Python's `TypeError`."""
    words = {
        "missing a required argument": f"`{name}` is missing an argument",
        "missing a required keyword": f"`{name}` is missing an argument",
        "too many positional": f"`{name}` has too many arguments",
        "got an unexpected keyword": f"`{name}` has no such setting",
        "multiple values": f"`{name}` is given an argument twice",
    }
    return next((w for e, w in words.items() if e in error), f"`{name}` does not take these arguments")


def usage(name: str, signature: inspect.Signature) -> str:
    """Return how a function is called."""
    shown = []
    for p in signature.parameters.values():
        star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
        plain = p.default is inspect.Parameter.empty or isinstance(p.default, Node)
        shown.append(f"{star}{p.name}" if plain else f"{p.name}={p.default!r}")
    return f"it is `{name}({', '.join(shown)})`"


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
