"""Files of points and results in Parquet: a column for each element, or of lists; a folder of files is one data set."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from gradcli.data.block import COPIED, MISSING_HINT, PLAIN, Array, Block, Missing, Names, Points, Reading, columns_of
from gradcli.data.columns import Header, Picked
from gradcli.data.mistakes import about_file, check_regular, label, needs_pyarrow, quoted, reading, unreadable
from gradcli.errors import InputError
from gradcli.files import printable
from gradcli.graph.array import objects
from gradcli.graph.shapes import Shape
from gradcli.lang.system import natural

_BUFFER = 2**18  # bytes, for each column


def parts(path: str) -> list[Path]:
    """Return the files of a data set, in the order of the numbers in their names: part.2 before part.10.

    A single file is its own and only part. Of a folder, hidden files and those such as `_metadata` are left out.

    Errors: `InputError` for a folder without such files.

    >>> parts("points.parquet")
    [PosixPath('points.parquet')]
    """
    whole = Path(path)
    with reading(label(path)):
        if not whole.is_dir():
            return [whole]
        result = [p for p in whole.iterdir() if p.suffix.lower() == ".parquet" and p.name[0] not in "._"]
    if not result:
        raise about_file(label(path), "is a folder without .parquet files")
    return sorted(result, key=lambda part: (natural(part.name), part.name))


class _Column(NamedTuple):
    """A column of numbers: one of the file, or an element of each of its lists."""

    name: str
    kind: Any
    of_file: str
    element: int | None = None
    size: int = 0  # of the lists


def _columns(file: Any) -> list[_Column]:
    """Return the columns of a file; a column of lists is a vector, whose size is that of the first list."""
    from pyarrow import types

    result: list[_Column] = []
    for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types, strict=True):
        size = 0
        if types.is_fixed_size_list(kind):
            size = kind.list_size
        elif types.is_list(kind) or types.is_large_list(kind):
            first = next(file.iter_batches(1, columns=[name]), None)
            size = len(first.column(0)[0].as_py() or ()) if first is not None and first.num_rows else 0
        elements = (_Column(f"{name}[{i}]", kind.value_type, name, i, size) for i in range(size))
        result += elements if size else (_Column(name, kind, name),)
    return result


@dataclass(frozen=True)
class _Part:
    """A file of a data set."""

    path: Path
    label: str
    all_columns: Sequence[_Column]
    rows: int
    header: Header

    @classmethod
    def of(cls, path: Path, how: Reading) -> _Part:
        """Return a file's columns and the number of its rows."""
        name = label(str(path))
        check_regular(path)
        with reading(name), _open(path) as file:
            columns = _columns(file)
            return cls(path, name, columns, file.metadata.num_rows, Header.of([c.name for c in columns], name, how))

    def columns(self, picked: Picked) -> list[_Column]:
        """Return the picked columns.

        Errors: `InputError` for a column of anything but numbers.
        """
        for position, name in zip(picked.positions, picked.names, strict=True):
            kind = self.all_columns[position].kind
            if not _is_numeric(kind):
                raise InputError(f"{self.label}, column {quoted(name)}: {printable(str(kind))} is not a numeric type")
        return [self.all_columns[position] for position in picked.positions]

    def blocks(self, picked: Picked, columns: Sequence[_Column], size: int, missing: Missing) -> Iterator[Block]:
        """Yield the values of the columns that were picked, at most `size` rows at a time."""
        done = 0
        copied = [self.all_columns[position].of_file for position in picked.copied.values()]
        names = [*dict.fromkeys([*(c.of_file for c in columns), *copied])]
        with reading(self.label), _open(self.path) as file:
            for batch in file.iter_batches(size, columns=names):
                before, count = done, batch.num_rows
                done += count
                if missing.policy == "skip":
                    batch = _whole_rows(batch, {c.of_file for c in columns})
                    missing.skipped += count - batch.num_rows
                if batch.num_rows:
                    pairs = zip(columns, picked.names, strict=True)
                    numbers = [self._numbers(batch, column, name, before, missing) for column, name in pairs]
                    texts = (objects(batch.column(c).to_pylist(), (batch.num_rows,)) for c in copied)
                    yield picked.block([*numbers, *texts])
        if done != self.rows:  # a page of an unknown kind is passed over
            raise unreadable(self.label, f"it has {done:,} rows, and should have {self.rows:,}")

    def _numbers(self, batch: Any, column: _Column, name: str, done: int, missing: Missing) -> Array:
        """Return the numbers in a column of a batch, of which `done` rows have been read before."""
        import pyarrow as pa

        values = batch.column(column.of_file)
        if column.element is not None:
            values = self._elements(values, column, done)
        if values.null_count and missing.policy == "error":
            row = done + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) + 1
            message = f"{self.label}, row {row}, column {quoted(name)}: a null is not a number"
            raise InputError(message, hint=MISSING_HINT)
        numbers: Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers

    def _elements(self, lists: Any, column: _Column, done: int) -> Any:
        """Return the elements of lists that a column has.

        Errors: `InputError` for a list of another size than the first one.
        """
        import pyarrow.compute as pc

        other = pc.fill_null(pc.not_equal(pc.list_value_length(lists), column.size), False)
        if pc.any(other).as_py():
            row = pc.index(other, True).as_py()
            where = f"{self.label}, row {done + row + 1}, column {quoted(column.of_file)}"
            raise InputError(f"{where}: a list of {len(lists[row])}, and of {column.size} in the first row")
        return pc.list_element(lists, column.element)


