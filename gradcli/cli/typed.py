"""The position of an error in the command line, by the option or the text that its message quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcli.errors import Source, Span
from gradcli.platform import join

_QUOTED = re.compile(r"`([^`]+)`|'([^']+)'")
_IN_FILE = re.compile(r"(`[^`]+`|standard input), ")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def typed(message: str, arguments: Sequence[str]) -> Span | None:
    """Return the position of the text that a message quotes in an option's value, else of the option or argument.

    A message that goes on with a place in the file that it names has its place.

    >>> typed("--wrt: `q` is not in the system", ["jvp", "y=x", "--wrt", "x,q"]).text
    'q'
    >>> typed("No such option '--nonsense'", ["jvp", "y=x", "--nonsense"])[1:]
    (16, 26)
    """
    if _IN_FILE.match(message):
        return None
    quoted = [a or b for a, b in _QUOTED.findall(message)]
    options = [*dict.fromkeys(_OPTION.findall(message))]
    for k, (argument, value) in reversed([*enumerate(zip(arguments, [*arguments[1:], ""], strict=True))]):
        option, equals, rest = argument.partition("=")
        if option in options:
            value = rest if equals else value
            said = [*quoted, value] if value in message else quoted
            return _within(value, options[-1], said) or _word(arguments, k, option)
    for k, argument in reversed([*enumerate(arguments)]):
        if named := [q for q in quoted if argument == q or (q.startswith("-") and argument.startswith(q))]:
            return _word(arguments, k, named[0])
    return None


def _within(value: str, option: str, texts: Sequence[str]) -> Span | None:
    """Return where an option's value has one of the texts, as a word."""
    for text in texts:
        if text and (result := re.search(rf"(?<!\w){re.escape(text)}(?!\w)", value)):
            return Span(Source(value, option), *result.span())
    return None


def _word(arguments: Sequence[str], k: int, text: str) -> Span:
    """Return where the command line has a text that an argument begins with."""
    line = join(["gradcli", *arguments])
    start = line.find(text, len(join(["gradcli", *arguments[:k]])) + 1)
    return Span(Source(line), start, start + len(text)) if start >= 0 else Span(Source(line), len(line), len(line))
