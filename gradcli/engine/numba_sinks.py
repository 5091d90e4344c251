"""Operations that put together the elements of an array, as a loop that computes these elements goes by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.engine.numba_math import first
from gradcli.engine.numba_writer import Array, Counter, Writer, moved
from gradcli.graph.node import Node

_FEW = 16  # elements that are set to 0 one by one


@dataclass(frozen=True)
class Sink:
    """What writes the result's beginning, and what adds an element of each argument to it."""

    start: Callable[[Writer, Node], None]
    add: Callable[..., None]


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
        turn[moved(Node("index", (), (), (key,)), numbers).reshape(-1)] = np.arange(arg.size)
    # In one turn of the loop the parts come one after the other.
    firsts = turns.argmin(axis=0)
    return [(hit := np.isfinite(turn), bool((firsts[hit] == p).all())) for p, turn in enumerate(turns)]


def _scattered(w: Writer, node: Node, counters: Sequence[Counter], *values: str) -> None:
    for key, value, (_, leads) in zip(node.settings[1], values, _hits(node), strict=True):
        target = w.places[node].part(key)
        before = w.number(0) if leads else w.load(target, counters)
        w.store(target, counters, w.do("fadd", before, w.numeric(value)))


SINKS = {
    "sum": _reduced(0.0, lambda w, total, x: w.do("fadd", total, x)),
    "max": _reduced(-math.inf, first("oge")),
    "min": _reduced(math.inf, first("ole")),
    "scatter": Sink(_zeros, _scattered),
}


def is_sink(node: Node) -> bool:
    """Tell whether a step reads arrays of one shape, element by element."""
    return node.op in SINKS and all(a.shape == node.args[0].shape for a in node.args)
