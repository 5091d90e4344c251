"""The arrays of an LLVM kernel: each element is a row of numbers along the points."""

from __future__ import annotations

from dataclasses import dataclass

from gradcli.loops.index_map import IndexMap


@dataclass(frozen=True)
class Rows(IndexMap):
    """An array of rows.

    `buffer` is `w` for the scratch array, `u` for what does not vary, or the index of an input or output.  The values
    of a `condition` are stored as 1 or 0.
    """

    buffer: str | int = "w"
    condition: bool = False
