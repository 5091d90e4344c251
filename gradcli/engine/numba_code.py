"""A schedule as Python source that Numba compiles: one pass over the points, tile by tile.

A tile is a few hundred points, whose values stay in the innermost cache: a row of the scratch array `w` for each scalar
and for each element of an array.  Movement (an index, a transpose) only changes how rows are read.  Operations that
are single instructions are fused into one loop, in which intermediate values are local variables; a function such as
`sin` has a loop of its own, since a call in the midst of it would keep the compiler from making vectors of the others.

In the source are names and numbers of our own: nothing that a user typed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradcli.engine.schedule import CONDITIONS, VIEWS, Schedule
from gradcli.graph.node import Node, Shape
from gradcli.graph.structural import STRUCTURAL

Array = np.ndarray[Any, Any]

_TILE_BYTES = 2**20  # of the rows of a tile
_SHORTEST, _LONGEST = 0, 32  # of a row, in units of 64 points
MAX_STEPS = 5_000  # Numba compiles some hundreds in a second

EXPRESSIONS = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "neg": "(-{})",
    "pow": "({} ** {})",
    "identity": "{}",
    "sqrt": "math.sqrt({})",
    "cbrt": "np.cbrt({})",
    "exp": "math.exp({})",
    "expm1": "math.expm1({})",
    "log": "math.log({})",
    "log1p": "math.log1p({})",
    "log2": "np.log2({})",
    "log10": "math.log10({})",
    "hypot": "math.hypot({}, {})",
    "sin": "math.sin({})",
    "cos": "math.cos({})",
    "tan": "math.tan({})",
    "asin": "math.asin({})",
    "acos": "math.acos({})",
    "atan": "math.atan({})",
    "atan2": "math.atan2({}, {})",
    "sinh": "math.sinh({})",
    "cosh": "math.cosh({})",
    "tanh": "math.tanh({})",
    "asinh": "math.asinh({})",
    "acosh": "math.acosh({})",
    "atanh": "math.atanh({})",
    "softplus": "np.logaddexp(0.0, {})",
    "erf": "math.erf({})",
    "erfc": "math.erfc({})",
    "gamma": "math.gamma({})",
    "lgamma": "math.lgamma({})",
    "abs": "abs({})",
    "maximum": "np.maximum({}, {})",
    "minimum": "np.minimum({}, {})",
    "clamp": "np.minimum(np.maximum({}, {}), {})",
    "where": "({1} if {0} else {2})",
    "mod": "np.remainder({}, {})",
    "heaviside": "(0.0 if {0} < 0.0 else 1.0 if {0} > 0.0 else {1} if {0} == 0.0 else {0})",
    "sign": "np.sign({})",
    "floor": "np.floor({})",
    "ceil": "np.ceil({})",
    "lt": "({} < {})",
    "le": "({} <= {})",
    "gt": "({} > {})",
    "ge": "({} >= {})",
    "eq": "({} == {})",
    "ne": "({} != {})",
    "and": "({} and {})",
    "or": "({} or {})",
    "not": "(not {})",
}

# A processor has instructions for these, and vectors of them.
_FUSED = frozenset(
    [
        *("add", "sub", "mul", "div", "neg", "identity", "sqrt", "abs", "maximum", "minimum", "clamp", "where"),
        *("heaviside", "floor", "ceil", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"),
    ]
)


class NotInNumbaError(Exception):
    """Raised with the reason why Numba does not compile a schedule."""


@dataclass(frozen=True)
class _Place:
    """Where an array is: `index` numbers its elements in `base`, and its strides are those of the loops that read it.

    `base` is an element's source text, with {} for its number.
    """

    base: str
    index: Array
    condition: bool = False

    def at(self, counters: Sequence[str]) -> str:
        """Return the element at these counters, which are aligned from the right as NumPy aligns shapes."""
        strides = [s // self.index.itemsize for s in self.index.strides]
        own = counters[len(counters) - self.index.ndim :]
        axes = zip(own, self.index.shape, strides, strict=True)
        terms = [f"{counter}*{stride}" for counter, size, stride in axes if size > 1 and stride]
        return self.base.format(" + ".join([*terms, str(int(self.index.flat[0]))]))

    def read(self, counters: Sequence[str]) -> str:
        """Return the value of an element; a condition is stored as 1 or 0."""
        return f"({self.at(counters)} != 0.0)" if self.condition else self.at(counters)

    def seen(self, index: Array) -> _Place:
        """Return the same elements, seen through another index."""
        return _Place(self.base, index, self.condition)


class _Writer:
    """Writes the body of the loop over the tiles."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 2
        self.rows = 0
        self.free: dict[int, list[int]] = {}
        self.names = 0
        self.places: dict[Node, _Place] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, letter: str = "t") -> str:
        self.names += 1
        return f"{letter}{self.names}"

    @contextmanager
    def loops(self, shape: Shape, points: bool = True) -> Iterator[list[str]]:
        """Write a loop for each axis and, innermost, one over the points; yield the counters of the axes."""
        counters = [self.fresh("k") for _ in shape]
        for counter, n in zip(counters, shape, strict=True):
            self.line(f"for {counter} in range({n}):")
            self.depth += 1
        if points:
            self.line("for i in range(n):")
            self.depth += 1
        yield counters
        self.depth -= len(shape) + points

    def take(self, node: Node) -> _Place:
        """Return new rows for a node, or rows that nobody reads any more."""
        waiting = self.free.get(node.size)
        start = waiting.pop() if waiting else self.rows
        self.rows = max(self.rows, start + node.size)
        index = np.arange(start, start + node.size).reshape(node.shape)
        self.places[node] = _Place("w[({})*T + i]", index, node.op in CONDITIONS)
        return self.places[node]

    def give_back(self, node: Node) -> None:
        """Let the rows of a node be used again."""
        self.free.setdefault(node.size, []).append(int(self.places[node].index.flat[0]))

    def store(self, place: _Place, counters: Sequence[str], value: str) -> None:
        self.line(f"{place.at(counters)} = {f'1.0 if {value} else 0.0' if place.condition else value}")

    def copy(self, place: _Place, shape: Shape, source: str | _Place) -> None:
        with self.loops(shape) as k:
            self.line(f"{place.at(k)} = {source if isinstance(source, str) else source.at(k)}")

    def fused(self, nodes: Sequence[Node], stored: Container[Node]) -> None:
        """Write one loop for elementwise steps of one shape; only what is read elsewhere is stored."""
        for node in nodes:
            if node in stored:
                self.take(node)
        local: dict[Node, str] = {}
        with self.loops(nodes[0].shape) as k:
            for node in nodes:
                for a in node.args:
                    if a not in local:
                        local[a] = self.fresh()
                        self.line(f"{local[a]} = {self.places[a].read(k)}")
                local[node] = self.fresh()
                self.line(f"{local[node]} = {EXPRESSIONS[node.op].format(*(local[a] for a in node.args))}")
                if node in stored:
                    self.store(self.places[node], k, local[node])

    def view(self, node: Node) -> None:
        """Let a view be read through its argument's rows, which are copied first where no strides can say that."""
        arg = self.places[node.args[0]]
        seen = _moved(node, arg.index)
        if not np.may_share_memory(seen, arg.index):
            rows = self.take(Node("copy", (), arg.index.shape))
            self.copy(rows, arg.index.shape, arg)
            arg = rows.seen(rows.index)
            seen = _moved(node, arg.index)
        self.places[node] = arg.seen(seen)


