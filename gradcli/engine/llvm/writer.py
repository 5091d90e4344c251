"""The instructions of a kernel in LLVM's assembly language: a builder of the loop form, vectorised along the points.

Each loop is a function of its own: much of what LLVM does takes the square of a function's length.
A value is a vector of as many points as the processor's registers hold, by the name that the kernel has for it: `%v7`
for numbers, `%m7` for conditions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape, size_of
from gradcli.loops.rules import Counter, IndexMap


@dataclass(frozen=True)
class Rows(IndexMap):
    """An array of rows.

    `buffer` is `w` for the scratch array, `u` for what does not vary, or the index of an input or output.  The values
    of a `condition` are stored as 1 or 0.
    """

    buffer: str | int = "w"
    condition: bool = False


Values = tuple[str, ...]

# The points of a tile, its first one, and memory: see `code.Code`.
PARAMETERS = "i64 %n, i64 %from, i64 %stride, " + ", ".join(
    [*(f"ptr noalias nocapture readonly %{name}" for name in ("arrays", "u")), "ptr noalias nocapture %w"]
)
_AHEAD = 32  # points: the distance of prefetches
_UNROLLED = 16  # iterations of a loop that are unrolled


@dataclass(frozen=True)
class _Loop:
    """A loop that is open: its counter, its labels, and the label before it."""

    counter: str
    label: str
    before: str
    limit: Counter
    step: int


class InstructionWriter:
    """Writes the body of the loop over the tiles, for vectors of so many points: a builder of the loop form.

    `rules` has the instructions of each elementwise operation.
    """

    def __init__(self, lanes: int, rules: Mapping[str, Callable[..., str]] | None = None) -> None:
        self.lanes, self.rules = lanes, rules or {}
        self.vector, self.integers, self.masks = (f"<{lanes} x {kind}>" for kind in ("double", "i64", "i1"))
        self.lines: list[Any] = []  # a line, or a list of lines that are known later
        self.tile: list[str] = []  # the line that says how long a tile is
        self.called: set[str] = set()  # functions
        self.parts = 0  # functions that are loops
        self.read_by: dict[int | str, set[int]] = {}  # for each input and output, the loops that read it
        self.ahead = False  # whether inputs are prefetched
        self.block = ""  # the label of the lines that are written now
        self.rows = 0
        self.arrays: dict[Node, Rows] = {}
        self.same: list[Array] = []  # values that do not vary, in their order in `u`
        self.fixed = 0  # how many these are
        self._tables: dict[tuple[Shape, bytes], int] = {}  # where tables of offsets begin in `u`
        self._free: dict[int, list[int]] = {}
        self._names = 0
        self._counters: set[Counter] = set()  # of the loops around that over the points
        # The largest offset at which each input is read, by its buffer and the strides of the loops' counters.
        self._last: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}

    # Instructions

    def name(self, letter: str) -> str:
        """Return a new name."""
        self._names += 1
        return f"%{letter}{self._names}"

    def new(self, instruction: str, letter: str = "v") -> str:
        """Write an instruction; return the name of its value."""
        name = self.name(letter)
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, operation: str, *values: str) -> str:
        """Return the value of an operation on vectors of numbers, such as `fadd`."""
        return self.new(f"{operation} {self.vector} {', '.join(values)}")

    def plus_product(self, total: str, a: str, b: str) -> str:
        """Return total + a·b: an FMA where the processor has one."""
        return self.do("fadd contract", total, self.do("fmul contract", a, b))

    def call(self, function: str, *values: str) -> str:
        """Return the value of a function of vectors."""
        self.called.add(function)
        operands = ", ".join(f"{self.vector} {v}" for v in values)
        return self.new(f"call {self.vector} @{vector_function(function, self.lanes)}({operands})")

    def compare(self, how: str, a: str, b: str) -> str:
        """Return the condition that a comparison such as `olt` holds."""
        return self.new(f"fcmp {how} {self.vector} {a}, {b}", "m")

    def select(self, condition: str, a: str, b: str) -> str:
        """Return `a` where the condition holds, and `b` elsewhere."""
        return self.new(f"select {self.masks} {condition}, {self.vector} {a}, {self.vector} {b}")

    def number(self, value: float) -> str:
        """Return a number, the same at all points."""
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return f"<{', '.join([f'double 0x{bits:016X}'] * self.lanes)}>"

    def integer(self, value: int) -> str:
        """Return an integer of 64 bits, the same at all points."""
        return f"<{', '.join([f'i64 {value}'] * self.lanes)}>"

    def on_integers(self, operation: str, a: str, b: str) -> str:
        """Return the value of an operation on vectors of integers, such as `and`."""
        return self.new(f"{operation} {self.integers} {a}, {b}")

    def bits(self, value: str) -> str:
        """Return the bits of numbers as integers."""
        return self.new(f"bitcast {self.vector} {value} to {self.integers}")

    def numbers(self, bits: str) -> str:
        """Return the numbers that have these bits."""
        return self.new(f"bitcast {self.integers} {bits} to {self.vector}")

    def numeric(self, value: str) -> str:
        """Return a condition as 1 or 0, and a number as it is."""
        return self.select(value, self.number(1), self.number(0)) if value.startswith("%m") else value

    def condition(self, value: str) -> str:
        """Return whether a value is not 0; a condition as it is."""
        return value if value.startswith("%m") else self.compare("une", value, self.number(0))

    def op(self, op: str, *values: str) -> str:
        """Return an elementwise operation."""
        return self.rules[op](self, *values)

    def let(self, value: str) -> str:
        """Return a value: each is computed once."""
        return value

    def position(self, counter: Counter) -> str:
        """Return a counter as a vector of numbers."""
        if isinstance(counter, int):
            return self.number(counter)
        return self._spread(self.new(f"sitofp i64 {counter} to double"))

    def _spread(self, scalar: str) -> str:
        first = self.new(f"insertelement {self.vector} poison, double {scalar}, i64 0")
        zeros = "zeroinitializer"
        return self.new(f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> {zeros}")

    # Loops

    def nest(self, shape: Shape, body: Callable[[list[Counter]], None], unroll: bool = False) -> None:
        """Write a loop for each axis and one over the points; LLVM unrolls none of them."""
        with self.loops(shape) as k:
            body(k)

    @contextmanager
    def loops(self, shape: Shape) -> Iterator[list[Counter]]:
        """Write a loop for each axis and, innermost, one over the points; yield the counters of the axes."""
        self.lines += [
            f"define internal void @loop{self.parts}({PARAMETERS}) noinline nounwind {{",
            "start:",
            self.tile,
        ]
        self.parts += 1
        self.block = "start"
        # The processor's own prefetcher follows only a few arrays at a time.
        self.ahead = not shape
        loops = [self._open(n) if n > 1 else None for n in shape]
        self._counters = {loop.counter for loop in loops if loop}
        points = self._open("%n", self.lanes)
        self.lines.append(f"  %i{points.label} = add i64 %from, {points.counter}")
        self._at = points.counter, f"%i{points.label}"
        yield [loop.counter if loop else 0 for loop in loops]
        self._prefetch_next()
        self._close(points)
        for loop in reversed([loop for loop in loops if loop]):
            self._close(loop)
        self.lines += ["  ret void", "}"]

    def _prefetch_next(self) -> None:
        """Prefetch the elements that the next iteration of the innermost loop over elements reads first.

        The processor's prefetcher follows addresses within a row, but not from row to row.
        """
        for (buffer, terms), number in self._last.items():
            offset = self._sum(number + terms[-1][1], self._multiples(terms))
            self._prefetch(self._address(self._start(buffer, offset), self._at[1]))
        self._last.clear()

    def fold(
        self, shape: Shape, starts: Values, step: Callable[..., Values], before: tuple[Counter, ...] = ()
    ) -> Values:
        """Return `starts` after a loop over elements, within one over points.

        `step(counters, *values)` returns the values after an iteration.
        """
        if not shape:
            return step(list(before), *starts)
        n, rest = shape[0], shape[1:]
        if size_of(shape) <= _UNROLLED:
            for k in range(n):
                starts = self.fold(rest, starts, step, (*before, k))
            return starts
        loop = self._open(n)
        joined: list[str] = []
        self.lines.append(joined)
        values = tuple(self.name("v") for _ in starts)
        results = self.fold(rest, values, step, (*before, loop.counter))
        for value, start, result in zip(values, starts, results, strict=True):
            joined.append(f"  {value} = phi {self.vector} [ {start}, %{loop.before} ], [ {result}, %e{loop.label} ]")
        self._close(loop)
        return results

    def total(self, shape: Shape, factors: Callable[[list[Counter]], Sequence[str]]) -> str:
        """Return a sum of products."""

        def step(counters: list[Counter], total: str) -> Values:
            first, *second = factors(counters)
            return (self.plus_product(total, first, *second) if second else self.do("fadd", total, first),)

        return self.fold(shape, (self.number(0),), step)[0]

    def _open(self, limit: Counter, step: int = 1) -> _Loop:
        counter = self.name("k")
        loop = _Loop(counter, counter[2:], self.block, limit, step)
        self.lines += [
            f"  br label %l{loop.label}",
            f"l{loop.label}:",
            f"  {counter} = phi i64 [ 0, %{loop.before} ], [ %n{loop.label}, %e{loop.label} ]",
        ]
        self.block = f"l{loop.label}"
        return loop

    def _close(self, loop: _Loop) -> None:
        k = loop.label
        self.lines += [
            f"  br label %e{k}",
            f"e{k}:",
            f"  %n{k} = add nuw nsw i64 {loop.counter}, {loop.step}",
            f"  %c{k} = icmp ult i64 %n{k}, {loop.limit}",
            f"  br i1 %c{k}, label %l{k}, label %x{k}",
            f"x{k}:",
        ]
        self.block = f"x{k}"

    # Memory

    def table(self, values: Array) -> int:
        """Keep values that do not vary; return where in `u` they begin."""
        start = self.fixed
        self.same.append(values.astype(float).reshape(-1))
        self.fixed += values.size
        return start

    def allocate(self, node: Node) -> Rows:
        """Return the rows of a node: those that it has, released ones of that number, or new ones."""
        if node in self.arrays:
            return self.arrays[node]
        waiting = self._free.get(node.size)
        start = waiting.pop() if waiting else self.rows
        self.rows = max(self.rows, start + node.size)
        index = np.arange(start, start + node.size).reshape(node.shape)
        self.arrays[node] = Rows(index, "w", node.dtype == "bool")
        return self.arrays[node]

    def release(self, node: Node) -> None:
        """Release the rows of a node."""
        self._free.setdefault(node.size, []).append(int(self.arrays[node].index.flat[0]))

    def load(self, array: Rows, counters: Sequence[Counter] = ()) -> str:
        """Return an element, at these counters, which are aligned from the right as NumPy aligns shapes."""
        offset = self._offset(array, counters)
        if array.strides is not None or (array.index >= 0).all():
            return self.load_at(array, offset)
        inside = self.new(f"icmp sge i64 {offset}, 0")
        value = self.load_at(array, self.new(f"select i1 {inside}, i64 {offset}, i64 0"))
        return self.new(f"select i1 {inside}, {self.vector} {value}, {self.vector} {self.number(0)}")

    def read(self, array: Rows, counters: Sequence[Counter]) -> str:
        """Return an element; what is stored as 1 or 0 as the condition that it is."""
        value = self.load(array, counters)
        return self.condition(value) if array.condition else value

    def store(self, array: Rows, counters: Sequence[Counter], value: str) -> None:
        """Write a value into an element; a condition is stored as 1 or 0."""
        self.store_at(array, self._offset(array, counters), value)

    def load_at(self, array: Rows, offset: Counter) -> str:
        """Return the element at this offset."""
        pointer = self._pointer(array, offset)
        if array.buffer == "u":
            return self._spread(self.new(f"load double, ptr {pointer}, !invariant.load !0"))
        return self.new(f"load {self.vector}, ptr {pointer}, align 8")

    def store_at(self, array: Rows, offset: Counter, value: str) -> None:
        """Write a value into the element at this offset."""
        self.lines.append(f"  store {self.vector} {self.numeric(value)}, ptr {self._pointer(array, offset)}, align 8")

    def _offset(self, array: Rows, counters: Sequence[Counter]) -> Counter:
        """Return the offset of an element: affine in the counters, or from a table."""
        index, strides = array.index, array.strides
        counters = counters[len(counters) - index.ndim :]
        if strides is None:
            return self._from_table(index, counters)
        offset, terms = int(index.flat[0]), []
        for counter, stride in zip(counters, strides, strict=True):
            if isinstance(counter, int):
                offset += counter * stride
            elif stride:
                terms.append((counter, stride))
        if isinstance(array.buffer, int) and terms and self._counters.issuperset(dict(terms)):
            key = array.buffer, tuple(terms)
            self._last[key] = max(offset, self._last.get(key, offset), key=lambda n: n * terms[-1][1])
        return self._sum(offset, self._multiples(terms))

    def _from_table(self, index: Array, counters: Sequence[Counter]) -> Counter:
        """Return an offset from a table of all offsets."""
        key = index.shape, index.tobytes()
        if key not in self._tables:
            self._tables[key] = self.table(index)
        numbers = np.arange(self._tables[key], self._tables[key] + index.size).reshape(index.shape)
        at = self._offset(Rows(numbers, "u"), counters)
        number = self.new(f"load double, ptr {self._address('%u', at)}, !invariant.load !0")
        return self.new(f"fptosi double {number} to i64")

    def _multiples(self, terms: Sequence[tuple[str, int]]) -> list[str]:
        return [self.new(f"mul nsw i64 {counter}, {step}") if step != 1 else counter for counter, step in terms]

    def _sum(self, number: int, terms: Sequence[str]) -> Counter:
        if not terms:
            return number
        total = terms[0]
        for term in [*terms[1:], *([str(number)] if number else [])]:
            total = self.new(f"add nsw i64 {total}, {term}")
        return total

    def _pointer(self, array: Rows, offset: Counter) -> str:
        inside, outside = self._at
        if array.buffer == "u":
            return self._address("%u", offset)
        if array.buffer == "w":
            row = self._address("%w", offset if offset == 0 else self.new(f"mul nsw i64 {offset}, %T"))
            return self._address(row, inside)
        assert isinstance(array.buffer, int)
        if not isinstance(offset, int) or not array.index.ndim:
            self.read_by.setdefault(array.buffer, set()).add(self.parts)
        pointer = self._address(self._start(array.buffer, offset), outside)
        if self.ahead:
            self._prefetch(self._address(pointer, _AHEAD))
        return pointer

    def _start(self, buffer: int, offset: Counter) -> str:
        """Return where a row of an input or output begins."""
        pointer = self.new(f"load ptr, ptr {self._address('%arrays', buffer, 'ptr')}, !invariant.load !0")
        return pointer if offset == 0 else self._address(pointer, self.new(f"mul nsw i64 {offset}, %stride"))

    def _prefetch(self, pointer: str) -> None:
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def _address(self, pointer: str, count: Counter, kind: str = "double") -> str:
        return self.new(f"getelementptr {kind}, ptr {pointer}, i64 {count}") if count != 0 else pointer


def vector_function(name: str, lanes: int) -> str:
    """Return the name of a function of vectors: an intrinsic's by LLVM's rules, any other by ours."""
    return f"{name}.v{lanes}f64" if name.startswith("llvm.") else f"v.{name}"
