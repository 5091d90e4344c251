"""Boxes and arrows as SVG: one drawer for pictures in files and for the live page, which marks what changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from gradcli.files import printable
from gradcli.pages.picture.boxes import Box
from gradcli.report.image_svg import GAP, Drawn, beside
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered, ranks
from gradcli.text.wrapping import cells

CELL, LINE = 8.1, 18.0  # of a letter of the boxes, which is 13 pixels high; fonts differ a little
SMALL_CELL, SMALL_LINE = 6.9, 15.0  # of what is said at an arrow: 11 pixels
PAD = 10.0
_RETURN = 40.0  # of room for the arrow that returns to a box
ROUND = {LEAF: 14, INTERMEDIATE: 3, OUTPUT: 3}
_BARRED = re.compile("([^\x00-\u036f])\u0304")  # Greek, say: many a font puts its bars beside such letters


class Line(NamedTuple):
    """A line of a box: its look and its text, and an element behind it, with room for so many letters."""

    look: str
    text: str
    svg: str = ""
    room: int = 0

    @property
    def width(self) -> float:
        """The width that the line takes."""
        return (cells(self.text) + self.room) * (SMALL_CELL if self.look == "local" else CELL)

    @property
    def height(self) -> float:
        """The height of the line."""
        return SMALL_LINE if self.look == "local" else LINE

    def element(self, x: float, y: float, middle: bool = False) -> str:
        """Return the line as an element of SVG, with the lower left corner there, or the middle of its lower end."""
        anchor = ' text-anchor="middle"' if middle else ""
        shown = _BARRED.sub(r'<tspan text-decoration="overline">\1</tspan>', escaped(self.text))
        return f'<text class="gg-{self.look}" x="{short(x)}" y="{short(y)}"{anchor}>{shown}{self.svg}</text>'


@dataclass(frozen=True)
class Sign:
    """The content of a box: labels of its arrows, above or on the left if it is `horizontal`, lines, and images below.

    `attributes` are those of its element, and `passes` those of the lines that lead to each of its arrows.  A box that
    `opens` tells where its layer ends, below which its inside has its place.
    """

    box: Box
    ports: Sequence[Sequence[Line]]
    lines: Sequence[Line]
    images: Sequence[Drawn] = ()
    attributes: str = ""
    passes: Sequence[str] = ()
    horizontal: bool = False
    opens: bool = False

    @property
    def head(self) -> float:
        """The height of the arrows' labels, or their width where these are on the left."""
        if self.horizontal:
            widest = max((line.width for port in self.ports for line in port), default=0.0)
            return widest + PAD if widest else 0.0
        most = max(map(len, self.ports), default=0)
        return most * SMALL_LINE + 6 if most else 0.0

    @property
    def text(self) -> float:
        """The height of the lines."""
        return sum(line.height for line in self.lines) + 10

    def size(self) -> Size:
        """Return the size of the box: its height in place of its width if it is horizontal."""
        width = max([beside(self.images), *(line.width for line in self.lines)]) + 2 * PAD
        height = self.text + (max(image.height for image in self.images) + PAD if self.images else 0.0)
        if self.horizontal:
            ports = [max(20.0, len(port) * SMALL_LINE + 6) for port in self.ports]
            result = Size.of(height, self.head + width, ports)
        else:
            ports = [max([24.0, *(line.width + PAD for line in port)]) for port in self.ports]
            result = Size.of(width, self.head + height, ports)
        return result._replace(width=result.width + 2 * self.aside)

    @property
    def aside(self) -> float:
        """The room on both sides of a box that an arrow returns to."""
        return _RETURN * self.box.repeats


class Picture(NamedTuple):
    """Signs with their positions, and where the layer of each ends."""

    signs: Sequence[Sign]
    layout: Layout
    ends: Sequence[float]

    def elements(self) -> Iterator[str]:
        """Yield the elements of SVG: the lines, then the boxes."""
        horizontal = any(sign.horizontal for sign in self.signs)
        passes = _passes(self.layout, self.signs)
        for k, curve in enumerate(self.layout.curves):
            yield _curve(curve, horizontal, passes.get(k, ()))
        for sign, position, end in zip(self.signs, self.layout.positions, self.ends, strict=True):
            yield from _box(sign, position, end)


def laid_out(boxes: Sequence[Box], sign: Callable[[int, Sequence[str]], Sign], horizontal: bool = False) -> Picture:
    """Return the positions of boxes; `sign` returns the content of one, given the names of what it reads from afar."""
    sources = [[a.source for a in box.arrows] for box in boxes]
    ranked = ranks(sources)
    signs = []
    for k, mine in enumerate(sources):
        signs.append(sign(k, [boxes[s].name if (k, i) in ranked.far else "" for i, s in enumerate(mine)]))
    sizes = [s.size() for s in signs]
    layout = layered(sizes, sources, ranked, horizontal)
    ends: dict[int, float] = {}
    for rank, position, size in zip(ranked.of, layout.positions, sizes, strict=True):
        end = (position.left if horizontal else position.top) + size.height
        ends[rank] = max(ends.get(rank, 0.0), end)
    return Picture(signs, layout, [ends[rank] for rank in ranked.of])


def _key(x: float, y: float) -> tuple[int, int]:
    return round(x * 10), round(y * 10)


