"""Signatures of PyTorch's functions, as `functions.txt` lists them: arguments, the kind of each, and facts."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from inspect import Parameter
from typing import Any, NamedTuple

from gradcli.pytorch.functions import table
from gradcli.pytorch.messages import builtin_name, missing_if, refusal
from gradcli.pytorch.tables import paragraphs
from gradcli.pytorch.tensor import Number, Tensor, listed

REQUIRED = Parameter.empty  # in the place of a default
_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}  # names that PyTorch takes as well
_SIZES = ("size", "shape", "dims", "repeats")  # further arguments of which there is at least one
_LATER = ("inplace", "dtype", "_stacklevel")  # arguments that are missing here


class Argument(NamedTuple):
    """An argument of a function: its name, the word for what it is, and its default."""

    name: str
    kind: str
    default: Any

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
    overloads: Sequence[str] = ()  # as PyTorch's errors list them, of a function that has several

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
                raise refusal("two values for an argument" if is_second else "unknown keyword", name, keyword)
            values[keyword] = listed((value,)) if keyword == self.rest else value
        return values

    def check_call(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], skipped: int) -> None:
        """Raise PyTorch's `TypeError` for a call in which arguments are missing, or that fits no overload.

        Of several overloads PyTorch names what is wrong only where just one takes so many arguments.
        """
        count = len(args) - skipped + len(keywords)
        parts = [overload.replace("*, ", "").split(", ") for overload in self.overloads]
        if self.overloads and sum(sum("=" not in p for p in ps) <= count <= len(ps) for ps in parts) != 1:
            kinds = [*map(builtin_name, args), *(f"{k}={builtin_name(keywords[k])}" for k in sorted(keywords))]
            given = ", ".join(kinds) + ", " * bool(keywords and not args)
            raise refusal("arguments of no overload", name, given, "\n".join(f" * ({o})" for o in self.overloads))
        self.check_count(name, len(args), {a.name for a in self.ordered[: len(args)]} | self.by_name(keywords).keys())
        self.check_tensors(name, args, keywords, skipped)

    def check_count(self, name: str, count: int, values: Collection[str]) -> None:
        """Raise PyTorch's `TypeError` where there are too few or too many arguments."""
        required = [a.name for a in self.ordered if a.default is REQUIRED]
        required += [self.rest] if self.rest in _SIZES and count <= len(self.ordered) else []
        if missing := [f'"{n}"' for n in required if n not in values]:
            words = "positional arguments" if len(missing) == 1 else "positional argument"
            raise refusal("arguments that are missing", name, len(missing), words, ", ".join(missing))
        least, most = len(required), len(self.ordered)
        if count > most and not self.rest:
            several = "s" if most > 1 else ""
            takes = most if least == most else f"from {least} to {most}"
            raise refusal("too many arguments", name, takes, several, count)

    def check_tensors(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any] | None = None, skipped: int = 0
    ) -> None:
        """Raise PyTorch's `TypeError` for an argument in order that must be a tensor and is none.

        Positions are counted from the one behind those that are skipped: a method's own tensor has none.
        """
        for i, (argument, value) in enumerate(zip(self.ordered, args, strict=False)):
            if not isinstance(value, Tensor) and not argument.takes(value):
                raise refusal("no tensor", name, argument.name, i + 1 - skipped, builtin_name(value))


_default = cache(literal_eval)


def _parsed(arguments: str, facts: Mapping[str, str]) -> Signature:
    """Return the signature that the text of a line's arguments has.

    >>> _parsed("Tensor input, *, Scalar value=1", {}).known["value"]
    Argument(name='value', kind='Scalar', default=1)
    """
    ordered, rest, known, is_ordered = [], "", {}, True
    for part in arguments.split(","):
        word, _, default = part.partition("=")
        kind, _, name = word.strip().rpartition(" ")
        argument = Argument(name.lstrip("*"), kind, _default(default) if default else REQUIRED)
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
    return None if line is None else _parsed(*line)._replace(overloads=_overloads().get(name, ()))


@cache
def _overloads() -> dict[str, list[str]]:
    """Return the overloads of each function that has several."""
    result: dict[str, list[str]] = {}
    for paragraph in paragraphs("overloads.txt")[1:]:
        names, *texts = paragraph.replace("NEW", "Tensor out = None, MADE").replace("MADE", _OPTIONS).split("\n ")
        result |= dict.fromkeys(names.split(), texts)
    return result


_OPTIONS = "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None"
_OPTIONS += ", bool pin_memory = False, bool requires_grad = False"


def signature(name: str, module: str = "torch") -> Signature:
    """Return the signature of a function that is in the table."""
    result = find(name, module)
    assert result is not None, name
    return result
