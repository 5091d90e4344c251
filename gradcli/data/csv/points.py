"""Points in a CSV file: a header line, a column for each element, one row a point."""

from __future__ import annotations

import csv
import gzip
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO, cast

from gradcli.data.block import PLAIN, Array, Block, Missing, Reading
from gradcli.data.columns import Header, Picked, element
from gradcli.data.csv.chunks import UTF8, Rows, chunks
from gradcli.data.csv.parsers import Table, by_reference, parse, plain, texts_in
from gradcli.data.mistakes import about_file, label, reading
from gradcli.files import note_read, standard_input
from gradcli.graph.shapes import Shape

_SNIFFED = 2**16  # bytes of the header; the standard library takes no longer cell without being asked


class CsvPoints:
    """Points in a CSV file, or on standard input."""

    shapes: dict[str, Shape]
    count: int | None = None
    columns: Sequence[str]
    _chunks: Iterator[tuple[int, bytes]]

    def __init__(self, path: str, how: Reading = PLAIN) -> None:
        """Open the file, and read its header."""
        self._label = label(path)
        self._missing = Missing(how.missing)
        self._file = _open(path, self._label)
        try:
            self._size = _size(self._file)
            self._chunks = chunks(self._file, self._label)
            self.columns = self._read_header()
            self._header = Header.of(self.columns, self._label, how)
        except BaseException:
            self.close()
            raise
        self.shapes = self._header.shapes

    def _read_header(self) -> list[str]:
        """Return the names of the columns, detect the delimiter, and return unread bytes to the chunks."""
        line, first = next((some for some in self._chunks if not some[1].isspace()), (1, b""))
        delimiter = _delimiter(first)
        rows = Rows(chain([first], (chunk for _, chunk in self._chunks)), self._label, line, delimiter)
        for _, names in rows.take(1):
            self._table = Table(delimiter, len(names), self._missing)
            rest = rows.rest()
            self._chunks = chain([(rows.line, rest)] if rest else [], self._chunks)
            return names
        raise about_file(
            self._label, "is empty", "its first line names the columns: x0,x1 or x[0],x[1]; each row is a point"
        )

    @property
    def fraction(self) -> float | None:
        """The share of the file that has been read; `None` for a pipe or another irregular file."""
        return min(1.0, self._file.tell() / self._size) if self._size else None

    @property
    def skipped(self) -> int:
        """The number of points that have been left out because a cell is missing."""
        return self._missing.skipped

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        return self._blocks(self._header.pick(names), size)

    def _blocks(self, picked: Picked, size: int) -> Iterator[Block]:
        for columns in self._columns(picked, size):
            for start in range(0, len(columns[0]), size):
                yield picked.block([column[start : start + size] for column in columns])

    def _columns(self, picked: Picked, size: int) -> Iterator[list[Array]]:
        """Yield the columns that were picked, a chunk at a time, each read by the fastest parser that is certain."""
        for line, chunk in self._chunks:
            if not plain(chunk):  # a cell may hold newlines: a chunk need not end where a row does
                rest = chain([chunk], (chunk for _, chunk in self._chunks))
                yield from self._slowly(rest, line, picked, size)
                return
            columns = parse(chunk, self._table, picked.positions)
            texts = texts_in(chunk, self._table, [*picked.copied.values()])
            if columns is None or any(len(column) != len(columns[0]) for column in texts):
                yield from self._slowly([chunk], line, picked, size)
            else:
                yield [*columns, *texts]

    def _slowly(self, chunks: Iterable[bytes], line: int, picked: Picked, size: int) -> Iterator[list[Array]]:
        return by_reference(Rows(chunks, self._label, line, self._table.delimiter), self._table, picked, size)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if sys.stdin is None or self._file is not sys.stdin.buffer:
            self._file.close()


def _delimiter(chunk: bytes) -> str:
    r"""Return the delimiter that gives most names in a header: a comma, a semicolon or a tab.

    >>> _delimiter(b"x0,x1\n"), _delimiter(b'"M[0,1]";b\n'), _delimiter(b"the date\tx0\n"), _delimiter(b"1;2\n")
    (',', ';', '\t', ',')
    """
    text = chunk.lstrip()[:_SNIFFED].decode(*UTF8)

    def names(delimiter: str) -> int:
        header: list[str] = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
        return sum(element(cell) is not None for cell in header)

    return max(",;\t", key=names)  # of equals, the first


def _open(path: str, name: str) -> BinaryIO:
    if path != "-":
        with reading(name):
            note_read(path)
            if path.lower().endswith(".gz"):
                return cast(BinaryIO, _Unpacked(open(path, "rb")))
            return open(path, "rb")
    return standard_input()


class _Unpacked(gzip.GzipFile):
    """A gzip file, decompressed while it is read; its position is that in the compressed file."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed

    def tell(self) -> int:
        """Return the position in the packed file."""
        return self._packed.tell()

    def close(self) -> None:
        """Close both."""
        super().close()
        self._packed.close()


def _size(file: BinaryIO) -> int | None:
    """Return the size of a regular file; `None` for a pipe or a terminal."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # standard input in the tests has no descriptor
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
