"""Names: what `torch` has and what are methods of tensors, registered or found.

A function or method that is but a row of the vocabulary is not written: it is found there by its name.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import cache, wraps
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from gradcli.pytorch.calls import vocabulary_call
from gradcli.pytorch.cuts import Kind, note_lost
from gradcli.pytorch.facts import paragraphs
from gradcli.pytorch.messages import missing, refusal
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.refusals import check_pair, check_tensors
from gradcli.pytorch.tensor import Tensor, TensorBase, of_array
from gradcli.vocabulary import FUNCTIONS

F = TypeVar("F", bound=Callable[..., Any])
TORCH: dict[str, Any] = {}  # what `torch` has by name


class InPlace:
    """How results are written into tensors: set where operations in place are defined."""

    method: ClassVar[Callable[[str, Callable[..., Any]], Callable[..., Any]]]
    into: ClassVar[Callable[..., Any]]


def telling(made: F, name: str, of: int = 0) -> F:
    """Let a function that fails for want of a tensor say which argument is none, counted after the first `of`."""

    @wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return made(*args, **kwargs)
        except AttributeError as error:
            check_tensors(made, name, args, str(error), of)
            raise

    return call  # type: ignore[return-value]


def with_out(made: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that can write its result into a tensor that is given as `out`."""
    made = telling(getattr(made, "as_function", made), name)

    @wraps(made)
    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        if out is None:
            return made(*args, **kwargs)
        return InPlace.into(out, name, lambda: made(*args, **kwargs), args)

    return call


# What PyTorch calls the tensors that are operands of methods.
_TENSORS = frozenset(("other", "mat", "mat1", "mat2", "vec", "vec2", "tensor", "index", "mask", "src", "weights"))
_TENSORS |= {"batch1", "batch2"}


def method(*names: str) -> Callable[[F], F]:
    """Register a method of tensors, which is a function of `torch`, too, where PyTorch has one of that name."""

    def register(made: F) -> F:
        own = _called(made, names[0])
        code = getattr(made, "__code__", None)
        takes = not _TENSORS.isdisjoint(code.co_varnames[1 : code.co_argcount] if code else ())
        for name in names:
            found = own
            if takes:
                found = telling(own, name, 1)
                found.as_function = own  # type: ignore[attr-defined]
            setattr(Tensor, name, found)
        return made

    return register


def methods(*names: str) -> Callable[[Any], None]:
    """Register a method under several names, each of which it is told as `op`."""

    def register(made: Any) -> None:
        for name in names:
            # A function for each, so that Python's errors say its name.
            own = FunctionType(made.__code__, made.__globals__, "made", made.__defaults__, made.__closure__)
            own.__kwdefaults__ = {**(made.__kwdefaults__ or {}), "op": name}
            method(name)(own)

    return register


def function(*names: str) -> Callable[[F], F]:
    """Register a function of `torch`."""

    def register(made: F) -> F:
        TORCH.update(dict.fromkeys(names, _called(made, names[0])))
        return made

    return register


def _called(made: F, name: str) -> F:
    """Let a function that has no name say the one that it is found by, where an argument does not fit."""
    if getattr(made, "__name__", "").rpartition(".")[2] in ("<lambda>", "made"):
        made.__name__ = made.__qualname__ = name
    code = getattr(made, "__code__", None)
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code and code.co_flags & CO_VARARGS else ""
    return _with_keywords(made, rest) if rest or "dim" in getattr(code, "co_varnames", ()) else made


_NUMPYS = {"axis": "dim", "keepdims": "keepdim"}


def _with_keywords(made: F, rest: str) -> F:
    """Let a function take by name, as PyTorch does, an axis as NumPy calls it, and what else stands one by one."""

    @wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {_NUMPYS.get(k, k): v for k, v in kwargs.items()}
            args = (*args, *(kwargs.pop(k) for k in ("input", rest) if k in kwargs)) if rest in kwargs else args
        return made(*args, **kwargs)

    return call  # type: ignore[return-value]


# What is found by its name


def row_named(name: str, module: str) -> Callable[..., Any] | None:
    """Return a function that is a row of the vocabulary, or is defined in one line, where PyTorch has the name."""
    build = ELEMENTWISE.get(name) or FUNCTIONS.get(name)
    if build is None or name not in pytorch_names()[module]:
        return None

    def function(*args: Any, **kwargs: Any) -> Tensor:
        if name in _PAIRS:
            check_pair(name, args)
        return vocabulary_call(name, build, (kwargs.pop("input"), *args) if "input" in kwargs else args, kwargs)

    function.__name__ = function.__qualname__ = name
    return function


# What PyTorch computes of two tensors alone.
_PAIRS = frozenset(("maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "hypot", "logaddexp", "logaddexp2"))
_PAIRS |= {"ldexp", "kron"}


def function_named(name: str) -> Callable[..., Any] | None:
    """Return a function of `torch` that is a method of tensors, too, or is found by its name as methods are."""
    if name not in pytorch_names()["torch"]:
        return None
    found = vars(Tensor).get(name) or method_named(name)
    found = found if callable(found) else row_named(name, "torch")
    return found and with_out(found, name)


def method_named(name: str) -> Callable[..., Any] | None:
    """Return a method of tensors that is found by its name: a row, or what is done in place."""
    found, base = row_named(name, "Tensor"), name.removesuffix("_")
    made = None if found or base == name or name.startswith("_") else vars(Tensor).get(base) or method_named(base)
    if made is not None:
        found = InPlace.method(name, made)
    return found


class _Found:
    """A method that is found by its name when it is asked for, and kept where it is found from now on.

    Errors: `MissingError` for one that there is not.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Tensor | None, cls: type[Tensor]) -> Any:
        found = method_named(self.name)
        if found is None:
            raise missing(self.name, [n for n in vars(Tensor) if n[0] != "_"] + sorted(FUNCTIONS), "Tensor.")
        setattr(Tensor, self.name, found)
        return getattr(cls if x is None else x, self.name)


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """Return the names that PyTorch 2.13 has, as tests/pytorch/record_names.py has recorded them."""
    return {module.rstrip(":"): frozenset(names) for module, *names in map(str.split, paragraphs("names.txt"))}


@method("__dir__")
def _dir(self: Tensor) -> list[str]:
    return sorted(pytorch_names()["Tensor"])


# Not by `__getattr__`, with which Python looks every other attribute up in a longer way.
for _name in pytorch_names()["Tensor"]:
    setattr(TensorBase, _name, _Found(_name))


def absent(module: str, name: str, known: Iterable[str]) -> BaseException:
    """Return the error for a name that a module of gradcli's does not have: a slip, as PyTorch tells it, or a gap."""
    if name.startswith("__") or name not in pytorch_names().get(module, (name,)):
        return refusal("name of no module", module, name)
    return missing(name, [n for n in known if not n.startswith("_")], f"{module}.")


# What returns several tensors under names: `torch.return_types`


def return_type(name: str, *fields: str) -> Any:
    """Return the type of a result that has values and indices, or other fields."""
    made = namedtuple(name, fields or ("values", "indices"))  # type: ignore[misc]
    made.__repr__ = _text  # type: ignore[assignment]
    return made


def _text(self: Any) -> str:
    lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


def found(kind: Any, values: Any, places: Any) -> Any:
    """Return values and where they were found."""
    indices = of_array(np.asarray(places, np.int64))
    note_lost(indices, (values,), kind.__name__, Kind.INDICES)
    return kind(values, indices)
