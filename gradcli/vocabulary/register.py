"""The register of names: each function of the language under the names that PyTorch, NumPy and SymPy users type.

A function takes nodes and settings and returns a node.  The annotation of a parameter says how its argument is read:
`Node` is an expression, `Sequence[Node]` a list of expressions, anything else a plain setting such as an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import Axes
from gradcli.graph.node import Constant, Node

Axis = int | Sequence[int] | None
Builder = Callable[..., Node]

CONSTANTS: dict[str, Constant] = {"pi": "pi", "π": "pi", "e": "e", "inf": math.inf, "nan": math.nan}
FUNCTIONS: dict[str, Builder] = {}
METHODS: dict[str, Builder] = {}  # `x.sum()`: the object is the first argument

# Settings have NumPy's names; PyTorch's are read as well.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "ord": "p",
    "ddof": "correction",
    "a_min": "min",
    "a_max": "max",
    "stop": "end",
    "num": "steps",
}


def add(build: Builder, *names: str, methods: Sequence[str] | None = None) -> None:
    """Register a function under its names, and as a method under the same ones unless others are given."""
    FUNCTIONS.update(dict.fromkeys(names, build))
    METHODS.update(dict.fromkeys(names if methods is None else methods, build))


def named(*names: str, methods: Sequence[str] | None = None) -> Callable[[Builder], Builder]:
    """Return a decorator that registers a function, as `add` does."""

    def register(build: Builder) -> Builder:
        add(build, *names, methods=methods)
        return build

    return register


def each(*names: str, methods: Sequence[str] | None = None) -> Callable[[Builder], Builder]:
    """Return a decorator that registers a function under each of the names, with the name as its first argument."""

    def register(build: Builder) -> Builder:
        for name in names:
            add(partial(build, name), name, methods=methods)
        return build

    return register


def flag(name: str, value: bool) -> bool:
    """Return a setting that is True or False.

    Errors: `InputError` for anything else.
    """
    if type(value) is not bool:
        raise InputError(f"`{name}` must be True or False")
    return value


def integers(numbers: Axis | Sequence[Axis], example: str) -> tuple[int, ...]:
    """Return the integers of several arguments or of one tuple; an error shows the example."""
    typed = tuple(numbers) if isinstance(numbers, list | tuple) else (numbers,)
    listed = typed[0] if len(typed) == 1 and isinstance(typed[0], list | tuple) else typed
    if not all(type(n) is int for n in listed):
        raise InputError("this must be an integer, or a tuple of integers", hint=f"for example {example}")
    return tuple(n for n in listed if isinstance(n, int))


def kept(reduced: Node, x: Node, axes: Axes, keepdims: bool) -> Node:
    """Return the reduced array; with `keepdims` the reduced axes stay, with size 1."""
    return construct.kept(reduced, x, axes) if flag("keepdims", keepdims) else reduced
