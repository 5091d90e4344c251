"""Two parsers of rows of numbers in CSV, which agree to the last bit.

The reference parser, on the `csv` module, defines what a row and a number are, and raises the errors. pyarrow's, where
it is installed, is several times as fast, and answers None where it is not certain of doing the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradcli.data.block import Missing
from gradcli.data.columns import Picked
from gradcli.data.mistakes import quoted
from gradcli.data.text_files import UTF8, Rows
from gradcli.errors import InputError
from gradcli.graph.array import Array, objects

_ARROW_BLOCK = 2**20  # bytes that one of pyarrow's threads parses at a time
_LARGE = re.compile(rb"[eE]\+?\d{3}|\d{300}")  # what may be too large, and is not written as infinity
_ARROW_WIDTH = 500  # columns: pyarrow has objects for each
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
_DECIMAL = re.compile(r"[-+]?\d{1,40},\d{1,40}(?:[eE][-+]?\d+)?", re.ASCII)
_CELLS = 2**18  # that the reference parser has as text at a time


MISSING = "NA"  # as an empty cell


def plain(chunk: bytes) -> bool:
    """Return whether each line of a chunk is one row whose cells are separated by commas alone, without quotes."""
    return b'"' not in chunk and (b"\r" not in chunk or chunk.count(b"\r") == chunk.count(b"\r\n"))


@dataclass(frozen=True)
class Table:
    """The format of the rows: their delimiter, and the number of cells of each."""

    delimiter: str
    width: int
    missing: Missing = field(default_factory=Missing)


def parse(chunk: bytes, table: Table, indices: Sequence[int]) -> list[Array] | None:
    """Return the columns at these indices of a plain chunk, or None where only the reference parser is certain.

    >>> parse(b"1,2,a\\n3,x,b\\n", Table(",", 3), [1, 0])
    """
    if table.width > _ARROW_WIDTH or chunk.isspace() or chunk.startswith(b"\xef\xbb\xbf"):  # a mark is left out
        return None
    try:
        import pyarrow as pa
        import pyarrow.csv as arrow
    except ImportError:
        return None
    names = [str(i) for i in range(table.width)]
    wanted = [names[i] for i in indices]
    try:
        result = arrow.read_csv(
            pa.py_buffer(chunk),
            read_options=arrow.ReadOptions(column_names=names, block_size=_ARROW_BLOCK),
            parse_options=arrow.ParseOptions(delimiter=table.delimiter, quote_char=False),
            convert_options=arrow.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.float64()),
                null_values=["", MISSING] if table.missing.policy == "nan" else [],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    columns = [result.column(i).to_numpy() for i in range(len(wanted))]
    if b"(" in chunk and any(np.isnan(column).any() for column in columns):  # nan(…) is a number in C
        return None
    if any(np.isinf(column).any() for column in columns) and _LARGE.search(chunk):
        return None
    return [_unsigned_nan(column) for column in columns]


def texts_in(chunk: bytes, table: Table, indices: Sequence[int]) -> list[Array]:
    """Return the texts of the columns at these indices of a plain chunk.

    >>> texts_in(b"1,2,a\\n3,4,b\\n", Table(",", 3), [2])
    [array(['a', 'b'], dtype=object)]
    """
    if not indices:
        return []
    rows = [line.split(table.delimiter) for line in chunk.decode(*UTF8).replace("\r", "").split("\n") if line.strip()]
    return [objects([row[index] if index < len(row) else "" for row in rows], (len(rows),)) for index in indices]


def by_reference(rows: Rows, table: Table, picked: Picked, size: int) -> Iterator[list[Array]]:
    """Yield the columns that were picked, at most `size` rows at a time.

    Errors: `InputError` for a row of more or fewer cells than the header, and for a cell that is not a number.

    >>> from gradcli.data.columns import Header
    >>> picked = Header.of(["x0", "x1"], "`p.csv`").pick(["x1"])
    >>> list(by_reference(Rows([b'1,"2"\\n'], "`p.csv`", 2, ","), Table(",", 2), picked, 10))
    [[array([2.])]]
    >>> list(by_reference(Rows([b"1;2_0\\n"], "`p.csv`", 2, ";"), Table(";", 2), picked, 10))
    Traceback (most recent call last):
    gradcli.errors.InputError: `p.csv`, line 2, column `x1`: `2_0` is not a number
    """
    skips = table.missing.policy == "skip"
    while some := rows.take(min(size, max(1, _CELLS // table.width))):
        numbers = None if skips or any(len(row) != table.width for _, row in some) else _numbers(some, picked)
        if numbers is None:
            number_rows = [_row(row, picked, rows.label, line, table) for line, row in some]
            some = [row for row, kept in zip(some, number_rows, strict=True) if kept is not None]
            numbers = np.array([row for row in number_rows if row is not None]).T
        if some:
            texts = [objects([row[k] for _, row in some], (len(some),)) for k in picked.copied.values()]
            yield [*_unsigned_nan(numbers), *texts]


def _numbers(rows: Sequence[tuple[int, list[str]]], picked: Picked) -> Array | None:
    """Return the columns that were picked, if all their cells are finite numbers."""
    columns = [[row[k] for _, row in rows] for k in picked.positions]
    if not all(text.isascii() and "_" not in text for text in map("".join, columns)):
        return None
    try:
        numbers = np.array([[*map(float, cells)] for cells in columns]).reshape(len(columns), -1)
    except ValueError:
        return None
    return None if np.isinf(numbers).any() else numbers


def _row(row: list[str], picked: Picked, label: str, line: int, table: Table) -> list[float] | None:
    """Return the numbers in a row; None for a point to skip, which is counted."""
    if len(row) != table.width:
        cells = f"{len(row)} cell{'s' * (len(row) != 1)}, where the header has {table.width}"
        raise InputError(f"{label}, line {line}: {cells}", hint="each row has a cell for each column")
    policy = table.missing.policy
    if policy == "skip" and any(_is_missing(row[position]) for position in picked.positions):
        table.missing.skipped += 1
        return None
    numbers = []
    for position, name in zip(picked.positions, picked.names, strict=True):
        is_missing = _is_missing(row[position])
        try:
            numbers.append(math.nan if is_missing and policy == "nan" else number_in(row[position]))
        except InputError as error:
            message = f"{label}, line {line}, column {quoted(name)}: {error.message}"
            hint = "--missing skip leaves such points out, --missing nan reads nan" if is_missing else error.hint
            raise InputError(message, hint=hint) from None
    return numbers


def _is_missing(cell: str) -> bool:
    """Return whether a cell is empty, or `NA`."""
    return not (text := cell.strip()) or text == MISSING


def number_in(cell: str) -> float:
    """Return the number in a cell: what Python takes for one, in ASCII and without underscores.

    Errors: `InputError` for a cell that is not a number, and for a number beyond float64; it names the cell alone.
    """
    try:
        result = float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        result = None
    if result is None:
        raise _no_number(cell)
    if math.isinf(result) and "i" not in cell.lower():
        raise InputError(f"{quoted(cell)} is too large", hint="float64 ends near 1.8e308; infinity is `inf`")
    return result


def _no_number(cell: str) -> InputError:
    """Return the error of a cell that is not a number, with a hint.

    >>> _no_number("1,000").hint
    'write `1000` where the comma groups digits, `1.000` where it is a decimal comma'
    """
    text = cell.strip()
    hint = None
    numbers = []
    if _GROUPED.fullmatch(text):
        numbers.append(f"`{text.replace(',', '')}` where the comma groups digits")
    if _DECIMAL.fullmatch(text):
        numbers.append(f"`{text.replace(',', '.')}` where it is a decimal comma")
    if numbers:
        hint = f"write {', '.join(numbers)}"
    return InputError(f"{quoted(cell)} is not a number" if text else "the cell is blank", hint=hint)


def _unsigned_nan(numbers: Array) -> Array:
    """Return the numbers with one kind of nan: parsers differ in its sign."""
    holes = np.isnan(numbers)
    return np.where(holes, np.nan, numbers) if holes.any() else numbers
