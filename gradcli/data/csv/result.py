"""Results as CSV: a header, and a row a point, with the full precision of float64."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from gradcli.data.block import Names, columns_of
from gradcli.data.csv.cells import cell, line
from gradcli.data.text_files import UTF8
from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape
from gradcli.text.plain import print_utf8

_CELLS = 2**18  # that are text at a time
_FEW = 2**15  # numbers, which are written before pyarrow is imported, or by a thread at a time
_WIDE = 500  # columns: pyarrow has objects for each


class CsvWriter:
    """Writes rows with a function that writes UTF-8."""

    def __init__(
        self, write: Callable[[Any], object], flush: Callable[[], object], columns: Mapping[str, Sequence[str]]
    ) -> None:
        """Take the functions, and the names of the columns; nothing is written before there is a row."""
        self._write = write
        self._flush = flush
        self._columns = columns
        self._header = f"{line(chain.from_iterable(columns.values()))}\n".encode(*UTF8)

    def write(self, block: Mapping[str, Array]) -> None:
        """Write a row for each point."""
        columns = columns_of(block, self._columns)
        for text in chain([self._header], _texts(columns)):
            self._write(text)
        self._header = b""

    def finish(self) -> None:
        """Write the header, if there were no rows."""
        self._write(self._header)
        self._flush()


@contextmanager
def csv_writer(file: BinaryIO, shapes: Mapping[str, Shape], names: Names) -> Iterator[CsvWriter]:
    """Yield the writer of a CSV file."""
    yield CsvWriter(file.write, file.flush, names())


def standard_output(columns: Mapping[str, Sequence[str]]) -> CsvWriter:
    """Return the writer of CSV on standard output."""
    if sys.stdout is None:
        raise InputError("standard output is closed", hint="give the name of a file: --output FILE")
    print_utf8()
    return CsvWriter(lambda data: sys.stdout.write(str(data, *UTF8)), sys.stdout.flush, columns)


def _texts(columns: Sequence[Array]) -> Iterator[Any]:
    """Yield the rows, many at a time. Joining needs two thirds of the time of `csv.writer`."""
    step = max(1, _CELLS // len(columns))
    for start in range(0, len(columns[0]), step):
        some = [column[start : start + step] for column in columns]
        rows = rows_of(some)
        if rows is None:
            texts = (map(cell if column.dtype == object else repr, column.tolist()) for column in some)
            rows = ["\n".join([*map(",".join, zip(*texts, strict=True)), ""]).encode(*UTF8)]
        yield from rows


def rows_of(columns: Sequence[Array]) -> list[Any] | None:
    """Return the rows of some columns of numbers, in buffers of many lines that pyarrow writes.

    None where pyarrow is not worth its import or not installed, and for values that were copied.
    """
    few = len(columns) * len(columns[0]) < _FEW or len(columns) > _WIDE
    if few or any(column.dtype == object for column in columns):
        return None
    try:
        import pyarrow as pa
        import pyarrow.csv as arrow
    except ImportError:
        return None

    def rows(start: int) -> Any:
        some = [pa.array(np.ascontiguousarray(column[start : start + step])) for column in columns]
        lines = pa.BufferOutputStream()
        table = pa.table(some, names=[*map(str, range(len(some)))])
        arrow.write_csv(table, lines, arrow.WriteOptions(include_header=False, batch_size=step))
        return lines.getvalue()

    step = max(1, _FEW // len(columns))
    with ThreadPoolExecutor() as threads:
        return [*threads.map(rows, range(0, len(columns[0]), step))]
