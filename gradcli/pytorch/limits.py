"""Limits of arguments, as `limits.txt` lists them: intervals, words, and how many axes a tensor has."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.messages import refusal
from gradcli.pytorch.tables import lines


class Limit(NamedTuple):
    """What an argument, or how many axes it has, may be; the message where it is not, and the argument's word there."""

    argument: str
    is_rank: bool
    fits: Callable[[Any], bool]
    key: str
    word: tuple[str, ...]


@cache
def limits() -> Mapping[str, list[Limit]]:
    """Return the limits of each function and class.

    >>> [limit.argument for limit in limits()["diff"]]
    ['input', 'n']
    """
    result: dict[str, list[Limit]] = defaultdict(list)
    for line in lines("limits.txt"):
        names, limit, key, *word = line.split(": ")
        argument, *kind, text = limit.split()
        name, _, rank = argument.partition(".")
        fits = _within(text, bool(kind)) if ".." in text else text.split("|").__contains__
        for owner in names.split():
            result[owner].append(Limit(name, bool(rank), fits, key, tuple(word)))
    return dict(result)


def _within(interval: str, integers: bool) -> Callable[[Any], bool]:
    """Return whether a number is in an interval, whose ends belong to it beside square brackets.

    >>> [_within("(0..1]", False)(x) for x in (0, 0.5, 1, 2)]
    [False, True, True, False]
    """
    low, high = (float(end or sign * math.inf) for end, sign in zip(interval[1:-1].split(".."), (-1, 1), strict=True))
    closed = interval[0] == "[", interval[-1] == "]"

    def fits(x: Any) -> bool:
        if integers and not isinstance(x, int):
            return False
        return (low <= x if closed[0] else low < x) and bool(x <= high if closed[1] else x < high)

    return fits


def check_limits(name: str, values: Mapping[str, Any]) -> None:
    """Raise PyTorch's error for the first argument of a function or class that is out of its limits."""
    for limit in limits().get(name, ()):
        value = values.get(limit.argument)
        if value is not None and not limit.fits(size := value.dim() if limit.is_rank else value):
            raise refusal(limit.key, *limit.word, size, name)
