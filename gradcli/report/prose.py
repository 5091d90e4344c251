"""A page of the guide, written in Markdown, as it is shown: coloured on a terminal, as plain lines in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from click import style

from gradcli.text.wrapping import cells, wrapped

_IMAGE = re.compile(r"^!\[.*\n?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"^(`{3,})\w*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"  # of a block's language, behind its fence
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
_BREAK = re.compile(r"^(?:```.*|#+ .*|\||(?:[-*]|\d+\.) |\s*$)")


def shown(markdown: str) -> str:
    """Return Markdown without what a terminal cannot follow: comments, images, and the targets of links.

    >>> shown("<!-- needs pyarrow -->\\nsee [shapes](shapes.md)\\n```python\\nf[0](x)\\n```")
    'see shapes\\n```python\\nf[0](x)\\n```'
    """
    result, end = [], 0
    for block in _CODE.finditer(markdown):
        result += [_bare(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*result, _bare(markdown[end:])])


def _bare(prose: str) -> str:
    return _LINK.sub(r"\1", _IMAGE.sub("", _COMMENT.sub("", prose)))


def coloured(markdown: str, width: int) -> str:
    """Return what `plain` returns, with the colours of a terminal: headings are bold, code between backticks is cyan.

    >>> coloured("# Title", 80)
    '\\x1b[1m# Title\\x1b[0m'
    """
    return "\n".join(
        style(line, bold=True)
        if line.startswith("#")
        else re.sub("`[^`]+`", lambda code: style(code[0], fg="cyan", bold=True), line)
        for line in plain(markdown, width).split("\n")
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
    """Yield lines of Markdown as plain text: code indented, tables aligned, paragraphs wrapped."""
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
    """Yield the lines of a table, or of several with the same first column where one of numbers is too wide.

    Numbers are in columns aligned at the right, as a colon at the right of the dashes says.
    """
    from gradcli.report.layout import blocks, table, widths

    split = (re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in lines)
    head, dashes, *rest = ([cell.strip().replace("`", "").replace("\\|", "|") for cell in row] for row in split)
    rows = [head, *rest]
    if not dashes[-1].endswith(":"):
        for line in chain(*table(rows, width)):
            yield from wrapped(line, width, "    ")
        return
    first, *columns = (
        [" " * (size - cells(cell)) + cell for cell in column]
        for column, size in zip(zip(*rows, strict=True), widths(rows), strict=True)
    )
    for number, block in enumerate(blocks([first], columns, width)):
        yield from ["", *chain(*block)] if number else chain(*block)
