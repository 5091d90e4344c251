"""The NumPy engine: one call of a ufunc an operation, on a block of points, in buffers that are reused.

A buffer is free after the last use of its value, and blocks are so short that the live buffers stay in
the processor's cache: that is where the speed comes from.  Between two calls a thread holds Python's lock and the
others wait, so little happens there: each step is a function, a getter of its arguments, and the index of its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from operator import is_

import numpy as np

from gradcli.engine.blocks import Arrays, Work, new_arrays, on_views
from gradcli.engine.isomorphic import hoisted, is_row, vectorised
from gradcli.engine.numpy_plan import Plan
from gradcli.engine.schedule import Schedule
from gradcli.graph.array import Array
from gradcli.graph.einsum import products
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS


class PlanOfRows:
    """A plan whose results, where they are the numbers of an array, are the rows of that array.

    They are computed into the arrays that `new` returned last, and copied to any others.
    """

    def __init__(self, schedule: Schedule) -> None:
        rows = _rows_by_array(schedule)
        arrays = {next(iter(names.values())): a for a, names in rows.items()}  # under the name of their first row
        self._sizes = {name: a.size for name, a in arrays.items()}
        self._rows = {row: (name, n.settings[0][0]) for name, a in arrays.items() for n, row in rows[a].items()}
        self._others = {name: n for name, n in schedule.outputs.items() if name not in self._rows}
        read = {a for n in schedule.steps for a in n.args} | set(self._others.values())
        alone = {n for names in rows.values() for n in names if n not in read}
        steps = tuple(n for n in schedule.steps if n not in alone)
        self._plan = Plan(replace(schedule, steps=steps, outputs=arrays | self._others))
        self.bytes, self.memory = self._plan.bytes, self._plan.memory
        # Inputs that must be contiguous float64: an input that is only stacked may have any layout.
        put = {a for n in steps if n.op == "stack" for a in n.args}
        put -= {a for n in steps if n.op != "stack" for a in n.args} | set(self._others.values())
        self._read = [name for name, n in schedule.inputs.items() if n not in put]
        self._last = self._arrays_for(0)  # rows, and the arrays that hold them

    def new(self, count: int) -> dict[str, Array]:
        """Return arrays for the results at `count` points."""
        self._last = rows, _ = self._arrays_for(count)
        return dict(zip(self._rows, rows, strict=True)) | {
            name: np.empty((*n.shape, count)) for name, n in self._others.items()
        }

    def _arrays_for(self, count: int) -> tuple[list[Array], dict[str, Array]]:
        arrays = {name: np.empty((size, count)) for name, size in self._sizes.items()}
        parts = {name: list(array) for name, array in arrays.items()}
        return [parts[name][i] for name, i in self._rows.values()], arrays

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points in place; None unless `new` returned them."""
        rows, arrays = self._last
        if not all(map(is_, rows, map(results.__getitem__, self._rows))):
            return None
        others = {name: results[name] for name in self._others}
        return on_views(
            self._plan.run, points, arrays | others, [*map(points.__getitem__, self._read), *others.values()]
        )

    def run(self, buffers: list[Array], points: Arrays, results: Arrays) -> None:
        """Run the calls on a block of points, as many as the buffers hold, and copy the rows to the results."""
        rows, arrays = self._arrays_for(next(iter(results.values())).shape[-1])
        self._plan.run(buffers, points, arrays | {name: results[name] for name in self._others})
        for name, row in zip(self._rows, rows, strict=True):
            results[name][...] = row


def _rows_by_array(schedule: Schedule) -> dict[Node, dict[Node, str]]:
    """Return the arrays most of whose numbers are outputs, each with these and their names."""
    result: dict[Node, dict[Node, str]] = {}
    for name, n in schedule.outputs.items():
        if is_row(n):
            result.setdefault(n.args[0], {}).setdefault(n, name)
    inputs = set(schedule.inputs.values())
    # For few rows, an array would hold memory for nothing.
    return {a: rows for a, rows in result.items() if a not in inputs and 2 * len(rows) > a.size}


_CACHE = 2**24  # bytes of buffers in which a thread works at best
_PRODUCT = 2**18  # multiplications in a product of matrices: for more, OpenBLAS starts threads that compete with ours
_LONGEST = 2**16  # points in a block
_MEMORY = 2**28  # bytes of buffers at most
_FEW = 2**10  # points at which a call takes longer to begin than to compute


class NumpyKernel:
    """A schedule as calls of NumPy; `block` is the number of points that it works on at best."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule = hoisted(schedule)
        self._plan = Plan(schedule)
        self.block, self.fewest = _block(schedule, self._plan.bytes), schedule.fewest

    @cached_property
    def _grouped(self) -> PlanOfRows | None:
        """The plan for few points, if equal operations can be calls on one array."""
        schedule = vectorised(self._schedule)
        return None if schedule is self._schedule else PlanOfRows(schedule)

    def _rows_for(self, count: int) -> PlanOfRows | None:
        few = count <= _FEW and self._grouped and self._grouped.bytes * count <= _CACHE
        return self._grouped if few else None

    def new(self, count: int) -> dict[str, Array]:
        """Return arrays for the results at `count` points."""
        rows = self._rows_for(count)
        return rows.new(count) if rows else new_arrays(self._schedule.shapes, count)

    def buffers(self, count: int) -> list[Array]:
        """Return the buffers for blocks of `count` points; every thread needs its own."""
        return (self._rows_for(count) or self._plan).memory(count)

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points; None unless they are contiguous float64."""
        rows = self._rows_for(next((a.shape[-1] for a in results.values()), 0))
        return (rows and rows.begin(points, results)) or on_views(self.run, points, results)

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points, as many as the buffers are for; both are views of a range of the points."""
        plan = self._rows_for(next(iter(results.values())).shape[-1]) or self._plan
        plan.run(buffers, points, results)


def _block(schedule: Schedule, live: int) -> int:
    """Return the number of points on which a thread works at best."""
    product = max((products(n) for n in schedule.steps if OPERATIONS[n.op].kind == "contraction"), default=1)
    best = max(min(_CACHE // live, _PRODUCT // product), schedule.fewest)
    return max(1, min(best, _LONGEST, _MEMORY // live))
