"""Results for a reader at a terminal: the system with its values, J, v, and the arithmetic that leads to vᵀJ."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradcli.explain.results import Array, BackwardPoint, BackwardResult, JacobianResult, Named, Shown
from gradcli.explain.steps import forward_steps, reverse_steps
from gradcli.explain.trace import Trace
from gradcli.graph.names import element_names
from gradcli.notation.numbers import number_text
from gradcli.report.words import (
    accumulation,
    arithmetic,
    element_text,
    forward_table,
    loss,
    outputs_line,
    point_text,
    pytorch,
    reverse_table,
)

_WIDE = 1_000_000  # no line is wrapped by rich: a number cut in two is no number
_COLUMNS = 100  # a grid wider than this is listed cell by cell; on a terminal, its width
_GAP = 3
_STATEMENTS = 60
_CALLS = 40


def _fold(title: str) -> str:
    """Return a title on two lines, broken at its first space."""
    return title.replace(" ", "\n", 1)


class Page:
    """Text in sections, each a heading with lines or a grid below it."""

    def __init__(self) -> None:
        self.console = Console(width=_WIDE, highlight=False, markup=False, emoji=False)
        self.columns = min(_COLUMNS, shutil.get_terminal_size().columns) if self.console.is_terminal else _COLUMNS
        self.parts: list[str] = []

    def heading(self, text: str) -> None:
        """Start a section, after an empty line unless it is the first."""
        if self.parts:
            self.parts.append("")
        self.parts.append(self._rendered(Text(text, style="bold")))

    def line(self, text: str) -> None:
        """Add an indented line."""
        self.parts.append(f"  {text}".rstrip())

    def grid(self, rows: Iterable[Sequence[str]], header: Sequence[str] | None = None, gap: int = _GAP) -> None:
        """Add lines whose columns are aligned, with a gap between them."""
        table = Table(
            box=None, show_header=header is not None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim"
        )
        rows = list(rows)
        for title in header or [""] * max((len(r) for r in rows), default=1):
            table.add_column(Text(title), no_wrap=True)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.parts += [f"  {line}" for line in self._rendered(table).split("\n")]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a grid; a wide one with its titles on two lines, or else each row as a small list of its cells."""
        folded = [_fold(title) for title in header]
        if self.fits([header, *rows]):
            self.grid(rows, header)
        elif self.fits([folded, *rows], gap=2):
            self.grid(rows, folded, gap=2)
        else:
            for k, row in enumerate(rows):
                if k:
                    self.parts.append("")
                self.grid((title, cell) for title, cell in zip(header, row, strict=True) if cell)

    def fits(self, rows: Sequence[Sequence[str]], gap: int = _GAP) -> bool:
        """Tell whether a grid is narrow enough, with its indent."""
        widths = [max(cell_len(line) for row in rows for line in row[k].split("\n")) for k in range(len(rows[0]))]
        return sum(widths) + gap * (len(widths) - 1) + 2 <= self.columns

    def _rendered(self, item: Any) -> str:
        with self.console.capture() as capture:
            self.console.print(item, soft_wrap=True)
        return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))

    def __str__(self) -> str:
        return "\n".join(self.parts) + "\n"


def jacobian(result: JacobianResult) -> str:
    """Return the Jacobian as text: formulas, and at each point its value."""
    page = Page()
    for k, point in enumerate(result.points or (None,)):
        if k == 0 or point is None:
            _system(page, result, None if point is None else point.at, {} if point is None else point.value)
        else:
            page.heading(f"at {point_text(point.at)}")
            for name, value in point.value.items():
                page.line(f"{name} = {element_text(value, result)}")
        _matrix(page, result, None if point is None else point.jacobian)
    _where(page, result)
    return str(page)


def backward(result: BackwardResult) -> str:
    """Return the gradients as text, with the arithmetic that leads to them."""
    page = Page()
    for point in result.points:
        _system(page, result, point.at if result.numeric else None, {**point.intermediates, **point.value})
        if result.symbolic is not None:
            _matrix(page, result, point.jacobian)
            _where(page, result)
        else:
            _too_large(page, result)
        _calls(page, result, point)
        if point.trace is not None:
            _steps(page, result, point, point.trace)
        _gradients(page, result, point)
    return str(page)


def _system(page: Page, result: Shown, at: Named | None, values: Named) -> None:
    page.heading("system" if at is None else f"system at {point_text(at)}")
    statements = result.statements
    rows = []
    for name, text in statements[:_STATEMENTS]:
        value = f"= {element_text(values[name], result)}" if name in values else ""
        rows.append((f"{name} = {text}", value))
    page.grid(rows)
    if len(statements) > _STATEMENTS:
        page.line(f"… and {len(statements) - _STATEMENTS:,} statements more")


