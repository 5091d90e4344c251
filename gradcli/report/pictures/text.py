"""A picture for a terminal: a line for each value, lanes beside the lines from each value to what uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradcli.explain.picture.boxes import Box, Picture
from gradcli.explain.sections import Images
from gradcli.report.image_text import image_lines
from gradcli.report.layout import GAP, pad
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, legend
from gradcli.report.pictures.lanes import Lanes
from gradcli.report.pictures.options import PLAIN, Options
from gradcli.report.text_math import TextWriter
from gradcli.wrapping import TIED, broken, cells, page_width, wrapped

SIGNS = {LEAF: "○", INTERMEDIATE: "●", OUTPUT: "◆"}
_LONGEST_NAME = 12  # columns of a name that signs of equality are aligned behind
_ROOM = 34  # columns that lanes leave to text


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as lines as wide as the page, each value before what uses it."""
    width = page_width()
    lanes = Lanes(max(3, (width - _ROOM) // 2))
    sources = [[a.source for a in box.arrows] for box in picture.boxes]
    rows = list(lanes.rows(sources, [SIGNS[box.kind] for box in picture.boxes]))
    beside = max(cells(part) for row in rows for part in row) + len(GAP)
    lines: list[str] = []
    for row, texts in zip(rows, _Columns(picture, digits, width - beside).lines(), strict=True):
        margins = [row.first, *[row.after] * (len(texts) - 1)]
        lines += [f"{pad(margin, beside)}{text}".rstrip() for margin, text in zip(margins, texts, strict=True)]
    lines += ["", *_foot(picture, digits, lanes.lost, width)]
    writer = TextWriter(picture.style, digits)
    for panels in filter(None, (box.panels() for box in picture.boxes)):
        lines += ["", *image_lines(Images(tuple(panels)), writer, width, options.styled)]
    return "\n".join(lines) + "\n"


def _foot(picture: Picture, digits: int | None, lost: int, width: int) -> Iterator[str]:
    """Yield the legend: the signs, the meaning of adjoints, and the number of values without a lane."""
    parts = [legend(list(SIGNS.items()), picture), *Labels(picture, digits).foot()]
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
        self.first = max((cells(r.equation) for r in self.rows if cells(r.equation) <= room // 2), default=0)
        self.second = max((cells(r.reverse) for r in self.rows if cells(r.reverse) <= room // 3), default=0)

    def lines(self) -> Iterator[list[str]]:
        """Yield the lines of each value."""
        whole = sum(map(self._fits, self.rows)) * 2 >= len(self.rows)
        for row in self.rows:
            yield [self._line(row, *row[1:])] if whole and self._fits(row) else list(self._below(row))

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
