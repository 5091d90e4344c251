"""Results as Parquet: a column for each element, one row a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import BinaryIO

import numpy as np

from gradcli.data.mistakes import needs_pyarrow
from gradcli.data.writer import Names, columns_of
from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape


class ParquetWriter:
    """Writes a row group for each block."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, Sequence[str]]) -> None:
        """Take the file, and the names of the columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._columns = columns
        self._schema = pa.schema([(name, pa.float64()) for name in chain.from_iterable(columns.values())])
        # Gradients seldom repeat: a dictionary of them is made for nothing.
        self._writer = pq.ParquetWriter(file, self._schema, use_dictionary=False, write_page_checksum=True)

    def write(self, block: Mapping[str, Array]) -> None:
        """Write a row group."""
        import pyarrow as pa

        columns = [pa.array(np.ascontiguousarray(column)) for column in columns_of(block, self._columns)]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Close what is not closed, which would be tried again later, without its file."""
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False


@contextmanager
def parquet_writer(file: BinaryIO, shapes: Mapping[str, Shape], names: Names) -> Iterator[ParquetWriter]:
    """Give the writer of a Parquet file.

    Errors: `InputError` where pyarrow is not installed.
    """
    try:
        writer = ParquetWriter(file, names())
    except ImportError:
        raise needs_pyarrow("writing Parquet") from None
    try:
        yield writer
    finally:
        writer.abandon()
