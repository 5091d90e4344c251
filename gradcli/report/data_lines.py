"""Results as data: JSON Lines, an object a point, and CSV, a row a point, with the full precision of float64."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from gradcli.explain.results import PLAIN, Array, Row
from gradcli.graph.names import column_names

_DIGITS = 6  # of a number in a note

Texts = dict[int, tuple[Any, str]]  # values, which are kept so that no other gets their identity, with their texts


class Data(Protocol):
    """A result that says itself what each format is to show."""

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""

    def objects(self) -> Iterable[Mapping[str, Any]]:
        """Return an object for each line of JSON."""

    def rows(self) -> Iterable[Row]:
        """Return the arrays of each row of CSV, with the names that their elements' columns begin with, or have."""


def json_lines(result: Data) -> Iterator[str]:
    """Yield a line an object; what is not finite is a string, as JSON has no name for it."""
    before: Texts = {}
    for found in result.objects():
        texts: Texts = {}
        yield _text(found, result.formula, before, texts)
        before = texts


def _text(value: Any, formula: Callable[[Any], str], before: Texts, texts: Texts) -> str:
    """Return a value in JSON; formulas, and inputs that do not vary, are the same objects as in the line before."""
    if isinstance(value, dict):
        inner = [f"{_quoted(name)}: {_text(v, formula, before, texts)}" for name, v in value.items()]
        return "{" + ", ".join(inner) + "}"
    texts[id(value)] = before.get(id(value)) or (value, _encoded(value, formula))
    return texts[id(value)][1]


_quoted = lru_cache(maxsize=1024)(json.dumps)


def _encoded(value: Any, formula: Callable[[Any], str]) -> str:
    """Return a value in JSON; finite float64 numbers are written there as Python writes them."""
    if isinstance(value, np.ndarray) and value.dtype == float and np.isfinite(value).all():
        return repr(value.tolist())
    return json.dumps(plain(value, formula))


def plain(value: Any, formula: Callable[[Any], str] = str) -> Any:
    """Return arrays, and what they stand in, as JSON has them."""
    if isinstance(value, np.ndarray):
        whole = value.shape and value.dtype == float and np.isfinite(value).all()
        value = value.tolist()
        if whole:
            return value
    if isinstance(value, dict):
        return {name: plain(inner, formula) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, formula) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, str | int | float) else _written(value, formula)


def _written(value: Any, formula: Callable[[Any], str]) -> str:
    """Return a note, or a formula, as text; most results have none of both."""
    from gradcli.explain.sections import Text, Words

    if not isinstance(value, Text):
        return formula(value)
    from gradcli.report.text_math import TextWriter

    return TextWriter(PLAIN, _DIGITS).write(Words(value.parts))


def csv_lines(result: Data) -> Iterator[str]:
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


def _cell(result: Data, value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if isinstance(value, int | float) else result.formula(value)


def data_lines(result: Data, style: str) -> Iterator[str]:
    """Return the lines of a result as `json` or `csv`."""
    return json_lines(result) if style == "json" else csv_lines(result)


def row_of(cells: Row) -> dict[str, Array]:
    """Return the arrays of a row by their names; where elements have names of their own, each by its own."""
    result: dict[str, Array] = {}
    for names, array in cells:
        result |= {names: array} if isinstance(names, str) else dict(zip(names, array.reshape(-1), strict=True))
    return result
