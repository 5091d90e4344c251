"""A page as LaTeX, without a preamble, to be pasted into a document that uses amsmath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.explain.sections import Block, Code, Equations, Grid, Line, Math, Matrix, Page, Section, Text
from gradcli.report.latex_math import LatexWriter, escaped

_COLUMNS = 6  # of a matrix that stands as one
_CELLS = 400  # of a matrix that is shown as one
_ROWS = 24  # of a table that stands on one page


def render(page: Page, digits: int | None) -> str:
    """Return a page as LaTeX; `digits` significant ones of each number."""
    writer = LatexWriter(page, digits)
    return "\n".join("\n".join(_section(section, writer)) for section in page.sections) + "\n"


def _section(section: Section, writer: LatexWriter) -> Iterator[str]:
    if section.title:
        yield rf"\paragraph{{{paragraph(section.title, writer)}}}"
    for block in section.blocks:
        yield _block(block, writer)


def _block(block: Block, writer: LatexWriter) -> str:
    match block:
        case Text(parts):
            return paragraph(parts, writer) + "\n"
        case Equations(lines):
            return f"\\begin{{align*}}\n{equations(lines, writer)}\n\\end{{align*}}"
        case Matrix():
            return "\n".join(f"\\[\n{part}\n\\]" for part in matrices(block, writer))
        case Grid(header, rows):
            return _grid(header, [[writer.write(cell) for cell in row] for row in rows])
        case Code():
            caption = f"{block.caption}:\n" if block.caption else ""
            return "\n".join([f"{caption}\\begin{{verbatim}}", *block.lines, r"\end{verbatim}"])


def paragraph(parts: Sequence[Math], writer: LatexWriter) -> str:
    """Return words with mathematics between them."""
    return "".join(escaped(part) if isinstance(part, str) else f"${writer.write(part)}$" for part in parts)


def equations(lines: Sequence[Line], writer: LatexWriter) -> str:
    """Return equations below each other, aligned at their first signs."""
    rows = []
    for line in lines:
        left, *right = writer.sides(line.sides)
        note = "".join(map(writer.write, line.note))
        rows.append(f"{left} &= {' = '.join(right)}" + (rf" \qquad {note}" if note else ""))
    return " \\\\\n".join(rows)


def matrices(matrix: Matrix, writer: LatexWriter) -> list[str]:
    """Return a matrix with headings, in blocks of columns; a large one entry by entry."""
    write = writer.write
    if len(matrix.rows) * len(matrix.columns) > _CELLS:
        return [_entries(matrix, writer)]
    found = []
    for start in range(0, max(1, len(matrix.columns)), _COLUMNS):
        columns = range(start, min(start + _COLUMNS, len(matrix.columns)))
        rows = [[matrix.name, *(write(matrix.columns[j]) for j in columns)]]
        rows += [
            [write(head), *(write(matrix.cells.get((i, j), "0")) for j in columns)]
            for i, head in enumerate(matrix.rows)
        ]
        if matrix.weights:
            rows = [[w, *row] for w, row in zip(["v", *map(write, matrix.weights)], rows, strict=True)]
        lead = 2 if matrix.weights else 1
        if matrix.total:
            rows.append([""] * (lead - 1) + [r"v^{\top} J", *(write(matrix.total[j]) for j in columns)])
        found.append(_headed(rows, lead, bool(matrix.total)))
    return found


def _headed(rows: Sequence[Sequence[str]], lead: int, total: bool) -> str:
    """Return an array with a line below its first row, behind its first columns, and above its last row."""
    head, *body = (" & ".join(row) for row in rows)
    last = [r"\hline " + body.pop()] if total else []
    form = "c" * (lead - 1) + "c|" + "c" * (len(rows[0]) - lead)
    return f"\\begin{{array}}{{{form}}}\n{head} \\\\ \\hline\n" + " \\\\\n".join([*body, *last]) + "\n\\end{array}"


def _entries(matrix: Matrix, writer: LatexWriter) -> str:
    rows = []
    for (i, j), cell in matrix.cells.items():
        operator = writer.write(matrix.columns[j])
        head = operator.replace(r"\partial }", rf"\partial {writer.write(matrix.rows[i])}}}", 1)
        rows.append(f"{head} &= {writer.write(cell)}")
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; a long one in parts, so that it goes over several pages."""
    parts = []
    for start in range(0, max(1, len(rows)), _ROWS):
        head = " & ".join(rf"\text{{{escaped(title)}}}" for title in header)
        body = " \\\\\n".join(" & ".join(row) for row in rows[start : start + _ROWS])
        parts.append(f"\\[\n\\begin{{array}}{{{'l' * len(header)}}}\n{head} \\\\ \\hline\n{body}\n\\end{{array}}\n\\]")
    return "\n".join(parts)
