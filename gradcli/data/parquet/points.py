"""Points in Parquet: a column for each element, one row a point; a folder of such files is one data set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.data.block import PLAIN, Array, Block, Missing, Reading
from gradcli.data.columns import Header, Picked
from gradcli.data.mistakes import about_file, check_regular, label, needs_pyarrow, quoted, reading, unreadable
from gradcli.errors import InputError
from gradcli.files import printable
from gradcli.graph.array import objects
from gradcli.graph.shapes import Shape

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
    return sorted(result, key=lambda part: (_natural(part.name), part.name))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by their value."""
    digits = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(len(number.lstrip("0")), number.lstrip("0")) if number else (0, text) for number, text in digits]


@dataclass(frozen=True)
class _Part:
    """A file of a data set."""

    path: Path
    label: str
    schema: Any
    rows: int
    header: Header

    @classmethod
    def of(cls, path: Path, how: Reading) -> _Part:
        """Return a file's columns and the number of its rows."""
        name = label(str(path))
        check_regular(path)
        with reading(name), _open(path) as file:
            schema = file.schema_arrow
            return cls(path, name, schema, file.metadata.num_rows, Header.of(schema.names, name, how))

    def columns(self, picked: Picked) -> list[str]:
        """Return the names of the picked columns as they are in the file.

        Errors: `InputError` for a column of anything but numbers.
        """
        for position, name in zip(picked.positions, picked.names, strict=True):
            kind = self.schema.types[position]
            if not _is_numeric(kind):
                raise InputError(f"{self.label}, column {quoted(name)}: {printable(str(kind))} is not a numeric type")
        return [self.schema.names[position] for position in picked.positions]

    def blocks(self, picked: Picked, columns: Sequence[str], size: int, missing: Missing) -> Iterator[Block]:
        """Yield the values of the columns that were picked, at most `size` rows at a time."""
        done = 0
        copied = [self.schema.names[position] for position in picked.copied.values()]
        with reading(self.label), _open(self.path) as file:
            for batch in file.iter_batches(size, columns=[*columns, *copied]):
                before, count = done, batch.num_rows
                done += count
                if missing.policy == "skip":
                    batch = _whole_rows(batch, columns)
                    missing.skipped += count - batch.num_rows
                if batch.num_rows:
                    pairs = zip(columns, picked.names, strict=True)
                    numbers = [self._numbers(batch, column, name, before, missing) for column, name in pairs]
                    yield picked.block([*numbers, *(_values(batch, column) for column in copied)])
        if done != self.rows:  # a page of an unknown kind is passed over
            raise unreadable(self.label, f"it has {done:,} rows, and should have {self.rows:,}")

    def _numbers(self, batch: Any, column: str, name: str, done: int, missing: Missing) -> Array:
        """Return the numbers in a column of a batch, of which `done` rows have been read before."""
        import pyarrow as pa

        values = batch.column(batch.schema.get_field_index(column))
        if values.null_count and missing.policy == "error":
            row = done + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) + 1
            raise InputError(
                f"{self.label}, row {row}, column {quoted(name)}: a null is not a number",
                hint="--missing skip leaves such points out, --missing nan reads nan",
            )
        numbers: Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers


class ParquetPoints:
    """Points in a Parquet file, or in a folder of them."""

    def __init__(self, path: str, how: Reading = PLAIN) -> None:
        """Read the footers of the files: their columns, and the number of their rows."""
        self._done = 0
        self._missing = Missing(how.missing)
        self._parts = [_Part.of(part, how) for part in parts(path)]
        self.columns: Sequence[str] = self._parts[0].header.columns
        self.count: int | None = sum(part.rows for part in self._parts)
        self.shapes: dict[str, Shape] = self._parts[0].header.shapes

    @property
    def fraction(self) -> float | None:
        """The share of the points that has been read."""
        return self._done / self.count if self.count else None

    @property
    def skipped(self) -> int:
        """The number of points that have been left out because a cell is missing."""
        return self._missing.skipped

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
                first = self._parts[0].label
                raise about_file(
                    part.label,
                    f"has {quoted(name)} of shape {shape}, but {first} of shape {self.shapes[name]}",
                    "all files of a data set have the same columns",
                )

    def _blocks(self, wanted: Sequence[tuple[_Part, Picked, list[str]]], size: int) -> Iterator[Block]:
        for part, picked, columns in wanted:
            for block in part.blocks(picked, columns, size, self._missing):
                count = next(iter(block.values())).shape[-1]
                yield block
                self._done += count

    def close(self) -> None:
        """Do nothing: each file is open only while it is read."""


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


def _whole_rows(batch: Any, columns: Sequence[str]) -> Any:
    """Return the rows of a batch in which none of the columns has a null."""
    nulls = [batch.column(column).is_null().to_numpy(zero_copy_only=False) for column in columns]
    return batch.filter(~np.any(nulls, axis=0))


def _values(batch: Any, column: str) -> Array:
    """Return the values of a column that is copied."""
    return objects(batch.column(column).to_pylist(), (batch.num_rows,))


def _is_numeric(kind: Any) -> bool:
    """Return whether a column is one of numbers; one of nulls alone may be so, as of a table without rows."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)