class ParquetPoints(Points):
    """Points in a Parquet file, or in a folder of them."""

    def __init__(self, path: str, how: Reading = PLAIN) -> None:
        """Read the footers of the files: their columns, and the number of their rows."""
        super().__init__(how)
        self._parts = [_Part.of(part, how) for part in parts(path)]
        self.columns = self._parts[0].header.columns
        self.count = sum(part.rows for part in self._parts)
        self.shapes = self._parts[0].header.shapes

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        wanted = []
        for part in self._parts:
            picked = part.header.pick(names)
            self._check_shapes(part, picked)
            wanted.append((part, picked, part.columns(picked)))
        return self._blocks(wanted, size)

    def _check_shapes(self, part: _Part, picked: Picked) -> None:
        """Check that the variables of a file have the shapes that they have in the first file."""
        for name, shape in picked.shapes.items():
            if shape != self.shapes[name]:
                other = f"but {self._parts[0].label} of shape {self.shapes[name]}"
                hint = "all files of a data set have the same columns"
                raise about_file(part.label, f"has {quoted(name)} of shape {shape}, {other}", hint)

    def _blocks(self, wanted: Sequence[tuple[_Part, Picked, list[_Column]]], size: int) -> Iterator[Block]:
        for part, picked, columns in wanted:
            for block in part.blocks(picked, columns, size, self._missing):
                count = next(iter(block.values())).shape[-1]
                yield block
                self.done += count


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Yield an open Parquet file; pages with a checksum are compared with it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise needs_pyarrow("reading Parquet") from None
    # Without a buffer of its own, each column is read whole: a file may be one row group.
    options = {"pre_buffer": False, "buffer_size": _BUFFER, "page_checksum_verification": True}
    # A name is bytes, which need not be text.
    with pa.OSFile(os.fsencode(path)) as source, pq.ParquetFile(source, **options) as file:
        yield file


def _whole_rows(batch: Any, columns: Collection[str]) -> Any:
    """Return the rows of a batch in which none of the columns has a null."""
    nulls = [batch.column(column).is_null().to_numpy(zero_copy_only=False) for column in columns]
    return batch.filter(~np.any(nulls, axis=0))


def _is_numeric(kind: Any) -> bool:
    """Return whether a column is one of numbers; one of nulls alone may be so, as of a table without rows."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


class ParquetWriter:
    """Writes a row group for each block."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, Sequence[str]]) -> None:
        """Take the file, and the names of the columns."""
        import pyarrow  # noqa: F401  (it is missed before there is a block)

        self._columns = columns
        self._file = file
        self._writer: Any = None

    def _start(self, types: Sequence[Any]) -> None:
        """Open the file for columns of these types; one of nulls alone has texts."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = chain.from_iterable(self._columns.values())
        schema = pa.schema([(n, pa.string() if t == pa.null() else t) for n, t in zip(names, types, strict=True)])
        # Gradients seldom repeat: a dictionary of them is made for nothing.
        self._writer = pq.ParquetWriter(self._file, schema, use_dictionary=False, write_page_checksum=True)

    def write(self, block: Mapping[str, Array]) -> None:
        """Write a row group; columns that are copied have the types of the first one."""
        import pyarrow as pa

        columns = [
            pa.array(column.tolist() if column.dtype == object else np.ascontiguousarray(column, float))
            for column in columns_of(block, self._columns)
        ]
        if self._writer is None:
            self._start([column.type for column in columns])
        schema = self._writer.schema
        typed = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(typed, schema=schema))

    def finish(self) -> None:
        """Write the footer."""
        if self._writer is None:
            import pyarrow as pa

            types = {name: pa.null() if name.startswith(COPIED) else pa.float64() for name in self._columns}
            self._start([types[name] for name, columns in self._columns.items() for _ in columns])
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
