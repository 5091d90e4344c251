"""Lines of generated code that are not too long: of Python broken as Black breaks them, of others at brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDTH = 88


def listed(start: str, items: Sequence[str], end: str) -> list[str]:
    """Return the lines of a call or a list, the first of which is indented as `start` is.

    >>> listed("x = f(", ["a", "b"], ")")
    ['x = f(a, b)']
    >>> listed("f(", ["a" * 42, "b" * 42], ")")[1:]
    ['    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,', '    bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,', ')']
    """
    return broken(f"{start}{', '.join(items)}{end[0]}", end[1:])


def bracketed(start: str, items: Sequence[str]) -> list[str]:
    """Return the lines of `return` with several values, in brackets where they do not fit on one line.

    >>> bracketed("return ", ["a", "b"])
    ['return a, b']
    """
    one = f"{start}{', '.join(items)}"
    if len(one) <= WIDTH:
        return [one]
    margin = start[: len(start) - len(start.lstrip())]
    return [f"{start}(", *(f"{margin}    {item}," for item in items), f"{margin})"]


_OPENS, _CLOSES = "([{", ")]}"


def broken(line: str, last: str = "") -> list[str]:
    """Return a line with what follows it, or the lines that it is broken into at the brackets it ends with.

    A tuple of one item, `(a,)`, stays as it stands.

    >>> broken("x = np.stack([" + "a, " * 30 + "a])")[0]
    'x = np.stack('
    """
    if len(line + last) <= WIDTH or line[-1] not in _CLOSES or line[-2:] == ",)":
        return [line + last]
    margin = line[: len(line) - len(line.lstrip())]
    start, inner = _opening(line) + 1, f"{margin}    "
    items = _items(line[start:-1])
    body = [inner + ", ".join(items)]
    if len(items) == 1:
        body = broken(*body)
    elif len(body[0]) > WIDTH:
        body = [part for item in items for part in broken(inner + item, ",")]
    return [line[:start], *body, f"{margin}{line[-1]}{last}"]


def _opening(text: str) -> int:
    """Return where the bracket is opened that the text ends with."""
    depth = 0
    for k in range(len(text) - 1, -1, -1):
        depth += (text[k] in _CLOSES) - (text[k] in _OPENS)
        if not depth:
            return k
    return 0


def _items(text: str) -> list[str]:
    """Return the parts between commas outside of brackets and of quotes.

    >>> _items('a, f(b, c), "x,y"')
    ['a', 'f(b, c)', '"x,y"']
    """
    items, depth, item = [], 0, ""
    for part in re.findall(r'"[^"]*"|.', text):
        depth += (part in _OPENS) - (part in _CLOSES)
        if part == "," and not depth:
            items.append(item.strip())
            item = ""
        else:
            item += part
    return [*items, item.strip()] if item.strip() else items


LINE = 80  # of C and JavaScript


def filled(start: str, end: str, items: Sequence[str], indent: str = "    ", width: int = LINE) -> list[str]:
    """Return a list on one line, or on as many as it takes, between its start and its end.

    >>> filled("int a[3] = {", "};", ["1", "2", "3"])
    ['int a[3] = {1, 2, 3};']
    """
    one = f"{start}{', '.join(items)}{end}"
    if len(one) <= width:
        return [one]
    margin = start[: len(start) - len(start.lstrip())]
    lines = wrapped("", [*(f"{item}," for item in items[:-1]), *items[-1:]], width - len(margin + indent))
    return [start, *(f"{margin}{indent}{line}" for line in lines), f"{margin}{end}"]


def wrapped(start: str, words: Sequence[str], width: int) -> list[str]:
    """Return words on lines of that width, the first of which begins with `start`; words may have spaces.

    >>> wrapped("", ["const int a,", "const int b"], 20)
    ['const int a,', 'const int b']
    """
    lines, line = [], start
    for word in words:
        if line.strip() and len(line.rstrip()) + 1 + len(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += f"{word} "
    return [*lines, line.rstrip()]


def each_alone(start: str, end: str, items: Sequence[str], indent: str) -> list[str]:
    """Return a list on one line, or with a line for each item.

    >>> each_alone("f(", ")", ["a" * 50, "b" * 50], "  ")[0]
    'f('
    """
    one = f"{start}{', '.join(items)}{end}"
    if len(one) <= LINE:
        return [one]
    margin = start[: len(start) - len(start.lstrip())]
    return [start, *(f"{margin}{indent}{item}," for item in items), f"{margin}{end}"]