def _moved(node: Node, index: Array) -> Array:
    forward = STRUCTURAL[node.op].forward
    assert forward is not None
    return forward(*node.params, index[..., None])[..., 0]


def _split(shape: Shape, axes: Sequence[int]) -> tuple[Shape, Shape]:
    return tuple(n for i, n in enumerate(shape) if i not in axes), tuple(shape[i] for i in axes)


def _merge(outer: Sequence[str], inner: Sequence[str], axes: Sequence[int]) -> list[str]:
    """Return the counters of all axes, those of `axes` taken from `inner`."""
    rest, taken = iter(outer), iter(inner)
    return [next(taken) if i in axes else next(rest) for i in range(len(outer) + len(inner))]


def _reduce(start: str, update: str) -> Callable[..., None]:
    """Return what writes a reduction: it begins with `start`, and `update`s it with each element."""

    def write(w: _Writer, node: Node, out: _Place, x: _Place) -> None:
        axes = node.params[0]
        outer, inner = _split(node.args[0].shape, axes)
        with w.loops(outer) as k:
            w.line(f"{out.at(k)} = {start.format(x.at(_merge(k, ['0'] * len(inner), axes)))}")
        with w.loops((*outer, *inner)) as km:
            k, m = km[: len(outer)], km[len(outer) :]
            w.line(f"{out.at(k)} = {update.format(out.at(k), x.at(_merge(k, m, axes)))}")

    return write


