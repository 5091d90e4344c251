"""The arrays in an `.npz` file: their headers, and their values, some points at a time."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO

import numpy as np

from gradcli.data.mistakes import reading, unreadable
from gradcli.errors import InputError
from gradcli.files import printable
from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape, check_size, size_of

Read = Callable[[int], Array]  # the next so many points, along the last axis

# Version 3 is version 2 with names in UTF-8, and the arrays that have names hold no numbers.
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,
}
_NESTED = re.compile(rb"(?:[-+~(\[{]\s*){90}")
_MAX_HEADER = 2**16  # bytes
_ENCRYPTED = 1  # a bit of the flags in an archive
_COPIED = 2**20  # bytes at a time
_MAX_SPOOL = 2**27  # bytes on disk that a small archive may take
_MAX_RATIO = 64  # of the bytes of an array to those that it is compressed to: numbers that were measured have less
_TILE = 2**24  # bytes that are put point by point at a time


@dataclass(frozen=True)
class Member:
    """An array in an archive: where its values begin, and how they are laid out."""

    label: str
    info: zipfile.ZipInfo
    offset: int
    shape: Shape
    fortran: bool
    dtype: np.dtype[np.generic]

    @property
    def count(self) -> int:
        """The number of points."""
        return self.shape[0] if self.shape else 1

    @property
    def elements(self) -> int:
        """The number of elements at one point."""
        return size_of(self.shape[1:])

    @property
    def point_bytes(self) -> int:
        """The bytes of one point."""
        return self.elements * self.dtype.itemsize

    def check(self) -> None:
        """Check that an array has an axis of points, holds numbers, and is as long as its header says."""
        if self.dtype.kind not in "iufb":
            raise InputError(f"{self.label} holds {printable(str(self.dtype))}, not real numbers")
        if not self.shape:
            raise InputError(
                f"{self.label} is a single number", hint="points run along the first axis: np.array([1.0])"
            )
        try:
            check_size(self.shape[1:])
        except InputError as error:
            raise InputError(f"{self.label}: {error.message}", hint=error.hint) from None
        if not self.elements:
            raise InputError(f"{self.label} has no elements: its shape is {self.shape}")
        if self.info.file_size - self.offset < self.count * self.point_bytes:
            raise InputError(f"{self.label} is truncated: its header declares an array of shape {self.shape}")


def read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str) -> Member:
    """Return an array of an archive, without its values.

    Errors: `InputError` for a member that is not an array, is encrypted, or has an unusual compression.
    """
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{label} is compressed in an unusual way", hint="write the file with np.savez_compressed")
    if info.flag_bits & _ENCRYPTED:
        raise unreadable(label, "it is encrypted")
    with reading(label), archive.open(info) as file:
        start = io.BytesIO(file.read(_MAX_HEADER))
    shape, fortran, dtype = _parsed(start, label)
    if any(n < 0 for n in shape):
        raise unreadable(label, "its shape is negative")
    return Member(label, info, start.tell(), shape, fortran, dtype)


def _parsed(start: io.BytesIO, label: str) -> tuple[Shape, bool, np.dtype[np.generic]]:
    """Return the shape, the order and the type in a header, and read up to its end.  NumPy's own words are of bytes."""
    try:
        version = np.lib.format.read_magic(start)
    except ValueError:
        raise unreadable(label, "it is not an array of NumPy's") from None
    if version not in _READERS:
        raise unreadable(label, f"version {version[0]} of its format is not known")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            return _READERS[version](start)
    except MemoryError:
        if _NESTED.search(start.getvalue()):  # Python's parser has this error for what is nested too deeply
            raise unreadable(label, "its header is damaged") from None
        raise
    except Exception:  # a header is a text in Python, which may be wrong in many ways
        raise unreadable(label, "its header is damaged") from None


@contextmanager
def stream(archive: zipfile.ZipFile, member: Member) -> Iterator[Read]:
    """Yield a function that returns the next points of an array.

    Errors: `InputError` for an archive that is damaged, as it is met.
    """
    with ExitStack() as stack:
        with reading(member.label):
            file = stack.enter_context(archive.open(member.info))
            _exactly(file, member.offset)
            if not member.fortran:
                read: Read = partial(_rows, file, member)
            else:
                spool = stack.enter_context(tempfile.TemporaryFile())
                read = _fortran(file, spool, member)
        yield read


def _fortran(file: IO[bytes], spool: IO[bytes], member: Member) -> Read:
    """Return the reader of an array in Fortran order: the elements follow each other, each with all its points.

    Few long pieces are read much faster than many short ones, so it is read as it stands only if it has more points
    than elements.
    """
    if member.info.compress_size * _MAX_RATIO < member.info.file_size > _MAX_SPOOL:
        raise InputError(
            f"{member.label} is in Fortran order and takes {member.info.file_size // 2**20:,} MiB of disk unpacked",
            hint="save it in C order: np.ascontiguousarray(x)",
        )
    if member.count >= member.elements:
        shutil.copyfileobj(file, spool, _COPIED)
        return _columns(spool, member)
    _spool_by_point(file, spool, member)
    spool.seek(0)
    return partial(_rows, spool, member)


def _spool_by_point(file: IO[bytes], spool: IO[bytes], member: Member) -> None:
    """Put the points one after the other, each with its elements in Fortran order."""
    step = max(1, _TILE // (member.count * member.dtype.itemsize))
    for start in range(0, member.elements, step):
        some = min(step, member.elements - start)
        tile = np.frombuffer(_exactly(file, some * member.count * member.dtype.itemsize), member.dtype)
        for k, values in enumerate(np.ascontiguousarray(tile.reshape(some, member.count).T)):
            spool.seek((k * member.elements + start) * member.dtype.itemsize)
            spool.write(values.data)


def _rows(file: IO[bytes], member: Member, count: int) -> Array:
    """Return the next points of an array, where they follow each other."""
    with reading(member.label):
        data = _exactly(file, count * member.point_bytes)
    values = np.frombuffer(data, member.dtype)
    if member.fortran:
        flipped = values.reshape(count, *member.shape[:0:-1])
        return _points_last(flipped.transpose(0, *range(flipped.ndim - 1, 0, -1)))
    return _points_last(values.reshape(count, *member.shape[1:]))


def _columns(file: IO[bytes], member: Member) -> Read:
    """Return the reader of an array in Fortran order."""
    done = 0
    width = member.dtype.itemsize

    def read(count: int) -> Array:
        nonlocal done
        transposed = np.empty((*member.shape[:0:-1], count), member.dtype)
        with reading(member.label):
            for k, element in enumerate(np.ndindex(*transposed.shape[:-1])):
                file.seek((k * member.count + done) * width)
                transposed[element] = np.frombuffer(_exactly(file, count * width), member.dtype)
        done += count
        return _points_last(transposed.T)

    return read


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _points_last(values: Array) -> Array:
    """Return an array with the points along its first axis as float64, with the points along its last one."""
    with np.errstate(all="ignore"):  # a wider float may be beyond float64, and is inf then
        return np.ascontiguousarray(np.moveaxis(values, 0, -1), dtype=float)
