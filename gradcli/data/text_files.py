"""Files in text formats: opened, decompressed, and as chunks of whole lines, and rows of CSV."""

from __future__ import annotations

import csv
import gzip
import io
import os
import stat
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import numpy as np

from gradcli.data.block import PLAIN, Points, Reading
from gradcli.data.mistakes import label, reading
from gradcli.errors import InputError
from gradcli.files import note_read, standard_input

_PEEKED = 2**10  # bytes
_GZIP = b"\x1f\x8b"  # how every file of gzip begins
CHUNK = 2**23  # bytes that are read at a time
_FIRST = 2**16
MAX_ROW = 2**26  # bytes: a longer row is taken for an endless file without newlines
MAX_CELLS = 2**20  # in one line
_LONG_LINE = 2**20  # characters: shorter ones cannot have too many cells

# Columns that are not used may hold any bytes, so those that are not UTF-8 must survive.
UTF8 = ("utf-8", "surrogateescape")


def opened(path: str) -> BinaryIO:
    """Open a file, a pipe, or standard input, `-`; what gzip wrote is decompressed while it is read."""
    with reading(label(path)):
        if path != "-":
            note_read(path)
        file: BinaryIO = standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115 (closed by `close`)
        is_packed = path.lower().endswith(".gz") or _start(file).startswith(_GZIP)
    return cast(BinaryIO, _Unpacked(file)) if is_packed else file


def _start(file: BinaryIO) -> bytes:
    """Return the first bytes of a file that was just opened, and leave them in it."""
    if isinstance(file, io.BufferedReader | gzip.GzipFile):
        return file.peek(_PEEKED)
    start = file.read(_PEEKED)  # what stands in for standard input in a notebook, or a test
    file.seek(0)
    return start


def is_json(file: BinaryIO) -> bool:
    """Return whether the text of a file that is open begins with a JSON object, also in a list; nothing is read."""
    start = _start(file).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"{") or (start.startswith(b"[") and start[1:].lstrip().startswith(b"{"))


def size_of_file(file: BinaryIO) -> int | None:
    """Return the size of a regular file; `None` for a pipe or a terminal."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # standard input in the tests has no descriptor
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def close(file: BinaryIO) -> None:
    """Close a file; standard input stays open."""
    if sys.stdin is None or file is not sys.stdin.buffer:
        file.close()


class TextPoints(Points):
    """Points in a text format: how their file is opened and closed, and how much of it has been read."""

    def __init__(self, path: str, how: Reading = PLAIN, file: BinaryIO | None = None) -> None:
        """Open the file, unless it is open, and read its beginning."""
        super().__init__(how)
        self._label = label(path)
        self._file = opened(path) if file is None else file
        try:
            self._size = size_of_file(self._file)
            self._begin(how)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _begin(self, how: Reading) -> None:
        """Read which variables there are."""

    @property
    def fraction(self) -> float | None:
        """The share of the file that has been read; `None` for a pipe or another irregular file."""
        return min(1.0, self._file.tell() / self._size) if self._size else None

    def close(self) -> None:
        """Close the file; standard input stays open."""
        close(self._file)


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
        close(self._packed)


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
                    message = f"{self.label}, line {line}: the quotes do not match ({error})"
                    hint = 'a quote inside a cell in quotes is doubled: "5"" disk"'
                    raise InputError(message, hint=hint) from None
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
