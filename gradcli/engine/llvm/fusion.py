"""Reductions and scatters fused into the loop that computes their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.engine.llvm.writer import InstructionWriter
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.loops.index_map import Counter
from gradcli.loops.rules import REDUCTIONS, fill

_FEW = 16  # elements that are set to 0 one by one


@dataclass(frozen=True)
class Fused:
    """A fused loop: how its result is initialized, and updated with an element of each argument."""

    start: Callable[[InstructionWriter, Node], None]
    add: Callable[..., None]


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


_FUSED = {op: _reduced(*by) for op, by in REDUCTIONS.items()} | {"scatter": Fused(_zeros, _scattered)}


def is_fused(node: Node) -> bool:
    """Return whether a step reads arrays of one shape, element by element, into a smaller or larger one."""
    return node.op in _FUSED and all(a.shape == node.args[0].shape for a in node.args)


def fused(node: Node) -> Fused:
    """Return how such a step is fused."""
    return _FUSED[node.op]
