"""The arguments of NumPy's functions as nodes, and the decorator that registers a function's rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gradcli.graph.construct import axes_of
from gradcli.graph.node import Node, cast, compare, const
from gradcli.pyfunc.tracer import RULES, VIEWS, lift

Axis = int | Sequence[int] | None
Build = TypeVar("Build", bound=Callable[..., Any])

UNSET = getattr(np, "_NoValue", None)  # NumPy's default of `initial` and `where`


def number(x: Any) -> Node:
    """Return an argument as numbers: a condition is 0 or 1."""
    node = lift(x)
    return cast(node, "float64") if node.dtype == "bool" else node


def boolean(x: Any) -> Node:
    """Return an argument as a condition: a number is true where it is not 0."""
    node = lift(x)
    return node if node.dtype == "bool" else compare("ne", node, const(0))


def axes_in(axis: Axis, rank: int) -> tuple[int, ...]:
    """Return the axes of an argument `axis` of an array, counted from the front; `None` means all."""
    return axes_of(tuple(axis) if isinstance(axis, list) else _plain_axis(axis), rank)


def _plain_axis(axis: Any) -> Any:
    return tuple(int(a) for a in axis) if isinstance(axis, tuple) else None if axis is None else int(axis)


def rule(*functions: Any, view: bool = False) -> Callable[[Build], Build]:
    """Return a decorator that registers the rule of functions; with `view`, their results may be views in NumPy."""

    def register(build: Build) -> Build:
        RULES.update(dict.fromkeys(functions, build))
        VIEWS.update(functions if view else ())
        return build

    return register
