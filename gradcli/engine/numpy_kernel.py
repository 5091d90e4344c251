"""The NumPy engine: straight-line Python, one call of a ufunc an operation, on a block of points.

A buffer is free as soon as the last reader of its value is done, and blocks are so short that the live buffers stay in
the processor's cache: that is where the speed comes from.  Between two calls a thread holds Python's lock, and
the others wait; that is why the calls are lines of source: a loop over the steps would hold it for twice as long.
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
_PART = 1_000  # calls in one function: compiling longer ones takes much memory


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


@dataclass
class _Source:
    """Calls of NumPy as lines of Python, with the functions that they name.

    Arrays stand in lists: inputs `x`, outputs `y`, values that do not vary `c`, buffers `b`; views in a dictionary `t`.
    """

    places: dict[Node, str]
    lines: list[str] = field(default_factory=list)
    functions: dict[Callable[..., Array], str] = field(default_factory=dict)

    def call(self, node: Node, out: str = "") -> None:
        """Write the call that computes a node, into the array `out` unless it is a view."""
        function = forward(node)
        name = self.functions.setdefault(function, f"f{len(self.functions)}")
        args = [self.places[a] for a in node.args]
        if out:
            self.places[node] = out
            self.lines.append(f"{name}({', '.join(args)}, out={out})")
        else:
            self.places[node] = f"t[{len(self.lines)}]"
            self.lines.append(f"{self.places[node]} = {name}({', '.join(args)})")

    def compiled(self) -> list[Callable[..., None]]:
        """Return the lines as functions `part(x, y, c, b, t)`, to be run one after the other."""
        names: dict[str, Any] = {name: function for function, name in self.functions.items()}
        parts = []
        for i in range(0, len(self.lines), _PART):
            exec("\n    ".join(["def part(x, y, c, b, t):", *self.lines[i : i + _PART]]), names)
            parts.append(names["part"])
        return parts


class NumpyKernel:
    """A schedule as calls of NumPy; `block` is the number of points that it works on at best."""

    def __init__(self, schedule: Schedule) -> None:
        self._inputs = [n.name or "" for n in schedule.inputs]
        self._outputs = list(schedule.outputs)
        # A ufunc begins twice as quickly with a constant that is no array; structural operations want the points' axis.
        arrays = {a for step in schedule.steps if step.op not in ELEMENTWISE for a in step.args}
        self._fixed = [v if n.shape or n in arrays else v.reshape(()) for n, v in schedule.same.items()]
        source, self._kinds = _plan(schedule)
        self._parts = source.compiled()
        self.block = _block(schedule, self._kinds)

    def buffers(self, count: int) -> list[Array]:
        """Return the buffers for blocks of `count` points; every thread needs its own."""
        return [np.empty((*shape, count), kind) for shape, kind in self._kinds]

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points, as many as the buffers are for; both are views of a range of the points."""
        x, y = [points[name] for name in self._inputs], [results[name] for name in self._outputs]
        views: dict[int, Array] = {}
        for part in self._parts:
            part(x, y, self._fixed, buffers, views)


def _plan(schedule: Schedule) -> tuple[_Source, list[Kind]]:
    """Return the calls, each into an output or a buffer that no later one still reads, and the kinds of the buffers."""
    places = {n: f"x[{i}]" for i, n in enumerate(schedule.inputs)} | {n: f"c[{i}]" for i, n in enumerate(schedule.same)}
    direct: dict[Node, str] = {}  # steps whose result is an output, and so needs no buffer
    copied = []
    steps = {n for n in schedule.steps if n.op not in VIEWS}
    for i, node in enumerate(schedule.outputs.values()):
        if node in steps and node not in direct:
            direct[node] = f"y[{i}]"
        else:
            copied.append((node, f"y[{i}]"))
    source = _Source(places)
    kinds = _steps(schedule, source, direct)
    source.lines += [f"{output}[...] = {places[node]}" for node, output in copied]
    return source, kinds


def _steps(schedule: Schedule, source: _Source, direct: Mapping[Node, str]) -> list[Kind]:
    """Write the steps, and return the kinds of the buffers."""
    owners = schedule.owners()
    last = {owners[a]: i for i, n in enumerate(schedule.steps) for a in n.args if a in owners}
    kept = {owners[n] for n in schedule.outputs.values() if n in owners}
    held: dict[Node, int] = {}
    buffers = _Buffers()
    for i, node in enumerate(schedule.steps):
        done = [o for o in dict.fromkeys(owners.get(a) for a in node.args) if o in held and last[o] == i]
        done = [o for o in done if o not in kept]
        # A ufunc may write over its argument; `where` and structural operations read on after they began to write.
        early = node.op in ELEMENTWISE and node.op != "where"
        if early:
            for owner in done:
                buffers.give_back(held.pop(owner))
        out = direct.get(node, "")
        if not out and node.op not in VIEWS:
            held[node] = buffers.take((node.shape, bool if node.op in CONDITIONS else float))
            out = f"b[{held[node]}]"
        source.call(node, out)
        if not early:
            for owner in done:
                buffers.give_back(held.pop(owner))
    return buffers.kinds


def _block(schedule: Schedule, kinds: Sequence[Kind]) -> int:
    """Return the number of points on which a thread works at best."""
    live = max(1, sum(size_of(shape) * np.dtype(kind).itemsize for shape, kind in kinds))
    typical = max(1, sum(n.size for n in schedule.steps) // max(1, len(schedule.steps)))
    product = max((n.size * n.args[0].shape[-1] for n in schedule.steps if n.op == "matmul"), default=1)
    best = max(min(_CACHE // live, _PRODUCT // product), _CALL // typical)
    return max(1, min(best, _LONGEST, _MEMORY // live))
