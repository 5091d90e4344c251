"""A picture as SVG: one file that needs nothing else, light or dark as the reader's screen is, text as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from gradcli.pages.picture.boxes import Picture
from gradcli.pages.picture.folding import MOST_BOXES
from gradcli.report.image_svg import Drawn
from gradcli.report.pictures.drawing import CELL, LINE, ROUND, SMALL_CELL, Line, Sign, escaped, laid_out, look
from gradcli.report.pictures.drawing import Picture as Drawing
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.render import PLAIN, Options
from gradcli.text.wrapping import cells, wrapped

_LETTERS, _SMALL_LETTERS = 40, 32  # of a line, before it is broken
_FEWEST, _FEWER = 16, 8  # letters of a line on a slide, and the step to them
_SLIDE = 16, 9
_MARGIN = 16.0
_LEAST_SCALE = 0.6  # of a wide picture in a narrow window

STYLE = Path(__file__).with_name("picture.css").read_text("utf-8")


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as an SVG file."""
    labels = Labels(picture, digits)
    least = _FEWEST if options.horizontal and len(picture.boxes) <= MOST_BOXES else _LETTERS
    tried = (
        laid_out(picture.boxes, partial(_sign, labels, letters, options.horizontal), options.horizontal)
        for letters in range(_LETTERS, least - 1, -_FEWER)
    )
    # Lines are broken so that the picture is largest on a slide.
    drawing = min(tried, key=lambda d: max(d.layout.width / _SLIDE[0], d.layout.height / _SLIDE[1]))
    width = max(30, int(drawing.layout.width / CELL))
    foot = [line for part in labels.foot() for line in wrapped(part, width, "  ")]
    return "\n".join(_file(picture, drawing, foot)) + "\n"


def _sign(labels: Labels, letters: int, horizontal: bool, k: int, far: Sequence[str]) -> Sign:
    """Return the content of a box, in lines of so many letters."""
    box, small = labels.picture.boxes[k], letters * _SMALL_LETTERS // _LETTERS
    ports = []
    for text, name in zip(labels.locals(box), far, strict=True):
        said = [f"from {name}"] * bool(name) + (lines_of(text, small) if text else [])
        ports.append([Line("local", line) for line in said])
    lines = [
        *(Line("text", line) for line in labels.value_lines(box, letters)),
        *(Line("adjoint", line) for line in labels.adjoint_lines(box, letters)),
        *(Line("local", line) for line in labels.paths(box)),
    ]
    return Sign(box, ports, lines, [Drawn(p, labels.writer) for p in box.panels()], horizontal=horizontal)


def _file(picture: Picture, drawing: Drawing, foot: Sequence[str]) -> Iterator[str]:
    kinds = [kind for kind in (LEAF, INTERMEDIATE, OUTPUT) if any(box.kind == kind for box in picture.boxes)]
    below = max([*(cells(t) * CELL for t in foot), sum(map(_key, kinds))])
    layout = drawing.layout
    width = max(layout.width, below) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + 34 + len(foot) * LINE
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    # A page scrolls sooner than text is too small.
    fit = f"max-width:max(100%,{_LEAST_SCALE * width:.0f}px);height:auto"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{fit}">'
    outputs = ", ".join(box.name for box in picture.boxes if box.kind == OUTPUT)
    yield f"<title>{escaped(outputs[:200])}: computation graph</title>"
    yield f"<style>\n{STYLE}</style>"
    yield f'<rect class="gg-page" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<g transform="translate({(width - layout.width) / 2:.1f} {_MARGIN})">'
    yield from drawing.elements()
    yield "</g>"
    yield from _foot(kinds, foot, layout.height + _MARGIN + 28)
    yield "</svg>"


def _foot(kinds: Sequence[str], foot: Sequence[str], y: float) -> Iterator[str]:
    """Yield the legend: the looks of boxes, and the meaning of adjoints."""
    x = _MARGIN
    for kind in kinds:
        size = f'width="18" height="12" rx="{ROUND[kind] // 2}"'
        yield f'<rect class="{look(kind)}" x="{x:.1f}" y="{y - 10:.1f}" {size}/>'
        yield Line("local", kind).element(x + 24, y)
        x += _key(kind)
    for k, line in enumerate(foot):
        yield Line("adjoint" if k == 0 else "text", line).element(_MARGIN, y + (k + 1) * LINE + 2)


def _key(kind: str) -> float:
    """Return the width of a kind of box in the legend."""
    return 24 + cells(kind) * SMALL_CELL + 20
