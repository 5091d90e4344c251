"""What a page is made of, whatever format it is written in: headings, lines and grids, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.explain.results import Array, Named, Shown
from gradcli.notation.numbers import array_text

_DIGITS = 6
_ELEMENTS = 36  # of an array that is shown whole


@dataclass(frozen=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True)
class Lines:
    """Lines of text, each as it is."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Rows of cells, whose columns are aligned, under a header where there is one.

    Where it is wider than the page, the rows `narrow` take its place, if there are such.
    """

    rows: tuple[tuple[str, ...], ...]
    header: tuple[str, ...] = ()
    narrow: tuple[tuple[str, ...], ...] | None = None


Section = Heading | Lines | Grid


def lines(*text: str) -> Lines:
    """Return lines of text."""
    return Lines(text)


def short(value: float) -> str:
    """Return a number with six significant digits.

    >>> short(1 / 3), short(1e22), short(26.0), short(-0.0)
    ('0.333333', '1e+22', '26', '0')
    """
    text = f"{value:.{_DIGITS}g}"
    return "0" if text == "-0" else text


def array(value: Array, element: Callable[[Any], str] = short) -> str:
    """Return an array as a nested list, a large one as its shape."""
    if value.size > _ELEMENTS:
        return f"{'×'.join(map(str, value.shape))} numbers"
    return array_text(value, element)


def shown(value: Array, result: Shown) -> str:
    """Return an array of numbers or of formulas."""
    return array(value, result.formula if value.dtype == object else short)


def at_text(at: Named) -> str:
    """Return a point as it is typed, with spaces.

    >>> import numpy as np
    >>> at_text({"x": np.array([1.0, 2.0]), "a": np.array(0.5)})
    'x = [1, 2], a = 0.5'
    """
    return ", ".join(f"{name} = {array(value)}" for name, value in at.items())


def system(result: Shown, at: Named, value: Named) -> list[Section]:
    """Return the system: each statement, its value, and the point beside the first."""
    spans = result.graph.spans
    statements = [
        (name, " ".join(spans[n].text.split()) if n in spans else "…") for name, n in result.graph.names.items()
    ]
    first = f"at {at_text(at)}" if at else ""
    rows = [
        (f"{name} = {text}", f"= {array(value[name])}" if name in value else "", first if k == 0 else "")
        for k, (name, text) in enumerate(statements[:60])
    ]
    more = [lines(f"… and {len(statements) - 60:,} statements more")] if len(statements) > 60 else []
    return [Grid(tuple(rows)), *more]


def terms(factors: Sequence[tuple[str, str]]) -> str:
    """Return a sum of products, without those of a 0: `6·1 + 24·2`.

    >>> terms([("6", "1"), ("0", "2"), ("-2", "x + 1")])
    '6·1 + (-2)·(x + 1)'
    """
    some = [(a, b) for a, b in factors if "0" not in (a, b)] or list(factors[:1])
    text = " + ".join(f"{_factor(a, k > 0)}·{_factor(b)}" for k, (a, b) in enumerate(some[:12]))
    return text + " + …" * (len(some) > 12)


def _factor(text: str, later: bool = True) -> str:
    """Return a factor, in brackets if it is a sum or begins with a sign that stands behind another."""
    return f"({text})" if (later and text.startswith("-")) or " " in text else text
