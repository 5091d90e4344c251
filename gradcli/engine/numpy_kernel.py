"""The NumPy engine: one call of a ufunc an operation, on a block of points, in buffers that are reused.

A buffer is free after the last use of its value, and blocks are so short that the live buffers stay in
the processor's cache: that is where the speed comes from.  Between two calls a thread holds Python's lock and the
others wait, so little happens there: each step is a function, a getter of its arguments, and the index of its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from gradcli.engine.blocks import Arrays, Work, new_arrays, on_views
from gradcli.engine.hoisting import hoisted
from gradcli.engine.isomorphic import vectorised
from gradcli.engine.numpy_plan import Plan
from gradcli.engine.numpy_rows import PlanOfRows
from gradcli.engine.schedule import Schedule
from gradcli.graph.array import Array
from gradcli.graph.einsum import products
from gradcli.graph.operations import OPERATIONS

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
