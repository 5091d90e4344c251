"""The names of `torch` and of tensors' methods, registered or looked up.

A function or method that is but a row of the vocabulary is not written: it is found there by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import numpy as np

from gradcli.pytorch.calls import vocabulary_row
from gradcli.pytorch.cuts import Kind, note_lost
from gradcli.pytorch.dispatch import NN, Dispatcher
from gradcli.pytorch.functions import fact, is_listed
from gradcli.pytorch.messages import missing, torch_error
from gradcli.pytorch.tables import pytorch_names
from gradcli.pytorch.tensor import Tensor, TensorBase, of_array
from gradcli.vocabulary import FUNCTIONS

F = TypeVar("F", bound=Callable[..., Any])
# By module and name; those of tensors may be functions of `torch`, or of these alone.
_IMPLEMENTATIONS: dict[str, dict[str, Callable[..., Any]]] = {"Tensor": {}, "torch": {}, NN: {}}


class _Names(dict[str, Any]):
    """What `torch` has by name, None for what it has not; functions are found at their first use."""

    def __missing__(self, name: str) -> Any:
        function = function_named(name, "torch")
        if function is not None:
            self[name] = function
        return function


TORCH = _Names()


class InPlace:
    """The function that makes a method in place of the one that computes it, set where these are defined."""

    method: ClassVar[Callable[[str, Callable[..., Any]], Callable[..., Any]]]


def function(*names: str, module: str = "Tensor") -> Callable[[F], F]:
    """Register what computes functions of `torch` and methods of tensors, whichever PyTorch has, or those of a module.

    What has no schema is called as it stands.
    """

    def register(compute: F) -> F:
        known = pytorch_names()
        for name in names:
            if is_listed(name):
                _IMPLEMENTATIONS[module][name] = compute
            elif name in known["torch"] and name not in known["Tensor"]:
                TORCH[name] = _with_name(compute, name)
            else:
                setattr(Tensor, name, _with_name(compute, name))
        return compute

    return register


def _with_name(function: F, name: str) -> F:
    if getattr(function, "__name__", "") in ("<lambda>", "function"):
        function.__name__ = function.__qualname__ = name
    return function


# Functions by their names


def implementation(name: str, module: str) -> Any:
    """Return what computes a function or method: what is registered, or a row of the vocabulary or of definitions."""
    if name not in pytorch_names()[module]:
        return None
    return _IMPLEMENTATIONS[module].get(name) or _IMPLEMENTATIONS["Tensor"].get(name) or vocabulary_row(name)


def function_named(name: str, module: str) -> Callable[..., Any] | None:
    """Return a function of a module, or a method of tensors, by its name; of a name in `_` also one in place."""
    if module == "torch" and fact("in_torch", name) is not None:
        return getattr(import_module("gradcli.pytorch.nn.functional"), name)  # type: ignore[no-any-return]
    own = vars(Tensor).get(name) if module == "torch" else None
    if (compute := implementation(name, module) or (own if is_listed(name) else None)) is not None:
        return Dispatcher(name, compute, module).function()
    base = name.removesuffix("_")
    if base == name or name not in pytorch_names()[module] or (compute := implementation(base, "Tensor")) is None:
        return own if callable(own) and name in pytorch_names()[module] else None
    return Dispatcher(base, InPlace.method(name, compute), module, name).function()


class _Lookup:
    """A method that becomes an attribute at its first use.

    Errors: `MissingError` for one that there is not.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Tensor | None, cls: type[Tensor]) -> Any:
        result = function_named(self.name, "Tensor")
        if result is None:
            methods = (n for n in _IMPLEMENTATIONS["Tensor"] if n in pytorch_names()["Tensor"])
            known = [n for n in (*vars(Tensor), *methods) if n[0] != "_"]
            raise missing(self.name, known + sorted(FUNCTIONS), "Tensor.")
        setattr(Tensor, self.name, result)
        return getattr(cls if x is None else x, self.name)


@function("__dir__")
def _dir(self: Tensor) -> list[str]:
    return sorted(pytorch_names()["Tensor"])


# Not by `__getattr__`, with which Python looks every other attribute up in a longer way.
for _name in pytorch_names()["Tensor"]:
    setattr(TensorBase, _name, _Lookup(_name))


def absent_name_error(module: str, name: str, known: Callable[[], Iterable[str]]) -> BaseException:
    """Return the error for a name that a module does not have: PyTorch's for a misspelt name, else `MissingError`."""
    if name.startswith("__") or name not in pytorch_names().get(module, (name,)):
        return torch_error("name of no module", module, name)
    return missing(name, [n for n in known() if not n.startswith("_")], f"{module}.")


def with_indices(op: str, values: Any, indices: Any) -> tuple[Any, Tensor]:
    """Return the values of an operation with their indices."""
    indices = of_array(np.asarray(indices, np.int64))
    note_lost(indices, (values,), op, Kind.INDICES)
    return values, indices
