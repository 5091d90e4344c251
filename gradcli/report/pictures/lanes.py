"""Lanes beside the lines of a list, as `git log --graph` draws them: a lane for each value, as long as it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """The lanes beside one entry: at its first line, and at the lines after it."""

    first: str
    after: str


@dataclass
class Lanes:
    """Draws lanes; a value that finds none free of the `most` that there may be has no line."""

    most: int
    lanes: list[int | None] = field(default_factory=list)  # which entry's value is in each
    lost: int = 0

    def rows(self, sources: Sequence[Sequence[int]], signs: Sequence[str]) -> Iterator[Row]:
        """Yield the lanes of each entry, which reads the values of earlier ones, its `sources`, and has a sign.

        >>> for row in Lanes(8).rows([[], [0], [0, 1]], "ooo"):
        ...     print(row.first)
        o
        ├─o
        o─╯
        """
        last = {s: k for k, values in enumerate(sources) for s in values}
        for k, values in enumerate(sources):
            read = {lane for lane, value in enumerate(self.lanes) if value in values}
            ending = {lane for lane in read if last[self._value(lane)] == k}
            new = self._free_lane(read, ending)
            first = self._line(new, read, ending, signs[k])
            for lane in ending:
                self.lanes[lane] = None
            if new < self.most:
                self._take(new, k if k in last else None)
            elif k in last:
                self.lost += 1
            while self.lanes and self.lanes[-1] is None:
                self.lanes.pop()
            yield Row(first, " ".join(" " if value is None else "│" for value in self.lanes))

    def _value(self, lane: int) -> int:
        value = self.lanes[lane]
        assert value is not None
        return value

    def _free_lane(self, read: set[int], ending: set[int]) -> int:
        """Return the lane of a new value: one that ends, or the free one that is nearest to what it reads."""
        if ending:
            return min(ending)
        free = [lane for lane, value in enumerate(self.lanes) if value is None]
        if len(self.lanes) < self.most or not free:
            free.append(len(self.lanes))
        middle = sum(read) / len(read) if read else 0
        return min(free, key=lambda lane: abs(lane - middle))

    def _take(self, lane: int, value: int | None) -> None:
        self.lanes += [None] * (lane + 1 - len(self.lanes))
        self.lanes[lane] = value

    def _line(self, new: int, read: set[int], ending: set[int], sign: str) -> str:
        left, right = min([new, *read]), max([new, *read])
        parts = []
        for lane in range(max(len(self.lanes), new + 1)):
            live = lane < len(self.lanes) and self.lanes[lane] is not None
            if lane == new:
                parts.append(sign)
            elif lane in read:
                ends = lane in ending
                parts.append(("╰" if ends else "├") if lane == left else ("╯" if ends else "┤") if lane == right
                             else ("┴" if ends else "┼"))  # fmt: skip
            else:
                parts.append("│" if live else "─" if left < lane < right else " ")
            parts.append("─" if left <= lane < right else " ")
        return "".join(parts[:-1])
