"""An image in a box of a picture as SVG: its name, its pixels, and its scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gradcli.pages.sections import Panel, Value
from gradcli.report.images import coloured, colours, png_address, reduced
from gradcli.report.text_math import TextWriter
from gradcli.text.wrapping import cells

GAP = 16.0  # between images
_SIDE = 128.0  # of the longer side
_MOST = 256  # pixels of a side
_CELL, _LINE = 6.9, 15.0
_BAR = 8.0
_STEPS = 33  # colours of a scale
_DIGITS = 3  # of its ends


@dataclass(frozen=True)
class Drawn:
    """An image, and the writer of its title."""

    panel: Panel
    writer: TextWriter

    @property
    def title(self) -> str:
        """The title above the image."""
        return "".join(map(self.writer.write, self.panel.title))

    @property
    def limits(self) -> list[str]:
        """The ends of the scale, as text."""
        writer = TextWriter(self.writer.style, _DIGITS)
        return [writer.write(Value.of(end)) for end in self.panel.limits]

    @property
    def _size(self) -> tuple[float, float]:
        """The width and height of the pixels."""
        rows, columns = self.panel.pixels.shape[:2]
        unit = _SIDE / max(rows, columns)
        return columns * unit, rows * unit

    @property
    def width(self) -> float:
        """The width in pixels, with its labels."""
        return max(self._size[0], cells(self.title) * _CELL, (sum(map(cells, self.limits)) + 2) * _CELL)

    @property
    def height(self) -> float:
        """The height in pixels, with its labels."""
        return _LINE + self._size[1] + _BAR + 4 + _LINE

    def svg(self, x: float, y: float) -> Iterator[str]:
        """Yield the elements of the image whose left and upper corner is there."""
        wide, high = self._size
        yield _text(x, y + 11, self.title, "start")
        y += _LINE
        address = png_address(colours(reduced(self.panel, _MOST, _MOST)))
        yield _image(x, y, (wide, high), address, self.title)
        y += high + 4
        steps = np.linspace(-1 if self.panel.signed else 0, 1, _STEPS)[None, :]
        yield _image(x, y, (self.width, _BAR), png_address(coloured(steps, self.panel.signed)))
        y += _BAR + 12
        for end, at, anchor in zip(self.limits, (x, x + self.width), ("start", "end"), strict=True):
            yield _text(at, y, end, anchor)


def beside(images: Sequence[Drawn]) -> float:
    """Return the width of images beside each other."""
    return sum(image.width for image in images) + GAP * max(0, len(images) - 1)


def _image(x: float, y: float, size: tuple[float, float], address: str, title: str = "") -> str:
    """Return an image; a pixelated one is to be seen pixel by pixel, and has a title."""
    where = f'x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" preserveAspectRatio="none"'
    if not title:
        return f'<image {where} href="{address}"/>'
    return f'<image {where} href="{address}" style="image-rendering:pixelated"><title>{escape(title)}</title></image>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    end = ' text-anchor="end"' if anchor == "end" else ""
    return f'<text class="gg-local" x="{x:.1f}" y="{y:.1f}"{end}>{escape(text)}</text>'
