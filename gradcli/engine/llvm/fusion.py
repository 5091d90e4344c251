"""Reductions and scatters fused into the loop that computes their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.engine.llvm.writer import InstructionWriter
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.loops.builder import Counter
from gradcli.loops.rules import REDUCTIONS, fill

_FEW = 16  # elements that are set to 0 one by one


@dataclass(frozen=True)
class Fused:
    """A fused loop: how its result is initialized, updated with an element of each argument, and ended."""

    start: Callable[[InstructionWriter, Node], None]
    add: Callable[..., None]
    end: Callable[[InstructionWriter], None] = lambda w: None


def _reduced(op: str, start: float) -> Fused:
    """Return how a reduction, which joins elements by that operation, is fused."""

    def add(w: InstructionWriter, node: Node, counters: Sequence[Counter], x: str) -> None:
        k = [c for i, c in enumerate(counters) if i not in node.settings[0]]
        out = w.arrays[node]
        w.store(out, k, w.op(op, w.load(out, k), w.numeric(x)))

    return Fused(lambda w, node: fill(w, w.allocate(node), start), add)


def _zeros(w: InstructionWriter, node: Node) -> None:
    """Write zeros into the elements that no part sets."""
    out = w.allocate(node)
    set_by = [hit for hit, leads in _hits(node) if leads]
    rest = np.flatnonzero(~np.logical_or.reduce(set_by)) if set_by else np.arange(node.size)
    if rest.size > _FEW:
        fill(w, out, 0.0)
    elif rest.size:
        with w.loops(()):
            for number in out.index.reshape(-1)[rest]:
                w.store_at(out, int(number), w.number(0))


def _hits(node: Node) -> list[tuple[Array, bool]]:
    """Return for each part of a scatter which elements it reaches, and whether it is the first at all of them."""
    numbers = np.arange(node.size).reshape(node.shape)
    turns = np.full((len(node.args), node.size), np.inf)
    for turn, key, arg in zip(turns, node.settings[1], node.args, strict=True):
        turn[OPERATIONS["index"].moved((key,), numbers).reshape(-1)] = np.arange(arg.size)
    # In one turn of the loop the parts come one after the other.
    firsts = turns.argmin(axis=0)
    return [(hit := np.isfinite(turn), bool((firsts[hit] == p).all())) for p, turn in enumerate(turns)]


def _scattered(w: InstructionWriter, node: Node, counters: Sequence[Counter], *values: str) -> None:
    for key, value, (_, leads) in zip(node.settings[1], values, _hits(node), strict=True):
        target = w.arrays[node].part(key)
        before = w.number(0) if leads else w.load(target, counters)
        w.store(target, counters, w.do("fadd", before, w.numeric(value)))


class _Shifted:
    """A scatter of parts along one axis that are shifted by a few elements, as for `x[1:] - x[:-1]`.

    An element is complete some iterations after its first term.  Until then it is in a row of a ring buffer, so that
    the result is written once.
    """

    def __init__(self, node: Node, shifts: Sequence[int]) -> None:
        self._node, self._shifts = node, shifts
        self._low, self._span, self._length = min(shifts), max(shifts) - min(shifts), node.args[0].size
        self._rows = Node("ring", (), (self._span,))

    def start(self, w: InstructionWriter, node: Node) -> None:
        """Write zeros to the elements without a term, and to the ring buffer."""
        out = w.allocate(node)
        for part in (range(self._low), range(self._low + self._length + self._span, node.size)):
            if part:
                fill(w, out.part((part,)), 0.0)
        if self._span:
            fill(w, w.allocate(self._rows), 0.0)

    def add(self, w: InstructionWriter, node: Node, counters: Sequence[Counter], *values: str) -> None:
        """Add the terms of this iteration; they complete the first of their elements."""
        done = range(self._low, self._low + self._length)
        for shift in sorted(set(self._shifts)):
            ahead = shift - self._low
            row = [w.in_ring(counters[0], ahead, self._span)]
            first = ahead == self._span  # its row is that of the element that was done before
            total = w.number(0) if first else w.load(w.arrays[self._rows], row)
            for other, value in zip(self._shifts, values, strict=True):
                if other == shift:
                    total = w.do("fadd", total, w.numeric(value))
            if ahead:
                w.store(w.arrays[self._rows], row, total)
            else:
                w.store(w.arrays[node].part((done,)), counters, total)

    def end(self, w: InstructionWriter) -> None:
        """Write the elements that are in the ring buffer."""
        if not self._span:
            return
        with w.loops(()):
            for turn in range(self._length, self._length + self._span):
                value = w.load(w.arrays[self._rows], [turn % self._span])
                out = w.arrays[self._node]
                w.store_at(out, int(out.index[self._low + turn]), value)
        w.release(self._rows)


def _shifts(node: Node) -> list[int]:
    """Return how far each part of such a scatter is shifted; [] for another."""
    if node.op != "scatter" or not is_fused(node) or not len(node.shape) == len(node.args[0].shape) == 1:
        return []
    keys = [key[0] for key in node.settings[1]]
    if not all(isinstance(k, range) and k.step == 1 and len(k) > 1 for k in keys):
        return []
    shifts = [k.start for k in keys]
    return shifts if max(shifts) - min(shifts) <= _FEW else []


def is_shifted(node: Node) -> bool:
    """Return whether a step is a scatter that writes each element once."""
    return bool(_shifts(node))


_FUSED = {op: _reduced(*by) for op, by in REDUCTIONS.items()} | {"scatter": Fused(_zeros, _scattered)}


def is_fused(node: Node) -> bool:
    """Return whether a step reads arrays of one shape, element by element, into a smaller or larger one."""
    return node.op in _FUSED and all(a.shape == node.args[0].shape for a in node.args)


def fused(node: Node) -> Fused | _Shifted:
    """Return how such a step is fused."""
    shifts = _shifts(node)
    return _Shifted(node, shifts) if shifts else _FUSED[node.op]
