"""Points from the command line (`--at`), with the interface of a file of points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gradcli.data.block import Array, Block


class GivenPoints:
    """Points as arrays in memory, with the interface of a file of points."""

    fraction = None
    columns: Sequence[str] = ()
    skipped = 0

    def __init__(self, points: Sequence[Mapping[str, Array]]) -> None:
        self.shapes = {name: value.shape for name, value in points[0].items()}
        self.count: int | None = len(points)
        self._points = points

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values, as an open file does."""
        for start in range(0, len(self._points), size):
            part = self._points[start : start + size]
            yield {name: np.stack([p[name] for p in part], axis=-1) for name in names}

    def close(self) -> None:
        """Do nothing: no file is open."""
