"""A page of the guide, written in Markdown, as it is shown: coloured on a terminal, as plain lines in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcli.wrapping import wrapped

_IMAGE = re.compile(r"^!\[.*\n?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"  # of a block's language, behind its fence
_ROOM = 16  # columns of the last column of a table, at least
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
_BREAK = re.compile(r"^(?:```.*|#+ .*|\||(?:[-*]|\d+\.) |\s*$)")


def shown(markdown: str) -> str:
    """Return Markdown without what a terminal cannot follow: comments, images, and the targets of links.

    >>> shown("<!-- needs pyarrow -->\\nsee [shapes](shapes.md)")
    'see shapes'
    """
    return _LINK.sub(r"\1", _IMAGE.sub("", _COMMENT.sub("", markdown)))


def coloured(markdown: str, width: int) -> None:
    """Print Markdown to a terminal."""
    from rich.console import Console
    from rich.markdown import Heading, Markdown
    from rich.theme import Theme

    class Left(Heading):
        """A heading at the left, without a box."""

        def __rich_console__(self, console, options):  # type: ignore[no-untyped-def]
            self.text.justify = "left"
            yield self.text

    Markdown.elements["heading_open"] = Left
    theme = Theme({"markdown.code": "bold cyan", "markdown.h2": "bold", "markdown.h3": "bold magenta"})
    Console(width=width, highlight=False, theme=theme).print(
        Markdown(shown(markdown), code_theme="ansi_dark", hyperlinks=False)
    )


def plain(markdown: str, width: int) -> str:
    """Return Markdown as lines of a width: prose wrapped, code indented, tables in columns.

    >>> print(plain("# Title\\n\\nsome prose\\n\\n```sh\\nls\\n```", 8))
    # Title
    <BLANKLINE>
    some
    prose
    <BLANKLINE>
      ls
    """
    return "\n".join(_plain(shown(markdown).splitlines(), width)).strip("\n")


def _plain(lines: list[str], width: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("```"):
            end = lines.index(line.rstrip(_LETTERS), at)
            for code in lines[at:end]:
                yield from _code(f"  {code}".rstrip(), width)
            at = end + 1
        elif line.startswith("|"):
            end = next((k for k in range(at, len(lines)) if not lines[k].startswith("|")), len(lines))
            yield from _table(lines[at - 1 : end], width)
            at = end
        elif not line or line.startswith("#"):
            yield from wrapped(line, width, "  ")
        else:
            while at < len(lines) and not _BREAK.match(lines[at]):
                line += " " + lines[at].strip()
                at += 1
            yield from wrapped(line, width, "  " if _ITEM.match(line) else "")


def _code(line: str, width: int) -> list[str]:
    """Return a line of code or of output in lines of a width; a line that is drawn is cut."""
    return [line[:width]] if set(line[width - 2 :]) == {"─"} else wrapped(line, width, "      ")


def _table(lines: list[str], width: int) -> Iterator[str]:
    """Yield the lines of a table, its last column in the room that is left; without room, roughly below each other."""
    from gradcli.report.layout import GAP, pad, table, widths

    rows = [[cell.strip().replace("`", "") for cell in line.strip()[1:-1].split("|")] for line in lines]
    del rows[1]
    room = width - sum(size + len(GAP) for size in widths([row[:-1] for row in rows]))
    if room >= _ROOM:
        for line in table([part for row in rows for part in _parts(row, room)], width):
            yield from line
        return
    most = width // 2 // len(rows[0][1:])
    sizes = [min(size, most) for size in widths(rows)]
    for row in rows:
        yield from wrapped(GAP.join(pad(*cell) for cell in zip(row, sizes, strict=True)).rstrip(), width, "    ")


def _parts(row: list[str], room: int) -> list[list[str]]:
    """Return a row of a table as rows whose last cells have the room."""
    first, *more = wrapped(row[-1], room)
    return [[*row[:-1], first], *([*[""] * (len(row) - 1), part] for part in more)]
