"""The picture of a live page: the boxes and lines of the static picture, with marks for the numbers that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from gradcli.files import printable
from gradcli.pages.live import LivePage
from gradcli.pages.picture.boxes import Box
from gradcli.pages.sections import Formula
from gradcli.report.live.numbers import exact, shown
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered, ranks, sideways
from gradcli.text.wrapping import cells

_CELL, _LINE = 8.1, 18.0  # of a letter of the boxes, which is 13 pixels high
_SMALL_CELL, _SMALL_LINE = 6.9, 15.0
_LETTERS, _SMALL_LETTERS = 34, 30
_NUMBER = 10  # letters that a number may have
_ARRAY = 26
_PAD, _MARGIN = 10.0, 12.0
_ROUND = {LEAF: 14, INTERMEDIATE: 4, OUTPUT: 4}


@dataclass(frozen=True)
class _Text:
    """A line of a box: its text, and a number that changes behind it, with room for so many letters."""

    text: str
    mark: str = ""
    room: int = 0

    @property
    def letters(self) -> int:
        return cells(self.text) + self.room


@dataclass(frozen=True)
class _Sign:
    """The texts of one box: at its arrows, above or on the left, and inside; `node` is -1 for several nodes."""

    box: Box
    node: int
    ports: Sequence[Sequence[_Text]]
    edges: Sequence[str]
    lines: Sequence[tuple[str, _Text]]
    horizontal: bool

    @property
    def head(self) -> float:
        if self.horizontal:
            widest = max((t.letters for port in self.ports for t in port), default=0)
            return widest * _SMALL_CELL + _PAD if widest else 0.0
        most = max(map(len, self.ports), default=0)
        return most * _SMALL_LINE + 6 if most else 0.0

    def size(self) -> Size:
        """Return the size of the box: its height in place of its width if the picture is horizontal."""
        width = max(t.letters for _, t in self.lines) * _CELL + 2 * _PAD
        height = len(self.lines) * _LINE + 10
        if self.horizontal:
            return Size.of(height, self.head + width, [max(20.0, len(port) * _SMALL_LINE + 6) for port in self.ports])
        ports = [max([24.0, *(t.letters * _SMALL_CELL + _PAD for t in port)]) for port in self.ports]
        return Size.of(width, self.head + height, ports)


def drawn(page: LivePage, horizontal: bool = False) -> str:
    """Return the picture as an SVG element."""
    boxes = page.drawing.boxes
    sources = [[a.source for a in box.arrows] for box in boxes]
    ranked = ranks(sources)
    signs = list(_signs(page, ranked.far, horizontal))
    layout = layered([s.size() for s in signs], sources, ranked)
    layout = sideways(layout) if horizontal else layout
    return "\n".join(_picture(page, layout, signs))


def _signs(page: LivePage, far: object, horizontal: bool) -> Iterator[_Sign]:
    labels = Labels(page.drawing, 6)
    nodes = {n.name: k for k, n in enumerate(page.nodes) if n.name}
    boxes = page.drawing.boxes
    indices = [nodes.get(box.name, -1) if box.times == 1 else -1 for box in boxes]
    passes: dict[tuple[int, int], list[int]] = {}
    for k, p in enumerate(page.passes):
        passes.setdefault((p.node, page.nodes[p.node].args[p.position]), []).append(k)
    for k, box in enumerate(boxes):
        ports, edges = [], []
        for i, (arrow, text) in enumerate(zip(box.arrows, labels.locals(box), strict=True)):
            between = passes.get((indices[k], indices[arrow.source]), []) if indices[k] >= 0 else []
            mark = " ".join(map(str, between))
            from_far = [_Text(f"from {boxes[arrow.source].name}")] if (k, i) in far else []  # type: ignore[operator]
            is_number = isinstance(arrow.local, Formula) and arrow.local.number is not None
            ports.append(from_far + _port(page, text, [] if is_number else between, mark))
            edges.append(mark)
        yield _Sign(box, indices[k], ports, edges, list(_inside(page, box, indices[k], labels)), horizontal)


def _port(page: LivePage, text: str, between: Sequence[int], mark: str) -> list[_Text]:
    """Return the label of an arrow: its rule, and the number of an elementwise one `between` the boxes."""
    if not text:
        return []
    lines = [_Text(line) for line in lines_of(text, _SMALL_LETTERS)]
    if not between or any(page.passes[p].pull.slope is None for p in between):
        return lines
    last = lines.pop()
    room = 3 + (_NUMBER if not page.nodes[page.passes[between[0]].node].shape else 17)
    if last.letters + room <= _SMALL_LETTERS + 6:
        return [*lines, _Text(last.text, f"slope {mark}", room)]
    return [*lines, last, _Text("  ", f"slope {mark}", room)]


def _inside(page: LivePage, box: Box, node: int, labels: Labels) -> Iterator[tuple[str, _Text]]:
    """Yield the lines of a box, each with its look."""
    lines = [_Text(line) for line in labels.value_lines(box, _LETTERS)]
    if node < 0:
        yield from (("text", line) for line in lines)
        return
    n = page.nodes[node]
    room = 3 + (_ARRAY + 1 if n.shape else _NUMBER)
    last = lines.pop()
    yield from (("text", line) for line in lines)
    if last.letters + room <= _LETTERS + 4:
        yield "text", _Text(last.text, f"value {node}", room)
    else:
        yield "text", last
        yield "text", _Text("  ", f"value {node}", room)
    if n.adjoint is not None:
        yield "adjoint", _Text(n.bar, f"adjoint {node}", room)


def _picture(page: LivePage, layout: Layout, signs: Sequence[_Sign]) -> Iterator[str]:
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    yield f'<svg class="picture" role="group" aria-label="{_escaped(page.title[:200])}: the graph" {size}>'
    yield f'<g transform="translate({_MARGIN} {_MARGIN})">'
    chains = _chains(layout, signs)
    horizontal = any(sign.horizontal for sign in signs)
    for k, curve in enumerate(layout.curves):
        yield _curve(curve, chains.get(k, ()), horizontal)
    for sign, position in zip(signs, layout.positions, strict=True):
        yield from _box(page, sign, position)
    yield "</g></svg>"


def _key(x: float, y: float) -> tuple[int, int]:
    return round(x * 10), round(y * 10)


def _chains(layout: Layout, signs: Sequence[_Sign]) -> Mapping[int, Sequence[str]]:
    """Return the passes of each curve, by its index: a line from a box to an arrowhead is a chain of curves."""
    ends: dict[tuple[int, int], int] = {}
    for k, c in enumerate(layout.curves):
        ends.setdefault(_key(c.x2, c.y2), k)
    result: dict[int, list[str]] = {}
    for sign, position in zip(signs, layout.positions, strict=True):
        for left, wide, edge in zip(position.ports, sign.size().ports, sign.edges, strict=True):
            seen = set[int]()
            middle = left + wide / 2
            k = ends.get(_key(position.left, middle) if sign.horizontal else _key(middle, position.top), -1)
            while k >= 0 and k not in seen and edge:
                seen.add(k)
                result.setdefault(k, []).append(edge)
                k = ends.get(_key(layout.curves[k].x1, layout.curves[k].y1), -1)
    return result


def _curve(c: Curve, edges: Sequence[str], horizontal: bool) -> str:
    """Return a line that begins and ends in the direction of the picture, with its arrowhead."""
    marks = f' data-passes="{" ".join(edges)}"' if edges else ""
    x2, y2 = (c.x2 - 6 * c.head, c.y2) if horizontal else (c.x2, c.y2 - 6 * c.head)
    x, y = _short((c.x1 + x2) / 2), _short((c.y1 + y2) / 2)
    start, end = (_short(c.x1), _short(c.y1)), (_short(x2), _short(y2))
    if abs(c.y1 - c.y2 if horizontal else c.x1 - c.x2) < 0.05:
        way = f"H{end[0]}" if horizontal else f"V{end[1]}"
    else:
        bends = f"{x} {start[1]} {x} {end[1]}" if horizontal else f"{start[0]} {y} {end[0]} {y}"
        way = f"C{bends} {end[0]} {end[1]}"
    tip = (f"{_short(c.x2 - 7)} {_short(c.y2 - 4)}l7 4l-7 4" if horizontal
           else f"{_short(c.x2 - 4)} {_short(c.y2 - 7)}l4 7l4-7")  # fmt: skip
    head = f'<path d="M{tip}z"/>' if c.head else ""
    return f'<g class="edge"{marks}><path d="M{start[0]} {start[1]}{way}"/>{head}</g>'


def _short(coordinate: float) -> str:
    """Return a coordinate, to half a pixel."""
    return f"{round(2 * coordinate) / 2:g}"


def _box(page: LivePage, sign: _Sign, position: Position) -> Iterator[str]:
    x, y, (across, along, _) = position.left, position.top, sign.size()
    width, height = (along, across) if sign.horizontal else (across, along)
    ours = f' data-box="{_escaped(sign.box.name)}" data-node="{sign.node}"' if sign.node >= 0 else ""
    yield f'<g class="box {sign.box.kind}"{ours}>'
    where = f'x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" height="{_short(height)}"'
    yield f'<rect {where} rx="{_ROUND[sign.box.kind]}"/>'
    yield from _ports(page, sign, position)
    x, y = (x + sign.head, y) if sign.horizontal else (x, y + sign.head)
    for k, (look, text) in enumerate(sign.lines):
        yield _text(page, look, x + _PAD, y + 18 + k * _LINE, text)
    yield "</g>"


def _ports(page: LivePage, sign: _Sign, position: Position) -> Iterator[str]:
    """Yield the labels of the arrows into a box as SVG, with lines between them."""
    x, y, (across, _, sizes) = position.left, position.top, sign.size()
    if sign.head:
        rule = f"M{_short(x + sign.head)} {_short(y)}v" if sign.horizontal else f"M{_short(x)} {_short(y + sign.head)}h"
        yield f'<path class="rule" d="{rule}{_short(across)}"/>'
    for start, size, port in zip(position.ports, sizes, sign.ports, strict=True):
        middle = start + size / 2
        for k, text in enumerate(port):
            if sign.horizontal:
                line = middle + 4 + (k - (len(port) - 1) / 2) * _SMALL_LINE
                yield _text(page, "local aside", x + _PAD / 2, line, text)
            else:
                yield _text(page, "local", middle, y + 13 + k * _SMALL_LINE, text)
        if sign.head and start > (y if sign.horizontal else x) + 1:
            rule = f"M{_short(x)} {_short(start)}h" if sign.horizontal else f"M{_short(start)} {_short(y)}v"
            yield f'<path class="rule" d="{rule}{_short(sign.head)}"/>'


def _text(page: LivePage, look: str, x: float, y: float, text: _Text) -> str:
    look = f' class="{look}"' if look != "text" else ""
    where = f'x="{_short(x)}" y="{_short(y)}"'
    return f"<text{look} {where}>{_escaped(text.text)}{_mark(page, text.mark)}</text>"


def _mark(page: LivePage, mark: str) -> str:
    """Return the part of a line that changes."""
    if not mark:
        return ""
    kind, _, which = mark.partition(" ")
    if kind == "slope":
        return f'<tspan data-slope="{which}"></tspan>'
    n = page.nodes[int(which)]
    array = n.value if kind == "value" else n.adjoint
    name = _escaped(n.name)
    if n.shape or array is None:
        return f' = <tspan data-{kind}="{which}"></tspan>'
    number = f'data-number="{exact(float(array))}"'
    return f' = <tspan data-{kind}="{which}" data-{kind}-of="{name}" {number}>{shown(float(array))}</tspan>'


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
