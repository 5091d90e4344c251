"""Points in a CSV file: a header line, a column for each element, one row a point.

Two parsers of rows agree to the last bit.  The reference parser, on the `csv` module, defines what a row and a number
are, and raises the errors.  pyarrow's, where it is installed, is several times as fast, and answers None where it is
not certain of doing the same.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from gradcli.data.block import MISSING_HINT, Block, Missing, Reading
from gradcli.data.columns import Header, Picked, element
from gradcli.data.mistakes import about_file, quoted
from gradcli.data.text_files import UTF8, Rows, TextPoints, chunks
from gradcli.errors import InputError
from gradcli.graph.array import Array

_SNIFFED = 2**16  # bytes of the header; the standard library takes no longer cell without being asked
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


def parse(chunk: bytes, table: Table, indices: Sequence[int], copied: Sequence[int] = ()) -> list[Array] | None:
    """Return the columns of numbers at some indices of a plain chunk, and of texts that are `copied`.

    None where only the reference parser is certain.

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

    def read(indices: Sequence[int], kind: Any) -> list[Array]:
        wanted = [names[i] for i in indices]
        result = arrow.read_csv(
            pa.py_buffer(chunk),
            read_options=arrow.ReadOptions(column_names=names, block_size=_ARROW_BLOCK),
            parse_options=arrow.ParseOptions(delimiter=table.delimiter, quote_char=False),
            convert_options=arrow.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, kind),
                null_values=["", MISSING] if table.missing.policy == "nan" else [],
                strings_can_be_null=False,
            ),
        )
        return [result.column(i).to_numpy() for i in range(len(wanted))]

    try:
        columns = read(indices, pa.float64())
        texts = read(copied, pa.string()) if copied else []
    except pa.ArrowException:
        return None
    if b"(" in chunk and any(np.isnan(column).any() for column in columns):  # nan(…) is a number in C
        return None
    if any(np.isinf(column).any() for column in columns) and _LARGE.search(chunk):
        return None
    return [*map(_unsigned_nan, columns), *texts]


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
            texts = [np.array([row[k] for _, row in some], dtype=object) for k in picked.copied.values()]
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
            raise InputError(message, hint=MISSING_HINT if is_missing else error.hint) from None
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


class CsvPoints(TextPoints):
    """Points in a CSV file, or on standard input."""

    _chunks: Iterator[tuple[int, bytes]]

    def _begin(self, how: Reading) -> None:
        self._chunks = chunks(self._file, self._label)
        self.columns = self._read_header(how.headers)
        self._header = Header.of(self.columns, self._label, how)
        self.shapes = self._header.shapes

    def _read_header(self, headers: Collection[str]) -> list[str]:
        """Return the names of the columns, detect the delimiter, and return unread bytes to the chunks.

        Lines in front that begin with `#` are comments; the last of them has the names where numbers follow it, as
        `numpy.savetxt` writes them.
        """
        line, first = next((some for some in self._chunks if not some[1].isspace()), (1, b""))
        comment = b""
        while first.lstrip().startswith(b"#"):
            comment, _, first = first.lstrip().partition(b"\n")
            line += 1
            if not first.strip():
                line, first = next(self._chunks, (line, b""))
        if comment and _is_numbers(first):
            first = comment.lstrip(b"# ") + b"\n" + first
            line -= 1
        delimiter = _delimiter(first, headers)
        if delimiter == " ":
            first, self._chunks = _single_blanks(first), ((n, _single_blanks(c)) for n, c in self._chunks)
        texts = chain([first], (chunk for _, chunk in self._chunks))
        rows = Rows(texts, self._label, line, delimiter)
        for _, names in rows.take(1):
            self._table = Table(delimiter, len(names), self._missing)
            rest = rows.rest()
            self._chunks = chain([(rows.line, rest)] if rest else [], self._chunks)
            return names
        hint = "its first line names the columns: x0,x1 or x[0],x[1]; each row is a point"
        raise about_file(self._label, "is empty", hint)

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        picked = self._header.pick(names)
        parts = ((some, k) for some in self._columns(picked, size) for k in range(0, len(some[0]), size))
        return (picked.block([column[k : k + size] for column in some]) for some, k in parts)

    def _columns(self, picked: Picked, size: int) -> Iterator[list[Array]]:
        """Yield the columns that were picked, a chunk at a time, each by pyarrow's parser where that is certain."""
        for line, chunk in self._chunks:
            if not plain(chunk):  # a cell may hold newlines: a chunk need not end where a row does
                rest = chain([chunk], (chunk for _, chunk in self._chunks))
                yield from self._slowly(rest, line, picked, size)
                return
            columns = parse(chunk, self._table, picked.positions, [*picked.copied.values()])
            yield from [columns] if columns is not None else self._slowly([chunk], line, picked, size)

    def _slowly(self, chunks: Iterable[bytes], line: int, picked: Picked, size: int) -> Iterator[list[Array]]:
        return by_reference(Rows(chunks, self._label, line, self._table.delimiter), self._table, picked, size)


def _delimiter(chunk: bytes, headers: Collection[str] = ()) -> str:
    r"""Return the delimiter that gives most names in a header: a comma, a semicolon, a tab, or else a blank.

    `headers` are texts that are known to be names.  Of delimiters that give as many names, the one with more cells is
    taken, and of those the first.

    >>> _delimiter(b"x0,x1\n"), _delimiter(b'"M[0,1]";b\n'), _delimiter(b"the date\tx0\n"), _delimiter(b"1;2\n")
    (',', ';', '\t', ';')
    >>> _delimiter(b"temp (a,b);p Pa;q\n", ["p Pa"]), _delimiter(b"x0 x1\n"), _delimiter(b"flow rate,p\n")
    (';', ' ', ',')
    """
    text = chunk.lstrip()[:_SNIFFED].decode(*UTF8)

    def names(delimiter: str) -> tuple[int, int]:
        header: list[str] = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
        return sum(element(cell) is not None or cell.strip() in headers for cell in header), len(header)

    best = max(",;\t", key=names)  # of equals, the first
    return best if names(best)[1] > 1 or names(" ")[0] < 2 else " "


def _single_blanks(chunk: bytes) -> bytes:
    r"""Return lines whose cells are aligned with blanks as lines with one blank between cells.

    >>> _single_blanks(b"  1.5   2\r\n 3 4 \n")
    b'1.5 2\r\n3 4\n'
    """
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" +", b" ", chunk))


def _is_numbers(chunk: bytes) -> bool:
    """Return whether the first line is one of numbers, whatever separates them."""
    cells = re.split(rb"[,;\s]+", chunk.lstrip().partition(b"\n")[0].strip())
    try:
        return bool([float(cell) for cell in cells])
    except ValueError:
        return False
