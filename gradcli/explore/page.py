"""The page of a state: the sections of `gradcli backward`, without formulas at first, or as far as the current step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from click import unstyle

from gradcli.errors import InputError, Notes
from gradcli.explore.state import Explorer, State
from gradcli.pages.backward.page import backward_pages
from gradcli.pages.backward.question import Gradients
from gradcli.pages.picture.boxes import Picture, View
from gradcli.pages.picture.picture import least_boxes, picture
from gradcli.pages.results import Wanted
from gradcli.pages.sections import Block, Equations, Grid, Line, Page, Section, Text, Value, Words
from gradcli.report.documents.table import render
from gradcli.report.pictures.render import Options, render_picture
from gradcli.report.render import DIGITS
from gradcli.text.plain import spelled
from gradcli.text.wrapping import cells

_NARROWEST = 20  # columns
_BOXES = 40  # of a picture beside a page
_LEAST = 40  # columns of one
_LONGER = 12  # columns that the bars of a row take in plain characters
_GAP = "   "
MARK = "▶ "
UNKNOWN = "…"
_LATER = "The gradients are shown with the last step."


class PageSettings(NamedTuple):
    """The settings of a page: whether it has the tables of steps, the step that it goes to (from 1; 0: all), its width.

    Without `unicode`, in plain characters, of which some take more room.  The picture of the system is shown where
    there is room for it, in so many rows; with `graph` in any case, below the page.
    """

    steps: bool
    step: int
    width: int
    unicode: bool = True
    rows: int = 0
    graph: bool = False


class Shown(NamedTuple):
    """A page as text: its lines, those of the marked step, how many steps there are, and the notes below it."""

    text: str
    marked: range
    steps: int
    notes: tuple[str, ...]


def shown(explorer: Explorer, state: State, settings: PageSettings, formulas: bool) -> Shown:
    """Return the page of a state; without `formulas` (and J) it takes milliseconds."""
    notes = Notes()
    try:
        page = _page(explorer, state, settings.steps, formulas, notes)
    except InputError as error:
        return Shown(error.render(settings.width), range(0), 0, ())
    count = sum(1 for _ in _rows(page))
    if 0 < settings.step < count:
        page, notes = _up_to(page, settings.step), Notes()
    text = _rendered(page, settings)
    if not settings.unicode and (excess := max(map(len, plainly(unstyle(text)).split("\n"))) - settings.width) > 0:
        settings = settings._replace(width=max(_NARROWEST, settings.width - excess))
        text = _rendered(page, settings)
    lines = _marked_lines(page, settings, text) if 0 < settings.step <= count else range(0)
    if settings.step in (0, count):
        text = _with_picture(text, explorer, state, settings)
    return Shown(text if settings.unicode else plainly(text), lines, count, tuple(notes.lines))


def _with_picture(text: str, explorer: Explorer, state: State, settings: PageSettings) -> str:
    """Return a page with the picture of its system beside it, or below it, where there is room for all of it."""
    if least_boxes(explorer.graph) > _BOXES:
        return text
    drawing = picture(explorer.graph, View(explorer.wrt, state.at, state.calls[-1]))
    lines = text.rstrip("\n").split("\n")
    widest = max(cells(unstyle(line)) for line in lines)
    room = settings.width - widest - len(_GAP)
    if room >= _LEAST and settings.unicode and not settings.graph:
        beside = _drawn(drawing, room)
        if max(cells(unstyle(line)) for line in beside) <= room and max(len(beside), len(lines)) <= settings.rows:
            rows = zip_longest(lines, beside, fillvalue="")
            return "\n".join(f"{a}{' ' * (widest - cells(unstyle(a)))}{_GAP}{b}".rstrip() for a, b in rows)
    below = _drawn(drawing, settings.width - (0 if settings.unicode else _LONGER))
    fits = len(lines) + 1 + len(below) <= settings.rows
    return "\n".join([*lines, "", *below]) if fits or settings.graph else text


def _drawn(drawing: Picture, width: int) -> list[str]:
    return render_picture(drawing, "text", DIGITS, Options(styled=True, width=width)).rstrip("\n").split("\n")


def _up_to(page: Page, step: int) -> Page:
    """Return the page with the numbers of the steps up to one alone; each later step still has its row."""
    sections, before = [], 0
    for section in page.sections:
        if section.name == "steps":
            block = section.blocks[0]
            sections.append(replace(section, blocks=(_known(block, step - before), *section.blocks[1:])))
            before += _count(block)
    weights = [section for section in page.sections if section.name == "v"]
    return replace(page, sections=(*weights, *sections, Section("steps", (Text((_LATER,)),))))


def _known(block: Block, count: int) -> Block:
    """Return a table with as many rows of numbers; a later one has the formula of its value, or nothing."""
    count = max(0, count)
    if isinstance(block, Equations):
        return Equations((*block.lines[:count], *map(_without_value, block.lines[count:])))
    assert isinstance(block, Grid)
    unknown = (UNKNOWN, *[""] * (len(block.header) - 1))
    return Grid(block.header, (*block.rows[:count], *[unknown] * len(block.rows[count:])))


def _without_value(line: Line) -> Line:
    """Return an equation without the value of what is computed; that of an input is known."""
    computed = len(line.sides) > len(("name", "value")) and isinstance(line.sides[-1], Value)
    return replace(line, sides=line.sides[:-1]) if computed else line


def _rendered(page: Page, settings: PageSettings) -> str:
    return render(page, DIGITS, settings.width, styled=True, half_blocks=settings.unicode)


def plainly(text: str) -> str:
    """Return a text in the characters of ASCII.

    >>> plainly("x̄ = ∂y/∂x")
    'x_bar = dy/dx'
    """
    return text if text.isascii() else "".join(map(spelled, text))


def _page(explorer: Explorer, state: State, steps: bool, formulas: bool, notes: Notes) -> Page:
    wanted = Wanted(steps=steps, page=formulas, implicit=state.implicit)
    result = Gradients(explorer.graph, explorer.wrt, wanted, [state.calls]).result([state.at], notes)
    (page,) = backward_pages(result, jacobian=None if formulas else False)
    return page


def _rows(page: Page) -> Iterator[tuple[int, int]]:
    """Yield the section and the row of each step: an operation of the forward pass, an edge of the reverse pass."""
    for i, section in enumerate(page.sections):
        if section.name == "steps":
            yield from ((i, j) for j in range(_count(section.blocks[0])))


def _count(block: Block) -> int:
    return len(block.lines) if isinstance(block, Equations) else len(block.rows) if isinstance(block, Grid) else 0


def _marked_lines(page: Page, settings: PageSettings, text: str) -> range:
    """Return the lines of the current step in a rendered page, which is rendered again with a mark to find the first.

    A long cell is wrapped to lines with an indent, which belong to the step, too.
    """
    position, row = list(_rows(page))[settings.step - 1]
    sections = list(page.sections)
    sections[position] = _marked(sections[position], row)
    lines = text.split("\n")
    marked = _rendered(replace(page, sections=tuple(sections)), settings).split("\n")
    first = next((k for k, line in enumerate(marked) if MARK in line), 0)
    last = first
    is_aligned = len(marked) == len(lines)  # the mark itself wrapped no further line
    while is_aligned and last + 1 < len(lines) and lines[last + 1].startswith("    "):
        last += 1
    return range(first, last + 1)


def _marked(section: Section, row: int) -> Section:
    block, *others = section.blocks
    if isinstance(block, Equations):
        lines = [*block.lines]
        first, *rest = lines[row].sides
        lines[row] = replace(lines[row], sides=(Words((MARK, first)), *rest))
        block = Equations(tuple(lines))
    elif isinstance(block, Grid):
        rows = [*block.rows]
        first, *rest = rows[row]
        rows[row] = (Words((MARK, first)), *rest)
        block = Grid(block.header, tuple(rows))
    return replace(section, blocks=(block, *others))