def _matrix(page: Page, result: Shown, matrix: Array | None) -> None:
    """Show each entry of J with its formula and number: as a grid where it fits, entry by entry where not."""
    symbolic = result.symbolic
    assert symbolic is not None
    page.heading("Jacobian  J[i, j] = ∂y_i/∂x_j")
    cells = {place: result.formula(entry) for place, entry in symbolic.entries.items()}
    if matrix is not None:
        numbers = {(int(i), int(j)): number_text(matrix[i, j]) for i, j in np.argwhere(matrix != 0)}
        cells = {p: _with_number(text, numbers.get(p, "0")) for p, text in cells.items()}
        cancelled = {p: _with_number("0", number) for p, number in numbers.items() if p not in cells}
        cells = dict(sorted((cells | cancelled).items()))  # where terms cancel in the formula, numbers may not
    shape = (len(symbolic.rows), len(symbolic.columns))
    grid = [["", *(f"∂/∂{c}" for c in symbolic.columns)]]
    if shape[0] * shape[1] <= 200:
        grid += [[name, *(cells.get((i, j), "0") for j in range(shape[1]))] for i, name in enumerate(symbolic.rows)]
    if len(grid) > 1 and page.fits(grid):
        page.grid(grid[1:], grid[0])
        return
    zeros = len(cells) < shape[0] * shape[1]
    page.line(f"{shape[0]} × {shape[1]}" + ("; entries that are not listed are 0" if zeros else ""))
    page.grid((f"∂{symbolic.rows[i]}/∂{symbolic.columns[j]}", f"= {text}") for (i, j), text in cells.items())


def _with_number(formula: str, number: str) -> str:
    # A formula that leaves the real numbers is written nan; the number says more.
    return number if formula in (number, "nan") else f"{formula} = {number}"


def _where(page: Page, result: Shown) -> None:
    if result.symbolic is not None and result.symbolic.where:
        page.heading("where")
        page.grid((name, f"= {result.formula(e)}") for name, e in result.symbolic.where.items())


def _too_large(page: Page, result: BackwardResult) -> None:
    rows = sum(y.size for y in result.graph.outputs.values())
    columns = sum(n.size for n in result.leaves.values())
    page.heading(f"Jacobian  {rows:,} × {columns:,}")
    page.line("too large to show here: `gradcli jacobian -f csv` writes it, vᵀJ does not need it")


def _calls(page: Page, result: BackwardResult, point: BackwardPoint) -> None:
    outputs = result.graph.outputs
    if len(point.calls) == 1:
        v = point.calls[0].v
        page.heading(f"v = {outputs_line(outputs, v)}")
        if sum(y.size for y in outputs.values()) > 1:
            page.line(
                "one weight for each of " + _listed([e for n, y in outputs.items() for e in element_names(n, y.shape)])
            )
        if result.symbolic is not None:
            page.heading("grad = vᵀJ")
            for text in arithmetic(result, point):
                page.line(text)
    else:
        _accumulation(page, result, point)
    page.heading("the same in other words")
    for label, lines in (("gradient of", loss(outputs, point.calls)), ("PyTorch", pytorch(outputs, point.calls))):
        first, *rest = lines
        page.line(f"{label:<12} {first}")
        for line in rest:
            page.line(f"{'':<12} {line}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")


def _accumulation(page: Page, result: BackwardResult, point: BackwardPoint) -> None:
    """Show the running sum in .grad: one row for each call."""
    page.heading(f"{len(point.calls):,} calls of backward: gradients accumulate in .grad")
    header, rows = accumulation(result, point)
    if len(rows) > _CALLS:
        rows = [*rows[: _CALLS - 1], ["…"] + [""] * (len(header) - 1), rows[-1]]
    page.grid(rows, header)


def _gradients(page: Page, result: BackwardResult, point: BackwardPoint) -> None:
    """End with the result itself, where a reader's eye falls."""
    page.parts.append("")
    for name, grad in point.grad.items():
        page.parts.append(f"{name}.grad = {element_text(grad, result)}")
    for name, grad in point.retained.items():
        page.parts.append(f"{name}.grad = {element_text(grad, result)}   (retained)")


def _steps(page: Page, result: BackwardResult, point: BackwardPoint, trace: Trace) -> None:
    page.heading("forward")
    page.table(*forward_table(result, forward_steps(trace)))
    for k in range(len(trace.calls)):
        v = outputs_line(result.graph.outputs, point.calls[k].v)
        page.heading("reverse" if len(point.calls) == 1 else f"reverse, call {k + 1}: v = {v}")
        page.table(*reverse_table(result, reverse_steps(trace, k)))
