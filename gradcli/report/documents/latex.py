"""A page as LaTeX: a fragment for a document with amsmath, or a complete document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from gradcli.pages import sections
from gradcli.pages.results import PLAIN
from gradcli.report.images import colours, reduced
from gradcli.report.latex_layout import HEIGHT, WIDTH, height, paged, pieces, sized, table, width
from gradcli.report.latex_letters import letter
from gradcli.report.latex_math import LatexWriter, code, escaped
from gradcli.text.wrapping import program_line, visible

_COLUMNS = 6  # of a matrix that is written as one
_LETTERS = 65  # of typewriter type in the text width of an article
_CELLS = 400  # of a matrix that is shown as one
_COLOUR = r"\color[RGB]"  # of the package xcolor
_PIXELS = 32  # of a side of an image
_SIDE = 96  # points of the longer side
_BESIDE = 3  # images in a row
_DIGITS = 3  # of the ends of a scale


def render(page: sections.Page, digits: int | None) -> str:
    """Return a page as LaTeX; `digits` significant ones of each number."""
    writer = LatexWriter(page.style, digits)
    parts: list[str] = []
    for section in page.sections:
        parts += [rf"\paragraph{{{paragraph(section.title, writer)}}}"] if section.title else []
        parts += [_block(block, writer) for block in section.blocks]
    return "\n".join(parts) + "\n"


PICTURE = "tikz"
_TIKZ = r"\IfFileExists{tikz.sty}{\usepackage{tikz}}{}"  # which a small installation of TeX does not have
_FITTED = (  # no wider than a line, and with a title no higher than a page
    r"\ifdefined\tikzpicture",
    r"\resizebox{!}{\ifdim\height>0.85\textheight 0.85\textheight\else\height\fi}{%",
    r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
)


def headed(title: Sequence[sections.Math], picture: str) -> str:
    """Return the head of a document: its title, and a picture of TikZ, if there is one."""
    lines = [rf"\section*{{{paragraph(title, LatexWriter(PLAIN, None))}}}"]
    if picture:
        lines += [*_FITTED, f"{picture.rstrip()}}}}}", r"\else The picture needs the package \texttt{tikz}.\fi"]
    return "\n".join([*lines, "", ""])


def document(pages: str) -> str:
    """Return pages as a complete document for pdflatex, xelatex and lualatex."""
    lines = [r"\documentclass{article}", r"\usepackage[margin=2.5cm]{geometry}", r"\usepackage{amsmath}"]
    lines += [r"\setlength{\parindent}{0pt}", r"\setlength{\parskip}{6pt}", r"\allowdisplaybreaks"]
    lines += [r"\usepackage{xcolor}"] * (_COLOUR in pages)
    lines += [_TIKZ] * (r"\begin{tikzpicture}" in pages)
    # pdflatex knows few letters beyond ASCII by themselves.
    foreign = sorted({c for c in pages if not c.isascii()})
    if foreign:
        declared = [rf"\DeclareUnicodeCharacter{{{ord(c):04X}}}{{{letter(c)}}}" for c in foreign]
        lines += [r"\ifdefined\DeclareUnicodeCharacter", *declared, r"\fi"]
    stretch = r"\raggedright"  # formulas among words are long words
    return "\n".join([*lines, stretch, r"\begin{document}", pages.rstrip("\n"), r"\end{document}", ""])


def _block(block: sections.Block, writer: LatexWriter) -> str:
    match block:
        case sections.Text(parts):
            return paragraph(parts, writer) + "\n"
        case sections.Equations(lines):
            shown = equations(lines, writer, HEIGHT)
            return "\n".join(sized(f"\\begin{{align*}}\n{body}\n\\end{{align*}}", width(body)) for body in shown)
        case sections.Matrix():
            return "\n".join(sized(f"\\[\n{part}\n\\]", width(part)) for part in matrices(block, writer))
        case sections.Grid(header, rows):
            return "\n".join(_grid([[writer.write(cell) for cell in row] for row in (header, *rows)]))
        case sections.Code():
            caption = f"{escaped(block.caption)}:\n" if block.caption else ""
            program = block.lines if block.whole else [p for n in block.lines for p in program_line(n, _LETTERS)]
            return caption + verbatim(program)
        case sections.Images(panels):
            return "\n".join(_pictures(panels, writer))


def verbatim(lines: Sequence[str]) -> str:
    """Return lines verbatim, so that they cannot end their environment."""
    shown = [visible(line).replace(r"\end{verbatim}", r"\end {verbatim}") for line in lines]
    return "\n".join([r"\begin{verbatim}", *shown, r"\end{verbatim}"])


def paragraph(parts: Sequence[sections.Math], writer: LatexWriter) -> str:
    """Return words with mathematics between them."""
    return "".join(_inline(part, writer) for part in parts)


def _inline(part: sections.Math, writer: LatexWriter) -> str:
    if isinstance(part, str):
        return escaped(part)
    if isinstance(part, sections.Typed):
        return code(part.text)
    if isinstance(part, sections.Formula) and isinstance(part.math, str):  # of a user's, to be broken like words
        return re.sub(r"(\*\*|[*+(=])", r"\1\\allowbreak{}", rf"\texttt{{{escaped(part.text)}}}")
    return f"${writer.write(part)}$"


# What Markdown uses as well


def equations(lines: Sequence[sections.Line], writer: LatexWriter, most: float = math.inf) -> list[str]:
    """Return equations below each other, aligned at their first signs; parts of at most so many lines."""
    written = [list(_equation(line, writer)) for line in lines]
    return [" \\\\\n".join(chain.from_iterable(part)) for part in paged(written, _lines, most)]


def _lines(rows: Sequence[str]) -> int:
    return sum(map(height, rows))


def _equation(line: sections.Line, writer: LatexWriter) -> Iterator[str]:
    """Yield the rows of an equation, and what is said of it, behind it or below."""
    left, *right = writer.sides(line.sides)
    first, *others = pieces(" = ".join(right), WIDTH - width(left))
    rows = [f"{left} &= {first}", *(f"&{row}" if row.startswith("=") else rf"&\quad {row}" for row in others)]
    if line.note:
        note = rf"\qquad \text{{{paragraph(line.note, writer)}}}"
        if width(rows[-1] + note) <= WIDTH:
            rows[-1] += f" {note}"
        else:
            rows.append(f"&{note}")
    yield from rows


def matrices(matrix: sections.Matrix, writer: LatexWriter) -> list[str]:
    """Return a matrix with headings, in blocks of columns; a large one, or one of long entries, entry by entry."""
    cells = {key: writer.write(cell) for key, cell in matrix.cells.items()}
    if len(matrix.rows) * len(matrix.columns) > _CELLS or any(width(cell) > WIDTH - 10 for cell in cells.values()):
        return _entries(matrix, cells, writer)
    lead, columns = writer.columns(matrix, cells)
    blocks = _blocks(columns, WIDTH - sum(max(map(width, column)) + 2 for column in lead))
    return [_ruled(list(zip(*lead, *block, strict=True)), len(lead), bool(matrix.total)) for block in blocks]


def _blocks(columns: Sequence[list[str]], room: float) -> Iterator[list[list[str]]]:
    """Yield the columns side by side."""
    block: list[list[str]] = []
    used = 0.0
    for column in columns:
        size = max(map(width, column)) + 2
        if block and (len(block) == _COLUMNS or used + size > room):
            yield block
            block, used = [], 0.0
        block.append(column)
        used += size
    yield block


def _ruled(rows: Sequence[Sequence[str]], lead: int, total: bool) -> str:
    """Return an array with a rule below its first row and one behind its first `lead` columns.

    With a `total`, its last row has a rule above it.  Rows without entries are left out.
    """
    head, *body = (" & ".join(row) for row in rows if any(row[lead:]))
    last = body.pop() if total else ""
    return table("c" * (lead - 1) + "c|" + "c" * (len(rows[0]) - lead), head, body, last)


def _entries(matrix: sections.Matrix, cells: dict[tuple[int, int], str], writer: LatexWriter) -> list[str]:
    """Return the entries that are not 0, an equation each, in displays of at most a page."""
    written = []
    for (i, j), cell in cells.items():
        if cell in ("", "0"):
            continue
        head = _entry(matrix.rows[i], matrix.columns[j], writer)
        first, *others = pieces(cell, WIDTH - width(head))
        written.append([f"{head} &= {first}", *(rf"&\quad {row}" for row in others)])
    bodies = (" \\\\\n".join(chain.from_iterable(part)) for part in paged(written, _lines))
    return [f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}" for body in bodies]


def _entry(row: sections.Math, column: sections.Math, writer: LatexWriter) -> str:
    """Return the name of an entry: ∂y/∂x of an output and an operator; of two operators, as a Hessian has, both."""
    if isinstance(row, sections.Name) and isinstance(column, sections.Partial):
        return writer.write(sections.Partial(row.name, column.by))
    return f"{writer.write(row)} {writer.write(column)}"


def _grid(table_rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table, headings first; a long one in parts, so that it goes over several pages."""
    header, *rows = table_rows
    head = " & ".join(header)
    shares = _shares(rows)
    broken = [list(map(_cell, row, shares)) for row in rows]
    for part in paged(broken, lambda row: max(map(height, row))):
        text = table("l" * len(header), head, [" & ".join(row) for row in part])
        yield sized(f"\\[\n{text}\n\\]", sum(max(map(width, column)) + 2 for column in zip(*part, strict=True)))


