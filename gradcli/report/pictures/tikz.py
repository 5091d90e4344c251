"""A picture for LaTeX: a `tikzpicture`, with mathematics as LaTeX sets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gradcli.errors import InputError
from gradcli.pages.picture.boxes import Box, Picture
from gradcli.pages.sections import Math, Value
from gradcli.report.latex_math import LatexWriter
from gradcli.report.pictures.labels import Labels
from gradcli.report.pictures.layers import Curve, Layout, Position, Size, layered, ranks
from gradcli.report.pictures.render import PLAIN, Options
from gradcli.report.text_math import TextWriter
from gradcli.text.wrapping import cells

_CELL, _LINE = 5.4, 13.0  # points that a letter of the text takes at most, and a line
_LONG = 56  # letters of an equation on one line
_PAD = 8.0
_CORNER = 4  # rows and columns of a large array that are set
_WHOLE = 36
_LARGEST = 16_000  # points: TeX's dimensions end at 16,383

_HEAD = r"""% needs \usepackage{amsmath} and \usepackage{tikz}; wide pictures fit with \resizebox{\linewidth}{!}{...}
\begin{tikzpicture}[x=1pt, y=-1pt, every node/.style={inner sep=2pt},
  box/.style={draw=black!45, fill=black!3, align=left, anchor=north west, inner sep=4pt},
  leaf/.style={box, draw=green!45!black, fill=green!6, rounded corners=5pt},
  intermediate/.style={box},
  output/.style={box, draw=blue!60!black, fill=blue!6, line width=1.2pt},
  local/.style={font=\scriptsize, anchor=south, text=black!70}]"""


class _Line(NamedTuple):
    """A line of LaTeX, and the room that it takes: letters, and lines of text."""

    latex: str
    letters: float
    height: float


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as a `tikzpicture`."""
    return "\n".join(_Drawing(picture, digits, options.horizontal).lines()) + "\n"


