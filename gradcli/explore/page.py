"""The page of a state: the sections of `gradcli backward`, without formulas at first, with the current step marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from click import unstyle

from gradcli.errors import InputError, Notes
from gradcli.explain.backward.accumulation import backward
from gradcli.explain.backward.backward_page import Choice, backward_pages
from gradcli.explain.results import Wanted
from gradcli.explain.sections import Block, Equations, Grid, Line, Page, Section, Words
from gradcli.explore.state import Explorer, State
from gradcli.plain import spelled
from gradcli.report.pages.table import render
from gradcli.report.render import DIGITS

_NARROWEST = 20  # columns
MARK = "▶ "


class Look(NamedTuple):
    """The settings of a page: whether it has the tables of steps, the marked step (from 1; 0: none), and the width.

    Without `unicode`, in plain characters, of which some take more room.
    """

    steps: bool
    step: int
    width: int
    unicode: bool = True


class Shown(NamedTuple):
    """A page as text: its lines, those of the marked step, how many steps there are, and the notes below it."""

    text: str
    marked: range
    steps: int
    notes: tuple[str, ...]


def shown(explorer: Explorer, state: State, look: Look, formulas: bool) -> Shown:
    """Return the page of a state; without `formulas` (and J) it takes milliseconds."""
    notes = Notes()
    try:
        page = _page(explorer, state, look.steps, formulas, notes)
    except InputError as error:
        return Shown(error.render(look.width), range(0), 0, ())
    count = sum(1 for _ in _rows(page))
    text = _rendered(page, look)
    if not look.unicode and (excess := max(map(len, plainly(unstyle(text)).split("\n"))) - look.width) > 0:
        look = look._replace(width=max(_NARROWEST, look.width - excess))
        text = _rendered(page, look)
    lines = _marked_lines(page, look, text) if 0 < look.step <= count else range(0)
    return Shown(text if look.unicode else plainly(text), lines, count, tuple(notes.lines))


def _rendered(page: Page, look: Look) -> str:
    return render(page, DIGITS, look.width, styled=True, half_blocks=look.unicode)


def plainly(text: str) -> str:
    """Return a text in the characters of ASCII.

    >>> plainly("x̄ = ∂y/∂x")
    'x_bar = dy/dx'
    """
    return text if text.isascii() else "".join(map(spelled, text))


def _page(explorer: Explorer, state: State, steps: bool, formulas: bool, notes: Notes) -> Page:
    wanted = Wanted(steps=steps, page=formulas, implicit=state.implicit)
    result = backward(explorer.graph, explorer.wrt, [state.at], [state.calls], wanted, notes)
    (page,) = backward_pages(result, Choice(jacobian=None if formulas else False))
    return page


def _rows(page: Page) -> Iterator[tuple[int, int]]:
    """Yield the section and the row of each step: an operation of the forward pass, an edge of the reverse pass."""
    for i, section in enumerate(page.sections):
        if section.name == "steps":
            yield from ((i, j) for j in range(_count(section.blocks[0])))


def _count(block: Block) -> int:
    return len(block.lines) if isinstance(block, Equations) else len(block.rows) if isinstance(block, Grid) else 0


def _marked_lines(page: Page, look: Look, text: str) -> range:
    """Return the lines of the current step in a rendered page, which is rendered again with a mark to find the first.

    A long cell is wrapped to lines with an indent, which belong to the step, too.
    """
    position, row = list(_rows(page))[look.step - 1]
    sections = list(page.sections)
    sections[position] = _marked(sections[position], row)
    lines = text.split("\n")
    marked = _rendered(replace(page, sections=tuple(sections)), look).split("\n")
    first = next((k for k, line in enumerate(marked) if MARK in line), 0)
    last = first
    is_aligned = len(marked) == len(lines)  # the mark itself wrapped no further line
    while is_aligned and last + 1 < len(lines) and lines[last + 1].startswith("    "):
        last += 1
    return range(first, last + 1)


def _marked(section: Section, row: int) -> Section:
    block = section.blocks[0]
    if isinstance(block, Equations):
        lines = list(block.lines)
        first, *rest = lines[row].sides
        lines[row] = Line((Words((MARK, first)), *rest), lines[row].note, lines[row].strong)
        return replace(section, blocks=(Equations(tuple(lines)), *section.blocks[1:]))
    assert isinstance(block, Grid)
    rows = list(block.rows)
    cell, *others = rows[row]
    rows[row] = (Words((MARK, cell)), *others)
    return replace(section, blocks=(Grid(block.header, tuple(rows)), *section.blocks[1:]))