def _cumsum(w: _Writer, node: Node, out: _Place, x: _Place) -> None:
    axes = node.params
    outer, (n,) = _split(node.shape, axes)
    with w.loops(outer) as k:
        w.line(f"{out.at(_merge(k, ['0'], axes))} = {x.at(_merge(k, ['0'], axes))}")
    with w.loops((*outer, n - 1)) as (*k, m):
        here = _merge(k, [f"({m} + 1)"], axes)
        w.line(f"{out.at(here)} = {out.at(_merge(k, [m], axes))} + {x.at(here)}")


def _mask(better: str) -> Callable[..., None]:
    """Return what writes where the first extremum stands; as for NumPy, the first NaN is one."""

    def write(w: _Writer, node: Node, out: _Place, x: _Place) -> None:
        axes = node.params
        outer, inner = _split(node.shape, axes)
        best, where = (w.take(Node(name, (), outer)) for name in ("best", "where"))
        value = w.fresh()
        with w.loops(outer) as k:
            w.line(f"{best.at(k)} = {x.at(_merge(k, ['0'], axes))}")
            w.line(f"{where.at(k)} = 0.0")
        with w.loops((*outer, *inner)) as (*k, m):
            w.line(f"{value} = {x.at(_merge(k, [m], axes))}")
            so_far = best.at(k)
            w.line(f"if {value} {better} {so_far} or ({value} != {value} and {so_far} == {so_far}):")
            w.line(f"    {so_far} = {value}")
            w.line(f"    {where.at(k)} = {m}")
        with w.loops((*outer, *inner)) as (*k, m):
            w.store(out, _merge(k, [m], axes), f"{where.at(k)} == {m}")

    return write


def _matmul(w: _Writer, node: Node, out: _Place, a: _Place, b: _Place) -> None:
    left, right = node.args
    w.copy(out, node.shape, "0.0")
    with w.loops((*node.shape, left.shape[-1])) as (*k, m):
        stack = k[: len(node.shape) - (len(left.shape) > 1) - (len(right.shape) > 1)]
        first = [*stack, k[len(stack)], m] if len(left.shape) > 1 else [m]
        second = [*stack, m, k[-1]] if len(right.shape) > 1 else [*stack, m]
        w.line(f"{out.at(k)} += {a.at(first)} * {b.at(second)}")


def _scatter(w: _Writer, node: Node, out: _Place, *parts: _Place) -> None:
    w.copy(out, node.shape, "0.0")
    for key, arg, part in zip(node.params[1], node.args, parts, strict=True):
        target = _part(out, key)
        with w.loops(arg.shape) as k:
            w.line(f"{target.at(k)} += {part.at(k)}")


def _from_diagonal(w: _Writer, node: Node, out: _Place, x: _Place) -> None:
    w.copy(out, node.shape, "0.0")
    w.copy(out.seen(np.diagonal(out.index)), node.args[0].shape, x)


def _concatenate(w: _Writer, node: Node, out: _Place, *parts: _Place) -> None:
    start, axis = 0, node.params[0]
    for arg, part in zip(node.args, parts, strict=True):
        stop = start + arg.shape[axis]
        w.copy(_part(out, (*map(range, node.shape[:axis]), range(start, stop))), arg.shape, part)
        start = stop


def _stack(w: _Writer, node: Node, out: _Place, *parts: _Place) -> None:
    before = node.shape[: node.params[0]]
    for i, (arg, part) in enumerate(zip(node.args, parts, strict=True)):
        w.copy(_part(out, (*map(range, before), i)), arg.shape, part)


def _part(place: _Place, key: tuple[Any, ...]) -> _Place:
    """Return a part of an array, by an index."""
    return place.seen(_moved(Node("index", (), (), (key,)), place.index))


_STRUCTURAL: dict[str, Callable[..., None]] = {
    "sum": _reduce("0.0", "{} + {}"),
    "prod": _reduce("1.0", "{} * {}"),
    "max": _reduce("{}", "np.maximum({}, {})"),
    "min": _reduce("{}", "np.minimum({}, {})"),
    "cumsum": _cumsum,
    "argmax_mask": _mask(">"),
    "argmin_mask": _mask("<"),
    "matmul": _matmul,
    "scatter": _scatter,
    "from_diagonal": _from_diagonal,
    "concatenate": _concatenate,
    "stack": _stack,
}


def _groups(steps: Sequence[Node]) -> list[list[Node]]:
    """Return the steps in groups, each one loop: elementwise steps of one shape, or a single step."""
    number = {step: i for i, step in enumerate(steps)}
    waiting = {step: len({a for a in step.args if a in number}) for step in steps}
    readers: dict[Node, list[Node]] = {step: [] for step in steps}
    for step in steps:
        for a in {a for a in step.args if a in number}:
            readers[a].append(step)
    ready: dict[Any, list[tuple[int, Node]]] = {}

    def is_ready(node: Node) -> None:
        # Functions go before single instructions, so that more of those is ready when their loop is written.
        kind = (2, node.shape) if node.op in _FUSED else (1, node.shape) if node.op in EXPRESSIONS else (0, ())
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
            for reader in readers[node]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    is_ready(reader)
        if not ready[kind]:
            del ready[kind]
        groups.append(group)
    return groups


