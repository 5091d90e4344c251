"""JSON Lines: an object a point, with the full precision of float64."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.graph.array import Array
from gradcli.pages.results import PLAIN, Answer

_DIGITS = 6  # of a number in a note


def lines(result: Answer) -> Iterator[str]:
    """Yield a line for each object; numbers that are not finite are strings, since JSON has none."""
    formula = cache(result.formula)  # all lines have the same formulas
    return (json.dumps(plain(values, formula)) for values in result.objects())


def block_lines(result: Answer) -> tuple[str, int]:
    """Return the lines of a block of points, and how many pieces a line has: what is the same on all, and what varies.

    Arrays have an added last axis for the points: of 1 where all points have the same.
    """
    columns: list[Sequence[str]] = []
    marks: dict[int, Any] = {}  # of each array, the places of its columns: gradients are in a line twice

    def marked(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.shape[-1] == 1:
            return plain(value[..., 0] if isinstance(value, np.ndarray) else value, result.formula)
        if id(value) not in marks:
            elements = value.reshape(-1, value.shape[-1])
            places = [f"\0{k}" for k in range(len(columns), len(columns) + len(elements))]
            marks[id(value)] = np.array(places, dtype=object).reshape(value.shape[:-1]).tolist()
            columns.extend(map(_texts, elements))
        return marks[id(value)]

    (values,) = result.objects()
    parts = re.split(r'"\\u0000(\d+)"', json.dumps(values, default=marked))
    line = "%s".join(text.replace("%", "%%") for text in parts[::2])
    rows = zip(*(columns[int(k)] for k in parts[1::2]), strict=True) if columns else [()]
    return "\n".join(map(line.__mod__, rows)), len(parts)


def _texts(column: Array) -> Sequence[str]:
    """Return numbers, or texts that were copied, as JSON has them."""
    finite = column.dtype == float and np.isfinite(column).all()
    return [*(map(repr, column.tolist()) if finite else map(json.dumps, plain(column)))]


def plain(value: Any, formula: Callable[[Any], str] = str) -> Any:
    """Return arrays, and containers of arrays, as JSON values."""
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
    from gradcli.pages.sections import Text, Words

    if not isinstance(value, Text):
        return formula(value)
    from gradcli.report.text_math import TextWriter

    return TextWriter(PLAIN, _DIGITS).write(Words(value.parts))
