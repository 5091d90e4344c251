"""CSV: a header, and a row a point, with the full precision of float64."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from gradcli.explain.protocol import Answer
from gradcli.graph.names import column_names


def lines(result: Answer) -> Iterator[str]:
    """Yield a header, and a row a point."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="")
    for k, row in enumerate(result.rows()):
        header = [
            name
            for names, array in row[: None if k == 0 else 0]
            for name in (column_names(names, array.shape) if isinstance(names, str) else names)
        ]
        cells = [_cell(result, value) for _, array in row for value in array.reshape(-1).tolist()]
        for line in [header, cells] if k == 0 else [cells]:
            writer.writerow(line)
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()


def _cell(result: Answer, value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if isinstance(value, int | float) else result.formula(value)
