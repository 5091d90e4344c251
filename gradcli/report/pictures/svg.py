"""A picture as SVG: one file that needs nothing else, light or dark as the reader's screen is, text as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from gradcli.explain.picture.picture import Box, Picture
from gradcli.files import printable
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered
from gradcli.report.pictures.ranks import ranks
from gradcli.wrapping import cells, wrapped

_CELL, _LINE = 8.1, 18.0  # of a letter of the boxes, which is 13 pixels high; fonts differ a little
_SMALL_CELL, _SMALL_LINE = 6.9, 15.0  # of what is said at an arrow: 11 pixels
_LETTERS, _SMALL_LETTERS = 40, 32  # of a line, before it is broken
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
    """The lines of text in a box: at its arrows, of its value, of its adjoint."""

    ports: list[list[str]]
    value: list[str]
    adjoint: list[str]

    @property
    def head(self) -> float:
        """The height of what is said at the arrows."""
        most = max(map(len, self.ports), default=0)
        return most * _SMALL_LINE + 6 if most else 0.0

    def size(self) -> Size:
        """Return what the box takes."""
        ports = [max([24.0, *(cells(t) * _SMALL_CELL + _PAD for t in port)]) for port in self.ports]
        own = max(cells(t) for t in [*self.value, *self.adjoint]) * _CELL + 2 * _PAD
        height = self.head + (len(self.value) + len(self.adjoint)) * _LINE + 10
        return Size.of(own, height, ports)


def render(picture: Picture, digits: int | None) -> str:
    """Return a picture as an SVG file."""
    labels = Labels(picture, digits)
    sources = [[a.source for a in box.arrows] for box in picture.boxes]
    ranked = ranks(sources)
    texts = [
        _lines(labels, box, [picture.boxes[s].name if (k, i) in ranked.far else "" for i, s in enumerate(sources[k])])
        for k, box in enumerate(picture.boxes)
    ]
    layout = layered([t.size() for t in texts], sources, ranked)
    foot = [line for part in labels.scalar() for line in wrapped(part, max(30, int(layout.width / _CELL)), "  ")]
    return "\n".join(_file(picture, layout, texts, foot)) + "\n"


def _lines(labels: Labels, box: Box, far: Sequence[str]) -> _Lines:
    """Return the lines of a box; `far` are the names of values whose lines are not drawn."""
    ports = []
    for text, name in zip(labels.locals(box), far, strict=True):
        ports.append([f"from {name}"] * bool(name) + (lines_of(text, _SMALL_LETTERS) if text else []))
    return _Lines(ports, labels.value_lines(box, _LETTERS), labels.adjoint_lines(box, _LETTERS))


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
    yield f"<title>{_escaped(outputs[:200])}: what is computed from what</title>"
    yield f"<style>\n{STYLE}</style>"
    yield f'<rect class="gg-page" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<g transform="translate({(width - layout.width) / 2:.1f} {_MARGIN})">'
    yield from map(_curve, layout.curves)
    for box, place, lines in zip(picture.boxes, layout.places, texts, strict=True):
        yield from _box(box, place, lines)
    yield "</g>"
    yield from _foot(kinds, foot, layout.height + _MARGIN + 28)
    yield "</svg>"


def _foot(kinds: Sequence[str], foot: Sequence[str], y: float) -> Iterator[str]:
    """Yield what the looks of boxes mean, and what adjoints are."""
    x = _MARGIN
    for kind in kinds:
        size = f'width="18" height="12" rx="{_ROUND[kind] // 2}"'
        yield f'<rect class="{_look(kind)}" x="{x:.1f}" y="{y - 10:.1f}" {size}/>'
        yield _text("local", x + 24, y, kind)
        x += _key(kind)
    for k, line in enumerate(foot):
        yield _text("adjoint" if k == 0 else "text", _MARGIN, y + (k + 1) * _LINE + 2, line)


def _key(kind: str) -> float:
    """Return what a kind of box takes in the line that tells what their looks mean."""
    return 24 + cells(kind) * _SMALL_CELL + 20


def _look(kind: str) -> str:
    return "gg-box" if kind == INTERMEDIATE else f"gg-{kind}"


def _curve(c: Curve) -> str:
    """Return a line that begins and ends vertically, with its arrowhead."""
    if c.head:
        tip = f"M{c.x2 - 4:.1f} {c.y2 - 7:.1f}L{c.x2:.1f} {c.y2:.1f}L{c.x2 + 4:.1f} {c.y2 - 7:.1f}z"
        line = _curve(Curve(c.x1, c.y1, c.x2, c.y2 - 6, False))
        return f'{line}<path class="gg-head" d="{tip}"/>'
    middle = (c.y1 + c.y2) / 2
    straight = abs(c.x1 - c.x2) < 0.05
    way = f"V{c.y2:.1f}" if straight else f"C{c.x1:.1f} {middle:.1f} {c.x2:.1f} {middle:.1f} {c.x2:.1f} {c.y2:.1f}"
    return f'<path class="gg-line" d="M{c.x1:.1f} {c.y1:.1f}{way}"/>'


def _box(box: Box, place: Position, lines: _Lines) -> Iterator[str]:
    size = lines.size()
    x, y = place.left, place.top
    where = f'x="{x:.1f}" y="{y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}"'
    yield f'<rect class="{_look(box.kind)}" {where} rx="{_ROUND[box.kind]}"/>'
    if lines.head:
        yield f'<path class="gg-rule" d="M{x:.1f} {y + lines.head:.1f}h{size.width:.1f}"/>'
    for left, wide, port in zip(place.ports, size.ports, lines.ports, strict=True):
        for k, text in enumerate(port):
            yield _text("local", left + wide / 2, y + 13 + k * _SMALL_LINE, text, middle=True)
        if left > x + 1 and lines.head:
            yield f'<path class="gg-rule" d="M{left:.1f} {y:.1f}v{lines.head:.1f}"/>'
    y += lines.head + 18
    for k, text in enumerate([*lines.value, *lines.adjoint]):
        yield _text("text" if k < len(lines.value) else "adjoint", x + _PAD, y + k * _LINE, text)


def _text(look: str, x: float, y: float, text: str, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    shown = _BARRED.sub(r'<tspan text-decoration="overline">\1</tspan>', _escaped(text))
    return f'<text class="gg-{look}" x="{x:.1f}" y="{y:.1f}"{anchor}>{shown}</text>'


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
