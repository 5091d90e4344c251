"""A schedule as instructions for LLVM: one pass over the points, tile by tile.

A tile has as many points as keep its rows in the inner caches: a row of the scratch array `w` for each element that one
loop stores for another.  A view is an index map of its argument's rows.  Elementwise operations of one shape are fused
into one loop, whose values stay in registers: vectors along the points.

In the instructions are names and numbers of our own: nothing that a user typed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradcli.engine.llvm.expressions import EXPRESSIONS, REDUCED, definitions
from gradcli.engine.llvm.writer import InstructionWriter, Rows
from gradcli.engine.schedule import Schedule, dependents, is_view, last_uses
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.loops import rules
from gradcli.loops.rules import REDUCTIONS, Counter, copy, fill

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


_TILE_BYTES = 2**17  # of the rows of a tile
_LONGEST = 8  # units of 64 points in a row at most: a few such rows stay in the innermost cache
_MANY = 2**14  # rows from which tiles are as short as possible
_LOOP = 200  # operations in one loop at most: LLVM's time grows faster than the length of a loop
_LONG = 1_000  # operations from which compilation time counts more than speed
MAX_STEPS = 20_000
# A product may overflow long before its result does: NumPy keeps mantissas and exponents apart.
RULES = {op: rule for op, rule in rules.RULES.items() if op != "prod"}
_ARGUMENTS = "i64 %n, i64 %from, i64 %stride, ptr %arrays, ptr %u, ptr %w"


class NotCompiledError(Exception):
    """Raised with the reason why LLVM does not compile a schedule."""


@dataclass(frozen=True)
class Code:
    """The source of a function `kernel(stride, start, stop, arrays, u, w)`, for vectors of so many points.

    It works on the points from `start` to `stop`, `lanes` or more.  `arrays` are the addresses of the inputs, and then
    of the outputs; each is `(points,)` for a scalar and `(elements, points)` for an array, whose rows are `stride`
    apart.  `u` are the values `same` that do not vary, one after the other, and tables of offsets; `w` is a scratch
    array of so many rows, each as long as a tile.
    """

    source: str
    lanes: int
    same: Array
    rows: int
    tile: int


def check(schedule: Schedule) -> None:
    """Raise an error for a schedule that is not compiled.

    Errors: `NotCompiledError` for an operation without a rule here, and for more steps than it would compile.
    """
    compiled = EXPRESSIONS.keys() | RULES.keys()
    for node in schedule.steps:
        if node.op not in compiled and not is_view(node):
            raise NotCompiledError(f"the LLVM engine does not compile `{node.op}`")
    if len(schedule.steps) > MAX_STEPS:
        raise NotCompiledError(
            f"the LLVM engine compiles {MAX_STEPS:,} operations at most, not {len(schedule.steps):,}"
        )


def lanes_for(schedule: Schedule) -> int:
    """Return the number of points in a vector: 8, two registers, which is fastest; 4 for long code.

    Code for 8 takes twice as long to compile.
    """
    return 4 if len(schedule.steps) > _LONG else 8


def write(schedule: Schedule, lanes: int) -> Code:
    """Return the source for a schedule, with so many points in a vector."""
    w = InstructionWriter(lanes, EXPRESSIONS | REDUCED)
    outside = [*schedule.inputs.values(), *schedule.outputs.values()]
    inputs = len(schedule.inputs)
    steps = {n for n in schedule.steps if not is_view(n)}
    for j, node in enumerate(outside):
        if node not in w.arrays and (j < inputs or node in steps):
            w.arrays[node] = _outside(j, node)
    _constants(w, schedule)
    _steps(w, schedule)
    for j, node in enumerate(outside[inputs:], inputs):
        if w.arrays[node].buffer != j:
            copy(w, _outside(j, node), w.arrays[node])
    same = np.concatenate(w.same or [np.zeros(1)])
    again = sum(outside[j].size for j, loops in w.read_by.items() if isinstance(j, int) and len(loops) > 1)
    tile = _tile(w.rows, again) if w.lanes > 1 else 1
    return Code(_source(w, tile), w.lanes, same, w.rows, tile)


def _tile(rows: int, outside: int) -> int:
    """Return the number of points in a tile, with so many rows of scratch, and outside rows that are read again."""
    longest = 0 if rows > _MANY else int(np.clip(_TILE_BYTES // 8 // max(1, rows + outside) // 64, 1, _LONGEST))
    return longest * 64 + 8  # rows a power of two apart would share one set of the cache's lines


def _outside(j: int, node: Node) -> Rows:
    """Return the array of an input or an output."""
    return Rows(np.arange(node.size).reshape(node.shape), j, node.dtype == "bool")


def _constants(w: InstructionWriter, schedule: Schedule) -> None:
    """Allocate the arrays of the values that do not vary."""
    for node, value in schedule.same.items():
        start = w.table(np.broadcast_to(value, (*node.shape, 1)))
        w.arrays[node] = Rows(start + np.arange(node.size).reshape(node.shape), "u", node.dtype == "bool")


def _kind(node: Node) -> tuple[int, Shape]:
    """Return the key by which steps share a loop; steps with a loop of their own come first."""
    if is_fused(node):
        return 1, node.args[0].shape
    return (1, node.shape) if OPERATIONS[node.op].broadcasts else (0, ())


def _groups(steps: Sequence[Node]) -> list[list[Node]]:
    """Return the steps in groups, each one loop over elements of one shape, or a single step."""
    number = {step: i for i, step in enumerate(steps)}
    waiting, after = dependents(steps)
    ready: dict[tuple[int, Shape], list[tuple[int, Node]]] = {}

    def is_done(nodes: Iterable[Node]) -> None:
        for node in nodes:
            for follower in after[node]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heappush(ready.setdefault(_kind(follower), []), (number[follower], follower))

    for step in steps:
        if not waiting[step]:
            heappush(ready.setdefault(_kind(step), []), (number[step], step))
    groups = []
    while ready:
        kind = min(ready, key=lambda k: (k[0], ready[k][0][0]))
        group: list[Node] = []
        while ready[kind] and len(group) < (_LOOP if kind[0] else 1):
            _, node = heappop(ready[kind])
            group.append(node)
            if not is_fused(node):
                is_done([node])
        is_done(filter(is_fused, group))  # whose results are complete after the loop
        if not ready[kind]:
            del ready[kind]
        groups.append(group)
    return groups


def _steps(w: InstructionWriter, schedule: Schedule) -> None:
    """Write the steps, group by group; rows are released after their last use."""
    groups = _groups(schedule.steps)
    group_of = {node: i for i, group in enumerate(groups) for node in group}
    done = last_uses(groups, schedule.outputs.values())
    stored = {a for i, group in enumerate(groups) for node in group for a in node.args if group_of.get(a) != i}
    stored.update(schedule.outputs.values())
    for i, group in enumerate(groups):
        node = group[0]
        if is_view(node):
            w.arrays[node] = w.arrays[node.args[0]].moved(node)
        elif OPERATIONS[node.op].broadcasts or len(group) > 1 or (node.op == "scatter" and is_fused(node)):
            _fused(w, group, stored)
        else:
            arrays = [w.allocate(node), *(w.arrays[a] for a in node.args)]
            for array in arrays:
                w.read_by.setdefault(array.buffer, set()).update([-1, i])
            RULES[node.op](w, node, *arrays)
        for over in done[i]:
            if over in w.arrays and w.arrays[over].buffer == "w":
                w.release(over)


def _fused(w: InstructionWriter, nodes: Sequence[Node], stored: Container[Node]) -> None:
    """Write one fused loop for steps of one shape; only values that other loops read are stored."""
    local: dict[Node, str] = {}
    results = {node: fused(node) for node in nodes if is_fused(node)}
    for node, result in results.items():
        result.start(w, node)
    with w.loops(_kind(nodes[0])[1]) as k:
        for node in nodes:
            for a in node.args:
                if a not in local:
                    local[a] = w.read(w.arrays[a], k)
            values = [local[a] for a in node.args]
            if node in results:
                results[node].add(w, node, k, *values)
                continue
            local[node] = EXPRESSIONS[node.op](w, *values)
            if node in stored:
                w.store(w.allocate(node), k, local[node])


# The last points, which do not fill a vector, are computed again with those before them.
_KERNEL = """
define void @kernel(
  i64 %stride, i64 %first, i64 %stop, ptr %arrays, ptr %u, ptr %w) nounwind {{
start:
{length}
  %last = sub i64 %stop, {lanes}
  br label %tile
tile:
  %begun = phi i64 [ %first, %start ], [ %next, %tile ]
  %from = call i64 @llvm.smin.i64(i64 %begun, i64 %last)
  %left = sub i64 %stop, %from
  %whole = and i64 %left, -{lanes}
  %n = call i64 @llvm.smin.i64(i64 %whole, i64 %T)
{loops}
  %next = add i64 %from, %n
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %tile, label %done
done:
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
"""
_METADATA = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000}
"""


def _source(w: InstructionWriter, tile: int) -> str:
    length = f"  %T = add i64 {tile}, 0"
    w.tile.append(length)
    loops = "\n".join(f"  call void @loop{k}({_ARGUMENTS})" for k in range(w.parts))
    kernel = _KERNEL.format(length=length, lanes=w.lanes, loops=loops)
    functions = definitions(w.called, w.lanes)
    return "\n".join([*_flat(w.lines), kernel, *functions, _METADATA])


def _flat(lines: Iterable[Any]) -> Iterable[str]:
    for line in lines:
        yield from [line] if isinstance(line, str) else line