def _shares(rows: Sequence[Sequence[str]]) -> list[float]:
    """Return how wide each column may be: what is narrow keeps its width, the others share what is left."""
    widths = [max(map(width, column)) + 2 for column in zip(*rows, strict=True)]
    narrow = [w for w in widths if w <= WIDTH / len(widths)]
    wide = sum(w for w in widths if w > WIDTH / len(widths))
    left = WIDTH - sum(narrow)
    return [w if w <= WIDTH / len(widths) or wide <= left else left * w / wide for w in widths]


def _cell(cell: str, room: float) -> str:
    """Return a cell, one that is too wide on several lines."""
    rows = pieces(cell, room)
    if len(rows) == 1:
        return cell
    body = r" \\ ".join([rows[0], *(rf"\quad {row}" for row in rows[1:])])
    return rf"\begin{{array}}[t]{{@{{}}l@{{}}}} {body} \end{{array}}"


# Images


def _pictures(panels: Sequence[sections.Panel], writer: LatexWriter) -> Iterator[str]:
    """Yield rows of images beside each other, each with its title above it and its scale below."""
    scales = LatexWriter(writer.style, _DIGITS)
    for row in range(0, len(panels), _BESIDE):
        some = panels[row : row + _BESIDE]
        yield rf"\[\begin{{array}}{{{'c' * len(some)}}}"
        yield " & ".join(writer.write(sections.Words(panel.title)) for panel in some) + r" \\"
        yield " &\n".join(_picture(reduced(panel, _PIXELS, _PIXELS)) for panel in some) + r" \\"
        yield " & ".join(_scale(panel, scales) for panel in some)
        yield r"\end{array}\]"


