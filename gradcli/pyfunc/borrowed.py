"""The user's own arrays while a function is traced: tracers, in the place where the function finds them.

NumPy does not ask a tracer when an array's own method or assignment meets it: `X.dot(w)`, and `B[0] = w` after
`B = A.copy()`, need that `X` and `A` are tracers, too.  Until the trace ends, so are the arrays in the globals that the
function names, in its closure, and in the objects, containers and functions that are found there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradcli.pyfunc.tape import is_users
from gradcli.pyfunc.tracer import FUNCTIONS, REPLACEMENT_OF, Tracer, mutable

_LONG = 64  # elements of a container in which arrays are looked for
_DEEP = 12  # containers and objects within others
_INNER = ("__wrapped__", "func", "pyfunc")  # the function in a `partial`, an `lru_cache`, a `vectorize`


class Borrowed:
    """The arrays that functions and objects refer to, as tracers until they are given back."""

    __slots__ = ("_arrays", "_depth", "_functions", "_replaced", "_seen")

    _open: set[int] = set()  # noqa: RUF012  # what is looked through, here or in traces around this one

    def __init__(self, roots: Iterable[Any]) -> None:
        self._replaced: list[tuple[Any, Any, Any, Any]] = []  # the owner, the name there, and what was and is there
        self._seen: list[Any] = []  # kept alive, so that no identity recurs
        self._arrays: dict[int, Tracer] = {}
        self._functions: list[FunctionType] = []  # to be looked through
        self._depth = 0
        try:
            for root in roots:
                self.borrow(root)
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Put the arrays back where tracers are still in their places."""
        for owner, key, old, new in reversed(self._replaced):
            if _item(owner, key) is new:
                _put(owner, key, old)
        self._open.difference_update(map(id, self._seen))

    def borrow(self, x: Any) -> Any:
        """Return an array as a tracer; look through anything else, and return it, or what takes its place."""
        new = self._borrowed(x)
        while self._functions:
            self._function(self._functions.pop())
        return new

    def _borrowed(self, x: Any) -> Any:
        kind = type(x)
        if kind is np.ndarray:
            if id(x) not in self._arrays:
                self._arrays[id(x)] = mutable(x)
            return self._arrays[id(x)]
        if kind in FUNCTIONS and x in REPLACEMENT_OF:
            return REPLACEMENT_OF[x]
        if kind in _PLAIN or id(x) in self._open or self._depth > _DEEP:
            return x
        if kind is tuple or (isinstance(x, tuple) and hasattr(x, "_fields")):
            items = [self._borrowed(item) for item in x[:_LONG]]
            if all(new is old for new, old in zip(items, x, strict=False)):
                return x
            items += x[_LONG:]
            return kind(items) if kind is tuple else kind(*items)
        if isinstance(x, list):
            self._look(x, enumerate(x[:_LONG]))
        elif isinstance(x, dict):
            self._look(x, [*islice(x.items(), _LONG)])
        elif kind is FunctionType and is_users(x.__code__.co_filename):
            self._functions.append(x)
        elif kind is MethodType:
            self._borrowed(x.__self__)
            self._borrowed(x.__func__)
        elif isinstance(x, ModuleType):
            if _is_users_module(x.__name__):
                self._look(vars(x), [item for item in vars(x).items() if item[0] != "__builtins__"])
        elif isinstance(x, type):
            if _is_users_module(x.__module__):
                self._look(x, [*vars(x).items()])
        elif _is_users_module(kind.__module__) and hasattr(x, "__dict__"):
            self._borrowed(kind)
            self._look(x, [*vars(x).items()])
        else:
            for name in _INNER:
                self._borrowed(getattr(x, name, None))
        return x

    def _function(self, function: FunctionType) -> None:
        """Look through the defaults and the closure of a function of the user's, and the globals that it names."""
        if id(function) not in self._open:
            names = function.__globals__
            self._look(function, [("__defaults__", function.__defaults__)])
            self._replace(names, [(name, names[name]) for name in names_in(function.__code__) if name in names])
            for cell in function.__closure__ or ():
                self._replace(cell, [(None, _item(cell, None))])

    def _look(self, owner: Any, items: Iterable[tuple[Any, Any]]) -> None:
        """Replace the items of an object that are arrays, or contain them."""
        self._open.add(id(owner))
        self._seen.append(owner)
        self._depth += 1
        self._replace(owner, items)
        self._depth -= 1

    def _replace(self, owner: Any, items: Iterable[tuple[Any, Any]]) -> None:
        for key, old in items:
            new = self._borrowed(old)
            if new is not old:
                _put(owner, key, new)
                self._replaced.append((owner, key, old, new))


def names_in(code: CodeType) -> set[str]:
    """Return the names in the code of a function, and of those within it: of modules that it imports, too."""
    return {*code.co_names}.union(*(names_in(c) for c in code.co_consts if isinstance(c, CodeType)))


def _item(owner: Any, key: Any) -> Any:
    """Return what `_put` replaces, which in a cell or a function has no key; None where there is nothing."""
    try:
        if isinstance(owner, CellType):
            return owner.cell_contents
        if isinstance(owner, FunctionType):
            return owner.__defaults__
        return owner[key] if isinstance(owner, list | dict) else vars(owner)[key]
    except (LookupError, ValueError):
        return None


def _put(owner: Any, key: Any, value: Any) -> None:
    if isinstance(owner, CellType):
        owner.cell_contents = value
    elif isinstance(owner, type | FunctionType):
        setattr(owner, key, value)
    else:
        (owner if isinstance(owner, list | dict) else vars(owner))[key] = value


def _is_users_module(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return name == "__main__" or (file is not None and is_users(file))


# What has no arrays in it, or none of the user's.
_PLAIN = frozenset((int, float, str, bool, bytes, complex, type(None), *FUNCTIONS[1:], np.float64, Tracer))
