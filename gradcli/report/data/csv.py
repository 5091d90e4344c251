"""CSV: a header, and a row a point, with the full precision of float64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from gradcli.data.csv.cells import line
from gradcli.graph.names import column_names
from gradcli.pages.results import Answer


def lines(result: Answer) -> Iterator[str]:
    """Yield a header, and a row a point."""
    for k, row in enumerate(result.rows()):
        if k == 0:
            names = (column_names(n, array.shape) if isinstance(n, str) else n for n, array in row)
            yield line(chain.from_iterable(names))
        yield line(_cell(result, value) for _, array in row for value in array.reshape(-1).tolist())


def _cell(result: Answer, value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if isinstance(value, int | float) else result.formula(value)
