"""The left side of the screen: the fields with their numbers, and the plot against the one in focus."""

from __future__ import annotations

import math

from rich.text import Text

from gradcli.explore.curve import CURVE, POINT, TANGENT, drawn, plot
from gradcli.explore.fields import COTANGENT, INPUT, RATE, Field, unit_of
from gradcli.explore.state import Explorer
from gradcli.notation.numbers import number_text
from gradcli.text.wrapping import cells

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
