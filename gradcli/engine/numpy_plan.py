"""A schedule as calls of NumPy in their order, each into an output or into a buffer that no later call still reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import forward
from gradcli.engine.schedule import Schedule, is_view, last_uses
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of

Kind = tuple[tuple[int, ...], type]  # the shape of a node and the type of its elements
# A function, what gets its arguments from the list of all arrays, and the index of its result in that list.
Step = tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], int]

CACHE_LINE = 64  # its bytes


class Plan:
    """The calls for a schedule; the list of all arrays is inputs, constants, views, outputs and buffers.

    `bytes` is what the buffers take for each point.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        # A ufunc starts twice as fast with a scalar constant; structural operations need the points' axis.
        arrays = {a for step in schedule.steps if not OPERATIONS[step.op].broadcasts for a in step.args}
        self._fixed = [v if n.shape or n in arrays else v.reshape(()) for n, v in schedule.same.items()]
        planner = _Planner(schedule)
        self._views: list[Any] = [None] * planner.views
        self._steps, self._kinds = planner.steps, planner.buffers
        self.bytes = max(1, sum(size_of(shape) * np.dtype(kind).itemsize for shape, kind in self._kinds))

    def memory(self, count: int) -> list[Array]:
        """Return the buffers for blocks of `count` points; every thread needs its own."""
        return _aligned([((*shape, count), kind) for shape, kind in self._kinds])

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Run the calls on a block of points, as many as the buffers hold."""
        inputs, outputs = map(points.__getitem__, self._inputs), map(results.__getitem__, self._outputs)
        arrays = [*inputs, *self._fixed, *self._views, *outputs, *buffers]
        for function, arguments, index in self._steps:
            arrays[index] = function(*arguments(arrays))


def _aligned(kinds: Sequence[Kind]) -> list[Array]:
    """Return arrays of these shapes and types, each from the beginning of a cache line: that saves a tenth of the time.

    Between two of them is a line more, since what lies a power of two apart shares one set of the cache's lines.
    """
    sizes = [size_of(shape) * np.dtype(kind).itemsize for shape, kind in kinds]
    lines = [-(-size // CACHE_LINE) + 1 for size in sizes]
    memory = np.empty((sum(lines) + 1) * CACHE_LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % CACHE_LINE
    arrays: list[Array] = []
    for (shape, kind), size, n in zip(kinds, sizes, lines, strict=True):
        arrays.append(memory[start : start + size].view(kind).reshape(shape))
        start += n * CACHE_LINE
    return arrays


class _Planner:
    """Assigns each node its index in the list of all arrays, and builds the steps."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps: list[Step] = []
        self.buffers: list[Kind] = []
        self._free: dict[Kind, list[int]] = {}
        outputs, steps = schedule.outputs.values(), schedule.steps
        views = [n for n in steps if is_view(n)]
        self.views = len(views)
        first = [*schedule.inputs.values(), *schedule.same, *views]
        self._indices = {n: i for i, n in enumerate(first)}
        indices = list(enumerate(outputs, len(first)))
        # Steps that need no buffer.
        self._direct = {n: index for index, n in reversed(indices) if n not in self._indices}
        self._start = len(first) + len(indices)
        self._held: dict[Node, int] = {}
        for node, done in zip(steps, last_uses([[n] for n in steps], outputs), strict=True):
            self._add(node, done)
        self.steps += [
            (np.copyto, itemgetter(index, self._indices[n]), index)
            for index, n in indices
            if self._direct.get(n) != index
        ]

    def _add(self, node: Node, done: list[Node]) -> None:
        """Add the call for a node, which is the last use of the nodes in `done`."""
        # A ufunc may write over its argument; `where` and structural operations read on after they began to write.
        row = OPERATIONS[node.op]
        may_overwrite = row.broadcasts and not row.selects
        if may_overwrite:
            self._give_back(done)
        if node in self._direct:
            self._indices[node] = self._direct[node]
        elif not is_view(node):
            self._held[node] = self._taken((node.shape, np.dtype(node.dtype).type))
            self._indices[node] = self._start + self._held[node]
        self.steps.append(_step(node, [self._indices[a] for a in node.args], self._indices[node]))
        if not may_overwrite:
            self._give_back(done)

    def _taken(self, kind: Kind) -> int:
        """Return the number of a free buffer, or of a new one."""
        if waiting := self._free.get(kind):
            return waiting.pop()
        self.buffers.append(kind)
        return len(self.buffers) - 1

    def _give_back(self, done: list[Node]) -> None:
        """Let later steps use the buffers of nodes that no step reads any more."""
        for owner in done:
            if owner in self._held:
                number = self._held.pop(owner)
                self._free.setdefault(self.buffers[number], []).append(number)


def _step(node: Node, args: Sequence[int], index: int) -> Step:
    """Return the call that computes a node; the arguments and the result are given by their indices."""
    function = forward(node)
    if is_view(node):
        return function, itemgetter(slice(args[0], args[0] + 1)), index
    # With the array for the result as their last argument, ufuncs begin sooner; for two of them NumPy deprecates that.
    ends_with_out = isinstance(function, np.ufunc) and function not in (np.maximum, np.minimum)
    call = function if ends_with_out else lambda *arrays: function(*arrays[:-1], out=arrays[-1])
    return call, itemgetter(*args, index), index
