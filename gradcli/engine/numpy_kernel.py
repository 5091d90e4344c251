"""The NumPy engine: one call of a ufunc an operation, on a block of points, in buffers that are used again.

A buffer is free as soon as the last reader of its value is done, and blocks are so short that the live buffers stay in
the processor's cache: that is where the speed comes from.  Between two calls a thread holds Python's lock and the
others wait, so there is little between them: a function, what gets its arguments, and the place of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from gradcli.engine.numpy_target import forward
from gradcli.engine.schedule import Schedule, is_view, owners
from gradcli.graph.einsum import products
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of

Array = np.ndarray[Any, Any]
Kind = tuple[tuple[int, ...], type]  # the shape of a node and the type of its elements
# A function, what gets its arguments from the list of all arrays, and the place of its result in that list.
Step = tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], int]

_CACHE = 2**24  # bytes of buffers in which a thread works at best
_PRODUCT = 2**18  # multiplications in a product of matrices: for more, OpenBLAS has threads of its own, in our way
_LONGEST = 2**16  # points in a block
_MEMORY = 2**28  # bytes of buffers at most
CACHE_LINE = 64  # its bytes


@dataclass
class _Buffers:
    """The buffers of a block, and which of them are free while the steps are planned."""

    kinds: list[Kind] = field(default_factory=list)
    free: dict[Kind, list[int]] = field(default_factory=dict)

    def take(self, kind: Kind) -> int:
        """Return the number of a free buffer, or of a new one."""
        if waiting := self.free.get(kind):
            return waiting.pop()
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def give_back(self, number: int) -> None:
        """Let a buffer be used again."""
        self.free.setdefault(self.kinds[number], []).append(number)


class NumpyKernel:
    """A schedule as calls of NumPy; `block` is the number of points that it works on at best."""

    def __init__(self, schedule: Schedule) -> None:
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        # A ufunc begins twice as quickly with a constant that is no array; structural operations want the points' axis.
        arrays = {a for step in schedule.steps if not OPERATIONS[step.op].broadcasts for a in step.args}
        self._fixed = [v if n.shape or n in arrays else v.reshape(()) for n, v in schedule.same.items()]
        views = [n for n in schedule.steps if is_view(n)]
        self._views: list[Any] = [None] * len(views)
        self._steps, self._kinds = _plan(schedule, [*schedule.inputs.values(), *schedule.same, *views])
        self.block, self.fewest = _block(schedule, self._kinds), schedule.fewest

    def buffers(self, count: int) -> list[Array]:
        """Return the buffers for blocks of `count` points; every thread needs its own."""
        return _aligned([((*shape, count), kind) for shape, kind in self._kinds])

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points, as many as the buffers are for; both are views of a range of the points."""
        inputs, outputs = [points[name] for name in self._inputs], [results[name] for name in self._outputs]
        arrays = [*inputs, *self._fixed, *self._views, *outputs, *buffers]
        for function, arguments, place in self._steps:
            arrays[place] = function(*arguments(arrays))


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


def _plan(schedule: Schedule, first: Sequence[Node]) -> tuple[list[Step], list[Kind]]:
    """Return the steps, each into a view, an output or a buffer that no later step still reads, and the buffers' kinds.

    The list of all arrays begins with the nodes `first`; outputs and buffers follow.
    """
    places = {n: i for i, n in enumerate(first)}
    outputs = list(enumerate(schedule.outputs.values(), len(first)))
    direct = {n: place for place, n in reversed(outputs) if n not in places}  # steps that need no buffer
    owner = owners(schedule.steps)
    last = {owner[a]: i for i, n in enumerate(schedule.steps) for a in n.args if a in owner}
    kept = {owner[n] for n in schedule.outputs.values() if n in owner}
    held: dict[Node, int] = {}
    buffers = _Buffers()
    steps = []
    for i, node in enumerate(schedule.steps):
        done = [o for o in dict.fromkeys(owner.get(a) for a in node.args) if o in held and last[o] == i]
        done = [o for o in done if o not in kept]
        # A ufunc may write over its argument; `where` and structural operations read on after they began to write.
        early = OPERATIONS[node.op].broadcasts and node.op != "where"
        if early:
            for o in done:
                buffers.give_back(held.pop(o))
        if node in direct:
            places[node] = direct[node]
        elif not is_view(node):
            held[node] = buffers.take((node.shape, np.dtype(node.dtype).type))
            places[node] = len(first) + len(outputs) + held[node]
        steps.append(_step(node, [places[a] for a in node.args], places[node]))
        if not early:
            for o in done:
                buffers.give_back(held.pop(o))
    steps += [(np.copyto, itemgetter(place, places[n]), place) for place, n in outputs if direct.get(n) != place]
    return steps, buffers.kinds


def _step(node: Node, args: Sequence[int], place: int) -> Step:
    """Return the call that computes a node, whose arguments and result stand at these places."""
    function = forward(node)
    if is_view(node):
        return function, itemgetter(slice(args[0], args[0] + 1)), place
    # With the array for the result as their last argument, ufuncs begin sooner; for two of them NumPy deprecates that.
    ends_with_out = isinstance(function, np.ufunc) and function not in (np.maximum, np.minimum)
    call = function if ends_with_out else lambda *arrays: function(*arrays[:-1], out=arrays[-1])
    return call, itemgetter(*args, place), place


def _block(schedule: Schedule, kinds: Sequence[Kind]) -> int:
    """Return the number of points on which a thread works at best."""
    live = max(1, sum(size_of(shape) * np.dtype(kind).itemsize for shape, kind in kinds))
    product = max((products(n) for n in schedule.steps if OPERATIONS[n.op].kind == "contraction"), default=1)
    best = max(min(_CACHE // live, _PRODUCT // product), schedule.fewest)
    return max(1, min(best, _LONGEST, _MEMORY // live))
