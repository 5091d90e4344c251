"""Results as `.npz`: an array for each variable, with the points along its first axis."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from gradcli.data.block import COPIED
from gradcli.data.mistakes import quoted
from gradcli.data.writer import Names
from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape, size_of

_TYPE = np.dtype("<f8")
_COPIED = 2**22  # bytes at a time


class NpzWriter:
    """Writes arrays one after the other at the end, for which the blocks wait in a temporary file.

    It is one file, however many variables there are: the values of each are contiguous within a block.
    """

    def __init__(self, file: BinaryIO, shapes: Mapping[str, Shape], spool: IO[bytes]) -> None:
        """Take the file, the shapes of the variables at one point, and the temporary file."""
        self._file = file
        self._shapes = shapes
        self._counts: list[int] = []
        self._spool = spool

    def write(self, block: Mapping[str, Array]) -> None:
        """Append a block to the temporary file."""
        self._counts.append(next(iter(block.values())).shape[-1])
        for name in self._shapes:
            self._spool.write(_points_first(name, block[name]).data)

    def finish(self) -> None:
        """Write the archive."""
        with zipfile.ZipFile(self._file, "w") as archive:
            before = 0
            for name, shape in self._shapes.items():
                info = zipfile.ZipInfo(
                    f"{name.removeprefix(COPIED)}.npy"
                )  # without the time, so that equal results are equal files
                with archive.open(info, "w", force_zip64=True) as member:
                    member.write(_header((sum(self._counts), *shape)))
                    for data in self._values(before, size_of(shape)):
                        member.write(data)
                before += size_of(shape)

    def _values(self, before: int, elements: int) -> Iterator[bytes]:
        """Yield the bytes of a variable, of which each point has `elements`, after `before` of other variables."""
        whole = sum(map(size_of, self._shapes.values()))
        start = 0
        for count in self._counts:
            self._spool.seek((start * whole + before * count) * _TYPE.itemsize)
            left = elements * count * _TYPE.itemsize
            while left:
                data = self._spool.read(min(left, _COPIED))
                yield data
                left -= len(data)
            start += count


@contextmanager
def npz_writer(file: BinaryIO, shapes: Mapping[str, Shape], names: Names) -> Iterator[NpzWriter]:
    """Yield the writer of an `.npz` file, which has arrays and no columns."""
    spool = tempfile.TemporaryFile(dir=Path(file.name).parent)  # noqa: SIM115
    try:
        yield NpzWriter(file, shapes, spool)
    finally:
        with suppress(OSError):  # on a full disk, what could not be written before cannot be on closing
            spool.close()


def _points_first(name: str, values: Array) -> Array:
    """Return the values of a variable with the points along the first axis.

    Errors: `InputError` for a column that is copied and has no numbers.
    """
    try:
        return np.ascontiguousarray(np.moveaxis(values, -1, 0), _TYPE)
    except (ValueError, TypeError):
        header = quoted(name.removeprefix(COPIED))
        raise InputError(
            f"--keep: the column {header} has texts, and a .npz file has numbers",
            hint="--output with .csv or .parquet copies texts",
            options=("--keep",),
            text=name.removeprefix(COPIED),
        ) from None


def _header(shape: Shape) -> bytes:
    """Return the header of an `.npy` file."""
    buffer = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(_TYPE), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()
