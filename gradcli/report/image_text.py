"""Images in a terminal: half-blocks in colour, signs and shades without."""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

import numpy as np
from click import style, unstyle

from gradcli.pages.results import Array
from gradcli.pages.sections import Images, Panel, Value
from gradcli.report.images import coloured, colours, reduced, shares
from gradcli.report.layout import GAP
from gradcli.report.text_math import TextWriter
from gradcli.text.plain import printed
from gradcli.text.wrapping import cells, wrapped

_HALF = "▀"
_SHADES = ("  ", "░░", "▒▒", "▓▓", "██")
_ABOVE, _BELOW = (". ", "+ ", "++", "##"), (". ", "- ", "--", "==")
_SIZES = (0.1, 0.4, 0.7)  # shares of the largest, from which on there is the next sign
_DARK_TO_LIGHT = "".join(shade[:1] for shade in _SHADES)
_ABOVE_AND_BELOW = " ".join(map(str.strip, [*reversed(_BELOW[1:]), "0", *_ABOVE[1:]]))
_NAN = "??"
_LEAST = 24  # columns of a panel: its scale has room
_WIDEST = 64
_LINES = 24  # of an image
_SMALL = 16  # columns that a small image in colour is enlarged to
_BAR = 8  # columns of a half of a scale
_DIGITS = 3  # of the ends of a scale


def image_lines(images: Images, writer: TextWriter, room: int, styled: bool, blocks: bool | None = None) -> list[str]:
    """Return images beside each other, or below each other where the room is short.

    Styled ones are in colour, as half-blocks, or without `blocks` as blanks; the others are signs and shades.  By
    default `blocks` are what standard output has.
    """
    blocks = printed(_HALF) == _HALF if blocks is None else blocks
    count = min(len(images.panels), max(1, (room + len(GAP)) // (_LEAST + len(GAP))))
    width = min(_WIDEST, (room + len(GAP)) // count - len(GAP))
    titles = [wrapped("".join(map(writer.write, panel.title)), width) for panel in images.panels]
    scales = TextWriter(writer.style, _DIGITS)
    bodies = [_body(panel, scales, width, styled, blocks) for panel in images.panels]
    lines: list[str] = []
    for row in range(0, len(bodies), count):
        lines += [""] * bool(lines) + _beside(titles[row : row + count], bodies[row : row + count])
    return lines


def _beside(titles: Sequence[list[str]], bodies: Sequence[list[str]]) -> list[str]:
    """Return the lines of panels, each as wide as its widest line, with their images at the same height."""
    most = max(map(len, titles))
    panels = [[*[""] * (most - len(title)), *title, *body] for title, body in zip(titles, bodies, strict=True)]
    sizes = [max(cells(unstyle(line)) for line in panel) for panel in panels]
    pairs = zip(panels, sizes, strict=True)
    rows = zip_longest(*([line + " " * (n - cells(unstyle(line))) for line in panel] for panel, n in pairs))
    return [GAP.join(b or " " * n for b, n in zip(row, sizes, strict=True)).rstrip(" ") for row in rows]


def _body(panel: Panel, writer: TextWriter, width: int, styled: bool, blocks: bool) -> list[str]:
    """Return the lines of an image, and its scale."""
    if styled and blocks:
        small = reduced(panel, 2 * _LINES, width)
        times = max(1, _SMALL // max(small.pixels.shape[:2]))
        lines = _half_blocks(colours(small).repeat(times, axis=0).repeat(times, axis=1))
    else:
        small = reduced(panel, _LINES, width // 2)
        lines = _blanks(colours(small)) if styled else _signs(small)
    return [*lines, *_scale(panel, writer, width, styled)]


def _scale(panel: Panel, writer: TextWriter, width: int, styled: bool) -> list[str]:
    """Return the scale between its ends, or above them where the panel is narrow."""
    low, high = (writer.write(Value.of(end)) for end in panel.limits)
    bar = _ABOVE_AND_BELOW if panel.signed else _DARK_TO_LIGHT
    if styled:
        steps = np.linspace(-1, 1, 2 * _BAR) if panel.signed else np.linspace(0, 1, _BAR)
        (bar,) = _blanks(coloured(steps[None, :], panel.signed), " ")
    size = cells(unstyle(bar))
    if size + cells(low) + cells(high) + 2 <= width:
        return [f"{low} {bar} {high}"]
    return [bar, low + " " * max(1, size - cells(low) - cells(high)) + high]


# Without colour


def _signs(panel: Panel) -> Iterator[str]:
    share = shares(panel)
    for row in share if share.ndim == 2 else share.mean(axis=-1):
        yield "".join(_sign(s, panel.signed) for s in row.tolist())


def _sign(share: float, signed: bool) -> str:
    """Return two characters for a pixel.

    >>> [_sign(s, True) for s in (1.0, 0.3, 0.0, -0.3, -0.6)], [_sign(s, False) for s in (0.0, 0.5, 1.0)]
    (['##', '+ ', '. ', '- ', '--'], ['  ', '▒▒', '██'])
    """
    if np.isnan(share):
        return _NAN
    if not signed:
        return _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
    return (_ABOVE if share > 0 else _BELOW)[bisect(_SIZES, abs(share))]


# In colour


def _half_blocks(pixels: Array) -> Iterator[str]:
    """Yield lines in which a character is two pixels: one in its own colour, one below in that of its background."""
    for k in range(0, len(pixels), 2):
        lower = pixels[k + 1].tolist() if k + 1 < len(pixels) else [None] * pixels.shape[1]
        pairs = zip(map(tuple, pixels[k].tolist()), lower, strict=True)
        runs = groupby((upper, below and tuple(below)) for upper, below in pairs)
        yield "".join(
            style(_HALF * len([*run]), fg=_code(above), bg=below and _code(below)) for (above, below), run in runs
        )


def _blanks(pixels: Array, blank: str = "  ") -> Iterator[str]:
    for row in pixels.tolist():
        yield "".join(style(blank * len([*run]), bg=_code(colour)) for colour, run in groupby(map(tuple, row)))


def _code(colour: tuple[int, int, int]) -> tuple[int, int, int] | int:
    """Return a colour as the terminal takes it: itself, or the nearest of the 256 that most terminals have."""
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return colour
    from rich.color import Color, ColorSystem

    return Color.from_rgb(*colour).downgrade(ColorSystem.EIGHT_BIT).number or 0
