"""Files of points and of results in `.npz`: an array for each variable, with the points along its first axis."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from gradcli.data.block import COPIED, PLAIN, Block, Names, Points, Reading, check_header
from gradcli.data.columns import missing, variable
from gradcli.data.mistakes import about_file, check_regular, label, quoted, reading, unreadable
from gradcli.errors import InputError, option_error
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
MAX_HEADER = 2**16  # bytes
_ENCRYPTED = 1  # a bit of the flags in an archive
_READ = 2**20  # bytes at a time
_MAX_SPOOL = 2**27  # bytes on disk that a small archive may take
_MAX_RATIO = 64  # of the bytes of an array to those that it is compressed to: numbers that were measured have less
_MEMBER = re.compile(r"([^.]+)(\.[uv])?\.npy")
_TYPE = np.dtype("<f8")
_WRITTEN = 2**22  # bytes at a time


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
            hint = "points run along the first axis: np.array([1.0])"
            raise InputError(f"{self.label} is a single number", hint=hint)
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
        start = io.BytesIO(file.read(MAX_HEADER))
    shape, fortran, dtype = npy_header(start, label)
    return Member(label, info, start.tell(), shape, fortran, dtype)


def npy_header(start: io.BytesIO, label: str) -> tuple[Shape, bool, np.dtype[np.generic]]:
    """Return the shape in the header of an `.npy` file, whether it is in Fortran order, and its type; read to its end.

    Errors: `InputError` for what is no header: NumPy's own messages are of bytes.
    """
    try:
        version = np.lib.format.read_magic(start)
    except ValueError:
        raise unreadable(label, "it is not an array of NumPy's") from None
    if version not in _READERS:
        raise unreadable(label, f"version {version[0]} of its format is not known")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, fortran, dtype = _READERS[version](start)
    except MemoryError:
        if _NESTED.search(start.getvalue()):  # Python's parser has this error for what is nested too deeply
            raise unreadable(label, "its header is damaged") from None
        raise
    except Exception:  # a header is a text in Python, which may be wrong in many ways
        raise unreadable(label, "its header is damaged") from None
    if any(n < 0 for n in shape):
        raise unreadable(label, "its shape is negative")
    return shape, fortran, dtype


@contextmanager
def stream(archive: zipfile.ZipFile, member: Member) -> Iterator[Read]:
    """Yield a function that returns the next points of an array.

    An array in Fortran order, whose points do not follow each other, is unpacked to disk.

    Errors: `InputError` for an archive that is damaged, as it is met.
    """
    with ExitStack() as stack:
        with reading(member.label):
            file = stack.enter_context(archive.open(member.info))
            _exactly(file, member.offset)
            spool = stack.enter_context(tempfile.TemporaryFile()) if member.fortran else None
            array = _unpacked(file, spool, member) if spool else None
        start = 0

        def read(count: int) -> Array:
            nonlocal start
            start += count
            if array is not None:
                return _points_last(array[start - count : start])
            with reading(member.label):
                data = _exactly(file, count * member.point_bytes)
            return _points_last(np.frombuffer(data, member.dtype).reshape(count, *member.shape[1:]))

        yield read


def _unpacked(file: IO[bytes], spool: IO[bytes], member: Member) -> Array:
    """Return an array in Fortran order, which stays on disk."""
    size = member.info.file_size
    if member.info.compress_size * _MAX_RATIO < size > _MAX_SPOOL:
        unpacked = f"{member.label} is in Fortran order and takes {size // 2**20:,} MiB of disk unpacked"
        raise InputError(unpacked, hint="save it in C order: np.ascontiguousarray(x)")
    shutil.copyfileobj(file, spool, _READ)
    if spool.tell() < member.count * member.point_bytes:
        raise EOFError
    return np.memmap(spool, member.dtype, "r", shape=member.shape, order="F")


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _points_last(values: Array) -> Array:
    """Return an array with the points along its first axis as float64, with the points along its last one."""
    with np.errstate(all="ignore"):  # a wider float may be beyond float64, and is inf then
        return np.ascontiguousarray(np.moveaxis(values, 0, -1), dtype=float)


class NpzPoints(Points):
    """Points in an `.npz` file, whose arrays are read in step."""

    def __init__(self, path: str, how: Reading = PLAIN) -> None:
        """Open the file, and read the headers of its arrays."""
        super().__init__(how)
        self._label = label(path)
        self._members: dict[str, list[Member]] = {}
        check_regular(path)
        with reading(self._label):
            try:
                self._archive = zipfile.ZipFile(path)
            except zipfile.BadZipFile:
                raise unreadable(self._label, "it is not an .npz file, or it is damaged") from None
        try:
            infos = [info for info in self._archive.infolist() if info.filename.endswith(".npy")]
            self.columns = [info.filename.removesuffix(".npy") for info in infos]
            for info, name in zip(infos, how.named(self.columns, self._label), strict=True):
                match = _MEMBER.fullmatch(f"{name}.npy")
                stem = variable(match[1]) if match else None
                if match and stem:
                    result = read_header(self._archive, info, f"{self._label}, array {quoted(info.filename[:-4])}")
                    self._members.setdefault(stem + (match[2] or ""), []).append(result)
        except BaseException:
            self.close()
            raise
        self.shapes = {name: result[0].shape[1:] for name, result in self._members.items()}
        counts = {result[0].count for result in self._members.values()}
        # Arrays that are not asked for may be of any length.
        self.count = counts.pop() if len(counts) == 1 else None

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        members = {name: self._member(name) for name in names}
        (first, *others) = members
        for name in others:
            if members[name].count != members[first].count:
                counts = f"{members[first].count:,} and {members[name].count:,} points"
                ragged = f"is ragged: {quoted(first)} and {quoted(name)} have {counts}"
                raise about_file(self._label, ragged, "points run along the first axis of each array")
        self.count = members[first].count
        return self._blocks(members, self.count, size) if self.count else iter(())

    def _member(self, name: str) -> Member:
        """Return the array of a variable, if it is one of numbers."""
        if name.startswith(COPIED):
            return self._copied(name.removeprefix(COPIED))
        if name not in self._members:
            raise missing(name, self.shapes, self._label)
        (member, *more) = self._members[name]
        if more:
            raise about_file(self._label, f"has the array {quoted(name)} twice")
        member.check()
        return member

    def _copied(self, header: str) -> Member:
        """Return an array that is copied: of a number for each point."""
        check_header(header, self.columns, self._label, "--keep")
        info = self._archive.getinfo(next(f"{column}.npy" for column in self.columns if column.strip() == header))
        member = read_header(self._archive, info, f"{self._label}, array {quoted(header)}")
        member.check()
        if member.shape[1:]:
            message = f"--keep: {member.label} has several numbers for each point"
            raise option_error("--keep", message, "a column has one", header)
        return member

    def _blocks(self, members: dict[str, Member], count: int, size: int) -> Iterator[Block]:
        with ExitStack() as stack:
            streams = {n: stack.enter_context(stream(self._archive, m)) for n, m in members.items()}
            for start in range(0, count, size):
                block = {name: read(min(size, count - start)) for name, read in streams.items()}
                self.done = min(start + size, count)
                yield block

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


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
                # Without the time, so that equal results are equal files.
                info = zipfile.ZipInfo(f"{name.removeprefix(COPIED)}.npy")
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
                data = self._spool.read(min(left, _WRITTEN))
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
        header = name.removeprefix(COPIED)
        message = f"--keep: the column {quoted(header)} has texts, and a .npz file has numbers"
        hint = "--output with .csv or .parquet copies texts"
        raise option_error("--keep", message, hint, header) from None


def _header(shape: Shape) -> bytes:
    """Return the header of an `.npy` file."""
    buffer = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(_TYPE), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()
