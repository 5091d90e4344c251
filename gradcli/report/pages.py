"""A page of headings, lines and grids in each format; JSON and CSV are written from the data itself."""

from __future__ import annotations

import json
import math
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gradcli.explain.page import Grid, Heading, Lines, Section
from gradcli.explain.results import Array
from gradcli.graph.names import element_names

_GAP = 3
_JOIN = "\0"  # after a heading, which stands close to what it is the title of


class Data(Protocol):
    """A result that says itself what each format is to show."""

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""

    def objects(self) -> Iterable[Mapping[str, Any]]:
        """Return an object for each line of JSON."""

    def rows(self) -> Iterable[Sequence[tuple[str, Array]]]:
        """Return the arrays of each row of CSV, with the names that their elements' columns begin with."""

    def page(self) -> Sequence[Section]:
        """Return what a reader sees."""


# Data


def json_lines(result: Data) -> Iterator[str]:
    """Yield a line an object; what is not finite is a string, as JSON has no name for it."""
    for found in result.objects():
        yield json.dumps(_plain(result, found))


def _plain(result: Data, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(result, inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(result, value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(result, inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, str | int | float) else result.formula(value)


def csv_lines(result: Data) -> Iterator[str]:
    """Yield a header, and a row a point."""
    import csv
    import io

    for k, row in enumerate(result.rows()):
        cells = [
            (column(name, element), result.formula(value) if array.dtype == object else repr(float(value)))
            for name, array in row
            for element, value in zip(element_names("", array.shape), array.reshape(-1), strict=True)
        ]
        for line in ([name for name, _ in cells],) * (k == 0) + ([cell for _, cell in cells],):
            buffer = io.StringIO()
            csv.writer(buffer, lineterminator="").writerow(line)
            yield buffer.getvalue()


def column(name: str, element: str) -> str:
    """Return the column of an array's element: the index stands behind the variable, what it is of it behind that.

    >>> column("x.jvp", "[0]"), column("x", ""), column("x", "[0]")
    ('x[0].jvp', 'x', 'x[0]')
    """
    stem, point, kind = name.partition(".")
    return f"{stem}{element}{point}{kind}"


# Pages


def table(result: Data) -> str:
    """Return the page as text, no wider than the terminal: a grid that is wider has its rows as lists of cells."""
    width = shutil.get_terminal_size().columns
    parts = []
    for section in result.page():
        if isinstance(section, Heading):
            parts.append("\n".join(textwrap.wrap(section.text, width)) + _JOIN)
        elif isinstance(section, Lines):
            parts.append("\n".join(_wrapped(line, width) for line in section.lines))
        else:
            parts.append("\n".join(_grid(section, width)))
    return "\n\n".join(filter(None, parts)).replace(_JOIN + "\n\n", "\n").replace(_JOIN, "") + "\n"


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()))
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=indent + "  ", **options)) or line


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _grid(grid: Grid, width: int) -> list[str]:
    rows = [row for row in (grid.header, *grid.rows) if row]
    columns = max(map(len, rows), default=0)
    rows = [(*row, *[""] * (columns - len(row))) for row in rows]
    widths = [max(cells(row[k]) for row in rows) for k in range(columns)]
    used = [k for k in range(columns) if widths[k]]
    if sum(widths) + _GAP * (len(used) - 1) + 2 <= width:
        aligned = ((" " * _GAP).join(row[k] + " " * (widths[k] - cells(row[k])) for k in used) for row in rows)
        return [f"  {line}".rstrip() for line in aligned]
    if grid.narrow is not None:
        return _grid(Grid(grid.narrow), width) if grid.narrow else []
    return [_wrapped("  " + "   ".join(filter(None, row)), width) for row in (rows[1:] if grid.header else rows)]


def markdown(result: Data) -> str:
    """Return the page as GitHub's Markdown."""
    parts = []
    for section in result.page():
        if isinstance(section, Heading):
            parts.append(f"### {section.text[:1].upper()}{section.text[1:]}")
        elif isinstance(section, Lines):
            parts.append("\n".join(f"- {_code(line.strip())}" for line in section.lines))
        else:
            columns = max(map(len, (section.header, *section.rows)), default=0)
            rows = [section.header or ("",) * columns, ("---",) * columns, *section.rows]
            parts.append("\n".join(_marked(row, columns, k == 1) for k, row in enumerate(rows)))
    return "\n\n".join(parts) + "\n"


def _marked(row: Sequence[str], columns: int, rule: bool) -> str:
    padded = (*row, *[""] * (columns - len(row)))
    return "| " + " | ".join(cell if rule else _code(cell) for cell in padded) + " |"


def _code(text: str) -> str:
    return f"`{text.replace('|', '¦').replace('`', '')}`" if text else ""


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%", "#": r"\#",
    "$": r"\$", "~": r"\~{}", "∂": r"$\partial$", "·": r"$\cdot$", "ᵀ": r"$^{\top}$", "Σ": r"$\Sigma$",
    "×": r"$\times$", "≥": r"$\ge$", "≤": r"$\le$", "…": r"\dots{}", "∇": r"$\nabla$", "²": r"$^2$",
    "→": r"$\to$", "λ": r"$\lambda$",
}  # fmt: skip


_ACCENTS = {"\u0304": "bar", "\u0307": "dot"}


def latex(result: Data) -> str:
    """Return the page as LaTeX: paragraphs, and tables in typewriter."""
    parts = []
    for section in result.page():
        if isinstance(section, Heading):
            parts.append(rf"\paragraph{{{_latex(section.text)}}}")
        elif isinstance(section, Lines):
            parts.append("\n\n".join(rf"\texttt{{{_latex(line.strip())}}}" for line in section.lines))
        else:
            rows = [row for row in (section.header, *section.rows) if row]
            columns = max(map(len, rows), default=1)
            body = " \\\\\n".join(" & ".join(rf"\texttt{{{_latex(c)}}}" if c else "" for c in row) for row in rows)
            parts.append(f"\\begin{{tabular}}{{{'l' * columns}}}\n{body}\n\\end{{tabular}}")
    return "\n\n".join(parts) + "\n"


def _latex(text: str) -> str:
    """Return plain text as LaTeX; a letter with a dot or a bar above it is set in math."""
    text = unicodedata.normalize("NFD", text)
    accented = re.compile("(.)([\u0304\u0307])")
    written, end = "", 0
    for match in accented.finditer(text):
        written += "".join(_LATEX.get(c, c) for c in text[end : match.start()])
        written += rf"$\{_ACCENTS[match[2]]}{{{match[1]}}}$"
        end = match.end()
    return written + "".join(_LATEX.get(c, c) for c in text[end:])


def render(result: Data, style: str) -> str | Iterable[str]:
    """Return a result in a format."""
    writers = {"table": table, "json": json_lines, "csv": csv_lines, "latex": latex, "markdown": markdown}
    return writers[style](result)
