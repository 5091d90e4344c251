"""Columns of text: equations aligned at their signs, and tables, in a given width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat, zip_longest
from operator import add

from gradcli.text.wrapping import broken, cells, wrapped

GAP = "   "
_NARROW_GAP = "  "  # where columns would have to be made narrower
_SIGN = "= "
_LONGEST_NAME = 24  # columns of a left side that others are aligned with
_WORDS = 14  # columns of a last column of words, where others are made narrower
_LEAST = 10  # columns of a column that is made narrower

Row = Sequence[str]


def pad(text: str, width: int) -> str:
    """Return a text with spaces up to a width in columns."""
    return text + " " * (width - cells(text))


def widths(rows: Sequence[Row]) -> list[int]:
    """Return the width of each column."""
    return [max(map(cells, column)) for column in zip_longest(*rows, fillvalue="")]


def equations(rows: Sequence[Row], notes: Sequence[str], width: int) -> list[list[str]]:
    """Return the lines of each equation, given by its sides, followed by its note.

    Signs of equality are aligned where there is room; long equations are broken at them, or at operators.

    >>> equations([["a", "[1, 2, 3]"], ["b", "w", "[1, 1]"]], ["", ""], 60)
    [['a = [1, 2, 3]'], ['b = w   = [1, 1]']]
    """
    signed = [[row[0], *map(_SIGN.__add__, row[1:])] for row in rows]
    gaps = chain([1], repeat(len(GAP) if len(rows) > 1 else 1))
    sizes = [*map(add, widths([row[:-1] for row in signed]), gaps)]  # nothing follows the last side
    aligned = ["".join([*map(pad, row[:-1], sizes), row[-1]]) for row in signed]
    ends = [len(GAP) + cells(note) for note in notes]
    if all(cells(line) + end <= width for line, end in zip(aligned, ends, strict=True)):
        behind = max(map(cells, aligned), default=0)
        if behind + max(ends, default=0) <= width:
            aligned = [pad(line, behind) if note else line for line, note in zip(aligned, notes, strict=True)]
        return [[f"{line}{GAP}{note}" if note else line] for line, note in zip(aligned, notes, strict=True)]
    names = [cells(row[0]) for row in rows if cells(row[0]) <= _LONGEST_NAME]
    left = max(names, default=0)
    return [_equation(row, note, left, width) for row, note in zip(rows, notes, strict=True)]


def _equation(row: Row, note: str, left: int, width: int) -> list[str]:
    """Return the lines of one equation: on one line, or a line for each sign, or broken at operators."""
    name = pad(row[0], left)
    hang = " " * (cells(name) + 1)
    if len(hang) > width // 2:
        hang = "    "
    whole = " ".join([name, *map(_SIGN.__add__, row[1:])])
    if cells(whole) <= width:
        lines = [whole]
    else:
        lines = [f"{name} "] if len(hang) == cells(name) + 1 else [*broken(name, width), hang]
        for k, side in enumerate(row[1:]):
            parts = broken(_SIGN + side, width - len(hang))
            if k == 0:
                lines[-1] += parts.pop(0)
            elif cells(lines[-1]) + 1 + cells(_SIGN + side) <= width:
                lines[-1] += f" {_SIGN}{side}"
                continue
            lines += [hang + part for part in parts]
    if note and cells(lines[-1]) + len(GAP) + cells(note) <= width:
        lines[-1] += GAP + note
    elif note:
        lines = [*wrapped(note, width), *lines]
    return lines


def table(rows: Sequence[Row], width: int) -> list[list[str]]:
    """Return the lines of each row of a table; where it is too wide, its widest columns are made narrower."""
    sizes, gaps = widths(rows), len(rows[0]) - 1 if rows else 0
    gap = GAP if sum(sizes) + gaps * len(GAP) <= width else _NARROW_GAP
    room = width - gaps * len(gap)
    if sum(sizes) <= room:
        return _laid_out(rows, sizes, gap)
    pieces = ([cells(part) for row in rows for part in broken(row[k], _LEAST)] for k in range(len(sizes)))
    least = [max(_LEAST, *widths) for widths in pieces]  # of what cannot be broken
    tried = [_narrowed(sizes, room, least)]
    if gaps > 1:  # a few words at the end take two lines rather than numbers do
        last = min(sizes[-1], max(_WORDS, least[-1]))
        tried.append([*_narrowed(sizes[:-1], room - last, least[:-1]), last])
    laid_out = [_laid_out(rows, sizes, gap) for sizes in tried]
    return min(
        laid_out,
        key=lambda attempt: (any(cells(line) > width for row in attempt for line in row), sum(map(len, attempt))),
    )


def _laid_out(rows: Sequence[Row], sizes: Sequence[int], gap: str) -> list[list[str]]:
    """Return the lines of each row in columns of these widths."""
    result = []
    for row in rows:
        parts = [broken(cell, size) for cell, size in zip(row, sizes, strict=True)]
        height = max(map(len, parts))
        lines = zip(*(part + [""] * (height - len(part)) for part in parts), strict=True)
        result.append([gap.join(map(pad, line, sizes)).rstrip() for line in lines])
    return result


def _narrowed(sizes: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Return the widths of columns that have the room together: the widest are cut to the same width.

    None is cut below its least width, unless they have no room otherwise.

    >>> _narrowed([30, 40, 12], 62, [10, 28, 10])
    [22, 28, 12]
    """
    if sum(least) > room:
        least = [_LEAST] * len(sizes)
    result = list(sizes)
    while (excess := sum(result) - room) > 0 and (wide := [k for k, size in enumerate(result) if size > least[k]]):
        widest = max(result[k] for k in wide)
        most = [k for k in wide if result[k] == widest]
        lower = max([result[k] for k in wide if result[k] < widest] + [least[k] for k in most])
        cut = min(widest - lower, -(-excess // len(most)))
        for k in most:
            result[k] -= cut
    return result


def blocks(fixed: Sequence[Row], columns: Sequence[Row], width: int) -> list[list[list[str]]]:
    """Return a matrix in blocks of columns, each behind the fixed ones, as the lines of each row.

    Both are given column by column, headings first; a block has no row that says nothing in it.
    """
    taken = sum(max(map(cells, column)) + len(GAP) for column in fixed)
    result, block = [], list(fixed)
    used = taken
    for column in columns:
        size = max(map(cells, column))
        if len(block) > len(fixed) and used + size > width:
            result.append(block)
            block, used = list(fixed), taken
        block.append(column)
        used += size + len(GAP)
    result.append(block)
    rows = ([row for row in zip(*block, strict=True) if any(row[len(fixed) :])] for block in result)
    return [table(shown, width) for shown in rows]
