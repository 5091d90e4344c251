"""Arguments and results that are made of arrays: lists, tuples, dictionaries and dataclasses of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from gradcli.graph.names import identifier
from gradcli.pyfunc.tracer import Tracer

Leaf = Callable[[str, Any], Any]


def mapped(tree: Any, name: str, leaf: Leaf) -> Any:
    """Return a tree of the same form, with `leaf(name, number)` in the place of each number or array.

    The name is made of the parameter's and of the keys: `params["W"][0]` is `params_W_0`.  Text, booleans, None and
    other objects stay as they are.

    >>> mapped({"W": [1.0, 2.0], "kind": "tanh"}, "p", lambda name, x: name)
    {'W': ['p_W_0', 'p_W_1'], 'kind': 'tanh'}
    """
    if is_number(tree):
        return leaf(name, tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(x, _inner(name, n), leaf) for n, x in zip(tree._fields, tree, strict=True)))
    if type(tree) in (list, tuple):
        return type(tree)(mapped(x, _inner(name, k), leaf) for k, x in enumerate(tree))
    if isinstance(tree, dict):
        return {key: mapped(x, _inner(name, key), leaf) for key, x in tree.items()}
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{f.name: mapped(getattr(tree, f.name), _inner(name, f.name), leaf)
                                for f in fields(tree) if f.init})  # fmt: skip
    return tree


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Return the numbers and arrays in a tree, with their names.

    >>> list(leaves((1.0, [2.0]), "y"))
    [('y_0', 1.0), ('y_1_0', 2.0)]
    """
    result: list[tuple[str, Any]] = []
    mapped(tree, name, lambda key, x: result.append((key, x)))
    return iter(result)


def is_number(x: Any) -> bool:
    """Return whether something is a real number or an array of them, which a derivative may be taken by."""
    if type(x) is Tracer:
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fiu"
    return isinstance(x, float | int | np.floating | np.integer) and not isinstance(x, bool)


def _inner(name: str, key: Any) -> str:
    return identifier(f"{name}_{key}") if name else str(key)
