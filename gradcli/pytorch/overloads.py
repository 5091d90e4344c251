"""Overloads of a function: the parameters of each, whether arguments fit them, and PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.dtypes import dtype
from gradcli.pytorch.generator import Generator
from gradcli.pytorch.messages import builtin_name, raise_if, torch_error
from gradcli.pytorch.tables import paragraphs
from gradcli.pytorch.tensor import Number, Tensor

SIZES = ("size", "shape", "dims", "repeats")  # arguments of sizes, which are not one number


class Parameter(NamedTuple):
    """A parameter: its name, PyTorch's word for its type (empty: any), and how it may be passed."""

    name: str
    type: str
    is_optional: bool
    by_name: bool

    def takes(self, value: Any) -> bool:
        """Return whether a value is of its type."""
        is_strict = self.type == "tuple of ints" and self.name in SIZES and self.name != "dims"  # one axis is enough
        test = _are_integers if is_strict else _TYPES.get(self.type)
        return test is None or bool(test(value)) or (value is None and self.is_optional)

    def is_sizes(self, value: Any) -> bool:
        """Return whether a value is a sequence for a parameter of integers."""
        return self.type == "tuple of ints" and isinstance(value, list | tuple)


class Overload(NamedTuple):
    """One way to call a function: its text in PyTorch's errors, without brackets, and its parameters."""

    text: str
    parameters: Sequence[Parameter]

    @classmethod
    def of(cls, text: str) -> Overload:
        """Return an overload by its text.

        >>> Overload.of("Tensor input, *, int decimals = 0").parameters[1]
        Parameter(name='decimals', type='int', is_optional=True, by_name=True)
        """
        parameters, by_name = [], False
        for part in text.split(", ") if text else ():
            left, equals, _ = part.partition(" = ")
            kind, _, name = left.rpartition(" ")
            by_name = by_name or part == "*"
            if part != "*":
                parameters.append(Parameter(name, kind, bool(equals), by_name))
        return cls(text, parameters)

    @property
    def positional(self) -> Sequence[Parameter]:
        """The parameters that take arguments by position."""
        return [p for p in self.parameters if not p.by_name]

    @property
    def required(self) -> Sequence[Parameter]:
        """The parameters without a default."""
        return [p for p in self.parameters if not p.is_optional]

    def joined(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the arguments by position, of which several sizes are one."""
        is_sizes = [p.type for p in self.positional] == ["tuple of ints"]
        return (args,) if is_sizes and args and _is_integer(args[0]) else args

    def bound(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by the names of parameters."""
        return {p.name: a for p, a in zip(self.positional, self.joined(args), strict=False)} | dict(keywords)

    def fits(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a call are as many as it takes, and of its types.

        >>> Overload.of("int dim, bool keepdim = False").fits([0], {"keepdim": 1})
        False
        """
        values, known = self.bound(args, keywords), {p.name: p for p in self.parameters}
        is_there = all(p.name in values for p in self.required) and values.keys() <= known.keys()
        is_there = is_there and len(self.joined(args)) <= len(self.positional)
        return is_there and all(known[k].takes(v) for k, v in values.items())

    def check(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Raise PyTorch's `TypeError` for the first argument that is too much, missing, or of another type."""
        values, most, least = self.bound(args, keywords), len(self.positional), len(self.required)
        if len(self.joined(args)) > most:
            if not most and not self.parameters:
                raise torch_error("no arguments", name, len(args))
            takes = most if least == most else f"from {least} to {most}"
            are = "were" if len(args) > 1 or least != most else "was"
            raise torch_error(
                "too many arguments", name, takes, "s" if most != 1 or least != most else "", len(args), are
            )
        missing = [f'"{p.name}"' for p in self.required if p.name not in values]
        for i, p in enumerate(self.parameters, 1):
            if p.name in values and not p.takes(values[p.name]):
                at = "" if p.name in keywords else f" (position {i})"
                if p.is_sizes(x := values[p.name]) and p.name not in keywords:
                    raise torch_error("first size of another kind", name, p.name, at, _typename(x[0]))
                word = ("Tensor" if p.name == "other" else "Number") if p.type == "Scalar" else p.type
                raise torch_error("type of an argument", name, p.name, at, word, _typename(values[p.name]))
            for k, n in enumerate(values[p.name] if p.name in values and p.is_sizes(values[p.name]) else ()):
                kind = _typename(n)
                raise_if(not _is_integer(n), "later size of another kind", name, p.name, k + 1, kind)
            if f'"{p.name}"' in missing:
                words = "positional arguments" if len(missing) == 1 else "positional argument"  # as in PyTorch
                raise torch_error("arguments that are missing", name, len(missing), words, ", ".join(missing))

    def mismatch(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        """Return PyTorch's line on why a call with as many arguments does not fit; empty for another number of them."""
        names = [part.partition(" = ")[0].rpartition(" ")[2] for part in self.text.split(", ")]
        if len(names) != len(args) + len(keywords):
            return ""
        if wrong := [k for k in keywords if k not in names]:
            return f"      didn't match because some of the keywords were incorrect: {', '.join(wrong)}"
        types = {p.name: p.type for p in self.parameters}
        given = [("", x) for x in args] + [(f"{name}=", keywords[name]) for name in names[len(args) :]]
        marks = ("" if _is_named(types.get(n, ""), x) else "!" for n, (_, x) in zip(names, given, strict=True))
        parts = [f"{mark}{word}{_kind(x)}{mark}" for mark, (word, x) in zip(marks, given, strict=True)]
        return f"      didn't match because some of the arguments have invalid types: ({', '.join(parts)})"


def check_overloads(name: str, overloads: Sequence[Overload], args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise PyTorch's `TypeError` for a call that fits none of several overloads.

    It says what is wrong only where just one of them takes so many arguments, and lists all of them otherwise.
    """
    if (overload := next((o for o in overloads if o.fits(args, keywords)), None)) is not None:
        overload.check(name, args, keywords)
        return
    count = len(args) + len(keywords)
    plausible = [o for o in overloads if len(o.required) <= count <= len(o.parameters)]
    if len(plausible) == 1:
        plausible[0].check(name, args, keywords)
    raise no_overload(name, overloads, args, keywords)


def no_overload(
    name: str, overloads: Sequence[Overload], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Exception:
    """Return PyTorch's `TypeError` that lists the overloads, none of which takes the arguments."""
    given = ", ".join([*map(_typename, args), *(f"{k}={_typename(keywords[k])}" for k in sorted(keywords))])
    given += ", " * bool(keywords and not args)
    types = tuple(map(_typename, [*args, *keywords.values()]))
    if len(overloads) == 1:
        return torch_error("arguments of another type", name, given, f"({overloads[0].text})", about=types)
    lines = [line for o in overloads for line in (f" * ({o.text})", o.mismatch(args, keywords)) if line]
    return torch_error("arguments of no overload", name, given, "\n".join(lines), about=types)


def _is_integer(x: Any) -> bool:
    is_tensor = isinstance(x, Tensor) and not x.dim() and x._a.dtype.kind in "iu"
    return (isinstance(x, int | np.integer) and not isinstance(x, bool)) or is_tensor


def _are_integers(x: Any) -> bool:
    """Return whether PyTorch takes something for several integers: by the first."""
    return isinstance(x, list | tuple) and all(map(_is_integer, x[:1]))


def _is_number(x: Any) -> bool:
    return isinstance(x, Number) or (isinstance(x, Tensor) and not x.dim())


# What is of a type that an argument may be; of a type that is not here, anything is.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Scalar": lambda x: isinstance(x, (Tensor, *Number)),
    "Number": _is_number,
    "float": _is_number,
    "int": _is_integer,
    "bool": lambda x: isinstance(x, bool | np.bool_),
    "str": lambda x: isinstance(x, str),
    "torch.Generator": lambda x: isinstance(x, Generator),
    "torch.dtype": lambda x: isinstance(x, dtype),
    "tuple of ints": lambda x: _is_integer(x) or _are_integers(x),
    "tuple of Tensors": lambda x: isinstance(x, list | tuple) and all(isinstance(t, Tensor) for t in x),
}


def _is_named(kind: str, x: Any) -> bool:
    """Return whether PyTorch's errors take a value for one of a type: by its name, so that no number is a `Number`."""
    return _typename(x) == kind or (kind == "float" and _typename(x) == "int")


def _typename(x: Any) -> str:
    return type(x).__name__ if isinstance(x, Tensor) else builtin_name(x)


def _kind(x: Any) -> str:
    """Return the type of an argument, with the types of what is in it."""
    kind = _typename(x)
    if not isinstance(x, list | tuple):
        return kind
    inner = ", ".join(map(_typename, x))
    return f"{kind} of [{inner}]" if isinstance(x, list) else f"{kind} of ({inner}{',' * (len(x) == 1)})"


@cache
def _table() -> dict[str, list[Overload]]:
    """Return the overloads of each function that has several."""
    result: dict[str, list[Overload]] = {}
    for paragraph in paragraphs("overloads.txt")[1:]:
        for short, long in _SHORT.items():
            paragraph = paragraph.replace(short, long)
        names, *texts = paragraph.split("\n ")
        ways = [Overload.of(text if text != "-" else "") for text in texts]
        result |= dict.fromkeys(names.split(), ways)
    return result


_SHORT = {
    "NEW": "Tensor out = None, MADE",
    "MADE": "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, MORE",
    "MORE": "bool pin_memory = False, bool requires_grad = False",
    "OUTS": "tuple of Tensors out = None",
    "OUT": "Tensor out = None",
}


@cache
def overloads(name: str, is_method: bool) -> Sequence[Overload]:
    """Return the overloads of a function, or of the method of that name, where there are several.

    >>> [o.text for o in overloads("max", is_method=True)]
    ['', 'Tensor other', 'int dim, bool keepdim = False']
    """
    known, own = _table(), f"Tensor.{name}"
    if not is_method or own in known:
        return known.get(own if is_method else name, ())
    return [*_of_methods(known.get(name) or known.get(name.removesuffix("_")) or ())]


def _of_methods(functions: Iterable[Overload]) -> Iterable[Overload]:
    """Yield the overloads of a method, which takes the first tensor before the dot, and writes into no other one."""
    for overload in functions:
        first, *parts = overload.text.split(", ")
        if first.startswith("Tensor "):
            parts = [p for p in parts if not p.endswith(" out = None")]
            yield Overload.of(", ".join(parts[:-1] if parts[-1:] == ["*"] else parts))
