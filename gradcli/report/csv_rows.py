"""Results as CSV: a header, and a row a point, with the full precision of float64."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from gradcli.explain.results import BackwardResult, JacobianResult, Named, Shown
from gradcli.graph.names import element_names


def _cells(result: Shown, values: Named, suffix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the column and the cell of every element."""
    for name, array in values.items():
        for element, value in zip(element_names(name, array.shape), array.reshape(-1), strict=True):
            yield f"{element}{suffix}", result.formula(value) if array.dtype == object else repr(float(value))


def _where(result: Shown) -> Iterator[tuple[str, str]]:
    """Yield the definitions of the intermediates that formulas mention."""
    if result.symbolic is not None:
        yield from ((name, result.formula(e)) for name, e in result.symbolic.where.items())


def _lines(rows: Iterator[list[tuple[str, str]]]) -> Iterator[str]:
    """Yield the lines of a CSV file: the header of the first row, and all rows."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for k, row in enumerate(rows):
        if k == 0:
            writer.writerow([name for name, _ in row])
        writer.writerow([cell for _, cell in row])
        yield buffer.getvalue().rstrip("\n")
        buffer.seek(0)
        buffer.truncate()


def jacobian(result: JacobianResult) -> Iterator[str]:
    """Yield a row a point: the point, the outputs, dy0/dx0, …; without a point, one row of formulas."""
    symbolic = result.symbolic
    assert symbolic is not None
    names = [f"d{r}/d{c}" for r in symbolic.rows for c in symbolic.columns]

    def rows() -> Iterator[list[tuple[str, str]]]:
        for p in result.points:
            numbers = [repr(float(e)) for e in p.jacobian.reshape(-1)]
            yield [*_cells(result, p.at), *_cells(result, p.value), *zip(names, numbers, strict=True)]
        if not result.points:
            places = ((i, j) for i in range(len(symbolic.rows)) for j in range(len(symbolic.columns)))
            entries = [symbolic.entries.get(place) for place in places]
            formulas = ["0" if e is None else result.formula(e) for e in entries]
            yield [*zip(names, formulas, strict=True), *_where(result)]

    return _lines(rows())


def backward(result: BackwardResult) -> Iterator[str]:
    """Yield a row a point: the point, the outputs, x0.grad, …; without a point, one row of formulas."""
    return _lines(
        [
            *_cells(result, p.at),
            *_cells(result, p.value),
            *_cells(result, p.grad, ".grad"),
            *_cells(result, p.retained, ".grad"),
            *(() if result.numeric else _where(result)),
        ]
        for p in result.points
    )
