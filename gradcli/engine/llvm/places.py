"""Where the elements of an array are, for the loops of an LLVM kernel: an index into what holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradcli.graph.array import Array
from gradcli.graph.operations import OPERATIONS


@dataclass(frozen=True)
class Place:
    """Where an array is: `index` numbers its elements there, and its strides are those of the loops that read it.

    `where` is `w` in the scratch array, `u` among what does not vary, or the number of an array outside.
    """

    where: str | int
    index: Array
    condition: bool = False
    streamed: bool = False  # it is written and never read: see `Writer.store_at`

    def seen(self, index: Array) -> Place:
        """Return the same elements, seen through another index."""
        return Place(self.where, index, self.condition, self.streamed)

    def part(self, key: tuple[Any, ...]) -> Place:
        """Return a part of the array, by an index."""
        return self.seen(OPERATIONS["index"].moved((key,), self.index))
