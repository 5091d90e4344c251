"""Three parsers of rows of numbers in CSV, which agree to the last bit.

The reference parser defines what a row and a number are, and raises the errors. The fast ones, pyarrow's where it is
installed and NumPy's where it is not, answer None where they are not certain of doing the same.
"""

from __future__ import annotations

import io
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradcli.data.block import Missing
from gradcli.data.columns import Picked
from gradcli.data.mistakes import quoted
from gradcli.data.text_files import UTF8, Rows
from gradcli.errors import InputError
from gradcli.graph.array import Array, objects

# NumPy takes these for blanks, as the reference parser does not.
_FOREIGN_BLANKS = bytes([*range(0x1C, 0x20), *range(0x80, 0x100)])
_NO_BLANKS = bytes.maketrans(_FOREIGN_BLANKS, b"?" * len(_FOREIGN_BLANKS))
_ARROW_BLOCK = 2**20  # bytes that one of pyarrow's threads parses at a time
_LARGE = re.compile(rb"[eE]\+?\d{3}|\d{300}")  # what may be too large, and is not written as infinity
_ARROW_WIDTH = 500  # columns: pyarrow has objects for each, and NumPy is faster where there are more
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
_DECIMAL = re.compile(r"[-+]?\d{1,40},\d{1,40}(?:[eE][-+]?\d+)?", re.ASCII)
_ROWS = 2**12  # that the reference parser has as text at a time


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

    >>> parse(b"1,2,a\\n3,4,b\\n", Table(",", 3), [1, 0])
    [array([2., 4.]), array([1., 3.])]
    >>> parse(b"1,2,a\\n3,x,b\\n", Table(",", 3), [1, 0])
    """
    if chunk.isspace():
        return None
    try:
        result = (by_arrow if table.width <= _ARROW_WIDTH else by_numpy)(chunk, table, indices)
    except ImportError:
        result = by_numpy(chunk, table, indices)
    if result and any(np.isinf(column).any() for column in result) and _LARGE.search(chunk):
        return None
    return result


def by_arrow(chunk: bytes, table: Table, indices: Sequence[int]) -> list[Array] | None:
    """Parse with pyarrow."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    if chunk.startswith(b"\xef\xbb\xbf"):  # it would be left out, in the middle of the file too
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
    holes = [k for k, column in enumerate(columns) if np.isnan(column).any()]
    if holes and b"(" in chunk:  # nan(…) is a number in C
        return None
    for k in holes:
        columns[k] = _unsigned_nan(columns[k])
    return columns


def by_numpy(chunk: bytes, table: Table, indices: Sequence[int]) -> list[Array] | None:
    """Parse with NumPy."""
    chunk += b"" if chunk.endswith(b"\n") else b"\n"
    if not _rectangular(chunk, table):
        return None
    try:
        result = np.loadtxt(
            io.BytesIO(chunk.translate(_NO_BLANKS)),
            usecols=list(indices),
            delimiter=table.delimiter,
            comments=None,
            ndmin=2,
            encoding="latin1",
        )
    except ValueError:
        return None
    return list(_unsigned_nan(result).T)


def _rectangular(chunk: bytes, table: Table) -> bool:
    """Return whether each line has as many cells as the header: NumPy does not count those that it does not use."""
    characters = np.frombuffer(chunk, np.uint8)
    separators = characters[(characters == ord(table.delimiter)) | (characters == ord("\n"))]
    if separators.size % table.width:
        return False
    newlines = separators.reshape(-1, table.width) == ord("\n")
    return bool(newlines[:, -1].all() and not newlines[:, :-1].any())


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
    while True:
        numbers = array("d")
        copied: list[list[str]] = []
        while len(copied) < size and (some := rows.take(min(size - len(copied), _ROWS))):
            for line, row in some:
                if len(row) != table.width:
                    raise _uneven(rows.label, line, len(row), table.width)
                if table.missing.policy == "skip" and any(_is_missing(row[position]) for position in picked.positions):
                    table.missing.skipped += 1
                    continue
                numbers.extend(_numbers(row, picked, rows.label, line, table.missing))
                copied.append([row[position] for position in picked.copied.values()])
        if not copied:
            return
        columns = _unsigned_nan(np.frombuffer(numbers, dtype=float).reshape(len(copied), -1)).T
        texts = [objects(list(column), (len(copied),)) for column in zip(*copied, strict=True)]
        yield [*columns, *texts]


def _numbers(row: list[str], picked: Picked, label: str, line: int, missing: Missing) -> list[float]:
    result = []
    for position, name in zip(picked.positions, picked.names, strict=True):
        cell = row[position]
        is_missing = _is_missing(cell)
        try:
            result.append(math.nan if is_missing and missing.policy == "nan" else number_in(cell))
        except InputError as error:
            message = f"{label}, line {line}, column {quoted(name)}: {error.message}"
            hint = "--missing skip leaves such points out, --missing nan reads nan" if is_missing else error.hint
            raise InputError(message, hint=hint) from None
    return result


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


def _uneven(label: str, line: int, count: int, width: int) -> InputError:
    return InputError(
        f"{label}, line {line}: {count} cell{'s' * (count != 1)}, where the header has {width}",
        hint="each row has a cell for each column",
    )


def _unsigned_nan(numbers: Array) -> Array:
    """Return the numbers with one kind of nan: parsers differ in its sign."""
    holes = np.isnan(numbers)
    return np.where(holes, np.nan, numbers) if holes.any() else numbers
