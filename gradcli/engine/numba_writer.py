"""The lines of a Numba kernel: its loops, the rows of its scratch array, and where each value stands."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape

Array = np.ndarray[Any, Any]

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
    "maximum": "({0} if {0} > {1} or {0} != {0} else {1})",
    "minimum": "({0} if {0} < {1} or {0} != {0} else {1})",
    "clamp": "np.minimum(np.maximum({}, {}), {})",
    "where": "({1} if {0} else {2})",
    "mod": "(np.remainder({0}, {1}) or math.copysign(0.0, {1}))",
    "heaviside": "(0.0 if {0} < 0.0 else 1.0 if {0} > 0.0 else {1} if {0} == 0.0 else {0})",
    "sign": "(1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else 0.0)",
    "floor": "np.floor({})",
    "ceil": "np.ceil({})",
    "floor_divide": "({} // {})",
    "round": "np.rint({})",
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
FUSED = frozenset(
    [
        *("add", "sub", "mul", "div", "neg", "identity", "sqrt", "abs", "maximum", "minimum", "clamp", "where"),
        *("heaviside", "floor", "ceil", "round", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"),
    ]
)


@dataclass(frozen=True)
class Place:
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

    def seen(self, index: Array) -> Place:
        """Return the same elements, seen through another index."""
        return Place(self.base, index, self.condition)


class Writer:
    """Writes the body of the loop over the tiles."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 2
        self.rows = 0
        self.free: dict[int, list[int]] = {}
        self.names = 0
        self.places: dict[Node, Place] = {}
        self.same: list[Array] = []  # values that do not vary, in the order in which they stand in `u`
        self.fixed = 0  # how many these are

    def line(self, text: str) -> None:
        """Write a line, indented by the loops around it."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, letter: str = "t") -> str:
        """Return a new name."""
        self.names += 1
        return f"{letter}{self.names}"

    def table(self, values: Array) -> int:
        """Keep values that do not vary; return where in `u` they begin."""
        start = self.fixed
        self.same.append(values.astype(float).reshape(-1))
        self.fixed += values.size
        return start

    @contextmanager
    def loops(self, shape: Shape) -> Iterator[list[str]]:
        """Write a loop for each axis and, innermost, one over the points; yield the counters of the axes."""
        counters = [self.fresh("k") for _ in shape]
        for counter, n in zip(counters, shape, strict=True):
            self.line(f"for {counter} in range({n}):")
            self.depth += 1
        self.line("for i in range(n):")
        self.depth += 1
        yield counters
        self.depth -= len(shape) + 1

    def take(self, node: Node) -> Place:
        """Return new rows for a node, or rows that nobody reads any more."""
        waiting = self.free.get(node.size)
        start = waiting.pop() if waiting else self.rows
        self.rows = max(self.rows, start + node.size)
        index = np.arange(start, start + node.size).reshape(node.shape)
        self.places[node] = Place("w[({})*T + i]", index, node.dtype == "bool")
        return self.places[node]

    def give_back(self, node: Node) -> None:
        """Let the rows of a node be used again."""
        self.free.setdefault(node.size, []).append(int(self.places[node].index.flat[0]))

    def store(self, place: Place, counters: Sequence[str], value: str) -> None:
        """Write an assignment to an element; a condition is stored as 1 or 0."""
        self.line(f"{place.at(counters)} = {f'1.0 if {value} else 0.0' if place.condition else value}")

    def copy(self, place: Place, shape: Shape, source: str | Place) -> None:
        """Write a copy of an array, or a constant into all elements."""
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
        seen = moved(node, arg.index)
        if not np.may_share_memory(seen, arg.index):
            rows = self.take(Node("copy", (), arg.index.shape))
            self.copy(rows, arg.index.shape, arg)
            arg = rows.seen(rows.index)
            seen = moved(node, arg.index)
        self.places[node] = arg.seen(seen)


def moved(node: Node, index: Array) -> Array:
    """Return the numbers of an array's elements after an operation that moves them."""
    move = OPERATIONS[node.op].move
    assert move is not None
    return move(*node.settings, index[..., None])[..., 0]
