"""Results for programs: JSON lines and CSV, with the full precision of float64."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

from gradcli.graph.names import element_names
from gradcli.report.results import Array, BackwardPoint, BackwardResult, JacobianResult, Named, Shown


def _plain(result: Shown, array: Array) -> Any:
    """Return an array as a number, a formula, or nested lists of them; JSON has no NaN, so that is a string."""

    def plain(nested: Any) -> Any:
        if isinstance(nested, list):
            return [plain(e) for e in nested]
        if array.dtype == object:
            return result.formula(nested)
        if math.isfinite(nested):
            return nested
        return "NaN" if math.isnan(nested) else "Infinity" if nested > 0 else "-Infinity"

    return plain(array.tolist())


def _named(result: Shown, values: Named) -> dict[str, Any]:
    return {name: _plain(result, value) for name, value in values.items()}


def jacobian_json(result: JacobianResult) -> Iterator[str]:
    """Yield one JSON object a point; a single one without a point."""
    symbolic = result.symbolic
    assert symbolic is not None
    columns = range(len(symbolic.columns))
    formulas = {place: result.formula(entry) for place, entry in symbolic.entries.items()}
    common: dict[str, Any] = {
        "rows": symbolic.rows,
        "columns": symbolic.columns,
        "symbolic": [[formulas.get((i, j), "0") for j in columns] for i in range(len(symbolic.rows))],
    }
    if symbolic.where:
        common["where"] = {name: result.formula(e) for name, e in symbolic.where.items()}
    if not result.points:
        yield json.dumps(common)
    for p in result.points:
        value = {"at": _named(result, p.at), "value": _named(result, p.value), "jacobian": _plain(result, p.jacobian)}
        yield json.dumps(common | value)


def backward_json(result: BackwardResult) -> Iterator[str]:
    """Yield one JSON object a point; without a point, one whose gradients are formulas."""
    for point in result.points:
        found: dict[str, Any] = {}
        if result.numeric:
            found |= {"at": _named(result, point.at), "value": _named(result, point.value)}
        found["calls"] = [{"v": _named(result, c.v), "grad": _named(result, c.grad)} for c in point.calls]
        found["grad"] = _named(result, point.grad)
        if result.retained:
            found["retained"] = _named(result, point.retained)
        if result.steps:
            found["steps"] = _steps(result, point)
        if not result.numeric and result.symbolic is not None and result.symbolic.where:
            found["where"] = {name: result.formula(e) for name, e in result.symbolic.where.items()}
        yield json.dumps(found)


def _steps(result: Shown, point: BackwardPoint) -> dict[str, Any]:
    forward = []
    for s in point.forward:
        row: dict[str, Any] = {
            "node": s.node,
            "operation": s.operation,
            "arguments": s.arguments,
            "expression": s.expression,
            "shape": s.shape,
        }
        forward.append(row if s.value is None else row | {"value": _plain(result, s.value)})
    reverse = []
    for r in point.reverse:
        row = {"call": r.call, "node": r.node, "adjoint": _plain(result, r.adjoint), "passes_to": r.argument}
        row["rule"] = r.slope
        if r.slope_value is not None:
            row["local_derivative"] = _plain(result, r.slope_value)
        row |= {"contribution": _plain(result, r.contribution), "adjoint_so_far": _plain(result, r.total)}
        reverse.append(row)
    return {"forward": forward, "reverse": reverse}


def _cells(result: Shown, values: Named, suffix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the column and the cell of every element."""
    for name, array in values.items():
        for element, value in zip(element_names(name, array.shape), array.reshape(-1), strict=True):
            yield f"{element}{suffix}", result.formula(value) if array.dtype == object else _csv_number(float(value))


def _csv_number(value: float) -> str:
    return repr(value)


def _csv(rows: Iterator[list[tuple[str, str]]]) -> Iterator[str]:
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


def jacobian_csv(result: JacobianResult) -> Iterator[str]:
    """Yield a row a point: the point, the outputs, dy0/dx0, …; without a point, one row of formulas."""
    symbolic = result.symbolic
    assert symbolic is not None
    names = [f"d{r}/d{c}" for r in symbolic.rows for c in symbolic.columns]

    def rows() -> Iterator[list[tuple[str, str]]]:
        for p in result.points:
            numbers = [_csv_number(float(e)) for e in p.jacobian.reshape(-1)]
            yield [*_cells(result, p.at), *_cells(result, p.value), *zip(names, numbers, strict=True)]
        if not result.points:
            places = ((i, j) for i in range(len(symbolic.rows)) for j in range(len(symbolic.columns)))
            entries = [symbolic.entries.get(place) for place in places]
            yield [(n, "0" if e is None else result.formula(e)) for n, e in zip(names, entries, strict=True)]

    return _csv(rows())


def backward_csv(result: BackwardResult) -> Iterator[str]:
    """Yield a row a point: the point, the outputs, x0.grad, …; without a point, one row of formulas."""
    return _csv(
        [
            *_cells(result, p.at),
            *_cells(result, p.value),
            *_cells(result, p.grad, ".grad"),
            *_cells(result, p.retained, ".grad"),
        ]
        for p in result.points
    )
