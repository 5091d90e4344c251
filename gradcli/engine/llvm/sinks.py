"""Operations that put together the elements of an array, as a loop that computes these elements goes by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.engine.llvm.expressions import first
from gradcli.engine.llvm.writer import Counter, Writer
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

_FEW = 16  # elements that are set to 0 one by one


@dataclass(frozen=True)
class Sink:
    """What writes the result's beginning, what adds an element of each argument to it, and what writes its end."""

    start: Callable[[Writer, Node], None]
    add: Callable[..., None]
    end: Callable[[Writer], None] = lambda w: None


def _reduced(start: float, update: Callable[[Writer, str, str], str]) -> Sink:
    """Return what puts an element into that of the result that stands beside the axes."""

    def add(w: Writer, node: Node, counters: Sequence[Counter], x: str) -> None:
        k = [c for i, c in enumerate(counters) if i not in node.settings[0]]
        out = w.places[node]
        w.store(out, k, update(w, w.load(out, k), w.numeric(x)))

    return Sink(lambda w, node: w.copy(w.take(node), node.shape, start), add)


def _zeros(w: Writer, node: Node) -> None:
    """Write zeros into the elements to which no part comes that only stores."""
    out = w.take(node)
    set_by = [hit for hit, leads in _hits(node) if leads]
    rest = np.flatnonzero(~np.logical_or.reduce(set_by)) if set_by else np.arange(node.size)
    if rest.size > _FEW:
        w.copy(out, node.shape, 0.0)
    elif rest.size:
        with w.loops(()):
            for number in out.index.reshape(-1)[rest]:
                w.store_at(out, int(number), w.number(0))


def _hits(node: Node) -> list[tuple[Array, bool]]:
    """Return for each part of a scatter which elements it comes to, and whether it is the first at all of them."""
    numbers = np.arange(node.size).reshape(node.shape)
    turns = np.full((len(node.args), node.size), np.inf)
    for turn, key, arg in zip(turns, node.settings[1], node.args, strict=True):
        turn[OPERATIONS["index"].moved((key,), numbers).reshape(-1)] = np.arange(arg.size)
    # In one turn of the loop the parts come one after the other.
    firsts = turns.argmin(axis=0)
    return [(hit := np.isfinite(turn), bool((firsts[hit] == p).all())) for p, turn in enumerate(turns)]


def _scattered(w: Writer, node: Node, counters: Sequence[Counter], *values: str) -> None:
    for key, value, (_, leads) in zip(node.settings[1], values, _hits(node), strict=True):
        target = w.places[node].part(key)
        before = w.number(0) if leads else w.load(target, counters)
        w.store(target, counters, w.do("fadd", before, w.numeric(value)))


class _Shifted:
    """A scatter into an axis to whose elements each part comes in their order, moved by a few: `x[1:] - x[:-1]`.

    An element has all that it gets so many turns after the first.  Meanwhile it waits in a row of the scratch array,
    which the next element takes then: so each is written once.
    """

    def __init__(self, node: Node, shifts: Sequence[int]) -> None:
        self._node, self._shifts = node, shifts
        self._low, self._span, self._length = min(shifts), max(shifts) - min(shifts), node.args[0].size
        self._rows = Node("waiting", (), (self._span,))

    def start(self, w: Writer, node: Node) -> None:
        """Write zeros to the elements that get nothing, and to those that wait."""
        out = w.take(node)
        for part in (range(self._low), range(self._low + self._length + self._span, node.size)):
            if part:
                w.copy(out.part((part,)), (len(part),), 0.0)
        if self._span:
            w.copy(w.take(self._rows), self._rows.shape, 0.0)

    def add(self, w: Writer, node: Node, counters: Sequence[Counter], *values: str) -> None:
        """Add what this turn has for each element; the first of them then has all."""
        done = range(self._low, self._low + self._length)
        for shift in sorted(set(self._shifts)):
            ahead = shift - self._low
            row = [w.in_turn(counters[0], ahead, self._span)]
            first = ahead == self._span  # its row is that of the element that was done before
            total = w.number(0) if first else w.load(w.places[self._rows], row)
            for other, value in zip(self._shifts, values, strict=True):
                if other == shift:
                    total = w.do("fadd", total, w.numeric(value))
            if ahead:
                w.store(w.places[self._rows], row, total)
            else:
                w.store(w.places[node].part((done,)), counters, total)

    def end(self, w: Writer) -> None:
        """Write the elements that still wait."""
        if not self._span:
            return
        with w.loops(()):
            for turn in range(self._length, self._length + self._span):
                value = w.load(w.places[self._rows], [turn % self._span])
                out = w.places[self._node]
                w.store_at(out, int(out.index[self._low + turn]), value)
        w.give_back(self._rows)


def _shifts(node: Node) -> list[int]:
    """Return how far each part of such a scatter is moved; nothing for another."""
    if node.op != "scatter" or not is_sink(node) or not len(node.shape) == len(node.args[0].shape) == 1:
        return []
    keys = [key[0] for key in node.settings[1]]
    if not all(isinstance(k, range) and k.step == 1 and len(k) > 1 for k in keys):
        return []
    shifts = [k.start for k in keys]
    return shifts if max(shifts) - min(shifts) <= _FEW else []


def is_shifted(node: Node) -> bool:
    """Tell whether a step is a scatter that writes each element once."""
    return bool(_shifts(node))


SINKS = {
    "sum": _reduced(0.0, lambda w, total, x: w.do("fadd", total, x)),
    "max": _reduced(-math.inf, first("oge")),
    "min": _reduced(math.inf, first("ole")),
    "scatter": Sink(_zeros, _scattered),
}


def is_sink(node: Node) -> bool:
    """Tell whether a step reads arrays of one shape, element by element."""
    return node.op in SINKS and all(a.shape == node.args[0].shape for a in node.args)


def sink(node: Node) -> Sink | _Shifted:
    """Return what writes such a step."""
    shifts = _shifts(node)
    return _Shifted(node, shifts) if shifts else SINKS[node.op]