@dataclass(frozen=True)
class Code:
    """The source of a function `kernel(count, x0, x1, …, u, w, y0, y1, …)`.

    Inputs `x` and outputs `y` are `(points,)` for scalars and `(elements, points)` for arrays; `u` are the values
    `same` that do not vary, one after the other, and `w` is a scratch array of that size.
    """

    source: str
    same: Array
    scratch: int


def write(schedule: Schedule) -> Code:
    """Return the source for a schedule.

    Errors: `NotInNumbaError` for an operation that Numba has no function for, and for more steps than it would compile.
    """
    for node in schedule.steps:
        if node.op not in EXPRESSIONS and node.op not in _STRUCTURAL and node.op not in VIEWS:
            raise NotInNumbaError(f"Numba has no `{node.op}`")
    if len(schedule.steps) > MAX_STEPS:
        raise NotInNumbaError(f"{len(schedule.steps):,} operations are too many for Numba to compile")
    w = _Writer()
    for i, node in enumerate(schedule.inputs):
        w.copy(w.take(node), node.shape, _outside(f"x{i}t", node))
    same = _constants(w, schedule)
    _steps(w, schedule)
    for j, node in enumerate(schedule.outputs.values()):
        w.copy(_outside(f"y{j}t", node), node.shape, w.places[node])
    # Rows a power of two apart would share one set of the cache's lines.
    tile = int(np.clip(_TILE_BYTES // 8 // w.rows // 64, _SHORTEST, _LONGEST)) * 64 + 8
    return Code("\n".join([*_head(schedule, tile), *w.lines, ""]), same, w.rows * tile)


def _outside(name: str, node: Node) -> _Place:
    """Return the place of an input or an output."""
    index = np.arange(node.size).reshape(node.shape)
    return _Place(f"{name}[{{}}, i]" if node.shape else f"{name}[i]", index)


def _constants(w: _Writer, schedule: Schedule) -> Array:
    """Give the values that do not vary their places, and return them."""
    start = 0
    for node in schedule.same:
        index = np.arange(start, start + node.size).reshape(node.shape)
        w.places[node] = _Place("u[{}]", index, node.op in CONDITIONS)
        start += node.size
    values = [np.broadcast_to(v, (*n.shape, 1)).astype(float).reshape(-1) for n, v in schedule.same.items()]
    return np.concatenate(values) if values else np.zeros(1)


def _steps(w: _Writer, schedule: Schedule) -> None:
    """Write the steps, group by group; rows are given back after the group that reads them last."""
    groups = _groups(schedule.steps)
    own = {node: i for i, group in enumerate(groups) for node in group}
    owners = schedule.owners()
    last: dict[Node, int] = {}
    stored = set(schedule.outputs.values())
    for i, group in enumerate(groups):
        for node in group:
            last.update((owners.get(a, a), i) for a in node.args)
            stored.update(a for a in node.args if own.get(a) != i)
    kept = {owners.get(n, n) for n in schedule.outputs.values()} | set(schedule.same)
    done: dict[int, list[Node]] = {}
    for node, i in last.items():
        done.setdefault(i, []).append(node)
    for i, group in enumerate(groups):
        node = group[0]
        if node.op in VIEWS:
            w.view(node)
        elif node.op in EXPRESSIONS:
            w.fused(group, stored)
        else:
            _STRUCTURAL[node.op](w, node, w.take(node), *(w.places[a] for a in node.args))
        for finished in done.get(i, ()):
            if finished in w.places and finished not in kept:
                w.give_back(finished)


def _head(schedule: Schedule, tile: int) -> list[str]:
    inputs = {f"x{i}": node for i, node in enumerate(schedule.inputs)}
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
        "",
        "",
        f'@numba.njit(numba.void(numba.int64, {", ".join(kinds)}), nogil=True, cache=True, error_model="numpy")',
        f"def kernel(count, {', '.join([*inputs, 'u', 'w', *outputs])}):",
        "    for s in range(0, count, T):",
        "        n = min(T, count - s)",
        # Of an index `s + i` the compiler does not know that it is not negative, and then makes no vectors.
        *(f"        {name}t = {name}[{':, ' if node.shape else ''}s : s + n]" for name, node in outside.items()),
    ]
