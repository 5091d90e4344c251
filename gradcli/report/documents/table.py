"""A page for a reader at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from click import style, unstyle

from gradcli.pages import sections
from gradcli.process.platform import has_styles
from gradcli.report.image_text import image_lines
from gradcli.report.layout import blocks, equations, table
from gradcli.report.text_math import TextWriter
from gradcli.text.painted import is_not_finite, of_cotangent, painted
from gradcli.text.wrapping import TIED, cells, page_width, program_line, visible, wrapped

PRINTED = True
_INDENT = "  "
_ENTRIES = 400  # of a matrix that is shown as one


def render(
    page: sections.Page,
    digits: int | None,
    width: int | None = None,
    styled: bool | None = None,
    half_blocks: bool | None = None,
) -> str:
    """Return a page as text, as wide as the terminal unless a width is given; `digits` significant ones of each number.

    If `styled`, with a terminal's codes for bold and underlined text and colours; by default where one shows it.
    Images in colour are `half_blocks`, by default where standard output has these.
    """
    return _Terminal(page, digits, width, styled, half_blocks).page()


class _Terminal:
    """Renders the kinds of section, each as lines."""

    def __init__(
        self, page: sections.Page, digits: int | None, width: int | None, styled: bool | None, half_blocks: bool | None
    ) -> None:
        self.sections = page.sections
        self.writer = TextWriter(page.style, digits)
        self.width = page_width() if width is None else width
        self.styled = has_styles(sys.stdout) if styled is None else styled
        self.half_blocks = half_blocks
        self.weighs = "v" not in page.style.taken  # whether v is the cotangent

    def page(self) -> str:
        return "\n\n".join("\n".join(self.section(section)) for section in self.sections) + "\n"

    def section(self, section: sections.Section) -> Iterator[str]:
        if section.title:
            for line in _in_room(self.width, partial(self.text, section.title)):
                yield self.strong(line.rstrip())
        for k, block in enumerate(section.blocks):
            if k and not (isinstance(block, sections.Text) and isinstance(section.blocks[k - 1], sections.Text)):
                yield ""
            yield from self.block(block, _INDENT if section.title else "")

    def block(self, block: sections.Block, indent: str) -> Iterator[str]:
        indent = indent or _INDENT * isinstance(block, sections.Matrix | sections.Grid)
        room = self.width - len(indent)
        for line in _in_room(room, partial(self.lines, block)):
            yield self.painted(f"{indent}{line}".rstrip(), not isinstance(block, sections.Text | sections.Code))

    def lines(self, block: sections.Block, room: int) -> Sequence[str]:
        match block:
            case sections.Text(parts):
                return self.text(parts, room)
            case sections.Equations():
                return self.equations(block, room)
            case sections.Matrix():
                return self.matrix(block, room)
            case sections.Grid(header, rows):
                return self.grid([[*map(self.writer.write, row)] for row in (header, *rows)], room)
            case sections.Code():
                return self.code(block, room)
            case sections.Images():
                return image_lines(block, self.writer, room, self.styled, self.half_blocks)

    def text(self, parts: Sequence[sections.Math], room: int) -> list[str]:
        """Return words in lines; the mathematics between them is broken only where a line is too short for it.

        An equation at the end, the only one, that does not fit behind the words is written below them.
        """
        text = self.tied(parts)
        *words, last = parts
        if cells(text) <= room or not words or not isinstance(last, sections.Equal):
            return wrapped(text, room)
        if any(isinstance(p, sections.Equal) for p in words):
            return wrapped(text, room)
        (lines,) = equations([self.writer.sides(last.sides)], [""], room - len(_INDENT))
        return [*self.text([*words, ""], room), *(f"{_INDENT}{line}" for line in lines)]

    def tied(self, parts: Sequence[sections.Math]) -> str:
        texts = zip(parts, map(self.writer.write, parts), strict=True)
        return "".join([t if isinstance(p, str | sections.Typed) else t.replace(" ", TIED) for p, t in texts])

    def equations(self, block: sections.Equations, room: int) -> list[str]:
        rows = [self.writer.sides(line.sides) for line in block.lines]
        notes = [self.tied(line.note) for line in block.lines]
        result = equations(rows, notes, room)
        return [
            self.strong(text.replace(TIED, " "), line.strong)
            for line, texts in zip(block.lines, result, strict=True)
            for text in texts
        ]

    def grid(self, rows: Sequence[list[str]], room: int) -> list[str]:
        head, *body = table(rows, room)
        return [*self.ruled(head), *(line for row in body for line in row)]

    def matrix(self, matrix: sections.Matrix, room: int) -> list[str]:
        """Return a matrix in blocks of columns; a large one entry by entry."""
        if len(matrix.rows) * len(matrix.columns) > _ENTRIES:
            return self.entries(matrix, room)
        cells = {key: self.writer.write(cell) for key, cell in matrix.cells.items()}
        lines: list[str] = []
        for head, *body in blocks(*self.writer.columns(matrix, cells), room):
            rows = [line for row in body for line in row]
            weighted = self.styled and head[-1].startswith("v ")
            lines += [""] * bool(lines) + self.ruled(head) + ([*map(of_cotangent, rows)] if weighted else rows)
        return lines

    def entries(self, matrix: sections.Matrix, room: int) -> list[str]:
        size = f"{len(matrix.rows)} × {len(matrix.columns)}; entries that are not listed are 0"
        write = self.writer.write
        rows = [
            [f"∂{write(matrix.rows[i])}/∂{write(matrix.columns[j]).removeprefix('∂/∂')}", write(cell)]
            for (i, j), cell in matrix.cells.items()
        ]
        return [size, *(line for lines in equations(rows, [""] * len(rows), room) for line in lines)]

    def code(self, code: sections.Code, room: int) -> list[str]:
        """Return a line of a program after its caption, or several lines below it."""
        lines, caption = list(map(visible, code.lines)), visible(code.caption)
        if code.whole:
            return lines
        if not code.caption:
            return [part for line in lines for part in program_line(line, room)]
        if len(lines) == 1 and len(caption) + len(lines[0]) + 2 <= room:
            return [f"{caption}: {lines[0]}"]
        return [f"{caption}:", *(_INDENT + part for line in lines for part in program_line(line, room - 2))]

    def painted(self, line: str, computed: bool) -> str:
        """Return a line with its colours; what is `computed` and not finite has a sign beside it, too."""
        if not self.styled:
            return line
        plain = unstyle(line)
        sign = " !" if computed and is_not_finite(plain) and cells(plain) + 2 <= self.width else ""
        return painted(line, v=self.weighs) + style(sign, bold=True) * bool(sign)

    def strong(self, text: str, wanted: bool = True) -> str:
        return painted(text, True, self.weighs) if self.styled and wanted else text

    def ruled(self, head: Sequence[str]) -> list[str]:
        """Return headings with a line below them; dim ones are hard to read on a dark background."""
        return [*head[:-1], style(head[-1], underline=True) if self.styled else head[-1]]


def _in_room(room: int, lines: Callable[[int], Sequence[str]]) -> Sequence[str]:
    """Return lines laid out so that they have the room even if an accent counts as a letter, as it does to `wc -m`."""
    result = lines(room)
    plain = list(map(unstyle, result))
    excess = max(map(len, plain), default=0) - room
    return lines(room - excess) if excess > 0 and max(map(cells, plain)) <= room else result
