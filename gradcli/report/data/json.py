"""JSON Lines: an object a point, with the full precision of float64."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, repeat
from typing import Any

import numpy as np

from gradcli.graph.array import Array
from gradcli.pages.results import PLAIN, Answer

_DIGITS = 6  # of a number in a note


def lines(result: Answer) -> Iterator[str]:
    """Yield a line for each object; numbers that are not finite are strings, since JSON has none."""
    formula = cache(result.formula)  # all lines have the same formulas
    return (json.dumps(plain(values, formula)) for values in result.objects())


def pieces(result: Answer) -> list[str | Array]:
    """Return the lines of a block of points: text that is the same on all of them, and columns between.

    Columns are finite numbers, or texts of dtype object.
    """
    (values,) = result.objects()
    columns: dict[int, list[str | Array]] = {}  # of each array: gradients are in a line twice
    merged: list[str | Array] = [""]
    for piece in _pieces(values, result.formula, columns):
        if isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def lines_of(pieces: Sequence[str | Array]) -> str:
    """Return the lines that have these pieces one behind the other; without a column there is one line.

    >>> print(lines_of(["x = ", np.array([1.0, 1e-05]), ";"]))
    x = 1.0;
    x = 1e-05;
    """
    columns = {id(p): p if p.dtype == object else [*map(repr, p.tolist())] for p in pieces if not isinstance(p, str)}
    line = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for p in pieces)
    rows = zip(*(columns[id(p)] for p in pieces if not isinstance(p, str)), strict=True) if columns else [()]
    return "\n".join(map(line.__mod__, rows))


def _pieces(value: Any, formula: Callable[[Any], str], columns: dict[int, list[str | Array]]) -> Iterator[str | Array]:
    """Yield the pieces of a value, whose arrays have an added last axis: of 1 where all points have the same."""
    if isinstance(value, dict) and value:
        for opening, (name, inner) in zip(chain("{", repeat(", ")), value.items(), strict=False):
            yield f"{opening}{_quoted(name)}: "
            yield from _pieces(inner, formula, columns)
        yield "}"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for opening, inner in zip(chain("[", repeat(", ")), value, strict=False):
            yield opening
            yield from _pieces(inner, formula, columns)
        yield "]"
    elif isinstance(value, np.ndarray) and value.shape[-1] > 1:
        if id(value) not in columns:
            columns[id(value)] = list(_nested(value))
        yield from columns[id(value)]
    else:
        yield _encoded(value[..., 0] if isinstance(value, np.ndarray) else value, formula)


def _nested(array: Array) -> Iterator[str | Array]:
    """Yield the pieces of an array of each point: its elements, in nested lists."""
    if array.ndim == 1:
        finite = array.dtype == float and np.isfinite(array).all()
        yield array if finite else np.array([json.dumps(plain(v)) for v in array.tolist()], dtype=object)
        return
    yield "["
    for k, part in enumerate(array):
        yield ", " * (k > 0)
        yield from _nested(part)
    yield "]"


_quoted = lru_cache(maxsize=1024)(json.dumps)


def _encoded(value: Any, formula: Callable[[Any], str]) -> str:
    """Return a value in JSON; finite float64 numbers are written there as Python writes them."""
    if isinstance(value, np.ndarray) and value.dtype == float and np.isfinite(value).all():
        return repr(value.tolist())
    return json.dumps(plain(value, formula))


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
