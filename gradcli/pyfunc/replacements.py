"""Replacements of NumPy's functions while a function is traced, which NumPy's own Python code then calls, too."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
from numpy._core import numeric

FUNCTIONS = (FunctionType, type(len), np.ufunc, type(np.sum))  # of NumPy and Python
REPLACEMENT_OF: dict[Any, Any] = {}  # of functions of NumPy's, SciPy's and Python's, as `patches` has them
_DEPTH = 0


def in_numpy() -> bool:
    """Return whether NumPy's own Python code is traced."""
    return _DEPTH > 0


@contextmanager
def namespace(names: MutableMapping[str, Any]) -> Iterator[None]:
    """Put the replacements where NumPy's own Python code looks up functions, within a block."""
    global _DEPTH
    with _within(names), _within(vars(numeric)):
        _DEPTH += 1
        try:
            yield
        finally:
            _DEPTH -= 1


@contextmanager
def _within(names: MutableMapping[str, Any]) -> Iterator[None]:
    functions = {n: f for n, f in names.items() if type(f) in FUNCTIONS and f in REPLACEMENT_OF}
    names.update({n: REPLACEMENT_OF[f] for n, f in functions.items()})
    try:
        yield
    finally:
        names.update(functions)
