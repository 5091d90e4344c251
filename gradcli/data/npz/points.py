"""Points in an `.npz` file: an array for each variable, with the points along its first axis."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from gradcli.data.block import COPIED, PLAIN, Block, Reading, check_header
from gradcli.data.columns import missing, variable
from gradcli.data.mistakes import about_file, check_regular, label, quoted, reading, unreadable
from gradcli.data.npz.members import Member, read_header, stream
from gradcli.errors import InputError
from gradcli.graph.shapes import Shape

_MEMBER = re.compile(r"([^.]+)(\.[uv])?\.npy")


class NpzPoints:
    """Points in an `.npz` file, whose arrays are read in step."""

    skipped = 0  # an array has no missing numbers

    def __init__(self, path: str, how: Reading = PLAIN) -> None:
        """Open the file, and read the headers of its arrays."""
        self._label = label(path)
        self._done = 0
        self._members: dict[str, list[Member]] = {}
        check_regular(path)
        with reading(self._label):
            try:
                self._archive = zipfile.ZipFile(path)
            except zipfile.BadZipFile:
                raise unreadable(self._label, "it is not an .npz file, or it is damaged") from None
        try:
            infos = [info for info in self._archive.infolist() if info.filename.endswith(".npy")]
            self.columns: Sequence[str] = [info.filename.removesuffix(".npy") for info in infos]
            for info, name in zip(infos, how.named(self.columns, self._label), strict=True):
                match = _MEMBER.fullmatch(f"{name}.npy")
                stem = variable(match[1]) if match else None
                if match and stem:
                    result = read_header(self._archive, info, f"{self._label}, array {quoted(info.filename[:-4])}")
                    self._members.setdefault(stem + (match[2] or ""), []).append(result)
        except BaseException:
            self.close()
            raise
        self.shapes: dict[str, Shape] = {name: result[0].shape[1:] for name, result in self._members.items()}
        counts = {result[0].count for result in self._members.values()}
        # Arrays that are not asked for may be of any length.
        self.count: int | None = counts.pop() if len(counts) == 1 else None

    @property
    def fraction(self) -> float | None:
        """The share of the points that has been read."""
        return self._done / self.count if self.count else None

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        members = {name: self._member(name) for name in names}
        (first, *others) = members
        for name in others:
            if members[name].count != members[first].count:
                counts = f"{members[first].count:,} and {members[name].count:,} points"
                raise about_file(
                    self._label,
                    f"is ragged: {quoted(first)} and {quoted(name)} have {counts}",
                    "points run along the first axis of each array",
                )
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
            raise InputError(
                f"--keep: {member.label} has several numbers for each point",
                hint="a column has one",
                options=("--keep",),
                text=header,
            )
        return member

    def _blocks(self, members: dict[str, Member], count: int, size: int) -> Iterator[Block]:
        with ExitStack() as stack:
            streams = {n: stack.enter_context(stream(self._archive, m)) for n, m in members.items()}
            for start in range(0, count, size):
                block = {name: read(min(size, count - start)) for name, read in streams.items()}
                self._done = min(start + size, count)
                yield block

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
