"""The names of `torch` and of tensors' methods, registered or looked up.

A function or method that is but a row of the vocabulary is not written: it is found there by its name.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import cache, wraps
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from gradcli.pytorch.calls import vocabulary_row
from gradcli.pytorch.cuts import Kind, note_lost
from gradcli.pytorch.limits import check_limits, limits
from gradcli.pytorch.messages import facts_of, missing, torch_error
from gradcli.pytorch.overloads import SIZES
from gradcli.pytorch.signatures import OF_ARGUMENTS, Signature, find
from gradcli.pytorch.tables import paragraphs
from gradcli.pytorch.tensor import Tensor, TensorBase, of_array
from gradcli.vocabulary import FUNCTIONS

F = TypeVar("F", bound=Callable[..., Any])
TORCH: dict[str, Any] = {}  # what `torch` has by name


class InPlace:
    """Functions that write results into tensors, set where operations in place are defined."""

    method: ClassVar[Callable[[str, Callable[..., Any]], Callable[..., Any]]]
    into: ClassVar[Callable[..., Any]]


_NONE = Signature((), "", {}, {})


def calling(function: F, name: str, skipped: int = 0, *, out: bool = False) -> F:
    """Return a function with the calling convention of its signature in the table.

    Arguments have PyTorch's names, and one that must be a tensor and is none is an error that names it, at its position
    behind the first that are skipped.  With `out`, the function can write its result into a tensor of that name.
    """
    signature = find(name) or _NONE
    function = getattr(function, "as_function", function)
    is_of_nn = function.__module__.startswith("gradcli.pytorch.nn") and "in_c" not in signature.facts
    in_python = is_of_nn or "python" in signature.facts
    is_limited = name in limits() and not hasattr(function, "row")  # which checks them itself
    names, takes_sizes = [a.name for a in signature.ordered], signature.rest in SIZES
    checked = OF_ARGUMENTS | {limit.key for limit in limits().get(name, ())}  # the types of arguments come first

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        typed = args, dict(kwargs) if kwargs else kwargs
        if kwargs:
            if out and (target := kwargs.pop("out", None)) is not None:
                return InPlace.into(target, name, lambda: call(*args, **kwargs), args)
            args, kwargs = signature.in_order(args, kwargs)
        try:
            if takes_sizes and len(args) <= len(signature.ordered) and signature.rest not in kwargs:
                signature.check_call(name, args, kwargs, skipped)
            if is_limited:
                check_limits(name, dict(zip(names, args, strict=False)) | kwargs)
            return function(*args, **kwargs)
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            facts = facts_of(error)
            if facts is None or facts.key in checked:
                check = signature.check_tensors if in_python else signature.check_call
                check(name, *typed, skipped)
            raise

    call.as_function = function  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def method(*names: str) -> Callable[[F], F]:
    """Register a method of tensors, and a function of `torch` where PyTorch has one of that name."""

    def register(function: F) -> F:
        for name in names:
            setattr(Tensor, name, _called(function, name, 1))
        return function

    return register


def methods(*names: str) -> Callable[[Any], None]:
    """Register a method under several names; the name is its argument `op`."""

    def register(function: Any) -> None:
        for name in names:
            # A function for each, so that Python's errors say its name.
            copy = FunctionType(
                function.__code__, function.__globals__, "function", function.__defaults__, function.__closure__
            )
            copy.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "op": name}
            method(name)(copy)

    return register


def function(*names: str) -> Callable[[F], F]:
    """Register a function of `torch`."""

    def register(f: F) -> F:
        TORCH.update({name: _called(f, name, 0) for name in names})
        return f

    return register


def _called(function: F, name: str, skipped: int) -> F:
    """Return a function under its name in errors, called as its signature says where it has one."""
    if getattr(function, "__name__", "").rpartition(".")[2] in ("<lambda>", "function"):
        function.__name__ = function.__qualname__ = name
    return function if find(name) is None or hasattr(function, "as_function") else calling(function, name, skipped)


# Functions by their names


def row_named(name: str, module: str) -> Callable[..., Any] | None:
    """Return the function of a row of the vocabulary, or of a definition in one line, for a name of PyTorch's."""
    if name not in pytorch_names()[module] or (row := vocabulary_row(name)) is None:
        return None

    def function(*args: Any, **kwargs: Any) -> Tensor:
        return row.call(args, kwargs)

    def method(*args: Any, **kwargs: Any) -> Tensor:
        return row.call(args, kwargs, 1)

    method.as_function, method.row, function.row = function, row, row  # type: ignore[attr-defined]
    result = method if module == "Tensor" else function
    result.__name__ = result.__qualname__ = function.__name__ = function.__qualname__ = name
    return result


def function_named(name: str) -> Callable[..., Any] | None:
    """Return a function of `torch` that is also a method of tensors, or a row of the vocabulary."""
    if name not in pytorch_names()["torch"]:
        return None
    result = vars(Tensor).get(name) or method_named(name)
    result = result if callable(result) else row_named(name, "torch")
    return result and calling(result, name, out=True)


def method_named(name: str) -> Callable[..., Any] | None:
    """Return a method of tensors by its name: a row, or an operation in place."""
    result, base = row_named(name, "Tensor"), name.removesuffix("_")
    function = None if result or base == name or name.startswith("_") else vars(Tensor).get(base) or method_named(base)
    if function is not None:
        result = InPlace.method(name, function)
    return result


class _Lookup:
    """A method that becomes an attribute at its first use.

    Errors: `MissingError` for one that there is not.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Tensor | None, cls: type[Tensor]) -> Any:
        result = method_named(self.name)
        if result is None:
            raise missing(self.name, [n for n in vars(Tensor) if n[0] != "_"] + sorted(FUNCTIONS), "Tensor.")
        setattr(Tensor, self.name, result)
        return getattr(cls if x is None else x, self.name)


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """Return the names of PyTorch 2.13, as recorded by tests/pytorch/record_names.py."""
    return {module.rstrip(":"): frozenset(names) for module, *names in map(str.split, paragraphs("names.txt"))}


@method("__dir__")
def _dir(self: Tensor) -> list[str]:
    return sorted(pytorch_names()["Tensor"])


# Not by `__getattr__`, with which Python looks every other attribute up in a longer way.
for _name in pytorch_names()["Tensor"]:
    setattr(TensorBase, _name, _Lookup(_name))


def absent(module: str, name: str, known: Iterable[str]) -> BaseException:
    """Return the error for a name that a module does not have: PyTorch's for a misspelt name, else `MissingError`."""
    if name.startswith("__") or name not in pytorch_names().get(module, (name,)):
        return torch_error("name of no module", module, name)
    return missing(name, [n for n in known if not n.startswith("_")], f"{module}.")


# What returns several tensors under names: `torch.return_types`


def return_type(name: str, *fields: str) -> Any:
    """Return the type of a result that has values and indices, or other fields."""
    kind = namedtuple(name, fields or ("values", "indices"))  # type: ignore[misc]
    kind.__repr__ = _text  # type: ignore[assignment]
    return kind


def _text(self: Any) -> str:
    lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


def with_indices(kind: Any, values: Any, indices: Any) -> Any:
    """Return values with their indices, as a named tuple."""
    indices = of_array(np.asarray(indices, np.int64))
    note_lost(indices, (values,), kind.__name__, Kind.INDICES)
    return kind(values, indices)
