"""The Numba engine: a schedule as machine code that works on the points of a block, wherever NumPy has them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from gradcli.engine.numba_code import Code, write
from gradcli.engine.numba_compiler import loaded, object_code
from gradcli.engine.numba_math import LIBRARY
from gradcli.engine.schedule import Schedule, is_view
from gradcli.errors import Notes
from gradcli.graph.einsum import products
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

Array = np.ndarray[Any, Any]

_THREAD, _ARRAY = 2**23, 2**13  # additions whose time is worth a thread, and that its slice of an array takes


class NumbaKernel:
    """A schedule as a compiled function; `block` is the number of points that it works on at best."""

    block = 2**16

    def __init__(self, schedule: Schedule, notes: Notes) -> None:
        self._schedule, self._notes = schedule, notes
        self.new = schedule.new
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        outside = [*schedule.inputs.values(), *schedule.outputs.values()]
        self._rows = [j for j, n in enumerate(outside) if n.shape]
        self._many = _Function(write(schedule), notes)
        self._few: _Function | None = None
        self._lock = Lock()
        self.fewest = max(1, max(_THREAD, _ARRAY * len(outside)) // max(1, sum(map(_cost, schedule.steps))))

    def buffers(self, count: int) -> list[Array]:
        """Return the scratch array of a thread."""
        return [np.empty(self._for(count).scratch)]

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points."""
        # There may be thousands of both.
        arrays = [*map(points.__getitem__, self._inputs), *map(results.__getitem__, self._outputs)]
        count = arrays[-1].shape[-1]
        strides = np.zeros(len(arrays), np.int64)
        for j in self._rows:
            strides[j] = arrays[j].strides[-2] // arrays[j].itemsize
        function, own = self._for(count), cells(arrays)
        function.call(count, *(a.ctypes.data for a in (own, strides, function.same, *buffers)))

    def _for(self, count: int) -> _Function:
        """Return the function for so many points: another for fewer than a vector has, made when it is wanted."""
        if count >= self._many.lanes:
            return self._many
        with self._lock:
            self._few = self._few or _Function(write(self._schedule, 1), self._notes)
            return self._few


class _Function:
    """A compiled function, and what it is called with."""

    def __init__(self, code: Code, notes: Notes) -> None:
        self.lanes, self.same, self.scratch = code.lanes, code.same, code.rows * code.tile
        self._engine, self.call = loaded(object_code(code.source, notes))


def _cost(node: Node) -> int:
    """Return how long a step takes at a point, in additions."""
    if is_view(node):
        return 0
    if OPERATIONS[node.op].kind == "contraction":
        return products(node)
    return node.size * (16 if node.op in LIBRARY else 4 if node.op == "div" else 1)


def cells(arrays: Sequence[Array]) -> Array:
    """Return for each array the address of a cell of memory that holds the address of its numbers.

    To ask NumPy for thousands of addresses takes longer than to compute with what is there.
    """
    head = _head()
    if head:
        return np.fromiter(map(id, arrays), np.int64, len(arrays)) + head
    both = np.array([0 for _ in arrays] + [a.ctypes.data for a in arrays])
    both[: len(arrays)] = both.ctypes.data + both.itemsize * np.arange(len(arrays), 2 * len(arrays))
    return both


@cache
def _head() -> int:
    """Return how far into an array's object that cell is, behind what all objects begin with; 0 if it is not there."""
    probe = np.empty(1)
    if sys.implementation.name != "cpython":
        return 0
    head = object.__basicsize__
    return head if ctypes.c_void_p.from_address(id(probe) + head).value == probe.ctypes.data else 0
