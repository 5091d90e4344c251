"""A CSV file as chunks of whole lines, and as the rows that the standard library reads in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from gradcli.data.mistakes import reading
from gradcli.errors import InputError

CHUNK = 2**23  # bytes that are read at a time
_FIRST = 2**16
MAX_ROW = 2**26  # bytes: a longer row is taken for an endless file without newlines
MAX_CELLS = 2**20  # in one line
_LONG_LINE = 2**20  # characters: shorter ones cannot have too many cells

# Columns that are not used may hold any bytes, so those that are not UTF-8 must survive.
UTF8 = ("utf-8", "surrogateescape")


def chunks(file: BinaryIO, label: str) -> Iterator[tuple[int, bytes]]:
    r"""Yield the file in chunks that end with a newline, as the last one may not, with their first lines' numbers.

    The first one is short: it has the header in it, which is read apart.

    Errors: `InputError` for NUL bytes, and for a line that is too long.

    >>> list(chunks(io.BytesIO(b"x0\n1\n" + b"2\n" * _FIRST), "`p.csv`"))[1][0]
    32769
    """
    line = 1
    size = _FIRST
    while True:
        with reading(label):
            chunk = file.read(size)
            end = b"" if chunk.endswith(b"\n") else file.readline(MAX_ROW)
        if not chunk:
            return
        chunk += end
        _check_text(chunk, label, line)
        if len(end) == MAX_ROW:
            raise too_long(label, line + _newlines(chunk))
        yield line, chunk.removeprefix(b"\xef\xbb\xbf") if line == 1 else chunk
        line += _newlines(chunk)
        size = CHUNK


def _newlines(chunk: bytes) -> int:
    """Count the newlines; NumPy does it several times as fast as `bytes.count`, because they are many."""
    return int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == ord("\n")))


def _check_text(chunk: bytes, label: str, line: int) -> None:
    index = chunk.find(b"\0")
    if index >= 0:
        line += chunk.count(b"\n", 0, index)
        raise InputError(f"{label}, line {line}: a NUL byte, so this is not text", hint="CSV files are UTF-8 text")


def too_long(label: str, line: int) -> InputError:
    """Return the error of a row that is longer than `MAX_ROW`."""
    return InputError(f"{label}, line {line}: a row of more than {MAX_ROW // 2**20} MiB", hint="a row is one point")


class Rows:
    """The rows in some chunks, as the `csv` module of the standard library reads them.

    Blank lines are left out, but count as lines.

    >>> Rows([b'x0,"M[0,1]"\\n\\n1,2\\n'], "`p.csv`", 1, ",").take(9)
    [(1, ['x0', 'M[0,1]']), (3, ['1', '2'])]
    """

    def __init__(self, chunks: Iterable[bytes], label: str, line: int, delimiter: str) -> None:
        """Read rows from a line on whose number is given."""
        self.label = label
        self._delimiter = delimiter
        self._first = line
        self._length = 0
        self._texts = (io.StringIO(chunk.decode(*UTF8), newline="") for chunk in chunks)
        self._text = io.StringIO()
        self._reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)

    @property
    def line(self) -> int:
        """The number of the line after the rows that have been read."""
        return self._first + self._reader.line_num

    def rest(self) -> bytes:
        """Return the unread rest of the current chunk."""
        return self._text.read().encode(*UTF8)

    def take(self, count: int) -> list[tuple[int, list[str]]]:
        """Return the next rows, at most `count`, each with the number of the line where it begins.

        Errors: `InputError` for quotes that do not match, and for a row that is too long.
        """
        result: list[tuple[int, list[str]]] = []
        with _long_cells():
            while len(result) < count:
                line, self._length = self.line, 0
                try:
                    row = next(self._reader, None)
                except csv.Error as error:
                    raise InputError(
                        f"{self.label}, line {line}: the quotes do not match ({error})",
                        hint='a quote inside a cell in quotes is doubled: "5"" disk"',
                    ) from None
                if row is None:
                    break
                if not _blank(row):
                    result.append((line, row))
        return result

    def _lines(self) -> Iterator[str]:
        """Yield the lines; a row of more than one, with newlines in quotes, may not be endless either."""
        for chunk in self._texts:
            self._text = chunk
            for text in chunk:
                self._length += len(text)
                if self._length > MAX_ROW:
                    raise too_long(self.label, self.line)
                if len(text) > _LONG_LINE and text.count(self._delimiter) >= MAX_CELLS:
                    raise InputError(f"{self.label}, line {self.line}: more than {MAX_CELLS:,} cells")
                yield text


def _blank(row: list[str]) -> bool:
    """Return whether a row was a blank line. One of the cell `""` was not: it is a point without its number."""
    return not row or (len(row) == 1 and row[0].isspace())


@contextmanager
def _long_cells() -> Iterator[None]:
    """Allow cells of any length in columns that are not used: the limit is one of the whole process."""
    before = csv.field_size_limit(MAX_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(before)
