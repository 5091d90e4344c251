"""Text in lines of a given width: prose is wrapped at spaces, formulas are broken at their operators."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, repeat

from gradcli.text.plain import printed

PIPE = 80  # columns where there is no terminal
_NARROW = 20  # a narrower page is not laid out
_DEPTH = 15  # columns that a break outside of brackets may cost
_OPERATORS = "*/·+-"
TIED = "\u00a0"  # a space at which prose is broken only where there is no other


def page_width() -> int:
    """Return the columns of a page: those of COLUMNS, of the terminal, or 80."""
    import shutil  # which imports compression

    return max(_NARROW, shutil.get_terminal_size((PIPE, 24)).columns)


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for some letters, none for an accent.

    >>> cells("x0"), cells("t\u03042"), cells("雪")
    (2, 2, 2)
    """
    if text.isascii():
        return len(text)
    return sum(map(_cell, text, repeat(getattr(sys.stdout, "encoding", None))))


@lru_cache(maxsize=1024)  # of the letters of a page, which are few
def _cell(letter: str, encoding: str | None) -> int:
    """Return the columns of a letter on standard output, whose encoding decides what it is shown as."""
    if letter.isascii():
        return 1
    if (shown := printed(letter)) != letter:
        return len(shown)
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def in_words(names: Sequence[str]) -> str:
    """Return several names in words.

    >>> in_words(["w", "b", "c"])
    'w, b and c'
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def visible(text: str) -> str:
    r"""Return a text with escapes, as Python writes them, for characters that a terminal obeys or nobody sees.

    >>> print(visible("a\nb\x1b[2J"), visible("x\u0304"))
    a\nb\x1b[2J x̄
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == TIED else c.encode("unicode_escape").decode() for c in text)


def wrapped(text: str, width: int, hang: str = "") -> list[str]:
    """Return prose in lines, the ones after the first behind `hang`.

    >>> wrapped("one two three", 8, "  ")
    ['one two', '  three']
    """
    return _lines(text, width, hang, False)


def broken(text: str, width: int, hang: str = "  ") -> list[str]:
    """Return a formula in lines, the ones after the first behind `hang`; breaks outside of brackets are better.

    >>> broken("f(x + y) + g(x*y)", 10)
    ['f(x + y) +', '  g(x*y)']
    >>> broken("1e-3*weight+bias", 12)
    ['1e-3*weight', '  +bias']
    """
    return _lines(text, width, hang, True)


def program_line(line: str, room: int) -> list[str]:
    """Return a line of a program, or of a comment, in lines; a long one goes on inside its brackets.

    >>> program_line("# or: torch.stack((y, z)).backward(torch.tensor([1., 2.]))", 60)
    ['# or: torch.stack((y, z)).backward(torch.tensor([1., 2.]))']
    >>> program_line("y.backward(torch.tensor([1., 2.]), retain_graph=True)", 40)
    ['y.backward(torch.tensor([1., 2.]),', '    retain_graph=True)']
    """
    mark = "# " if line.startswith("# ") else ""
    if "(" not in line or len(line) <= room:
        return [line]
    return [mark + part for part in broken(line.removeprefix(mark), room - len(mark), "    ")]


def _lines(text: str, width: int, hang: str, formula: bool) -> list[str]:
    lines = []
    room = width
    while _is_wider(text, room) and (cut := _break(text, room, formula)) is not None:
        lines.append(text[: cut[0]].rstrip().replace(TIED, " "))
        text = text[cut[1] :]
        room = width - cells(hang)
    lines.append(text.replace(TIED, " "))
    return [lines[0], *(hang + line for line in lines[1:])]


def _is_wider(text: str, room: int) -> bool:
    """Return whether a text takes more columns, of which the first decide where it is long."""
    if text.isascii():
        return len(text) > room
    widths = map(_cell, text, repeat(getattr(sys.stdout, "encoding", None)))
    return any(map(room.__lt__, accumulate(widths)))


def _break(text: str, room: int, formula: bool) -> tuple[int, int] | None:
    """Return where a line ends and where the next one starts: the best one in the room, or the first behind it."""
    best: tuple[int, int] | None = None
    worth = -1
    for used, depth, end, start in _breaks(text, formula):
        if used > room:
            return best or (end, start)
        if (value := used - depth * _DEPTH) >= worth or best is None:
            best, worth = (end, start), value
    return best


def _breaks(text: str, formula: bool) -> Iterator[tuple[int, int, int, int]]:
    """Yield where to break: the columns up to there, the depth of brackets, the line's end, the next start."""
    used = depth = 0
    encoding = getattr(sys.stdout, "encoding", None)
    for i, letter in enumerate(text):
        if letter in (" ", TIED) and text[:i].strip():
            yield used, depth + 2 * (letter == TIED), i, i + 1
        elif formula and letter in _OPERATORS and _between(text, i):
            yield used, depth + (letter not in "+-"), i, i
        depth += formula and (letter in "([") - (letter in ")]")
        used += _cell(letter, encoding)


def _between(text: str, i: int) -> bool:
    """Return whether the operator there is between two operands, without spaces; the signs of 1e-3 and -x do not."""
    before, after = text[:i][-1:], text[i + 1 : i + 2]
    if text[i] in "+-":
        exponent = before in "eE" and text[:i][-2:-1].isdigit()
        return (before.isalnum() or before in tuple(")]_")) and not exponent and after not in (" ", "=", ">")
    return bool(before) and before not in " *" and after not in ("*", " ")
