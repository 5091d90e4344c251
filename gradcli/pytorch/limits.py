"""Limits of arguments, as `limits.txt` lists them: intervals, words, dtypes, and what two tensors have in common."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gradcli.pytorch import dtypes
from gradcli.pytorch.messages import MissingError, torch_error
from gradcli.pytorch.tables import lines
from gradcli.pytorch.tensor import Number, Tensor

# Facts of a tensor that may have a limit.
_FACTS: dict[str, Callable[[Tensor], Any]] = {
    "rank": Tensor.dim,
    "sizes": lambda x: list(x.shape),
    "least": lambda x: x._a.min() if x._a.size else None,
    "dtype": lambda x: x.dtype.word,
    "ctype": lambda x: x.dtype.in_c,
}
_DTYPES = {
    "real": [d.word for d in dtypes.ALL if d.is_floating_point],
    "whole": [d.word for d in dtypes.ALL if d.numpy.kind in "iu"],
}  # by words for several


class Quantity(NamedTuple):
    """An argument, or a fact of it: `input.rank`."""

    argument: str
    fact: str

    @classmethod
    def of(cls, text: str) -> Quantity:
        return cls(*text.partition(".")[::2])

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return its value; None where the argument is None, is not there, or has no such fact."""
        x = values.get(self.argument)
        if not self.fact or x is None:
            return x
        if (fact := _FACTS.get(self.fact)) is not None:
            return fact(x) if isinstance(x, Tensor) else None
        return type(x).__name__ if self.fact == "kind" else x[int(self.fact)]


class Limit(NamedTuple):
    """A limit of arguments: the quantities that it is for, their check, and the message and values of its error."""

    quantities: Sequence[Quantity]
    fits: Callable[[Any], bool]
    other: Quantity | None  # which they are to equal, as `fits` is not asked then
    key: str
    words: Sequence[str | Quantity]

    def check(self, name: str, values: Mapping[str, Any]) -> None:
        """Raise the error of arguments of a function or class that are out of the limit."""
        other = self.other and self.other.value(values)
        actual = None
        for quantity in self.quantities:
            if (x := quantity.value(values)) is not None:
                if (x == other or other is None) if self.other else self.fits(x):
                    return
                actual = x if actual is None else actual
        if actual is None:
            return
        words = [w.value(values) if isinstance(w, Quantity) else w for w in self.words]
        if None in words:  # a fact of an argument that is not a tensor
            return
        if self.key == "missing":
            raise MissingError(f"{words[0]}{name}({self.quantities[0].argument}=…)", *words[1:])
        raise torch_error(self.key, *words, actual, *([other] if self.other else []), name)


@cache
def limits() -> Mapping[str, list[Limit]]:
    """Return the limits of each function and class.

    >>> [limit.quantities for limit in limits()["diff"]]
    [[Quantity(argument='input', fact='rank')], [Quantity(argument='n', fact='')]]
    """
    result: dict[str, list[Limit]] = defaultdict(list)
    for line in lines("limits.txt"):
        names, limit, key, *words = line.split(": ")
        quantities, _, text = limit.partition(" ")
        other = Quantity.of(text[1:]) if text[0] == "=" else None
        row = Limit(
            [Quantity.of(q) for q in quantities.split(",")],
            bool if other else _condition(text),
            other,
            key,
            [Quantity.of(w[1:]) if w[0] == "@" else w for w in words],
        )
        for owner in names.split():
            result[owner].append(row)
    return dict(result)


def _condition(text: str) -> Callable[[Any], bool]:
    """Return whether something is in an interval, or is one of some words; behind `!`, whether it is none of them.

    >>> [_condition("!Bool")(word) for word in ("Float", "Bool")]
    [True, False]
    """
    if ".." in text:
        word, _, interval = text.rpartition(" ")
        return _within(interval, word == "int")
    known = {w for word in text.lstrip("!").split("|") for w in _DTYPES.get(word, [word])}
    if text[0] == "!":
        return lambda x: x not in known

    def fits(x: Any) -> bool:
        word = f"{x:g}" if isinstance(x, Number) else x
        return (isinstance(word, str) and word in known) or ("no" in known and isinstance(x, Number) and not x)

    return fits


def _within(interval: str, integers: bool) -> Callable[[Any], bool]:
    """Return whether a number is in an interval, whose ends belong to it beside square brackets.

    Anything that is not a number fits, except in an interval of integers.  Text is compared, for Python's error.

    >>> [_within("(0..1]", False)(x) for x in (0, 0.5, 1, 2)]
    [False, True, True, False]
    """
    low, high = (float(end or sign * math.inf) for end, sign in zip(interval[1:-1].split(".."), (-1, 1), strict=True))
    closed = interval[0] == "[", interval[-1] == "]"
    kinds: Any = int if integers else (int, float, np.number, str)

    def fits(x: Any) -> bool:
        if not isinstance(x, kinds) and not (isinstance(x, Tensor) and x.numel() == 1):
            return not integers
        return not (x < low if closed[0] else x <= low) and bool(x <= high if closed[1] else x < high)

    return fits


def check_limits(name: str, values: Mapping[str, Any]) -> None:
    """Raise PyTorch's error for the first argument of a function or class that is out of its limits."""
    for argument, fact, limit in _first_facts(name):
        x = values.get(argument)
        if fact is None or not isinstance(x, Tensor) or not limit.fits(fact(x)):  # most calls are within all limits
            limit.check(name, values)


@cache
def _first_facts(name: str) -> list[tuple[str, Callable[[Tensor], Any] | None, Limit]]:
    """Return the limits of a function or class, each with its first argument, and the fact of a tensor to look at."""
    rows = [(limit.quantities[0], limit) for limit in limits().get(name, ())]
    return [(q.argument, None if limit.other else _FACTS.get(q.fact), limit) for q, limit in rows]


F = TypeVar("F", bound=Callable[..., Any])


def limited(name: str) -> Callable[[F], F]:
    """Check the limits of a function's arguments, which the table has under this name, before it is called."""

    def decorate(function: F) -> F:
        names = [*inspect.signature(function).parameters]

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check_limits(name, {**dict(zip(names, args, strict=False)), **kwargs})
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
