"""Signatures of PyTorch's functions, as `functions.txt` lists them: arguments, the kind of each, and facts."""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.functions import table
from gradcli.pytorch.messages import builtin_name, missing_if, torch_error
from gradcli.pytorch.overloads import SIZES, Overload, Parameter, check_overloads, overloads
from gradcli.pytorch.tensor import Number, Tensor, listed

REQUIRED = inspect.Parameter.empty  # in the place of a default
_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}  # names that PyTorch takes as well
# Errors of arguments, for which there may be one that says more: that of all overloads, or of a method's position.
OF_ARGUMENTS = frozenset(("unknown keyword", "no tensor", "too many arguments", "arguments that are missing"))
OF_ARGUMENTS |= {"type of an argument", "no arguments", "arguments of no overload", "arguments of another type"}
OF_ARGUMENTS |= {"argument that is missing", "index that is no integer"}
_LATER = ("inplace", "dtype", "_stacklevel")  # arguments that are missing here
_TYPES = {"Tensor": "Tensor", "Tensor?": "Tensor", "Scalar": "Scalar", "int": "int", "bool": "bool"}
_TYPES |= {"ints": "tuple of ints", "str": "str"}


class Argument(NamedTuple):
    """An argument of a function: its name, the word for what it is, and its default."""

    name: str
    kind: str
    default: Any

    @property
    def type(self) -> str:
        """PyTorch's word for its type in errors; empty where any value may be one."""
        if self.kind == "axis":
            return "tuple of ints" if self.name == "dims" else "int"
        return _TYPES.get(self.kind, "")

    def takes(self, value: Any) -> bool:
        """Return whether a value is of the argument's kind, as far as tensors go."""
        if self.kind == "Scalar":
            return isinstance(value, (Tensor, *Number)) or (value is None and self.default is None)
        return isinstance(value, Tensor) or (self.kind != "Tensor" and (self.kind != "Tensor?" or value is None))


class Signature(NamedTuple):
    """A function's arguments: those that are taken in order, the name of any further ones, and those by name alone.

    `known` are all of them by name.
    """

    ordered: Sequence[Argument]
    rest: str
    known: Mapping[str, Argument]
    facts: Mapping[str, str]

    def by_name(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments under PyTorch's names.

        >>> signature("sum").by_name({"axis": 1})
        {'dim': 1}
        """
        return {k if k in self.known else _OF_NUMPY.get(k, k): v for k, v in keywords.items()}

    def in_order(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with PyTorch's names, the further ones in order.

        >>> signature("reshape").in_order(("x",), {"shape": (2, 3)})
        (('x', (2, 3)), {})
        """
        values = self.by_name(keywords)
        names = [k for k in (self.ordered[0].name if self.ordered else "", self.rest) if k in values]
        return ((*args, *map(values.pop, names)), values) if self.rest in values else (args, values)

    def bound(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of arguments by their names.

        Errors: `TypeError` for an argument that is unknown, or is there twice.

        >>> signature("roll").bound("roll", ["x", 1], {"dims": 0})
        {'input': 'x', 'shifts': 1, 'dims': 0}
        """
        values = {a.name: v for a, v in zip(self.ordered, args, strict=False)}
        if self.rest and len(args) > len(self.ordered):
            values[self.rest] = listed(args[len(self.ordered) :])
        for keyword, value in self.by_name(keywords).items() if keywords else ():
            missing_if(keyword not in self.known and keyword in _LATER, f"{name}({keyword}=…)")
            if keyword not in self.known or keyword in values:
                is_second = keyword in values
                raise torch_error("two values for an argument" if is_second else "unknown keyword", name, keyword)
            values[keyword] = listed((value,)) if keyword == self.rest else value
        return values

    def check_call(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], skipped: int) -> None:
        """Raise PyTorch's `TypeError` for a call in which arguments are missing, or that fits no overload.

        A method's own tensor is `skipped`: positions do not count it.
        """
        values = self.by_name(keywords)
        if ways := overloads(name, bool(skipped)):
            check_overloads(name, ways, args[skipped:], values)
        else:
            self._only(skipped).check(name, args[skipped:], values)

    def _only(self, skipped: int) -> Overload:
        """Return the only way to call the function, as an overload."""
        ordered = [Parameter(a.name, a.type, a.default is not REQUIRED, False) for a in self.ordered[skipped:]]
        named = [a for a in self.known.values() if a not in self.ordered]
        rest = [Parameter(a.name, a.type, a.name not in SIZES, a.name != self.rest) for a in named]
        return Overload("", [*ordered, *rest])

    def check_tensors(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any] | None = None, skipped: int = 0
    ) -> None:
        """Raise PyTorch's `TypeError` for an argument in order that must be a tensor and is none.

        Positions are counted from the one behind those that are skipped: a method's own tensor has none.
        """
        for i, (argument, value) in enumerate(zip(self.ordered, args, strict=False)):
            if not isinstance(value, Tensor) and not argument.takes(value):
                position, kind = i + 1 - skipped, builtin_name(value)
                if argument.kind == "Scalar" and argument.name != "other":
                    raise torch_error(
                        "type of an argument", name, argument.name, f" (position {position})", "Number", kind
                    )
                raise torch_error("no tensor", name, argument.name, position, kind)


_default = cache(literal_eval)


def _parsed(arguments: str, facts: Mapping[str, str]) -> Signature:
    """Return the signature that the text of a line's arguments has.

    >>> _parsed("Tensor input, *, Scalar value=1", {}).known["value"]
    Argument(name='value', kind='Scalar', default=1)
    """
    ordered, rest, known, is_ordered = [], "", {}, True
    for part in arguments.split(","):
        word, _, default = part.partition("=")
        *kind, name = word.split()
        argument = Argument(name.lstrip("*"), "".join(kind), _default(default) if default else REQUIRED)
        if name.startswith("*"):
            rest, is_ordered = argument.name, False
        elif is_ordered:
            ordered.append(argument)
        if argument.name:
            known[argument.name] = argument
    return Signature(ordered, rest, known, facts)


@cache
def find(name: str, module: str = "torch") -> Signature | None:
    """Return the signature of a function, in a module where it has another one there; None where it is not listed.

    >>> [a.name for a in find("elu").ordered]
    ['input', 'alpha', 'inplace']
    """
    modules = table().functions
    line = next((m[name] for m in (modules[module], *modules.values()) if name in m), None)
    return None if line is None else _parsed(*line)


def signature(name: str, module: str = "torch") -> Signature:
    """Return the signature of a function that is in the table."""
    result = find(name, module)
    assert result is not None, name
    return result
