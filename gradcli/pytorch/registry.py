"""The register of names: what `torch` has, and what are methods of tensors."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.messages import typename
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.tensor import Tensor, of_array

F = TypeVar("F", bound=Callable[..., Any])
TORCH: dict[str, Any] = {}  # what `torch` has by name
Number = (int, float, bool, np.number)


def with_out(made: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that can write its result into a tensor that is given as `out`."""

    @wraps(made)
    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        if out is None:
            try:
                return made(*args, **kwargs)
            except AttributeError as error:
                check_tensors(made, name, args, str(error))
                raise
        from gradcli.pytorch.operations.inplace import into

        return into(out, name, lambda: made(*args, **kwargs), args)

    return call


def check_tensors(made: Callable[..., Any], name: str, args: Sequence[Any], error: str = "") -> None:
    """Refuse what is no tensor in the place of the first operand; of another, a list or what an error is about."""
    for i, (given, parameter) in enumerate(zip(args, signature(made).parameters, strict=False)):
        if not isinstance(given, Tensor) and (
            not i or isinstance(given, list | np.ndarray) or f"'{type(given).__name__}' object" in error
        ):
            kind = typename(given)
            raise TypeError(f"{name}(): argument '{parameter}' (position {i + 1}) must be Tensor, not {kind}")


def check_overload(name: str, given: Sequence[Any], overloads: Sequence[str]) -> None:
    """Refuse arguments but a tensor, and tensors or numbers behind it, as many as the last way to call a function has.

    Errors: `TypeError` with all ways, and what does not fit in those of so many arguments.
    """
    count = len(overloads[-1].split(", "))
    if len(given) == count and isinstance(given[0], Tensor) and all(isinstance(x, (Tensor, *Number)) for x in given):
        return
    lines = [f"{name}() received an invalid combination of arguments - got ({', '.join(map(_kind, given))})"]
    lines[0] += ", but expected one of:"
    for overload in overloads:
        lines.append(f" * ({overload})")
        wanted = [parameter.split()[0] for parameter in overload.split(", ")]
        if len(wanted) == len(given):  # numbers fit no `Number`
            fits = [isinstance(x, Tensor) and w == "Tensor" for x, w in zip(given, wanted, strict=True)]
            kinds = [_kind(x) if fit else f"!{_kind(x, True)}!" for x, fit in zip(given, fits, strict=True)]
            lines.append(f"      didn't match because some of the arguments have invalid types: ({', '.join(kinds)})")
    raise TypeError("\n".join([*lines, ""]))


def _kind(x: Any, inside: bool = False) -> str:
    """Return the type of an argument, with the types of what is in it."""
    kind = type(x).__name__ if isinstance(x, Tensor) else typename(x)
    if not inside or not isinstance(x, list | tuple):
        return kind
    inner = ", ".join(map(_kind, x))
    return f"{kind} of [{inner}]" if isinstance(x, list) else f"{kind} of ({inner})"


def method(*names: str) -> Callable[[F], F]:
    """Register a method of tensors, which is a function of `torch`, too, where PyTorch has one of that name."""

    def register(made: F) -> F:
        for name in names:
            setattr(Tensor, name, _called(made, names[0]))
        return made

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
    return made


def tensor_like(x: Any) -> bool:
    """Tell whether something may be an operand."""
    return isinstance(x, (Tensor, *Number, complex))


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
    if Recorder.explains:
        note_lost(indices, (values,), f"taking the indices of {kind.__name__}")
    return kind(values, indices)
