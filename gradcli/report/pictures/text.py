"""A picture for a terminal: a line for each value, lanes beside the lines from each value to what uses it.

The lanes are as `git log --graph` draws them: one for each value, as long as it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gradcli.pages.picture.boxes import Box, Picture
from gradcli.pages.sections import Images
from gradcli.report.image_text import image_lines
from gradcli.report.layout import GAP, pad
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels
from gradcli.report.pictures.render import PLAIN, Options
from gradcli.report.text_math import TextWriter
from gradcli.text.painted import painted
from gradcli.text.wrapping import TIED, broken, cells, page_width, wrapped

SIGNS = {LEAF: "○", INTERMEDIATE: "●", OUTPUT: "◆"}
LOOP = "↻"
_LONGEST_NAME = 12  # columns of a name that signs of equality are aligned behind
_ROOM = 34  # columns that lanes leave to text


class Row(NamedTuple):
    """The lanes beside one entry: at its first line, and at the lines after it."""

    first: str
    after: str


@dataclass
class Lanes:
    """Draws lanes; a value that finds none free of the `most` that there may be has no line."""

    most: int
    lanes: list[int | None] = field(default_factory=list)  # which entry's value is in each
    lost: int = 0

    def rows(self, sources: Sequence[Sequence[int]], signs: Sequence[str]) -> Iterator[Row]:
        """Yield the lanes of each entry, which reads the values of earlier ones, its `sources`, and has a sign.

        >>> for row in Lanes(8).rows([[], [0], [0, 1]], "ooo"):
        ...     print(row.first)
        o
        ├─o
        o─╯
        """
        last: dict[int | None, int] = {s: k for k, values in enumerate(sources) for s in values}
        for k, values in enumerate(sources):
            read = {lane for lane, value in enumerate(self.lanes) if value in values}
            ending = {lane for lane in read if last.get(self.lanes[lane]) == k}
            new = self._free_lane(read, ending)
            first = self._line(new, read, ending, signs[k])
            for lane in ending:
                self.lanes[lane] = None
            if new < self.most:
                self.lanes += [None] * (new + 1 - len(self.lanes))
                self.lanes[new] = k if k in last else None
            elif k in last:
                self.lost += 1
            while self.lanes and self.lanes[-1] is None:
                self.lanes.pop()
            yield Row(first, " ".join(" " if value is None else "│" for value in self.lanes))

    def _free_lane(self, read: set[int], ending: set[int]) -> int:
        """Return the lane of a new value: one that ends, or the free one that is nearest to what it reads."""
        if ending:
            return min(ending)
        free = [lane for lane, value in enumerate(self.lanes) if value is None]
        if len(self.lanes) < self.most or not free:
            free.append(len(self.lanes))
        middle = sum(read) / len(read) if read else 0
        return min(free, key=lambda lane: abs(lane - middle))

    def _line(self, new: int, read: set[int], ending: set[int], sign: str) -> str:
        left, right = min([new, *read]), max([new, *read])
        parts = []
        for lane in range(max(len(self.lanes), new + 1)):
            live = lane < len(self.lanes) and self.lanes[lane] is not None
            if lane == new:
                parts.append(sign)
            elif lane in read:
                ends = lane in ending
                parts.append(("╰" if ends else "├") if lane == left else ("╯" if ends else "┤") if lane == right
                             else ("┴" if ends else "┼"))  # fmt: skip
            else:
                parts.append("│" if live else "─" if left < lane < right else " ")
            parts.append("─" if left <= lane < right else " ")
        return "".join(parts[:-1])


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as lines as wide as the page, each value before what uses it."""
    width = options.width or page_width()
    lanes = Lanes(max(3, (width - _ROOM) // 2))
    sources = [[a.source for a in box.arrows] for box in picture.boxes]
    rows = list(lanes.rows(sources, [LOOP if box.repeats else SIGNS[box.kind] for box in picture.boxes]))
    beside = max(cells(part) for row in rows for part in row) + len(GAP)
    lines: list[str] = []
    for row, texts in zip(rows, _Columns(picture, digits, width - beside).lines(), strict=True):
        margins = [row.first, *[row.after] * (len(texts) - 1)]
        lines += [f"{pad(margin, beside)}{text}".rstrip() for margin, text in zip(margins, texts, strict=True)]
    lines += ["", *_foot(picture, digits, lanes.lost, width)]
    if options.styled:
        lines = [*map(painted, lines)]
    writer = TextWriter(picture.style, digits)
    for panels in filter(None, (box.panels() for box in picture.boxes)):
        lines += ["", *image_lines(Images(tuple(panels)), writer, width, options.styled)]
    return "\n".join(lines) + "\n"


def _foot(picture: Picture, digits: int | None, lost: int, width: int) -> Iterator[str]:
    """Yield the legend: the signs, the meaning of adjoints, and the number of values without a lane."""
    kinds = {box.kind for box in picture.boxes}
    signs = [f"{sign} {kind}" for kind, sign in SIGNS.items() if kind in kinds]
    signs += [f"{LOOP} loop"] * any(box.repeats for box in picture.boxes)
    parts = [GAP.join(signs), *Labels(picture, digits).foot()]
    whole = GAP.join(parts)
    for line in [whole] if cells(whole) <= width else parts:
        yield from wrapped(line, width, "  ")
    if lost:
        yield from wrapped(f"{lost:,} values have no line to their uses: the page is too narrow.", width)


class _Cells(NamedTuple):
    """The three texts of one value: its equation, its adjoint's, and the labels of the arrows into it."""

    equation: str
    reverse: str
    local: str


class _Columns:
    """Three columns of text; what does not fit into one has lines of its own."""

    def __init__(self, picture: Picture, digits: int | None, room: int) -> None:
        self.room = room
        labels = Labels(picture, digits)
        sides = [labels.equation(box) for box in picture.boxes]
        self.name = max((cells(s[0]) for s in sides if len(s) > 1 and cells(s[0]) <= _LONGEST_NAME), default=0)
        bars = [labels.reverse(box) for box in picture.boxes]
        bar = max((cells(b[0]) for b in bars if b and cells(b[0]) <= _LONGEST_NAME), default=0)
        self.rows = [
            _Cells(_equation(s, self.name), _equation(b, bar), _arrows(labels, box))
            for s, b, box in zip(sides, bars, picture.boxes, strict=True)
        ]
        hang = " " * min(self.name + len(" = "), room // 4)
        self.loops = [
            (
                [line for s in box.statements for line in broken(" = ".join(labels.writer.sides(s)), room, hang)],
                [hang + labels.rounds_line(rounds) for rounds in box.shown_rounds],
            )
            for box in picture.boxes
        ]
        self.first = max((cells(r.equation) for r in self.rows if cells(r.equation) <= room // 2), default=0)
        self.second = max((cells(r.reverse) for r in self.rows if cells(r.reverse) <= room // 3), default=0)

    def lines(self) -> Iterator[list[str]]:
        """Yield the lines of each value."""
        whole = sum(map(self._fits, self.rows)) * 2 >= len(self.rows)
        for row, (before, behind) in zip(self.rows, self.loops, strict=True):
            fits = whole and self._fits(row)
            yield [*before, *([self._line(row, *row[1:])] if fits else self._below(row)), *behind]

    def _fits(self, row: _Cells) -> bool:
        behind = cells(row.local) + len(GAP) if row.local else 0
        two = self.first + (self.second + len(GAP) if self.second else 0)
        return cells(row.equation) <= self.first and cells(row.reverse) <= self.second and two + behind <= self.room

    def _line(self, row: _Cells, *behind: str) -> str:
        sizes = [self.first, self.second] if self.second else [self.first]
        texts = [row.equation, *(behind if self.second else behind[1:])]
        line = GAP.join([pad(text, size) for text, size in zip(texts, [*sizes, 0], strict=False)])
        return line.replace(TIED, " ").rstrip()

    def _below(self, row: _Cells) -> Iterator[str]:
        """Yield the lines of a value whose labels of arrows, and adjoint if it is long, are below it."""
        hang = " " * min(self.name + len(" = "), self.room // 4)
        if cells(row.equation) <= self.first and cells(row.reverse) <= self.second and row.reverse:
            yield self._line(row, row.reverse)
        else:
            yield from broken(row.equation, self.room, hang)
            if row.reverse:
                yield from (hang + line for line in broken(row.reverse, self.room - len(hang)))
        if row.local:
            yield from (hang + line for line in wrapped(row.local, self.room - len(hang), "  "))


def _equation(sides: list[str], left: int) -> str:
    return " = ".join([pad(sides[0], left) if len(sides) > 1 else sides[0], *sides[1:]]) if sides else ""


def _arrows(labels: Labels, box: Box) -> str:
    groups = (filter(None, labels.locals(box)), labels.paths(box))
    return "; ".join(", ".join(t.replace(" ", TIED) for t in texts) for texts in map(list, groups) if texts)
