"""The instructions of a kernel, for LLVM: its loops, the rows of its scratch array, and where each value stands.

Each loop is a function of its own: much of what LLVM does takes the square of a function's length.
A value is a vector of as many points as the processor's registers hold, by the name that the kernel has for it: `%v7`
for numbers, `%m7` for conditions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.engine.llvm.places import Place
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, size_of

Counter = int | str  # of an axis: a number, or the name of one that a loop counts
Values = tuple[str, ...]

# The points of a tile, its first one, and memory: see `code.Code`.
PARAMETERS = "i64 %n, i64 %from, i64 %stride, i1 %large, " + ", ".join(
    [*(f"ptr noalias nocapture readonly %{name}" for name in ("arrays", "u")), "ptr noalias nocapture %w"]
)
_AHEAD = 32  # points: so far ahead memory is asked for them
_UNROLLED = 16  # turns of a loop that are written one after the other


@dataclass(frozen=True)
class _Loop:
    """A loop that is open: its counter, its labels, and the label before it."""

    counter: str
    label: str
    before: str
    limit: Counter
    step: int


class Writer:
    """Writes the body of the loop over the tiles, for vectors of so many points."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector, self.integers, self.masks = (f"<{lanes} x {kind}>" for kind in ("double", "i64", "i1"))
        self.lines: list[Any] = []  # a line, or a list of lines that are known later
        self.tile: list[str] = []  # the line that says how long a tile is
        self.called: set[str] = set()  # functions
        self.parts = 0  # functions that are loops
        self.read_by: dict[int | str, set[int]] = {}  # for each array outside the loops that go over it
        self.ahead = False  # whether what is outside is fetched before its turn
        self.block = ""  # the label of the lines that are written now
        self.rows = 0
        self.places: dict[Node, Place] = {}
        self.same: list[Array] = []  # values that do not vary, in the order in which they stand in `u`
        self.fixed = 0  # how many these are
        self._free: dict[int, list[int]] = {}
        self._names = 0
        self._counters: set[Counter] = set()  # of the loops around that over the points
        # For each array outside, by what its elements are counted with: the last of them, and what comes after it.
        self._last: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}
        self._stored: list[tuple[Place, Counter, Node]] = []  # elements whose numbers wait in a row of their own

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
        """Return total + a·b, rounded once where the processor has an instruction for that."""
        return self.do("fadd contract", total, self.do("fmul contract", a, b))

    def call(self, function: str, *values: str) -> str:
        """Return the value of a function of vectors."""
        self.called.add(function)
        given = ", ".join(f"{self.vector} {v}" for v in values)
        return self.new(f"call {self.vector} @{vector_function(function, self.lanes)}({given})")

    def compare(self, how: str, a: str, b: str) -> str:
        """Return the condition that a comparison such as `olt` holds."""
        return self.new(f"fcmp {how} {self.vector} {a}, {b}", "m")

    def select(self, condition: str, a: str, b: str) -> str:
        """Return `a` where the condition holds, and `b` elsewhere."""
        return self.new(f"select {self.masks} {condition}, {self.vector} {a}, {self.vector} {b}")

    def number(self, value: float) -> str:
        """Return a number that all points have."""
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return f"<{', '.join([f'double 0x{bits:016X}'] * self.lanes)}>"

    def integer(self, value: int) -> str:
        """Return a whole number of 64 bits that all points have."""
        return f"<{', '.join([f'i64 {value}'] * self.lanes)}>"

    def whole(self, operation: str, a: str, b: str) -> str:
        """Return the value of an operation on vectors of whole numbers, such as `and`."""
        return self.new(f"{operation} {self.integers} {a}, {b}")

    def bits(self, value: str) -> str:
        """Return the bits of numbers as whole numbers."""
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

    def counted(self, counter: Counter) -> str:
        """Return a counter as a vector of numbers."""
        if isinstance(counter, int):
            return self.number(counter)
        return self._spread(self.new(f"sitofp i64 {counter} to double"))

    def in_turn(self, counter: Counter, ahead: int, size: int) -> Counter:
        """Return which of so many things that are taken in turn it is, that many turns ahead."""
        if size <= 1:
            return 0
        return self.new(f"urem i64 {self.new(f'add i64 {counter}, {ahead}')}, {size}")

    def _spread(self, scalar: str) -> str:
        first = self.new(f"insertelement {self.vector} poison, double {scalar}, i64 0")
        zeros = "zeroinitializer"
        return self.new(f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> {zeros}")

    # Loops

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
        # The processor itself follows a few arrays at a time.
        self.ahead = not shape
        loops = [self._open(n) if n > 1 else None for n in shape]
        self._counters = {loop.counter for loop in loops if loop}
        points = self._open("%n", self.lanes)
        self.lines.append(f"  %i{points.label} = add i64 %from, {points.counter}")
        self._at = points.counter, f"%i{points.label}"
        yield [loop.counter if loop else 0 for loop in loops]
        self._ask_for_next()
        self._close(points)
        self._stream()
        for loop in reversed([loop for loop in loops if loop]):
            self._close(loop)
        self.lines += ["  ret void", "}"]

    def _ask_for_next(self) -> None:
        """Ask memory for the elements that the next turn of the innermost loop over elements will be the first to read.

        The processor itself follows what is read one after the other, but not from row to row.
        """
        for (where, terms), number in self._last.items():
            element = self._sum(number + terms[-1][1], self._multiples(terms))
            self._prefetch(self._offset(self._start(where, element), self._at[1]))
        self._last.clear()

    def _stream(self) -> None:
        """Send what waits in rows to the arrays outside, row by row."""
        for place, element, row in self._stored:
            assert isinstance(place.where, int)
            to = self._offset(self._start(place.where, element), "%from")
            source = self._row(int(self.places[row].index))
            self.lines.append(f"  call void @stream(ptr {to}, ptr {source}, i64 %n, i1 %large)")
            self.give_back(row)
        self._stored.clear()

    def fold(
        self,
        shape: Shape,
        starts: Values,
        step: Callable[..., Values],
        before: tuple[Counter, ...] = (),
    ) -> Values:
        """Return what becomes of `starts` in a loop over elements, within one over points.

        `step(counters, *values)` returns the values after a turn.
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

    def take(self, node: Node) -> Place:
        """Return the place of a node, if it has one, new rows, or rows that nobody reads any more."""
        if node in self.places:
            return self.places[node]
        waiting = self._free.get(node.size)
        start = waiting.pop() if waiting else self.rows
        self.rows = max(self.rows, start + node.size)
        index = np.arange(start, start + node.size).reshape(node.shape)
        self.places[node] = Place("w", index, node.dtype == "bool")
        return self.places[node]

    def give_back(self, node: Node) -> None:
        """Let the rows of a node be used again."""
        self._free.setdefault(node.size, []).append(int(self.places[node].index.flat[0]))

    def load(self, place: Place, counters: Sequence[Counter] = ()) -> str:
        """Return an element, at these counters, which are aligned from the right as NumPy aligns shapes."""
        return self.load_at(place, self._element(place, counters))

    def read(self, place: Place, counters: Sequence[Counter]) -> str:
        """Return an element; what is stored as 1 or 0 as the condition that it is."""
        value = self.load(place, counters)
        return self.condition(value) if place.condition else value

    def store(self, place: Place, counters: Sequence[Counter], value: str) -> None:
        """Write a value into an element; a condition is stored as 1 or 0."""
        self.store_at(place, self._element(place, counters), value)

    def load_at(self, place: Place, element: Counter) -> str:
        """Return the element with this number."""
        pointer = self._pointer(place, element)
        if place.where == "u":
            return self._spread(self.new(f"load double, ptr {pointer}, !invariant.load !0"))
        return self.new(f"load {self.vector}, ptr {pointer}, align 8")

    def store_at(self, place: Place, element: Counter, value: str) -> None:
        """Write a value into the element with this number.

        A row that nobody will read goes by way of one that stays in the cache: then it need not be there.
        """
        if place.streamed:
            row = Node("row", (), ())
            self._stored.append((place, element, row))
            place = self.take(row)
            element = int(place.index)
        self.lines.append(f"  store {self.vector} {self.numeric(value)}, ptr {self._pointer(place, element)}, align 8")

    def number_at(self, start: int, counters: Sequence[Counter], shape: Shape) -> Counter:
        """Return a number in a table that begins at `start` in `u`."""
        element = self._element(Place("u", np.arange(start, start + size_of(shape)).reshape(shape)), counters)
        number = self.new(f"load double, ptr {self._offset('%u', element)}, !invariant.load !0")
        return self.new(f"fptosi double {number} to i64")

    def _element(self, place: Place, counters: Sequence[Counter]) -> Counter:
        index = place.index
        number, terms = int(index.flat[0]), []
        own = counters[len(counters) - index.ndim :]
        for counter, size, stride in zip(own, index.shape, index.strides, strict=True):
            step = stride // index.itemsize
            if size == 1 or not step:
                continue
            if isinstance(counter, int):
                number += counter * step
            else:
                terms.append((counter, step))
        if isinstance(place.where, int) and not place.streamed and terms and self._counters.issuperset(dict(terms)):
            key = place.where, tuple(terms)
            self._last[key] = max(number, self._last.get(key, number), key=lambda n: n * terms[-1][1])
        return self._sum(number, self._multiples(terms))

    def _multiples(self, terms: Sequence[tuple[str, int]]) -> list[str]:
        return [self.new(f"mul nsw i64 {counter}, {step}") if step != 1 else counter for counter, step in terms]

    def _sum(self, number: int, terms: Sequence[str]) -> Counter:
        if not terms:
            return number
        total = terms[0]
        for term in [*terms[1:], *([str(number)] if number else [])]:
            total = self.new(f"add nsw i64 {total}, {term}")
        return total

    def _pointer(self, place: Place, element: Counter) -> str:
        inside, outside = self._at
        if place.where == "u":
            return self._offset("%u", element)
        if place.where == "w":
            return self._offset(self._row(element), inside)
        assert isinstance(place.where, int)
        if not isinstance(element, int) or not place.index.ndim:
            self.read_by.setdefault(place.where, set()).add(self.parts)
        pointer = self._offset(self._start(place.where, element), outside)
        if self.ahead:
            self._prefetch(self._offset(pointer, _AHEAD))
        return pointer

    def _row(self, element: Counter) -> str:
        """Return where a row of the scratch array begins."""
        return self._offset("%w", element if element == 0 else self.new(f"mul nsw i64 {element}, %T"))

    def _start(self, where: int, element: Counter) -> str:
        """Return where an element of an array outside begins."""
        pointer = self.new(f"load ptr, ptr {self._offset('%arrays', where, 'ptr')}, !invariant.load !0")
        return pointer if element == 0 else self._offset(pointer, self.new(f"mul nsw i64 {element}, %stride"))

    def _prefetch(self, pointer: str) -> None:
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def _offset(self, pointer: str, count: Counter, kind: str = "double") -> str:
        return self.new(f"getelementptr {kind}, ptr {pointer}, i64 {count}") if count != 0 else pointer

    # Whole arrays

    def copy(self, place: Place, shape: Shape, source: float | Place) -> None:
        """Write a copy of an array, or a number into all elements."""
        with self.loops(shape) as k:
            self.store(place, k, self.load(source, k) if isinstance(source, Place) else self.number(source))

    def view(self, node: Node) -> None:
        """Let a view be read through its argument's rows, which are copied first where no strides can say that."""
        arg, row = self.places[node.args[0]], OPERATIONS[node.op]
        if not np.may_share_memory(row.moved(node.settings, arg.index), arg.index):
            rows = self.take(Node("copy", (), arg.index.shape, (), node.args[0].dtype))
            self.copy(rows, arg.index.shape, arg)
            arg = rows
        self.places[node] = arg.seen(row.moved(node.settings, arg.index))


def vector_function(name: str, lanes: int) -> str:
    """Return what a function of vectors is called: one of LLVM's by its rules, another by ours."""
    return f"{name}.v{lanes}f64" if name.startswith("llvm.") else f"v.{name}"
