"""Line breaks of generated code, at brackets, as formatters break lines."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 80  # of C and JavaScript


def filled(start: str, end: str, items: Sequence[str], indent: str = "    ", width: int = WIDTH) -> list[str]:
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
    if len(one) <= WIDTH:
        return [one]
    margin = start[: len(start) - len(start.lstrip())]
    return [start, *(f"{margin}{indent}{item}," for item in items), f"{margin}{end}"]