def _scale(panel: sections.Panel, writer: LatexWriter) -> str:
    low, high = (writer.write(sections.Value.of(end)) for end in panel.limits)
    if panel.signed:
        return rf"{low}\text{{ (blue) to }}{high}\text{{ (red)}}"
    return rf"{low}\text{{ (black) to }}{high}\text{{ (white)}}"


def _picture(panel: sections.Panel) -> str:
    """Return an image as a `picture` in which each run of pixels of one colour is a rule.

    Rules overlap a little, or some readers of PDF show lines between them.
    """
    pixels = colours(panel)
    height, width, _ = pixels.shape
    unit = _SIDE / max(height, width)
    lines = [rf"\setlength{{\unitlength}}{{{unit:.4g}pt}}\begin{{picture}}({width},{height})"]
    for k, row in enumerate(pixels.tolist()):
        column = 0
        for (red, green, blue), run in groupby(map(tuple, row)):
            count = len([*run])
            rule = rf"\rule{{{count * unit + 0.1:.4g}pt}}{{{unit + 0.1:.4g}pt}}"
            lines.append(rf"\put({column},{height - 1 - k}){{{_COLOUR}{{{red},{green},{blue}}}{rule}}}")
            column += count
    return "\n".join([*lines, r"\end{picture}"])
