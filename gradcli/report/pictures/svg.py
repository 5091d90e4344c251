"""A picture as SVG: one file that needs nothing else, light or dark as the reader's screen is, text as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from gradcli.files import printable
from gradcli.pages.picture.boxes import Box, Picture
from gradcli.pages.picture.folding import MOST_BOXES
from gradcli.report.image_svg import GAP, Drawn, beside
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered, ranks, sideways
from gradcli.report.pictures.render import PLAIN, Options
from gradcli.text.wrapping import cells, wrapped

_CELL, _LINE = 8.1, 18.0  # of a letter of the boxes, which is 13 pixels high; fonts differ a little
_SMALL_CELL, _SMALL_LINE = 6.9, 15.0  # of what is said at an arrow: 11 pixels
_LETTERS, _SMALL_LETTERS = 40, 32  # of a line, before it is broken
_FEWEST, _FEWER = 16, 8  # letters of a line on a slide, and the step to them
_SLIDE = 16, 9
_PAD = 10.0
_MARGIN = 16.0
_LEAST_SCALE = 0.6  # of a wide picture in a narrow window
_BARRED = re.compile("([^\x00-\u036f])\u0304")  # Greek, say: many a font puts its bars beside such letters
_ROUND = {LEAF: 14, INTERMEDIATE: 3, OUTPUT: 3}

STYLE = """\
.gg-page{fill:#fff}.gg-box{fill:#f6f8fa;stroke:#8c959f}.gg-leaf{fill:#e8f5e9;stroke:#2e7d32}
.gg-output{fill:#e3effc;stroke:#0b57b0;stroke-width:2.5}
.gg-line{fill:none;stroke:#6e7781;stroke-width:1.4}.gg-head{fill:#6e7781}.gg-rule{stroke:#c6ccd2}
.gg-text{fill:#1f2328}.gg-adjoint{fill:#b3261e}.gg-local{fill:#57606a}
.gg-text,.gg-adjoint{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace}
.gg-local{font:11px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace}
.gg-text,.gg-adjoint,.gg-local{white-space:pre}
@media (prefers-color-scheme:dark){
.gg-page{fill:#0d1117}.gg-box{fill:#1c2128;stroke:#768390}.gg-leaf{fill:#12261a;stroke:#57ab5a}
.gg-output{fill:#10243e;stroke:#539bf5}
.gg-line{stroke:#909dab}.gg-head{fill:#909dab}.gg-rule{stroke:#444c56}
.gg-text{fill:#e6edf3}.gg-adjoint{fill:#ff938a}.gg-local{fill:#adbac7}}
"""


class _Lines(NamedTuple):
    """The content of a box: labels of its arrows, lines of its value, its adjoint and its paths, and images below.

    The texts at the arrows are above the others, or on their left if the picture is `horizontal`.
    """

    ports: list[list[str]]
    value: list[str]
    adjoint: list[str]
    paths: list[str]
    images: list[Drawn]
    horizontal: bool

    @property
    def head(self) -> float:
        """The height of the arrows' labels, or their width where these are on the left."""
        if self.horizontal:
            widest = max((cells(t) for port in self.ports for t in port), default=0)
            return widest * _SMALL_CELL + _PAD if widest else 0.0
        most = max(map(len, self.ports), default=0)
        return most * _SMALL_LINE + 6 if most else 0.0

    @property
    def text(self) -> float:
        """The height of the lines on value, adjoint and paths."""
        return (len(self.value) + len(self.adjoint)) * _LINE + len(self.paths) * _SMALL_LINE + 10

    def size(self) -> Size:
        """Return the size of the box: its height in place of its width if it is horizontal."""
        size = max(cells(t) for t in [*self.value, *self.adjoint]) * _CELL + 2 * _PAD
        size = max([size, beside(self.images) + 2 * _PAD, *(cells(t) * _SMALL_CELL + 2 * _PAD for t in self.paths)])
        height = self.text + (max(image.height for image in self.images) + _PAD if self.images else 0.0)
        if self.horizontal:
            ports = [max(20.0, len(port) * _SMALL_LINE + 6) for port in self.ports]
            return Size.of(height, self.head + size, ports)
        ports = [max([24.0, *(cells(t) * _SMALL_CELL + _PAD for t in port)]) for port in self.ports]
        return Size.of(size, self.head + height, ports)


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as an SVG file."""
    labels = Labels(picture, digits)
    layout, texts = _for_a_slide(picture, labels) if options.horizontal else _laid_out(picture, labels)
    foot = [line for part in labels.foot() for line in wrapped(part, max(30, int(layout.width / _CELL)), "  ")]
    return "\n".join(_file(picture, layout, texts, foot)) + "\n"


def _for_a_slide(picture: Picture, labels: Labels) -> tuple[Layout, list[_Lines]]:
    """Return the horizontal layout that is largest on a slide: its lines are broken as that needs."""
    least = _FEWEST if len(picture.boxes) <= MOST_BOXES else _LETTERS  # a larger one is on no slide
    tried = (_laid_out(picture, labels, True, letters) for letters in range(_LETTERS, least - 1, -_FEWER))
    return min(tried, key=lambda laid_out: max(laid_out[0].width / _SLIDE[0], laid_out[0].height / _SLIDE[1]))


def _laid_out(
    picture: Picture, labels: Labels, horizontal: bool = False, letters: int = _LETTERS
) -> tuple[Layout, list[_Lines]]:
    """Return where the boxes are, and their lines of so many letters."""
    sources = [[a.source for a in box.arrows] for box in picture.boxes]
    ranked = ranks(sources)
    texts = [
        _lines(
            labels,
            box,
            [picture.boxes[s].name if (k, i) in ranked.far else "" for i, s in enumerate(sources[k])],
            letters,
        )
        for k, box in enumerate(picture.boxes)
    ]
    if not horizontal:
        return layered([t.size() for t in texts], sources, ranked), texts
    texts = [t._replace(horizontal=True) for t in texts]
    return sideways(layered([t.size() for t in texts], sources, ranked)), texts


def _lines(labels: Labels, box: Box, far: Sequence[str], letters: int) -> _Lines:
    """Return the lines of a box; `far` are the names of values whose lines are not drawn."""
    ports, small = [], letters * _SMALL_LETTERS // _LETTERS
    for text, name in zip(labels.locals(box), far, strict=True):
        ports.append([f"from {name}"] * bool(name) + (lines_of(text, small) if text else []))
    images = [Drawn(panel, labels.writer) for panel in box.panels()]
    value, adjoint = labels.value_lines(box, letters), labels.adjoint_lines(box, letters)
    return _Lines(ports, value, adjoint, labels.paths(box), images, False)


def _file(picture: Picture, layout: Layout, texts: Sequence[_Lines], foot: Sequence[str]) -> Iterator[str]:
    kinds = [kind for kind in (LEAF, INTERMEDIATE, OUTPUT) if any(box.kind == kind for box in picture.boxes)]
    below = max([*(cells(t) * _CELL for t in foot), sum(map(_key, kinds))])
    width = max(layout.width, below) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + 34 + len(foot) * _LINE
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    fit = (
        f"max-width:max(100%,{_LEAST_SCALE * width:.0f}px);height:auto"  # a page scrolls sooner than text is too small
    )
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{fit}">'
    outputs = ", ".join(box.name for box in picture.boxes if box.kind == OUTPUT)
    yield f"<title>{_escaped(outputs[:200])}: computation graph</title>"
    yield f"<style>\n{STYLE}</style>"
    yield f'<rect class="gg-page" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<g transform="translate({(width - layout.width) / 2:.1f} {_MARGIN})">'
    horizontal = any(lines.horizontal for lines in texts)
    yield from (_curve(c, horizontal) for c in layout.curves)
    for box, position, lines in zip(picture.boxes, layout.positions, texts, strict=True):
        yield from _box(box, position, lines)
    yield "</g>"
    yield from _foot(kinds, foot, layout.height + _MARGIN + 28)
    yield "</svg>"


def _foot(kinds: Sequence[str], foot: Sequence[str], y: float) -> Iterator[str]:
    """Yield the legend: the looks of boxes, and the meaning of adjoints."""
    x = _MARGIN
    for kind in kinds:
        size = f'width="18" height="12" rx="{_ROUND[kind] // 2}"'
        yield f'<rect class="{_look(kind)}" x="{x:.1f}" y="{y - 10:.1f}" {size}/>'
        yield _text("local", x + 24, y, kind)
        x += _key(kind)
    for k, line in enumerate(foot):
        yield _text("adjoint" if k == 0 else "text", _MARGIN, y + (k + 1) * _LINE + 2, line)


def _key(kind: str) -> float:
    """Return the width of a kind of box in the legend."""
    return 24 + cells(kind) * _SMALL_CELL + 20


def _look(kind: str) -> str:
    return "gg-box" if kind == INTERMEDIATE else f"gg-{kind}"


def _curve(c: Curve, horizontal: bool) -> str:
    """Return a line that begins and ends in the direction of the picture, with its arrowhead."""
    if c.head:
        back, side = (7, 0) if horizontal else (0, 7), (0, 4) if horizontal else (4, 0)
        x, y = c.x2 - back[0], c.y2 - back[1]
        tip = f"M{x - side[0]:.1f} {y - side[1]:.1f}L{c.x2:.1f} {c.y2:.1f}L{x + side[0]:.1f} {y + side[1]:.1f}z"
        end = c._replace(x2=c.x2 - 6, head=False) if horizontal else c._replace(y2=c.y2 - 6, head=False)
        return f'{_curve(end, horizontal)}<path class="gg-head" d="{tip}"/>'
    x, y = (c.x1 + c.x2) / 2, (c.y1 + c.y2) / 2
    if abs(c.y1 - c.y2 if horizontal else c.x1 - c.x2) < 0.05:
        way = f"H{c.x2:.1f}" if horizontal else f"V{c.y2:.1f}"
    elif horizontal:
        way = f"C{x:.1f} {c.y1:.1f} {x:.1f} {c.y2:.1f} {c.x2:.1f} {c.y2:.1f}"
    else:
        way = f"C{c.x1:.1f} {y:.1f} {c.x2:.1f} {y:.1f} {c.x2:.1f} {c.y2:.1f}"
    return f'<path class="gg-line" d="M{c.x1:.1f} {c.y1:.1f}{way}"/>'


def _box(box: Box, position: Position, lines: _Lines) -> Iterator[str]:
    x, y = position.left, position.top
    across, along = lines.size()[:2]
    width, height = (along, across) if lines.horizontal else (across, along)
    where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    yield f'<rect class="{_look(box.kind)}" {where} rx="{_ROUND[box.kind]}"/>'
    yield from _ports(position, lines)
    x, y = (x + lines.head, y) if lines.horizontal else (x, y + lines.head)
    for k, text in enumerate([*lines.value, *lines.adjoint]):
        yield _text("text" if k < len(lines.value) else "adjoint", x + _PAD, y + 18 + k * _LINE, text)
    above = y + 15 + (len(lines.value) + len(lines.adjoint)) * _LINE
    for k, text in enumerate(lines.paths):
        yield _text("local", x + _PAD, above + k * _SMALL_LINE, text)
    for image in lines.images:
        yield from image.svg(x + _PAD, y + lines.text)
        x += image.width + GAP


def _ports(position: Position, lines: _Lines) -> Iterator[str]:
    """Yield the labels of the arrows into a box as SVG, with lines between them."""
    x, y = position.left, position.top
    across, _, sizes = lines.size()
    if lines.head:
        rule = f"M{x + lines.head:.1f} {y:.1f}v" if lines.horizontal else f"M{x:.1f} {y + lines.head:.1f}h"
        yield f'<path class="gg-rule" d="{rule}{across:.1f}"/>'
    for start, size, port in zip(position.ports, sizes, lines.ports, strict=True):
        middle = start + size / 2
        for k, text in enumerate(port):
            if lines.horizontal:
                line = middle + 4 + (k - (len(port) - 1) / 2) * _SMALL_LINE
                yield _text("local", x + _PAD / 2, line, text)
            else:
                yield _text("local", middle, y + 13 + k * _SMALL_LINE, text, middle=True)
        if lines.head and start > (y if lines.horizontal else x) + 1:
            rule = f"M{x:.1f} {start:.1f}h" if lines.horizontal else f"M{start:.1f} {y:.1f}v"
            yield f'<path class="gg-rule" d="{rule}{lines.head:.1f}"/>'


def _text(look: str, x: float, y: float, text: str, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    shown = _BARRED.sub(r'<tspan text-decoration="overline">\1</tspan>', _escaped(text))
    return f'<text class="gg-{look}" x="{x:.1f}" y="{y:.1f}"{anchor}>{shown}</text>'


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
