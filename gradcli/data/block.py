"""A block: some of a file's points, as one array for each variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gradcli.graph.array import Array as Array
from gradcli.graph.shapes import Shape

# A float64 array for each variable, C-contiguous, with the points along the last axis. It may be read-only.
Block = dict[str, Array]


class Points(Protocol):
    """An open file of points.

    `shapes` are the shapes of the variables that the file holds, among them cotangents and tangents under their names:
    `y0.v`, `x0.u`.
    `count` is the number of points, `None` where only reading to the end tells. `fraction` is the share of the file
    that has been read, from 0 to 1, `None` where its size is not known.
    """

    shapes: dict[str, Shape]
    count: int | None

    @property
    def fraction(self) -> float | None:
        """The share of the file that has been read."""

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables (one at least), in blocks of 1 to `size` points.

        Points are read once: standard input cannot be read again.

        Errors: `InputError` for variables that the file does not hold whole, at once; for values that are no numbers,
        as they are met.
        """

    def close(self) -> None:
        """Close the file."""