class _Drawing:
    def __init__(self, picture: Picture, digits: int | None, horizontal: bool) -> None:
        self.picture = picture
        self.horizontal = horizontal
        self.text, self.latex = TextWriter(picture.style, digits), LatexWriter(picture.style, digits)
        self.foot = Labels(picture, digits, self.latex).foot()
        self.bodies = [
            [
                *(line for sides in (*box.statements, box.equation(), box.reverse()) for line in self.equation(sides)),
                *(line for rounds in box.shown_rounds for line in self.equation(rounds.math())),
                *self.paths(box),
            ]
            for box in picture.boxes
        ]
        self.ports = [[self.line((a.local,)) if a.local is not None else None for a in b.arrows] for b in picture.boxes]

    def lines(self) -> Iterator[str]:
        sources = [[a.source for a in box.arrows] for box in self.picture.boxes]
        ranked = ranks(sources)
        sizes = [self.size(k) for k in range(len(sources))]
        layout = layered(sizes, sources, ranked, self.horizontal)
        _check_size(layout)
        yield _HEAD
        for k, (position, size) in enumerate(zip(layout.positions, sizes, strict=True)):
            far = [self.picture.boxes[s] if (k, i) in ranked.far else None for i, s in enumerate(sources[k])]
            yield from self.box(k, position, size, far)
        yield from (_curve(c, self.horizontal) for c in layout.curves)
        yield from self.below(layout)
        yield r"\end{tikzpicture}"

    def equation(self, sides: Sequence[Math]) -> list[_Line]:
        """Return an equation on one line, or with its last side on another."""
        if not sides:
            return []
        whole = self.line(tuple(sides))
        if whole.letters <= _LONG or len(sides) < 2:
            return [whole]
        first, last = self.line(tuple(sides[:-1])), self.line(tuple(sides[-1:]))
        return [first._replace(latex=f"{first.latex} ="), last._replace(latex=rf"\quad {last.latex}")]

    def paths(self, box: Box) -> list[_Line]:
        """Return the contributions along the paths into a box, a line each."""
        shown = Labels(self.picture, self.text.digits).paths(box)
        latex = Labels(self.picture, self.text.digits, self.latex).paths(box)
        return [_Line(rf"\scriptstyle {line}", 0.8 * cells(text), 1.0) for line, text in zip(latex, shown, strict=True)]

    def line(self, sides: tuple[Math, ...]) -> _Line:
        """Return the sides of an equation on one line."""
        rooms = [self.room(side) for side in sides]
        letters = sum(room[0] for room in rooms) + 3 * (len(sides) - 1)
        return _Line(" = ".join(self.latex.sides(sides)), letters, max(room[1] for room in rooms))

    def room(self, math: Math) -> tuple[float, float]:
        """Return how many letters and lines mathematics takes."""
        if isinstance(math, Value) and math.array.ndim:
            array = np.asarray(math.array)
            whole = array.size <= _WHOLE
            rows = int(np.prod(array.shape[:-1])) if array.ndim > 1 else 1
            some = array.reshape(-1)[:_WHOLE].tolist()
            widest = max((len(self.text.element(e)) for e in some), default=1)
            columns = array.shape[-1] if whole else min(array.shape[-1], _CORNER)
            return columns * (widest + 2.0) + 4, max(1.0, 0.95 * (rows if whole else min(rows, _CORNER)) + 0.4)
        text = self.text.write(math)
        return cells(text), 2.5 if "where(" in text else 1.7 if "/" in text else 1.2

    def size(self, k: int) -> Size:
        """Return the size of a box: its height in place of its width if the picture is horizontal."""
        size = max(line.letters for line in self.bodies[k]) * _CELL + 2 * _PAD
        height = sum(map(_height, self.bodies[k])) + _PAD
        if self.horizontal:
            return Size.of(height, self.head(k) + size, [_height(line) if line else 16.0 for line in self.ports[k]])
        ports = [max(20.0, _small(line)) if line else 20.0 for line in self.ports[k]]
        return Size.of(size, self.head(k) + height, ports)

    def head(self, k: int) -> float:
        """Return the height of the labels of the arrows into a box, or their width where these are on the left."""
        return max((_small(line) if self.horizontal else _height(line) for line in self.ports[k] if line), default=0.0)

    def box(self, k: int, position: Position, size: Size, far: Sequence[Box | None]) -> Iterator[str]:
        kind, head = self.picture.boxes[k].kind, self.head(k)
        text = r" \\[2pt] ".join(f"${line.latex}$" for line in self.bodies[k])
        left, top = (position.left + head, position.top) if self.horizontal else (position.left, position.top + head)
        wide, high = (size.height - head, size.width) if self.horizontal else (size.width, size.height - head)
        if head:
            across, along = (head, high) if self.horizontal else (wide, head)
            corner = f"({position.left:.1f},{position.top:.1f})"
            yield rf"\path[{kind}] {corner} rectangle ++({across:.1f},{along:.1f});"
        extent = f"minimum width={wide:.1f}pt, minimum height={high:.1f}pt"
        yield rf"\node[{kind}, {extent}] at ({left:.1f},{top:.1f}) {{{text}}};"
        if self.picture.boxes[k].repeats:
            yield from _return(self.picture.boxes[k].times, left + wide, top, high)
        for start, room, line, source in zip(position.ports, size.ports, self.ports[k], far, strict=True):
            said = [rf"{self.latex.names(source.name)} \to"] if source is not None else []
            said += [line.latex] if line is not None else []
            if said:
                middle = start + room / 2
                anchor = ", anchor=east" if self.horizontal else ""
                at = f"({left:.1f},{middle:.1f})" if self.horizontal else f"({middle:.1f},{top:.1f})"
                yield rf"\node[local{anchor}] at {at} {{$\displaystyle {' '.join(said)}$}};"

    def below(self, layout: Layout) -> Iterator[str]:
        if self.foot:
            text = r" \\ ".join(f"${line}$" for line in self.foot)
            yield rf"\node[anchor=north west, align=left] at (0,{layout.height + 12:.1f}) {{{text}}};"


def _return(times: int, x: float, top: float, high: float) -> Iterator[str]:
    """Yield the arrow that returns from the end of a box to its beginning, and how many rounds there are."""
    low = top + high - 8
    yield rf"\draw[-stealth, black!55] ({x:.1f},{low:.1f}) -- ++(16,0) -- ({x + 16:.1f},{top + 8:.1f}) -- ++(-16,0);"
    yield rf"\node[local, anchor=west] at ({x + 18:.1f},{top + high / 2:.1f}) {{${times}\times$}};"


def _check_size(layout: Layout) -> None:
    """Raise an error for a picture that is too large for TeX."""
    if max(layout.width, layout.height) > _LARGEST:
        size = f"{layout.width:,.0f} by {layout.height:,.0f} points, and TeX measures no more than {_LARGEST:,}"
        hint = "choose some with --outputs; -f svg and -f dot have no such limit"
        raise InputError(f"the picture would be {size}", hint=hint)


def _height(line: _Line) -> float:
    return line.height * _LINE + 2


def _small(line: _Line) -> float:
    """Return the width of an arrow's label."""
    return 0.8 * line.letters * _CELL


def _curve(c: Curve, horizontal: bool) -> str:
    x, y = (c.x1 + c.x2) / 2, (c.y1 + c.y2) / 2
    bends = ((x, c.y1), (x, c.y2)) if horizontal else ((c.x1, y), (c.x2, y))
    way = " and ".join(f"({bx:.1f},{by:.1f})" for bx, by in bends)
    head = "-stealth" if c.head else "-"
    return rf"\draw[{head}, black!55] ({c.x1:.1f},{c.y1:.1f}) .. controls {way} .. ({c.x2:.1f},{c.y2:.1f});"
