"""Images in LaTeX: a `picture` in which each run of pixels of one colour is a rule; it needs the package xcolor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from gradcli.pages.sections import Panel, Value, Words
from gradcli.report.images import colours, reduced
from gradcli.report.latex_math import LatexWriter

COLOUR = r"\color[RGB]"
_MOST = 32  # pixels of a side
_SIZE = 96  # points of the longer side
_BESIDE = 3  # images in a row
_DIGITS = 3  # of the ends of a scale


def pictures(panels: Sequence[Panel], writer: LatexWriter) -> Iterator[str]:
    """Yield rows of images beside each other, each with its title above it and its scale below."""
    scales = LatexWriter(writer.style, _DIGITS)
    for row in range(0, len(panels), _BESIDE):
        some = panels[row : row + _BESIDE]
        yield rf"\[\begin{{array}}{{{'c' * len(some)}}}"
        yield " & ".join(writer.write(Words(panel.title)) for panel in some) + r" \\"
        yield " &\n".join(_image(reduced(panel, _MOST, _MOST)) for panel in some) + r" \\"
        yield " & ".join(_scale(panel, scales) for panel in some)
        yield r"\end{array}\]"


def _scale(panel: Panel, writer: LatexWriter) -> str:
    low, high = (writer.write(Value.of(end)) for end in panel.limits)
    if panel.signed:
        return rf"{low}\text{{ (blue) to }}{high}\text{{ (red)}}"
    return rf"{low}\text{{ (black) to }}{high}\text{{ (white)}}"


def _image(panel: Panel) -> str:
    """Return an image; rules overlap a little, or some readers of PDF show lines between them."""
    pixels = colours(panel)
    height, width, _ = pixels.shape
    unit = _SIZE / max(height, width)
    lines = [rf"\setlength{{\unitlength}}{{{unit:.4g}pt}}\begin{{picture}}({width},{height})"]
    for k, row in enumerate(pixels.tolist()):
        column = 0
        for (red, green, blue), run in groupby(map(tuple, row)):
            count = len([*run])
            rule = rf"\rule{{{count * unit + 0.1:.4g}pt}}{{{unit + 0.1:.4g}pt}}"
            lines.append(rf"\put({column},{height - 1 - k}){{{COLOUR}{{{red},{green},{blue}}}{rule}}}")
            column += count
    return "\n".join([*lines, r"\end{picture}"])
