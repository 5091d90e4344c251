"""The picture of a live page: the boxes and lines of the static picture, with marks for the numbers that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from gradcli.explain.live.program import LivePage
from gradcli.explain.picture.picture import Box
from gradcli.files import printable
from gradcli.report.live.numbers import exact, shown
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered
from gradcli.report.pictures.ranks import ranks
from gradcli.wrapping import cells

_CELL, _LINE = 8.1, 18.0  # of a letter of the boxes, which is 13 pixels high
_SMALL_CELL, _SMALL_LINE = 6.9, 15.0
_LETTERS, _SMALL_LETTERS = 34, 30
_NUMBER = 10  # letters that a number may have
_ARRAY = 26
_PAD, _MARGIN = 10.0, 12.0
_ROUND = {LEAF: 14, INTERMEDIATE: 4, OUTPUT: 4}


@dataclass(frozen=True)
class _Text:
    """A line of a box: what stands there, and a mark behind it with so many letters of room."""

    text: str
    mark: str = ""
    room: int = 0

    @property
    def letters(self) -> int:
        return cells(self.text) + self.room


@dataclass(frozen=True)
class _Sign:
    """What is drawn of one box: at its arrows, and inside; `node` is -1 where it stands for several."""

    box: Box
    node: int
    ports: Sequence[Sequence[_Text]]
    edges: Sequence[str]
    lines: Sequence[tuple[str, _Text]]

    @property
    def head(self) -> float:
        most = max(map(len, self.ports), default=0)
        return most * _SMALL_LINE + 6 if most else 0.0

    def size(self) -> Size:
        ports = [max([24.0, *(t.letters * _SMALL_CELL + _PAD for t in port)]) for port in self.ports]
        own = max(t.letters for _, t in self.lines) * _CELL + 2 * _PAD
        return Size.of(own, self.head + len(self.lines) * _LINE + 10, ports)


def drawn(page: LivePage) -> str:
    """Return the picture as an SVG element."""
    boxes = page.drawing.boxes
    sources = [[a.source for a in box.arrows] for box in boxes]
    ranked = ranks(sources)
    signs = list(_signs(page, ranked.far))
    layout = layered([s.size() for s in signs], sources, ranked)
    return "\n".join(_picture(page, layout, signs))


def _signs(page: LivePage, far: object) -> Iterator[_Sign]:
    labels = Labels(page.drawing, 6)
    nodes = {n.name: k for k, n in enumerate(page.nodes) if n.name}
    boxes = page.drawing.boxes
    place = [nodes.get(box.name, -1) if box.times == 1 else -1 for box in boxes]
    passes: dict[tuple[int, int], list[int]] = {}
    for k, p in enumerate(page.passes):
        passes.setdefault((p.node, page.nodes[p.node].args[p.position]), []).append(k)
    for k, box in enumerate(boxes):
        ports, edges = [], []
        for i, (arrow, text) in enumerate(zip(box.arrows, labels.locals(box), strict=True)):
            between = passes.get((place[k], place[arrow.source]), []) if place[k] >= 0 else []
            mark = " ".join(map(str, between))
            from_far = [_Text(f"from {boxes[arrow.source].name}")] if (k, i) in far else []  # type: ignore[operator]
            ports.append(from_far + _port(page, text, between, mark))
            edges.append(mark)
        yield _Sign(box, place[k], ports, edges, list(_inside(page, box, place[k], labels)))


def _port(page: LivePage, text: str, between: Sequence[int], mark: str) -> list[_Text]:
    """Return what is said at an arrow: its rule, and the number of an elementwise one."""
    if not text:
        return []
    lines = [_Text(line) for line in lines_of(text, _SMALL_LETTERS)]
    if not between or any(page.passes[p].pull.slope is None for p in between):
        return lines
    if text.rpartition(" = ")[2].lstrip("-").replace(".", "").isdigit():
        return lines  # the derivative is a number already
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
    for k, curve in enumerate(layout.curves):
        yield _curve(curve, chains.get(k, ()))
    for sign, place in zip(signs, layout.places, strict=True):
        yield from _box(page, sign, place)
    yield "</g></svg>"


def _key(x: float, y: float) -> tuple[int, int]:
    return round(x * 10), round(y * 10)


def _chains(layout: Layout, signs: Sequence[_Sign]) -> Mapping[int, Sequence[str]]:
    """Return the passes that each piece of a line belongs to: from an arrowhead up to the box where it begins."""
    ends: dict[tuple[int, int], int] = {}
    for k, c in enumerate(layout.curves):
        ends.setdefault(_key(c.x2, c.y2), k)
    result: dict[int, list[str]] = {}
    for sign, place in zip(signs, layout.places, strict=True):
        for left, wide, edge in zip(place.ports, sign.size().ports, sign.edges, strict=True):
            seen = set[int]()
            k = ends.get(_key(left + wide / 2, place.top), -1)
            while k >= 0 and k not in seen and edge:
                seen.add(k)
                result.setdefault(k, []).append(edge)
                k = ends.get(_key(layout.curves[k].x1, layout.curves[k].y1), -1)
    return result


def _curve(c: Curve, edges: Sequence[str]) -> str:
    """Return a line that begins and ends vertically, with its arrowhead."""
    marks = f' data-passes="{" ".join(edges)}"' if edges else ""
    end = c.y2 - 6 if c.head else c.y2
    x1, y1, x2, y2, middle = map(_short, (c.x1, c.y1, c.x2, end, (c.y1 + end) / 2))
    straight = abs(c.x1 - c.x2) < 0.05
    way = f"V{y2}" if straight else f"C{x1} {middle} {x2} {middle} {x2} {y2}"
    head = f'<path d="M{_short(c.x2 - 4)} {_short(c.y2 - 7)}l4 7l4-7z"/>' if c.head else ""
    return f'<g class="edge"{marks}><path d="M{x1} {y1}{way}"/>{head}</g>'


def _short(coordinate: float) -> str:
    """Return a coordinate, to half a pixel."""
    return f"{round(2 * coordinate) / 2:g}"


def _box(page: LivePage, sign: _Sign, place: Position) -> Iterator[str]:
    size, x, y = sign.size(), place.left, place.top
    ours = f' data-box="{sign.node}"' if sign.node >= 0 else ""
    yield f'<g class="box {sign.box.kind}"{ours}>'
    where = f'x="{_short(x)}" y="{_short(y)}" width="{_short(size.width)}" height="{_short(size.height)}"'
    yield f'<rect {where} rx="{_ROUND[sign.box.kind]}"/>'
    if sign.head:
        yield f'<path class="rule" d="M{_short(x)} {_short(y + sign.head)}h{_short(size.width)}"/>'
    for left, wide, port in zip(place.ports, size.ports, sign.ports, strict=True):
        for k, text in enumerate(port):
            yield _text(page, "local", left + wide / 2, y + 13 + k * _SMALL_LINE, text)
        if left > x + 1 and sign.head:
            yield f'<path class="rule" d="M{_short(left)} {_short(y)}v{_short(sign.head)}"/>'
    for k, (look, text) in enumerate(sign.lines):
        yield _text(page, look, x + _PAD, y + sign.head + 18 + k * _LINE, text)
    yield "</g>"


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
