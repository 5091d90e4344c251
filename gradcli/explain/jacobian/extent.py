"""The part of a Jacobian that a page shows: all of it if it is a screen or two, or its numbers, or a few entries."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Any

from gradcli.explain.jacobian.product import cell, heading, jacobian_sections, zeros
from gradcli.explain.results import Array, Shown
from gradcli.explain.sections import Equations, Line, Math, Partial, Section, Text, Typed, Value, sentence

SCREEN = 48  # lines of J that a page shows: two screens of 24 lines
_WIDTH = 60  # columns of the narrowest page
_GAP = 3  # columns between two entries
_NUMBER = 10  # columns of a number of six digits
_SIGN = 3  # columns of " = "
_MOST = 2_000  # entries whose formulas are measured: more would keep the reader waiting
_FIRST = 4  # entries that show how a J begins, a line each
_DEFINITIONS = 12  # intermediates that these may need, a line each

_ALL = Typed("--only jacobian")


class Extent(Enum):
    """The part of a Jacobian that is shown."""

    WHOLE = "formulas, and numbers at a point"
    NUMBERS = "numbers alone"
    BEGINNING = "its shape, and a few entries"


def extent(result: Shown, matrix: Array | None) -> Extent:
    """Return how much of a Jacobian fits on a page of 60 columns; `matrix` has its numbers at a point."""
    symbolic = result.formulas
    if len(symbolic.entries) > _MOST or len(symbolic.rows) * len(symbolic.columns) > _MOST:
        return Extent.BEGINNING
    if sum(_lines(result, matrix is not None)) <= SCREEN:
        return Extent.WHOLE
    if matrix is not None and sum(_matrix(result, [_NUMBER] * len(symbolic.columns))) <= SCREEN:
        return Extent.NUMBERS
    return Extent.BEGINNING


def shown_sections(result: Shown, matrix: Array | None) -> list[Section]:
    """Return the sections of J, shortened to a page."""
    match extent(result, matrix):
        case Extent.WHOLE:
            return jacobian_sections(result, matrix)
        case Extent.NUMBERS:
            said = Text(sentence("The formulas are long: {} shows them.", _ALL))
            return [*jacobian_sections(result, matrix, brief=True), Section("jacobian", (said,))]
    return _beginning(result, matrix)


def _beginning(result: Shown, matrix: Array | None) -> list[Section]:
    """Return the section of a J that is too large for a page: its shape, its zeros, and a few entries."""
    symbolic = result.formulas
    rows, columns = len(symbolic.rows), len(symbolic.columns)
    said = f": {rows:,} × {columns:,}{zeros(result, rows, columns)}"
    first = dict(islice(symbolic.entries.items(), _FIRST))
    defined = _needed(result, list(first.values()))
    if len(defined) > _DEFINITIONS and matrix is None:
        first, defined = {}, []
    shown: dict[tuple[int, int], Math] = {index: Value.of(entry) for index, entry in first.items()}
    if matrix is not None:
        shown = {p: Value.of(float(matrix[p])) if defined else cell(e, matrix[p]) for p, e in first.items()}
        defined = []
    lines = [Line((Partial(symbolic.rows[i], symbolic.columns[j]), math)) for (i, j), math in shown.items()]
    begins = Text((*heading(result), said, ". It begins" if lines else ""))
    more = Text(sentence("{} shows all of it; {} and {} write it.", _ALL, Typed("-f json"), Typed("-f csv")))
    sections = [Section("jacobian", (begins, *([Equations(tuple(lines))] if lines else [])))]
    return [*sections, Section("jacobian", (more,))]


def _needed(result: Shown, exprs: list[Any]) -> list[str]:
    """Return the definitions that formulas mention, and those that these mention, in their order."""
    where, pending = result.formulas.where, list(exprs)
    names: set[str] = set()
    while pending:
        mentioned = {str(s) for s in pending.pop().free_symbols} & where.keys() - names
        names |= mentioned
        pending += [where[name] for name in mentioned]
    return [name for name in where if name in names]


def _lines(result: Shown, numbers: bool) -> Iterator[int]:
    """Yield the lines of the parts of J's section: blocks of columns, and definitions."""
    symbolic = result.formulas
    widths = [len(f"∂/∂{column}") for column in symbolic.columns]
    behind = numbers * (_SIGN + _NUMBER)
    for (_, j), entry in symbolic.entries.items():
        widths[j] = max(widths[j], len(result.formula(entry)) + behind)
    yield from _matrix(result, widths)
    for name, expr in symbolic.where.items():
        yield -(-(len(name) + _SIGN + len(result.formula(expr))) // _WIDTH)


def _matrix(result: Shown, widths: list[int]) -> Iterator[int]:
    """Yield the lines of each block of columns, of these widths."""
    symbolic = result.formulas
    taken = used = max(map(len, symbolic.rows)) + _GAP
    if len(symbolic.rows) == 1:  # a line for each derivative
        yield from (-(-width // _WIDTH) for width in widths)
        return
    height = 1
    for width in widths:
        if used > taken and used + width > _WIDTH:
            yield 2 + height * len(symbolic.rows)
            used, height = taken, 1
        height = max(height, -(-width // (_WIDTH - taken)))
        used += width + _GAP
    yield 2 + height * len(symbolic.rows)
