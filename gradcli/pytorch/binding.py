"""The binding of a call's arguments to a schema, as PyTorch's own parser does it, with its `TypeError`s.

Source: `torch/csrc/utils/python_arg_parser.cpp` and `invalid_arguments.cpp` of PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.messages import builtin_name, torch_error
from gradcli.pytorch.schema import DEPRECATED, Argument, Overload

Number = (int, float, bool, np.number, np.bool_)  # types of what is a number beside tensors
Position = int | str | slice  # of an argument in a call: its index, its keyword, or the indices of several


class Classes(NamedTuple):
    """The classes of objects that arguments may be: gradcli's, or those of PyTorch itself."""

    tensor: type
    dtype: type
    generator: type
    device: type


class Binder:
    """The calling convention of a function, or of a method, of a name.

    `numbers` is whether Python's numbers may stand for its tensors.
    """

    def __init__(self, name: str, overloads: Sequence[Overload], classes: Classes, numbers: bool = False) -> None:
        self.name, self.overloads, self.classes = name, overloads, classes
        number = (*Number, complex)
        self._tests: dict[str, Callable[[Any], bool]] = {
            "Tensor": lambda x: isinstance(x, (classes.tensor, *number) if numbers else classes.tensor),
            "Scalar": lambda x: isinstance(x, number) or self._is_scalar(x),
            "float": lambda x: isinstance(x, Number) or self._is_scalar(x),
            "int": self._is_integer,
            "bool": lambda x: isinstance(x, bool | np.bool_),
            "str": lambda x: isinstance(x, str),
            "Device": lambda x: isinstance(x, str | classes.device | np.integer) or type(x) is int,  # no tensor of one
            "Generator": lambda x: isinstance(x, classes.generator),
            "ScalarType": lambda x: isinstance(x, classes.dtype) or x is float or x is int or x is bool,
            "Tensor[]": lambda x: isinstance(x, list | tuple),
            "int[]": self._are_integers,
            "float[]": lambda x: isinstance(x, list | tuple) and all(isinstance(v, Number) for v in x[:1]),
        }

    def _is_scalar(self, x: Any) -> bool:
        return isinstance(x, self.classes.tensor) and not x.dim()  # type: ignore[attr-defined]

    def _is_integer(self, x: Any) -> bool:
        if isinstance(x, int | np.integer):
            return not isinstance(x, bool)
        return self._is_scalar(x) and x.numpy(force=True).dtype.kind in "iu"  # type: ignore[no-any-return]

    def _are_integers(self, x: Any) -> bool:
        """Return whether PyTorch takes something for several integers: by the first."""
        return isinstance(x, list | tuple) and all(map(self._is_integer, x[:1]))

    def fits(self, argument: Argument, value: Any) -> bool:
        """Return whether a value is of an argument's type; anything is of a type that is not known here."""
        if value is None and argument.may_be_none:
            return True
        if argument.type.startswith("int["):
            return self._are_integers(value) or (argument.type != "int[]" and self._is_integer(value))
        test = self._tests.get(argument.type)
        return test is None or test(value)

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Overload, dict[str, Position]]:
        """Return the first overload that takes the arguments of a call, and where each argument of it stands there.

        Errors: `TypeError` in PyTorch's words.
        """
        overload, positions = self._first_overload(args, keywords)
        for name, position in positions.items():
            if overload.by_names[name].type.startswith("int["):
                sizes = keywords[position] if isinstance(position, str) else args[position]
                for k, n in enumerate(sizes if isinstance(sizes, list | tuple) else ()):
                    if not self._is_integer(n):
                        raise torch_error("later size of another kind", self.name, name, k + 1, _typename(n))
        return overload, positions

    def _first_overload(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Overload, dict[str, Position]]:
        if len(self.overloads) == 1:
            return self.overloads[0], self._positions_of(self.overloads[0], args, keywords)
        count = len(args) + len(keywords)
        for overload in self.overloads:
            if overload.is_spread or overload.least <= count <= len(overload.arguments):
                with suppress(TypeError):
                    return overload, self._positions_of(overload, args, keywords)
        shown = [o for o in self.overloads if o.name != DEPRECATED]
        plausible = [o for o in shown if o.least <= count <= len(o.arguments)]
        if len(plausible) == 1:  # which says what is wrong
            self._positions_of(plausible[0], args, keywords)
        raise no_overload(self.name, shown, args, keywords)

    def _positions_of(
        self, overload: Overload, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> dict[str, Position]:
        """Return where the arguments of an overload stand in a call.

        Errors: `TypeError` for the first that is too much, missing, of another type, or unknown.
        """
        name, positions = self.name, dict[str, Position]()
        position, named = 0, 0
        is_spread = overload.is_spread and len(args) > 0 and self._is_integer(args[0])
        if len(args) > len(overload.positional) and not is_spread:
            raise _too_many_error(name, overload, len(args))
        for i, argument in enumerate(overload.arguments):
            is_positional = position < len(args)
            if is_positional and argument.by_name:
                raise _too_many_error(name, overload, len(args))
            word = None if is_positional else next((w for w in argument.names if w in keywords), None)
            if not is_positional and word is None:
                if argument.is_required:
                    raise _missing_error(name, overload.arguments[i:])
                continue
            value = args[position] if word is None else keywords[word]
            if self.fits(argument, value):
                positions[argument.name] = position if word is None else word
            elif is_spread and is_positional:
                positions[argument.name] = slice(0, len(args))
                position = len(args)
                continue
            else:
                raise of_another_type(name, argument, position + 1 if is_positional else 0, value)
            position += is_positional
            named += not is_positional
        if named < len(keywords):
            raise _unknown_error(name, overload, keywords, len(args))
        return positions


def _too_many_error(name: str, overload: Overload, count: int) -> Exception:
    most, least = len(overload.positional), overload.least
    if not overload.arguments:
        return torch_error("no arguments", name, count)
    takes = most if least == most else f"from {least} to {most}"
    is_one = least == most == 1
    are = "was" if least == most and count == 1 else "were"
    return torch_error("too many arguments", name, takes, "" if is_one else "s", count, are)


def _missing_error(name: str, arguments: Sequence[Argument]) -> Exception:
    missing = [f'"{a.name}"' for a in arguments if a.is_required]
    words = "positional arguments" if len(missing) == 1 else "positional argument"  # as in PyTorch
    return torch_error("arguments that are missing", name, len(missing), words, ", ".join(missing))


def of_another_type(name: str, argument: Argument, position: int, value: Any) -> Exception:
    """Return the error for an argument of another type, at a position, or by its name for 0."""
    at = f" (position {position})" if position else ""
    if argument.type.startswith("int[") and isinstance(value, list | tuple) and position:
        return torch_error("first size of another kind", name, argument.name, at, _typename(value[0]))
    return torch_error("type of an argument", name, argument.name, at, argument.word, _typename(value))


def _unknown_error(name: str, overload: Overload, keywords: Mapping[str, Any], count: int) -> Exception:
    names = [a.name for a in overload.arguments]
    for word in keywords:
        if word not in names or names.index(word) < count:
            return torch_error("two values for an argument" if word in names else "unknown keyword", name, word)
    return torch_error("unknown keyword", name, next(iter(keywords)))


class _ArgumentPosition(NamedTuple):
    """The position of an argument in a call."""

    position: Position


class PythonBinder:
    """The calling convention of a function that PyTorch has written in Python: Python's own, with its `TypeError`s."""

    def __init__(self, name: str, overload: Overload) -> None:
        words = []
        self.overloads = [overload]
        by_name = False
        defaults: dict[bool, list[str]] = {True: [], False: []}  # of what is passed by name alone, and of the others
        for i, argument in enumerate(overload.arguments):
            if argument.by_name and not any(a.is_rest or a.by_name for a in overload.arguments[:i]):
                words.append("*")
            by_name |= argument.by_name or argument.is_rest
            words.append(f"*{argument.name}" if argument.is_rest else argument.name)
            if argument.default:
                defaults[by_name].append(argument.name)
        # Python itself binds, and says what does not fit.  A default is a mark: an argument that has it was not passed.
        names = "".join(f"{a.name}, " for a in overload.arguments)
        whole = compile(f"lambda {', '.join(words)}: ({names})", name, "eval")
        code = next(c for c in whole.co_consts if isinstance(c, CodeType)).replace(co_name=name, co_qualname=name)
        self._read_arguments = FunctionType(code, {}, name, (None,) * len(defaults[False]))
        self._read_arguments.__kwdefaults__ = dict.fromkeys(defaults[True])

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Overload, dict[str, Position]]:
        """Return the overload, and where each argument of it stands in a call.

        Errors: `TypeError` in Python's words.
        """
        positions: dict[str, Position] = {}
        values = self._read_arguments(
            *map(_ArgumentPosition, range(len(args))), **{k: _ArgumentPosition(k) for k in keywords}
        )
        (overload,) = self.overloads
        for argument, value in zip(overload.arguments, values, strict=True):
            if isinstance(value, _ArgumentPosition):
                positions[argument.name] = value.position
            elif argument.is_rest:
                positions[argument.name] = slice(len(args) - len(value), len(args))
        return overload, positions


