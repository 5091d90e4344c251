"""JSON Lines: an object a point, with the full precision of float64."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from gradcli.explain.protocol import Answer
from gradcli.explain.style import PLAIN

_DIGITS = 6  # of a number in a note

Texts = dict[int, tuple[Any, str]]  # values, which are kept so that no other gets their identity, with their texts


def lines(result: Answer) -> Iterator[str]:
    """Yield a line an object; what is not finite is a string, as JSON has no name for it."""
    before: Texts = {}
    for values in result.objects():
        texts: Texts = {}
        yield _text(values, result.formula, before, texts)
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
