"""Points in Parquet: a column for each element, one row a point; a folder of such files is one data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.data.block import Array, Block
from gradcli.data.columns import Layout, Picked
from gradcli.data.mistakes import label, needs_pyarrow, no_points, printable, quoted, reading
from gradcli.errors import InputError
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
        found = [p for p in whole.iterdir() if p.suffix.lower() == ".parquet" and p.name[0] not in "._"]
    if not found:
        raise InputError(f"{label(path)} is a folder without .parquet files")
    return sorted(found, key=lambda part: (_natural(part.name), part.name))


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
    layout: Layout

    @classmethod
    def of(cls, path: Path) -> _Part:
        """Return a file's columns and the number of its rows."""
        name = label(str(path))
        with reading(name), _open(path) as file:
            schema = file.schema_arrow
            return cls(path, name, schema, file.metadata.num_rows, Layout.of(schema.names, name))

    def columns(self, picked: Picked) -> list[str]:
        """Return the names of the columns that were picked, as they are in the file.

        Errors: `InputError` for a column of anything but numbers.
        """
        for place, name in zip(picked.places, picked.names, strict=True):
            kind = self.schema.types[place]
            if not _is_numeric(kind):
                raise InputError(f"{self.label}, column {quoted(name)}: {printable(str(kind))} is no type of numbers")
        return [self.schema.names[place] for place in picked.places]


class ParquetPoints:
    """Points in a Parquet file, or in a folder of them."""

    def __init__(self, path: str) -> None:
        """Read the footers of the files: their columns, and the number of their rows."""
        self._label = label(path)
        self._done = 0
        self._parts = [_Part.of(part) for part in parts(path)]
        self.count: int | None = sum(part.rows for part in self._parts)
        self.shapes: dict[str, Shape] = self._parts[0].layout.shapes

    @property
    def fraction(self) -> float | None:
        """The share of the points that has been read."""
        return self._done / self.count if self.count else None

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        wanted = []
        for part in self._parts:
            picked = part.layout.pick(names)
            self._check_shapes(part, picked)
            wanted.append((part, picked, part.columns(picked)))
        if not self.count:
            raise no_points(self._label)
        return self._blocks(wanted, size)

    def _check_shapes(self, part: _Part, picked: Picked) -> None:
        """Refuse a file whose variables have not the shapes that they have in the first one."""
        for name, shape in picked.shapes.items():
            if shape != self.shapes[name]:
                raise InputError(
                    f"{part.label} has {quoted(name)} of shape {shape}, but {self._parts[0].label} of shape "
                    f"{self.shapes[name]}",
                    hint="all files of a data set have the same columns",
                )

    def _blocks(self, wanted: Sequence[tuple[_Part, Picked, list[str]]], size: int) -> Iterator[Block]:
        for part, picked, columns in wanted:
            for batch in _batches(part, columns, size):
                yield picked.block([self._numbers(batch, *both) for both in zip(columns, picked.names, strict=True)])
                self._done += batch.num_rows

    def _numbers(self, batch: Any, column: str, name: str) -> Array:
        """Return the numbers in a column of a batch."""
        import pyarrow as pa

        values = batch.column(batch.schema.get_field_index(column))
        if values.null_count:
            row = self._done + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) + 1
            raise InputError(f"{self._label}, row {row}, column {quoted(name)}: a null is not a number")
        with reading(self._label):
            numbers: Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers

    def close(self) -> None:
        """Do nothing: each file is open only while it is read."""


def _open(path: Path) -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise needs_pyarrow("reading Parquet") from None
    # Without a buffer of its own, each column is read whole: a file may be one row group.
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _batches(part: _Part, columns: Sequence[str], size: int) -> Iterator[Any]:
    """Yield the rows of a file, at most `size` at a time."""
    with reading(part.label), _open(part.path) as file:
        for batch in file.iter_batches(size, columns=columns):
            if batch.num_rows:
                yield batch
