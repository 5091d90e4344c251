"""The left side of the screen: the fields with their numbers, and the plot against the one in focus."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from rich.text import Text

from gradcli.explore.state import COTANGENT, INPUT, RATE, Explorer, Field, unit_of
from gradcli.graph.array import Array
from gradcli.notation.numbers import number_text
from gradcli.text.wrapping import cells

_STEPS = 20  # to either side
_NUMBERS = 4_000_000  # that are computed for a plot
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille character, by row and column
CURVE, TANGENT, POINT = "curve", "tangent", "point"

_PLOT = (5, 12)  # rows of a plot, at least and at most
_HEADINGS = {INPUT: "inputs", COTANGENT: "cotangent v", RATE: "gradient descent"}
_STYLES = {CURVE: "", TANGENT: "red", POINT: "bold red"}  # the slope is a gradient
_LABEL = 8  # columns of the numbers of an axis, at most


def rounded(value: float, digits: int = 6) -> str:
    """Return a number to some significant digits.

    >>> rounded(2 / 3), rounded(1240.0), rounded(1 / 3, 4)
    ('0.666667', '1240', '0.3333')
    """
    return number_text(float(f"{value:.{digits}g}"))


def field_rows(explorer: Explorer, focus: int, width: int, unicode: bool) -> list[tuple[int, Text]]:
    """Return the lines of the fields, each with the number of its field; -1 for a heading."""
    rows: list[tuple[int, Text]] = []
    kind = ""
    for k, field in enumerate(explorer.fields):
        if field.kind != kind:
            kind = field.kind
            calls = len(explorer.state.calls)
            more = f" of call {calls}" if kind == COTANGENT and calls > 1 else ""
            rows.append((-1, Text(_HEADINGS[kind] + more, "bold")))
        mark = "  " if k != focus else "▶ " if unicode else "> "
        text = Text(_row(explorer, field, width, mark, "…" if unicode else "..."), no_wrap=True)
        if k == focus:
            text.stylize("reverse")
        rows.append((k, text))
    return rows


def _row(explorer: Explorer, field: Field, width: int, mark: str, cut: str) -> str:
    """Return the line of a field: its name at the left, its number at the right."""
    value = rounded(explorer.value(field)) if field.at is not None else f"shape {explorer.array(field).shape}"
    room = width - len(value) - len(mark) - 1
    label = field.label if len(field.label) <= room else field.label[: max(1, room - len(cut))] + cut
    return mark + label + " " * max(1, width - len(mark) - cells(label) - len(value)) + value


def plot_rows(explorer: Explorer, field: Field, width: int, height: int, unicode: bool) -> list[Text]:
    """Return the plot against the input in focus, below its title; nothing where there is no room."""
    least, most = _PLOT
    if height < least:
        return []
    unit = explorer.units.get(field) or unit_of(explorer.value(field))
    result = plot(explorer, field, unit, 2 * width)
    if result is None:
        return []
    title = f"{explorer.loss} against {field.label}"
    tangent = f", slope {rounded(result.slope, 4)}" if math.isfinite(result.slope) else ""
    rows = [Text(title + tangent if len(title + tangent) <= width else title[:width], "bold")]
    corner, line, bottom = ("└", "│", "─") if unicode else ("+", "|", "-")
    ends = [rounded(end, 3)[:_LABEL] for end in (result.high, result.low)]
    margin = max(map(len, ends))
    curve = drawn(result, width - margin - 1, min(height - 1, most), unicode)
    labels = [ends[0], *[""] * (len(curve) - 2), ends[1]]
    for label, row in zip(labels, curve, strict=True):
        letters = ((letter, _STYLES.get(kind, "")) for letter, kind in row)
        rows.append(Text.assemble((f"{label:>{margin}}{line}", "dim"), *letters, no_wrap=True))
    low, high = rounded(float(result.xs[0]), 4), rounded(float(result.xs[-1]), 4)
    rows.append(Text(" " * margin + corner + bottom * (width - margin - 1), "dim"))
    rows.append(Text(" " * margin + low + " " * max(1, width - margin - len(low) - len(high)) + high, "dim"))
    return rows


# The plot of the scalar against the input in focus, with its tangent, in dots of Braille or in plain characters


class Plot(NamedTuple):
    """Points of a curve and of its tangent, and where they are drawn: x from left to right, y up."""

    xs: Array
    curve: Array
    tangent: Array
    low: float
    high: float
    slope: float


def plot(explorer: Explorer, field: Field, unit: float, columns: int) -> Plot | None:
    """Return L against an input, 20 of its steps to either side.

    Return None for another field, for one that is too large to plot, and for a curve that is nowhere finite.
    """
    if field.kind != INPUT or field.at is None or columns < 2:
        return None
    if sum(n.size for n in explorer.graph.nodes) * columns > _NUMBERS:
        return None
    state, value = explorer.state, explorer.value(field)
    if not math.isfinite(value):
        return None
    xs = value + unit * np.linspace(-_STEPS, _STEPS, columns)
    points = {name: x[..., None] for name, x in state.at.items()}
    moved = np.repeat(points[field.name], columns, axis=-1)
    moved[field.at] = xs
    curve = explorer.losses_at(points | {field.name: moved})
    here = explorer.loss_at()
    gradient = explorer.gradient(last=True)
    slope = float(gradient[field.name][field.at]) if field.name in gradient else math.nan
    finite = curve[np.isfinite(curve)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    room = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return Plot(xs, curve, here + slope * (xs - value), low - room, high + room, slope)


def drawn(plot: Plot, width: int, height: int, braille: bool) -> list[list[tuple[str, str]]]:
    """Return rows of characters, each with what it is part of: the curve, its tangent, or the point on both.

    >>> line = Plot(np.arange(5.0), np.arange(5.0), np.full(5, 2.0), 0.0, 4.0, 0.0)
    >>> for row in drawn(line, 5, 5, False):
    ...     print("".join(letter for letter, _ in row).rstrip())
        *
       *
    ..o..
     *
    *
    """
    down, across = (4, 2) if braille else (1, 1)
    kinds: dict[tuple[int, int], str] = {}
    dots: dict[tuple[int, int], int] = {}
    for kind, values in ((TANGENT, plot.tangent), (CURVE, plot.curve)):
        for x, y in _dots(plot, values, width * across, height * down, connected=kind == CURVE):
            if kind == TANGENT and braille and x % 2:
                continue  # dotted
            cell = (y // down, x // across)
            kinds[cell] = kind
            dots[cell] = dots.get(cell, 0) | _DOTS[y % down][x % across] if braille else 0
    middle = len(plot.xs) // 2  # the tangent touches the curve at the current point, in the middle
    here = float(plot.tangent[middle - 1 : middle + 1].mean() if len(plot.xs) % 2 == 0 else plot.tangent[middle])
    if plot.low <= here <= plot.high:
        kinds[round((plot.high - here) * (height - 1) / (plot.high - plot.low)), width // 2] = POINT
    return [[_letter(kinds.get((r, c), ""), dots.get((r, c), 0), braille) for c in range(width)] for r in range(height)]


def _letter(kind: str, dots: int, braille: bool) -> tuple[str, str]:
    if not kind:
        return " ", ""
    if kind == POINT:
        return "●" if braille else "o", kind
    return (chr(0x2800 + dots) if braille else "*" if kind == CURVE else "."), kind


def _dots(plot: Plot, values: Array, width: int, height: int, connected: bool) -> list[tuple[int, int]]:
    """Return the dots of a line; those of steep parts are connected from one column to the next."""
    result = []
    before: int | None = None
    scale = (height - 1) / (plot.high - plot.low)
    for x in range(width):
        value = float(values[round(x * (len(values) - 1) / max(1, width - 1))])
        inside = math.isfinite(value) and plot.low <= value <= plot.high
        y = round((plot.high - value) * scale) if inside else None
        if y is not None:
            start = y if before is None or not connected else before + (y > before) - (y < before)
            result += [(x, k) for k in range(min(start, y), max(start, y) + 1)]
        before = y
    return result