def no_overload(
    name: str, overloads: Sequence[Overload], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Exception:
    """Return PyTorch's `TypeError` that lists the overloads, none of which takes the arguments."""
    names = sorted(keywords, key=lambda k: (k == "axis", k))
    given = ", ".join([*map(_typename, args), *(f"{k}={_typename(keywords[k])}" for k in names)])
    given += ", " * bool(keywords and not args)
    types = tuple(map(_typename, [*args, *keywords.values()]))
    if len(overloads) == 1:
        return torch_error("arguments of another type", name, given, f"({overloads[0].text})", about=types)
    lines = [line for o in overloads for line in (f" * ({o.text})", _mismatch(o, args, keywords)) if line]
    return torch_error("arguments of no overload", name, given, "\n".join(lines), about=types)


def _mismatch(overload: Overload, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Return PyTorch's line on why a call with as many arguments does not fit; empty for another number of them."""
    names = [part.partition(" = ")[0].rpartition(" ")[2] for part in overload.text.split(", ")]
    if len(names) != len(args) + len(keywords):
        return ""
    if wrong := [k for k in keywords if k not in names]:
        return f"      didn't match because some of the keywords were incorrect: {', '.join(wrong)}"
    words = {a.name: a.word for a in overload.arguments}
    given = [("", x) for x in args] + [(f"{name}=", keywords[name]) for name in names[len(args) :]]
    marks = ("" if _is_named(words.get(n, ""), x) else "!" for n, (_, x) in zip(names, given, strict=True))
    parts = [f"{mark}{word}{_kind(x)}{mark}" for mark, (word, x) in zip(marks, given, strict=True)]
    return f"      didn't match because some of the arguments have invalid types: ({', '.join(parts)})"


def _is_named(word: str, x: Any) -> bool:
    """Return whether PyTorch's errors take a value for one of a type: by its name, so that no number is a `Number`."""
    return _typename(x) == word or (word == "float" and _typename(x) == "int")


def _typename(x: Any) -> str:
    return "Tensor" if type(x).__name__ == "Tensor" else builtin_name(x)


def _kind(x: Any) -> str:
    """Return the type of an argument, with the types of what is in it."""
    kind = _typename(x)
    if not isinstance(x, list | tuple):
        return kind
    inner = ", ".join(map(_typename, x))
    return f"{kind} of [{inner}]" if isinstance(x, list) else f"{kind} of ({inner}{',' * (len(x) == 1)})"
