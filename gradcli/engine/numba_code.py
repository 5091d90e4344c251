"""A schedule as Python source that Numba compiles: one pass over the points, tile by tile.

A tile is some two thousand points, whose values stay in the inner caches: a row of the scratch array `w` for each
scalar and for each element of an array.  Movement (an index, a transpose) only changes how rows are read.  Operations
that are single instructions are fused into one loop, in which intermediate values are local variables; a function such
as `sin` has a loop of its own, since a call in its midst would keep the compiler from making vectors of the others.

In the source are names and numbers of our own: nothing that a user typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradcli.engine.numba_rules import RULES
from gradcli.engine.numba_writer import EXPRESSIONS, FUSED, Place, Writer
from gradcli.engine.schedule import Schedule, dependents, is_view, owners
from gradcli.graph.node import Node

Array = np.ndarray[Any, Any]

_TILE_BYTES = 2**20  # of the rows of a tile
_SHORTEST, _LONGEST = 0, 32  # of a row, in units of 64 points
# Numba compiles some hundreds of operations in a second, but the time for loops grows with their square.
MAX_STEPS, MAX_LOOPS = 5_000, 100


class NotInNumbaError(Exception):
    """Raised with the reason why Numba does not compile a schedule."""


def _groups(steps: Sequence[Node]) -> list[list[Node]]:
    """Return the steps in groups, each one loop: elementwise steps of one shape, or a single step."""
    number = {step: i for i, step in enumerate(steps)}
    waiting, after = dependents(steps)
    ready: dict[Any, list[tuple[int, Node]]] = {}

    def is_ready(node: Node) -> None:
        # Functions go before single instructions, so that more of those is ready when their loop is written.
        kind = (2, node.shape) if node.op in FUSED else (1, node.shape) if node.op in EXPRESSIONS else (0, ())
        heappush(ready.setdefault(kind, []), (number[node], node))

    for step in steps:
        if not waiting[step]:
            is_ready(step)
    groups = []
    while ready:
        kind = min(ready, key=lambda k: (k[0], ready[k][0][0]))
        group: list[Node] = []
        while ready[kind] and (kind[0] or not group):
            _, node = heappop(ready[kind])
            group.append(node)
            for follower in after[node]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    is_ready(follower)
        if not ready[kind]:
            del ready[kind]
        groups.append(group)
    return groups


@dataclass(frozen=True)
class Code:
    """The source of a function `kernel(count, x0, x1, …, u, w, y0, y1, …)`.

    Inputs `x` and outputs `y` are `(points,)` for scalars and `(elements, points)` for arrays; `u` are the values
    `same` that do not vary, tables of the numbers of elements among them, one after the other, and `w` is a scratch
    array of that size.
    """

    source: str
    same: Array
    scratch: int


def write(schedule: Schedule) -> Code:
    """Return the source for a schedule.

    Errors: `NotInNumbaError` for an operation that Numba has no function for, and for more steps than it would compile.
    """
    for node in schedule.steps:
        if node.op not in EXPRESSIONS and node.op not in RULES and not is_view(node):
            raise NotInNumbaError(f"Numba has no `{node.op}`")
    if len(schedule.steps) > MAX_STEPS:
        raise NotInNumbaError(f"{len(schedule.steps):,} operations are too many for Numba to compile")
    w = Writer()
    for i, node in enumerate(schedule.inputs.values()):
        w.copy(w.take(node), node.shape, _outside(f"x{i}t", node))
    _constants(w, schedule)
    _steps(w, schedule)
    for j, node in enumerate(schedule.outputs.values()):
        w.copy(_outside(f"y{j}t", node), node.shape, w.places[node])
    if (loops := sum("for i in" in line for line in w.lines)) > MAX_LOOPS:
        raise NotInNumbaError(f"{loops} loops are too many for Numba to compile")
    # Rows a power of two apart would share one set of the cache's lines.
    tile = int(np.clip(_TILE_BYTES // 8 // w.rows // 64, _SHORTEST, _LONGEST)) * 64 + 8
    same = np.concatenate(w.same or [np.zeros(1)])
    return Code("\n".join([*_head(schedule, tile), *w.lines, ""]), same, w.rows * tile)


def _outside(name: str, node: Node) -> Place:
    """Return the place of an input or an output."""
    index = np.arange(node.size).reshape(node.shape)
    return Place(f"{name}[{{}}, i]" if node.shape else f"{name}[i]", index)


def _constants(w: Writer, schedule: Schedule) -> None:
    """Give the values that do not vary their places."""
    for node, value in schedule.same.items():
        start = w.table(np.broadcast_to(value, (*node.shape, 1)))
        w.places[node] = Place("u[{}]", start + np.arange(node.size).reshape(node.shape), node.dtype == "bool")


def _steps(w: Writer, schedule: Schedule) -> None:
    """Write the steps, group by group; rows are given back after the group that reads them last."""
    groups = _groups(schedule.steps)
    own = {node: i for i, group in enumerate(groups) for node in group}
    owner = owners(schedule.steps)
    last: dict[Node, int] = {}
    stored = set(schedule.outputs.values())
    for i, group in enumerate(groups):
        for node in group:
            last.update((owner.get(a, a), i) for a in node.args)
            stored.update(a for a in node.args if own.get(a) != i)
    kept = {owner.get(n, n) for n in schedule.outputs.values()} | set(schedule.same)
    done: dict[int, list[Node]] = {}
    for node, i in last.items():
        done.setdefault(i, []).append(node)
    for i, group in enumerate(groups):
        node = group[0]
        if is_view(node):
            w.view(node)
        elif node.op in EXPRESSIONS:
            w.fused(group, stored)
        else:
            RULES[node.op](w, node, w.take(node), *(w.places[a] for a in node.args))
        for finished in done.get(i, ()):
            if finished in w.places and finished not in kept:
                w.give_back(finished)


def _head(schedule: Schedule, tile: int) -> list[str]:
    inputs = {f"x{i}": node for i, node in enumerate(schedule.inputs.values())}
    outputs = {f"y{j}": node for j, node in enumerate(schedule.outputs.values())}
    outside = inputs | outputs
    kinds = [
        f"{'matrix' if n.shape else 'vector'}_{side}"
        for side, ns in (("in", inputs), ("out", outputs))
        for n in ns.values()
    ]
    kinds[len(inputs) : len(inputs)] = ["vector_in", "vector_out"]
    return [
        "import math",
        "",
        "import numba",
        "import numpy as np",
        "",
        f"T = {tile}",
        # Points that were read from a file may be read-only.
        'vector_in = numba.types.Array(numba.float64, 1, "C", readonly=True)',
        'matrix_in = numba.types.Array(numba.float64, 2, "A", readonly=True)',
        "vector_out, matrix_out = numba.float64[::1], numba.float64[:, :]",
        f"signature = numba.void(numba.int64, {', '.join(kinds)})",
        "",
        "",
        '@numba.njit(nogil=True, error_model="numpy")',
        f"def kernel(count, {', '.join([*inputs, 'u', 'w', *outputs])}):",
        "    for s in range(0, count, T):",
        "        n = min(T, count - s)",
        # Of an index `s + i` the compiler does not know that it is not negative, and then makes no vectors.
        *(f"        {name}t = {name}[{':, ' if node.shape else ''}s : s + n]" for name, node in outside.items()),
    ]
