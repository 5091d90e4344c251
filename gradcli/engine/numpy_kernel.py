"""The NumPy engine: one call of a ufunc an operation, on a block of points, in buffers that are used again.

A buffer is free as soon as the last reader of its value is done, and blocks are so short that the live buffers stay in
the processor's cache: that is where the speed comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.engine.evaluate import forward
from gradcli.engine.schedule import CONDITIONS, VIEWS, Schedule
from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Node, size_of

Array = np.ndarray[Any, Any]
Kind = tuple[tuple[int, ...], type]  # the shape of a node and the type of its elements

_CACHE = 2**23  # bytes of buffers in which a thread works at best
_CALL = 2**14  # elements at least of a call: in shorter ones, threads wait for each other longer than they compute
_PRODUCT = 2**18  # multiplications in a product of matrices: for more, OpenBLAS has threads of its own, in our way
_LONGEST = 2**15  # points in a block
_MEMORY = 2**28  # bytes of buffers at most


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: its function, the places of its arguments and of its result, and where the result is written.

    That is an output of that name, or the buffer of that number; or neither, for a view.
    """

    run: Callable[..., Array]
    args: tuple[int, ...]
    place: int
    output: str | None
    buffer: int | None


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
        place = {n: i for i, n in enumerate((*schedule.inputs, *schedule.same, *schedule.steps))}
        # A ufunc begins twice as quickly with a constant that is no array; structural operations want the points' axis.
        arrays = {a for step in schedule.steps if step.op not in ELEMENTWISE for a in step.args}
        fixed = {n: v if n.shape or n in arrays else v.reshape(()) for n, v in schedule.same.items()}
        self._fixed: list[Array | None] = [fixed.get(n) for n in place]
        self._inputs = [(place[n], n.name or "") for n in schedule.inputs]
        direct = _written_directly(schedule)
        self._copied = [(place[n], name) for name, n in schedule.outputs.items() if direct.get(n) != name]
        self._steps, self._kinds = _plan(schedule, place, direct)
        self.block = _block(schedule, self._kinds)

    def buffers(self, count: int) -> list[Array]:
        """Return the buffers for blocks of `count` points; every thread needs its own."""
        return [np.empty((*shape, count), kind) for shape, kind in self._kinds]

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points, as many as the buffers are for; both are views of a range of the points."""
        values: list[Any] = self._fixed.copy()
        for place, name in self._inputs:
            values[place] = points[name]
        for step in self._steps:
            args = [values[a] for a in step.args]
            if step.buffer is not None:
                values[step.place] = step.run(*args, out=buffers[step.buffer])
            elif step.output is not None:
                values[step.place] = step.run(*args, out=results[step.output])
            else:
                values[step.place] = step.run(*args)
        for place, name in self._copied:
            results[name][...] = values[place]


def _written_directly(schedule: Schedule) -> dict[Node, str]:
    """Return the steps whose result is an output, and so needs no buffer."""
    direct: dict[Node, str] = {}
    steps = {n for n in schedule.steps if n.op not in VIEWS}
    for name, node in schedule.outputs.items():
        if node in steps:
            direct.setdefault(node, name)
    return direct


def _plan(schedule: Schedule, place: Mapping[Node, int], direct: Mapping[Node, str]) -> tuple[list[Step], list[Kind]]:
    """Return the steps, each with a buffer that no later step still reads, and the kinds of the buffers."""
    owners = schedule.owners()
    last = {owners[a]: i for i, n in enumerate(schedule.steps) for a in n.args if a in owners}
    kept = {owners[n] for n in schedule.outputs.values() if n in owners}
    held: dict[Node, int] = {}
    buffers = _Buffers()
    steps = []
    for i, node in enumerate(schedule.steps):
        done = [o for o in dict.fromkeys(owners.get(a) for a in node.args) if o in held and last[o] == i]
        done = [o for o in done if o not in kept]
        # A ufunc may write over its argument; `where` and structural operations read on after they began to write.
        early = node.op in ELEMENTWISE and node.op != "where"
        if early:
            for owner in done:
                buffers.give_back(held.pop(owner))
        if node.op not in VIEWS and node not in direct:
            held[node] = buffers.take((node.shape, bool if node.op in CONDITIONS else float))
        run = forward(node)
        steps.append(Step(run, tuple(place[a] for a in node.args), place[node], direct.get(node), held.get(node)))
        if not early:
            for owner in done:
                buffers.give_back(held.pop(owner))
    return steps, buffers.kinds


def _block(schedule: Schedule, kinds: Sequence[Kind]) -> int:
    """Return the number of points on which a thread works at best."""
    live = max(1, sum(size_of(shape) * np.dtype(kind).itemsize for shape, kind in kinds))
    typical = max(1, sum(n.size for n in schedule.steps) // max(1, len(schedule.steps)))
    product = max((n.size * n.args[0].shape[-1] for n in schedule.steps if n.op == "matmul"), default=1)
    best = max(min(_CACHE // live, _PRODUCT // product), _CALL // typical)
    return max(1, min(best, _LONGEST, _MEMORY // live))