def _passes(layout: Layout, signs: Sequence[Sign]) -> Mapping[int, Sequence[str]]:
    """Return the passes of each curve, by its index: a line from a box to an arrowhead is a chain of curves."""
    ends: dict[tuple[int, int], int] = {}
    for k, c in enumerate(layout.curves):
        ends.setdefault(_key(c.x2, c.y2), k)
    result: dict[int, list[str]] = {}
    for sign, position in zip(signs, layout.positions, strict=True):
        for left, wide, passes in zip(position.ports, sign.size().ports, sign.passes, strict=False):
            seen = set[int]()
            middle = left + wide / 2
            k = ends.get(_key(position.left, middle) if sign.horizontal else _key(middle, position.top), -1)
            while k >= 0 and k not in seen and passes:
                seen.add(k)
                result.setdefault(k, []).append(passes)
                k = ends.get(_key(layout.curves[k].x1, layout.curves[k].y1), -1)
    return result


def _curve(c: Curve, horizontal: bool, passes: Sequence[str]) -> str:
    """Return a line that begins and ends in the direction of the picture, with its arrowhead."""
    marks = f' data-passes="{" ".join(passes)}"' if passes else ""
    x2, y2 = (c.x2 - 6 * c.head, c.y2) if horizontal else (c.x2, c.y2 - 6 * c.head)
    x, y = short((c.x1 + x2) / 2), short((c.y1 + y2) / 2)
    start, end = (short(c.x1), short(c.y1)), (short(x2), short(y2))
    if abs(c.y1 - c.y2 if horizontal else c.x1 - c.x2) < 0.05:
        way = f"H{end[0]}" if horizontal else f"V{end[1]}"
    else:
        bends = f"{x} {start[1]} {x} {end[1]}" if horizontal else f"{start[0]} {y} {end[0]} {y}"
        way = f"C{bends} {end[0]} {end[1]}"
    tip = (-7, -4, "l7 4l-7 4z") if horizontal else (-4, -7, "l4 7l4 -7z")
    head = f'<path class="gg-head" d="M{short(c.x2 + tip[0])} {short(c.y2 + tip[1])}{tip[2]}"/>' if c.head else ""
    return f'<g class="gg-edge"{marks}><path class="gg-line" d="M{start[0]} {start[1]}{way}"/>{head}</g>'


def _box(sign: Sign, position: Position, end: float) -> Iterator[str]:
    x, y, (across, along, _) = position.left, position.top, sign.size()
    across -= 2 * sign.aside
    x, y = (x, y + sign.aside) if sign.horizontal else (x + sign.aside, y)
    width, height = (along, across) if sign.horizontal else (across, along)
    opens = f' data-end="{short(end)}"' if sign.opens else ""
    right, bottom = x + width, y + height
    yield f'<g class="gg-node"{sign.attributes}{opens}>'
    if sign.box.repeats:
        yield from _return(sign, x, y, width, height)
    where = f'x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"'
    yield f'<rect class="{look(sign.box.kind)}" {where} rx="{ROUND[sign.box.kind]}"/>'
    yield from _ports(sign, position, (x, y, across))
    x, y = (x + sign.head, y) if sign.horizontal else (x, y + sign.head)
    base = y
    for line in sign.lines:
        base += line.height
        yield line.element(x + PAD, base)
    if sign.opens:
        yield Line("local", "▸" if sign.horizontal else "▾").element(right - 13, bottom - 5)
    for image in sign.images:
        yield from image.svg(x + PAD, y + sign.text)
        x += image.width + GAP
    yield "</g>"


def _return(sign: Sign, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """Yield the arrow that returns from the end of a box to its beginning, and how many rounds there are."""
    times = Line("local", f"{sign.box.times:,}×")
    if sign.horizontal:
        top, left, right = y + height, x + 14, x + width - 14
        yield f'<path class="gg-line" d="M{short(right)} {short(top)}v22H{short(left)}v-14"/>'
        yield f'<path class="gg-head" d="M{short(left - 4)} {short(top + 8)}l4 -7l4 7z"/>'
        yield times.element((left + right) / 2, top + 36, middle=True)
        return
    left, low, high = x + width, y + height - 12, y + 12
    yield f'<path class="gg-line" d="M{short(left)} {short(low)}h22V{short(high)}h-14"/>'
    yield f'<path class="gg-head" d="M{short(left + 8)} {short(high - 4)}l-7 4l7 4z"/>'
    yield times.element(left + 3, (low + high) / 2 + 4)


def _ports(sign: Sign, position: Position, corner: tuple[float, float, float]) -> Iterator[str]:
    """Yield the labels of the arrows into a box as SVG, with lines between them; `corner` with the width across."""
    (x, y, across), sizes = corner, sign.size().ports
    if sign.head:
        rule = f"M{short(x + sign.head)} {short(y)}v" if sign.horizontal else f"M{short(x)} {short(y + sign.head)}h"
        yield f'<path class="gg-rule" d="{rule}{short(across)}"/>'
    for start, size, port in zip(position.ports, sizes, sign.ports, strict=True):
        middle = start + size / 2
        for k, line in enumerate(port):
            if sign.horizontal:
                yield line.element(x + PAD / 2, middle + 4 + (k - (len(port) - 1) / 2) * SMALL_LINE)
            else:
                yield line.element(middle, y + 13 + k * SMALL_LINE, middle=True)
        if sign.head and start > (y if sign.horizontal else x) + 1:
            rule = f"M{short(x)} {short(start)}h" if sign.horizontal else f"M{short(start)} {short(y)}v"
            yield f'<path class="gg-rule" d="{rule}{short(sign.head)}"/>'


def look(kind: str) -> str:
    """Return the class of a kind of box."""
    return "gg-box" if kind == INTERMEDIATE else f"gg-{kind}"


def short(coordinate: float) -> str:
    """Return a coordinate, to half a pixel.

    >>> short(12.26), short(3.0)
    ('12.5', '3')
    """
    return f"{round(2 * coordinate) / 2:g}"


def escaped(text: str) -> str:
    """Return a text as XML has it."""
    return escape(printable(text), quote=True)
