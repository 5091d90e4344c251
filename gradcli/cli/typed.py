"""The position of an error in the command line, by the option or the text that the error is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gradcli.errors import Source, Span
from gradcli.platform import join

_SHORT = len("-f")


class _Typed(NamedTuple):
    """An option of the command line: its position among the arguments, its name there, and its value."""

    position: int
    name: str
    value: str


def typed(options: Sequence[str], text: str | None, arguments: Sequence[str]) -> Span | None:
    """Return the position of a text in the value of the last of the options, else of the option, else of an argument.

    >>> typed(["--wrt"], "q", ["jvp", "y=x", "--wrt", "x,q"]).text
    'q'
    >>> typed(["--nonsense"], None, ["jvp", "y=x", "--nonsense"])[1:]
    (16, 26)
    >>> typed([], "p.csv", ["jvp", "y=x", "--points", "p.csv"]).text
    'p.csv'
    """
    if (option := _last(options, arguments)) is not None:
        return _within(option.value, options[-1], text) or _word(arguments, option.position, option.name)
    for k, argument in reversed([*enumerate(arguments)]):
        if text and argument == text:
            return _word(arguments, k, text)
    return None


def value_of(options: Sequence[str], arguments: Sequence[str]) -> str | None:
    """Return the value that is typed behind the last of the options.

    >>> value_of(["-f", "--format"], ["jvp", "y=x", "--format=png"])
    'png'
    """
    option = _last(options, arguments)
    return option and option.value


def _last(options: Sequence[str], arguments: Sequence[str]) -> _Typed | None:
    """Return the last of the options in the command line."""
    for k, (argument, value) in reversed([*enumerate(zip(arguments, [*arguments[1:], ""], strict=True))]):
        name, equals, rest = argument.partition("=")
        if name in options:
            return _Typed(k, name, rest if equals else value)
    # An option of one letter may have its value, or another such option, right behind it: `-fpng`.
    short = [(k, option) for k, a in enumerate(arguments) for option in options if _is_short(option, a)]
    return _Typed(*short[-1], arguments[short[-1][0]][_SHORT:]) if short else None


def _is_short(option: str, argument: str) -> bool:
    return len(option) == _SHORT and argument.startswith(option)


def _within(value: str, option: str, text: str | None) -> Span | None:
    """Return where an option's value has the text, as a word."""
    if text and (result := re.search(rf"(?<!\w){re.escape(text)}(?!\w)", value)):
        return Span(Source(value, option), *result.span())
    return None


def _word(arguments: Sequence[str], k: int, text: str) -> Span:
    """Return where the command line has a text that an argument begins with."""
    line = join(["gradcli", *arguments])
    start = line.find(text, len(join(["gradcli", *arguments[:k]])) + 1)
    return Span(Source(line), start, start + len(text)) if start >= 0 else Span(Source(line), len(line), len(line))
