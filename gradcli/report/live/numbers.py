"""Numbers and arrays as a live page shows them before its script runs, and as that reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.pages.results import Array

DIGITS = 6
GRID = 64  # entries of an array that has a field for each
DIGITS_SHOWN = 16  # entries of a result whose digits are shown: more are cells in colours
_INTEGERS = 10**15  # below which a number that is one is written as one


def shown(value: float) -> str:
    """Return a number with six significant digits, as the script of the page writes it, too.

    >>> shown(0.1 + 0.2), shown(-0.0), shown(float("-inf")), shown(1e-9)
    ('0.3', '0', '-inf', '1e-9')
    """
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    text = f"{value:.{DIGITS}g}"
    if "e" in text:
        stem, _, power = text.partition("e")
        return f"{stem}e{int(power)}"
    return "0" if float(text) == 0 else text


def exact(value: float) -> str:
    """Return a number with all its digits, as JavaScript reads it.

    >>> exact(0.1), exact(2.0), exact(float("nan")), exact(float("-inf"))
    ('0.1', '2', 'NaN', '-Infinity')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return repr(float(value)).removesuffix(".0")


def packed(array: Array) -> Any:
    """Return an array as JSON has it: flat, and what is not finite as a text."""
    flat = np.asarray(array, dtype=float).reshape(-1)
    return [_plain(v) for v in flat.tolist()]


def _plain(value: float) -> float | str:
    if not math.isfinite(value):
        return exact(value)
    whole = value == int(value) and abs(value) < _INTEGERS
    return int(value) if whole and (value or math.copysign(1, value) > 0) else value
