"""Results as Parquet: a column for each element, one row a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from gradcli.data.block import COPIED
from gradcli.data.mistakes import needs_pyarrow
from gradcli.data.writer import Names, columns_of
from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape


class ParquetWriter:
    """Writes a row group for each block."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, Sequence[str]]) -> None:
        """Take the file, and the names of the columns."""
        import pyarrow as pa

        self._columns = columns
        self._file = file
        self._names = list(chain.from_iterable(columns.values()))
        self._writer: Any = None
        # Numbers alone have types before there are any; columns that are copied have those of the first block.
        if not any(name.startswith(COPIED) for name in columns):
            self._start([pa.float64()] * len(self._names))

    def _start(self, types: Sequence[Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(list(zip(self._names, types, strict=True)))
        # Gradients seldom repeat: a dictionary of them is made for nothing.
        self._writer = pq.ParquetWriter(self._file, schema, use_dictionary=False, write_page_checksum=True)

    def write(self, block: Mapping[str, Array]) -> None:
        """Write a row group."""
        import pyarrow as pa

        columns = [
            pa.array(column.tolist() if column.dtype == object else np.ascontiguousarray(column))
            for column in columns_of(block, self._columns)
        ]
        if self._writer is None:
            self._start([pa.string() if pa.types.is_null(column.type) else column.type for column in columns])
        schema = self._writer.schema
        typed = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(typed, schema=schema))

    def finish(self) -> None:
        """Write the footer."""
        if self._writer is None:
            import pyarrow as pa

            self._start(
                [
                    pa.string() if n.startswith(COPIED) else pa.float64()
                    for n in self._columns
                    for _ in [*self._columns[n]]
                ]
            )
        self._writer.close()

    def abandon(self) -> None:
        """Close the writer if it is open, ignoring errors: its file is gone."""
        if self._writer is None:
            return
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False


@contextmanager
def parquet_writer(file: BinaryIO, shapes: Mapping[str, Shape], names: Names) -> Iterator[ParquetWriter]:
    """Yield the writer of a Parquet file; if the `with` block fails, it is closed and its errors are ignored.

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
