"""Operations that put together the elements of an array, as a loop that computes these elements goes by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradcli.engine.numba_math import first
from gradcli.engine.numba_writer import Counter, Writer
from gradcli.graph.node import Node


@dataclass(frozen=True)
class Sink:
    """The number with which the result begins, and what adds an element of each argument to it."""

    start: float
    add: Callable[..., None]


def _reduced(update: Callable[[Writer, str, str], str]) -> Callable[..., None]:
    """Return what puts an element into that of the result that stands beside the axes."""

    def add(w: Writer, node: Node, counters: Sequence[Counter], x: str) -> None:
        k = [c for i, c in enumerate(counters) if i not in node.settings[0]]
        out = w.places[node]
        w.store(out, k, update(w, w.load(out, k), w.numeric(x)))

    return add


def _scattered(w: Writer, node: Node, counters: Sequence[Counter], *values: str) -> None:
    for key, value in zip(node.settings[1], values, strict=True):
        target = w.places[node].part(key)
        w.store(target, counters, w.do("fadd", w.load(target, counters), w.numeric(value)))


SINKS = {
    "sum": Sink(0.0, _reduced(lambda w, total, x: w.do("fadd", total, x))),
    "max": Sink(-math.inf, _reduced(first("oge"))),
    "min": Sink(math.inf, _reduced(first("ole"))),
    "scatter": Sink(0.0, _scattered),
}


def is_sink(node: Node) -> bool:
    """Tell whether a step reads arrays of one shape, element by element."""
    return node.op in SINKS and all(a.shape == node.args[0].shape for a in node.args)
