"""A job at many points: a graph, its inputs, and its outputs; it may run in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.data.block import COPIED, PLAIN, Block, Points, Reading, Write
from gradcli.engine.compiled import Compiled
from gradcli.errors import Notes
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph
from gradcli.graph.shapes import Shape, size_of

_BLOCK = 2**22  # numbers that are read and written at a time
_LONGEST = 2**18  # points


@dataclass
class Tally:
    """The number of points, the number of those with results that are not finite, and the first of these.

    `first` is its index, `at` the inputs there, in their own shapes, and `results` the results there, by their names
    or those of their elements.
    """

    points: int = 0
    not_finite: int = 0
    first: int = 0
    at: dict[str, Array] = field(default_factory=dict)
    results: dict[Any, Array] = field(default_factory=dict)
    skipped: int = 0  # that were left out because a cell is missing
    checked: Tally | None = None  # the same of what is computed to be checked, and not written

    def add(self, block: Block, results: Mapping[Any, Array]) -> None:
        """Count the points of a block, and those whose results are not finite; keep the first of these."""
        count = next(iter(block.values())).shape[-1]
        bad = np.zeros(count, dtype=bool)
        for value in results.values():
            if value.dtype.kind not in "fiub":  # a column of text that is copied
                continue
            finite = np.isfinite(value)
            if not finite.all():
                bad |= ~finite.reshape(-1, finite.shape[-1]).all(axis=0)
        if bad.any():
            if not self.not_finite:
                k = int(np.argmax(bad))
                self.first = self.points + k
                self.at = {name: value[..., k].copy() for name, value in block.items()}
                self.results = {name: value[..., k % value.shape[-1]].copy() for name, value in results.items()}
            self.not_finite += int(bad.sum())
        self.points += count

    def join(self, other: Tally) -> None:
        """Add the counts of the points that follow these."""
        if other.not_finite and not self.not_finite:
            self.first, self.at, self.results = self.points + other.first, other.at, other.results
        self.not_finite += other.not_finite
        self.points += other.points
        self.skipped += other.skipped
        if other.checked is not None:
            self.checked = self.checked or Tally()
            self.checked.join(other.checked)


@dataclass(frozen=True)
class Job:
    """A graph to be run at many points; it can be sent to another process.

    `varying` has the shapes of the inputs that are read from a file, `same` the values of the others, with a last axis
    of length 1.  `shapes` are those of the outputs, and `columns` the names of their elements, for outputs whose
    elements have names.  Outputs in `checked` are not written; points at which they are not finite are counted.
    Outputs in `values` do not count for that.  The columns with the headers `kept` are copied, and `reading` says how a
    file of points is read.
    """

    graph: Graph
    varying: Mapping[str, Shape]
    same: Mapping[str, Array]
    columns: Mapping[str, Sequence[str]]
    engine: str = "numpy"
    threads: int | None = None
    checked: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    kept: tuple[str, ...] = ()
    reading: Reading = PLAIN

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each column that is copied, and of each output that is written."""
        return dict.fromkeys(self._copied, ()) | {
            name: y.shape for name, y in self.graph.outputs.items() if name not in self.checked
        }

    @property
    def _copied(self) -> list[str]:
        return [COPIED + header for header in self.kept]

    @property
    def block(self) -> int:
        """The number of points that are read at a time."""
        numbers = sum(map(size_of, (*self.varying.values(), *self.shapes.values()))) + len(self.checked)
        return int(np.clip(_BLOCK // max(1, numbers), 1, _LONGEST))

    def run(
        self, points: Points, write: Write, notes: Notes, report: Callable[[int], None] = lambda count: None
    ) -> Tally:
        """Compute the outputs at all points and write them; `report` gets the number of points written so far.

        Errors: `InputError` for points that cannot be read, results that cannot be written, an engine that is missing.
        """
        compiled = Compiled(self.graph, self.same, self.engine, self.threads, notes)
        tally = Tally(checked=Tally() if self.checked else None)
        memory: dict[str, Array] = {}
        for block in points.blocks([*self.varying, *self._copied], self.block):
            copied = {name: block.pop(name) for name in self._copied}
            count = next(iter(block.values())).shape[-1]
            reusable = memory and next(iter(memory.values())).shape[-1] == count
            results = compiled(block, memory if reusable else None)
            memory = {name: a for name, a in results.items() if a.shape[-1] == count and a.flags.writeable}
            if tally.checked is not None:
                tally.checked.add(block, {name: results.pop(name) for name in self.checked})
            tally.add(block, {name: array for name, array in results.items() if name not in self.values})
            # All of them may be the same at all points.
            write(copied | {name: np.broadcast_to(a, (*a.shape[:-1], count)) for name, a in results.items()})
            report(tally.points)
        tally.skipped = points.skipped
        return tally
