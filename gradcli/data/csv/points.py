"""Points in a CSV file: a header line, a column for each element, one row a point."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from gradcli.data.block import Array, Block, Reading
from gradcli.data.columns import Header, Picked, element
from gradcli.data.csv.parsers import Table, by_reference, parse, plain, texts_in
from gradcli.data.mistakes import about_file
from gradcli.data.text_files import UTF8, Rows, TextPoints, chunks
from gradcli.graph.shapes import Shape

_SNIFFED = 2**16  # bytes of the header; the standard library takes no longer cell without being asked


class CsvPoints(TextPoints):
    """Points in a CSV file, or on standard input."""

    columns: Sequence[str]
    _chunks: Iterator[tuple[int, bytes]]

    def _begin(self, how: Reading) -> None:
        self._chunks = chunks(self._file, self._label)
        self.columns = self._read_header(how.headers)
        self._header = Header.of(self.columns, self._label, how)
        self.shapes: dict[str, Shape] = self._header.shapes

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
        raise about_file(
            self._label, "is empty", "its first line names the columns: x0,x1 or x[0],x[1]; each row is a point"
        )

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        return self._blocks(self._header.pick(names), size)

    def _blocks(self, picked: Picked, size: int) -> Iterator[Block]:
        for columns in self._columns(picked, size):
            for start in range(0, len(columns[0]), size):
                yield picked.block([column[start : start + size] for column in columns])

    def _columns(self, picked: Picked, size: int) -> Iterator[list[Array]]:
        """Yield the columns that were picked, a chunk at a time, each by pyarrow's parser where that is certain."""
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
