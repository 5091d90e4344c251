"""Functions in a language of numbers: each step a few assignments, or a loop where its array is larger.

Movement takes no steps: a view of an array, a transpose, a slice, is another way to number its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.errors import InputError
from gradcli.export.arrays import refused
from gradcli.export.layout import filled
from gradcli.export.program import Function
from gradcli.graph.array import Array
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, is_const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, size_of

UNROLLED = 4  # assignments that are written out rather than looped over
_LONG = 64
ATOM = 9
# How tightly C and JavaScript bind what a rule writes; what is none of these is a call.
LEVELS = {
    **dict.fromkeys(("add", "sub"), 5), **dict.fromkeys(("mul", "div"), 6), "neg": 7, "not": 7,
    **dict.fromkeys(("lt", "le", "gt", "ge"), 4), "eq": 3, "ne": 3, "and": 2, "or": 1, "where": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where the elements of an array are: `index` numbers them in the array `base`; a scalar's base is its text.

    `level` is how tightly such a text binds.  With a formula, an operation and where its arguments are, the elements
    are in no array: they are worked out where they are read.
    """

    base: str
    index: Array
    scalar: bool = False
    level: int = ATOM
    formula: tuple[Node, tuple[Place, ...]] | None = None

    @classmethod
    def array(cls, name: str, shape: Shape) -> Place:
        """Return where the elements of an array of that name are."""
        return cls(name, np.arange(size_of(shape)).reshape(shape))

    @classmethod
    def number(cls, text: str, level: int = ATOM) -> Place:
        """Return where a number is that has a name, or is given as text."""
        return cls(text, np.zeros((), dtype=int), True, level)

    def at(self, element: int | str) -> str:
        """Return an element, by its number in `base`."""
        return self.base if self.scalar else f"{self.base}[{element}]"

    def seen(self, index: Array) -> Place:
        """Return the same elements, numbered in another way."""
        return replace(self, index=index)


@dataclass(frozen=True)
class NumberLanguage:
    """A target: its name, what each operation of numbers is, and how it declares arrays, tables and loops."""

    name: str
    rules: Mapping[str, str]
    array: str  # of a name and a size
    large: str  # such an array where the stack has no room for it
    table: str  # of a name and a size, before and behind a `|`
    places: str
    scalar: str  # of a name and a value
    condition: str  # or a whole number
    variable: str
    loop: str  # of a counter and a size
    whole: str  # of a number that is an index
    number: Callable[[float], str]
    result: Callable[[str], str]  # one that is a number
    helper: Callable[[str], str]  # the name of a function that the file brings along
    structural: Mapping[str, Callable[[LoopWriter, Node, Sequence[Place]], Place]]
    indent: str
    zeroed: bool  # whether the arrays of results are zeros at first
    room: int  # numbers that all arrays of a function may have together
    stack: int  # numbers that the stack has room for

    def numbers(self, values: Array) -> list[str]:
        """Return the elements of an array as text, row after row."""
        return [self.number(float(v)) for v in values.reshape(-1)]


@dataclass
class LoopWriter:
    """Writes the steps of one function."""

    language: NumberLanguage
    function: Function
    lines: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # that the lines read
    named_tables: dict[tuple[str, ...], str] = field(default_factory=dict)
    done: dict[Node, Place] = field(default_factory=dict)
    depth: int = 1
    numbers: int = 0

    def __post_init__(self) -> None:
        taken = {*self.function.names.values(), *self.function.results}
        self.fresh = fresh_names(taken)
        self.counters = [c for c in "ijklmnopqrs" if c not in taken] + [f"{c}_" for c in "ijklmnopqrs"] * 3
        self.own = {n: name for name, n in self.function.results.items() if self.function.readers[n] < 2 and n.shape}
        self.constants = fresh_names(taken, f"{self.function.name}_c")
        # Numbers that larger nodes read, in a loop maybe: they are not worked out again and again.
        self.looped = {a for n in self.function.nodes if n.size > 1 and n.op != "elements" for a in n.args}
        self.reader = {a: n for n in self.function.nodes for a in n.args}

    def write(self) -> list[str]:
        """Return the lines of the function."""
        for node in self.function.nodes:
            self.done[node] = self.node(node)
        for name, node in self.function.results.items():
            self.result(name, node)
        text = "\n".join(self.lines)
        for (head, *numbers), name in self.named_tables.items():
            if f"{name}[" in text:
                start, end = head.format(name=name, size=len(numbers)).split("|")
                self.tables += filled(start, end, numbers)
        return self.lines

    def table(self, head: str, numbers: Sequence[str]) -> str:
        """Return the name of a table of numbers, which functions share that have the same."""
        key = (head, *numbers)
        if key not in self.named_tables:
            self.named_tables[key] = next(self.constants)
        return self.named_tables[key]

    def result(self, name: str, node: Node) -> None:
        """Write a result to where the caller wants it."""
        if node.op == "elements":
            self.elements(name, node)
            return
        place = self.done[node]
        if not node.shape:
            self.line(self.language.result(name).format(value=self.text(place, 0)))
            return
        if place.base == name:
            return
        out = Place.array(name, node.shape)
        for target, value in self.each(node.shape, [out, place]):
            self.line(f"{target} = {value};")

    def elements(self, name: str, node: Node) -> None:
        """Write a result that is given by its elements: many zeros in a loop."""
        zeros = sum(is_const(e, 0) for e in node.args)
        if zeros > UNROLLED and not self.language.zeroed:
            counter = self.counters[0]
            self.line(f"{self.language.loop.format(i=counter, n=node.size)} {{")
            self.line(f"{self.language.indent}{name}[{counter}] = {self.language.number(0.0)};")
            self.line("}")
        for k, e in enumerate(node.args):
            if not is_const(e, 0) or not (self.language.zeroed or zeros > UNROLLED):
                self.line(f"{name}[{k}] = {self.text(self.done[e], 0)};")

    # Lines and loops

    def line(self, text: str) -> None:
        """Write a line, indented by the loops around it."""
        self.lines.append(self.language.indent * self.depth + text)

    def each(self, shape: Shape, places: Sequence[Place]) -> Iterator[list[str]]:
        """Yield the texts of elements, one after the other; of many, once, in a loop over the axes."""
        grids = [p.seen(np.broadcast_to(p.index, shape)) for p in places]
        if size_of(shape) <= UNROLLED:
            for k in range(size_of(shape)):
                yield [self.text(g, k) for g in grids]
            return
        with_counters = self.loops(shape)
        yield [self.counted(g, with_counters) for g in grids]
        self.close(shape)

    def loops(self, shape: Shape) -> list[str]:
        """Open a loop for each axis of more than one element; return the counters, `0` for the others."""
        counters = []
        for n in shape:
            counter = self.counters[self.depth - 1] if n > 1 else "0"
            if n > 1:
                self.line(self.language.loop.format(i=counter, n=n) + " {")
                self.depth += 1
            counters.append(counter)
        return counters

    def close(self, shape: Shape) -> None:
        """Close the loops over a shape."""
        for n in shape:
            if n > 1:
                self.depth -= 1
                self.line("}")

    def text(self, place: Place, k: int) -> str:
        """Return the k-th element of a place; 0 where it has none there."""
        element = int(place.index.reshape(-1)[k])
        if place.formula is not None:
            node, args = place.formula
            return self.expression(node, [a.seen(a.index.reshape(-1)[element : element + 1]) for a in args])
        return self.language.number(0.0) if element < 0 else place.at(element)

    def counted(self, place: Place, counters: Sequence[str]) -> str:
        """Return the element at these counters: its number is linear in them, or stands in a table."""
        index = place.index
        if place.formula is not None:
            node, args = place.formula
            own = [a.seen(a.index.reshape(-1)[index]) for a in args]
            return self.expression(node, [Place.number(self.counted(a, counters), a.level) for a in own])
        if (index < 0).all():
            return self.language.number(0.0)
        whole = bool((index >= 0).all())
        if place.scalar and whole:
            return place.base
        first = int(index.flat[0])
        steps = [int(index.take(1, axis).flat[0]) - first if n > 1 else 0 for axis, n in enumerate(index.shape)]
        if whole and (first + np.tensordot(steps, np.indices(index.shape), 1) == index).all():
            return place.at(_sum(counters, steps, first))
        number = self.from_table(index, counters)
        if whole:
            return place.at(number)
        at = next(self.fresh)
        self.line(self.language.condition.format(name=at, value=number))
        return f"({at} < 0 ? {self.language.number(0.0)} : {place.at(at)})"

    def from_table(self, index: Array, counters: Sequence[str]) -> str:
        """Return the number of an element at these counters, out of a table of all numbers."""
        table = self.table(self.language.places, [str(k) for k in index.flat])
        strides = [size_of(index.shape[axis + 1 :]) if n > 1 else 0 for axis, n in enumerate(index.shape)]
        return f"{table}[{_sum(counters, strides)}]"

    # Places

    def taken(self, node: Node) -> Place:
        """Return an array for a node: the result's that it is, or one under the user's name or a new one."""
        if node in self.own and node not in self.function.names:
            return Place.array(self.own[node], node.shape)
        self.numbers += node.size
        if self.numbers > self.language.room:
            raise InputError(
                f"`{self.function.name}` would keep more than {self.language.room:,} numbers in its arrays",
                hint=f"smaller shapes, or --to numpy, fit better than {self.language.name}",
            )
        name = self.function.names.get(node) or next(self.fresh)
        declared = self.language.array if self.numbers <= self.language.stack else self.language.large
        self.line(declared.format(name=name, size=node.size))
        return Place.array(name, node.shape)

    def kept(self, node: Node, text: str, level: int) -> Place:
        """Return the place of a number: its expression, or the name that it gets where it is read again or long."""
        name = self.function.names.get(node)
        if name is None and self.function.readers[node] < 2 and len(text) < _LONG and node not in self.looped:
            return Place.number(text, level)
        return self.named(text, name, node.dtype == "bool")

    def named(self, text: str, name: str | None = None, condition: bool = False) -> Place:
        """Write a declaration of a number, and return its place."""
        name = name or next(self.fresh)
        declared = self.language.condition if condition else self.language.scalar
        self.line(declared.format(name=name, value=text))
        return Place.number(name)

    # Nodes

    def node(self, node: Node) -> Place:
        """Return where a node's elements are, after writing what computes them."""
        if node.is_leaf:
            name = self.function.names[node]
            return Place.array(name, node.shape) if node.shape else Place.number(name)
        if node.is_constant:
            return self.constant(node)
        if node.op == "elements":
            return Place("", np.zeros(node.shape, dtype=int))
        args = [self.done[a] for a in node.args]
        row = OPERATIONS.get(node.op)
        if row is None or row.broadcasts:
            return self.elementwise(node, args)
        if row.move is not None and row.kind != "scatter" and len(args) == 1:
            moved = row.move(*node.settings, args[0].index[..., None] + 1)[..., 0] - 1
            if (moved >= 0).all() or not args[0].scalar:
                return args[0].seen(np.asarray(moved))
        rule = self.language.structural.get(node.op)
        if rule is None:
            raise refused(node.op, self.language.name)
        return rule(self, node, args)

    def constant(self, node: Node) -> Place:
        """Return numbers as they stand, or as a table."""
        if node.value is not None:
            text = self.language.number(number(node.value))
            return Place(text, np.zeros(node.shape, dtype=int), True, 7 if text.startswith("-") else ATOM)
        table = self.table(self.language.table, [self.language.number(number(v)) for v in node.values])
        return Place.array(table, node.shape)

    def elementwise(self, node: Node, args: Sequence[Place]) -> Place:
        """Write a function of numbers, for each element."""
        rule = self.language.rules.get(node.op, "refused")
        if rule == "refused":
            raise refused(node.op, self.language.name)
        if not node.shape:
            return self.kept(node, self.expression(node, args), LEVELS.get(node.op, ATOM))
        spread = [a.seen(np.broadcast_to(a.index, node.shape)) for a in args]
        if self.read_once(node):
            index = np.arange(node.size).reshape(node.shape)
            return Place("", index, False, LEVELS.get(node.op, ATOM), (node, tuple(spread)))
        place = self.taken(node)
        for target, *texts in self.each(node.shape, [place, *args]):
            own = [Place.number(t, a.level) for t, a in zip(texts, args, strict=True)]
            self.line(f"{target} = {self.expression(node, own)};")
        return place

    def read_once(self, node: Node) -> bool:
        """Tell whether an array's elements are read once each, so that it takes no array."""
        if node in self.function.names or self.function.readers[node] > 1:
            return False
        reader = self.reader.get(node)
        if reader is None:
            return True
        row = OPERATIONS[reader.op]
        return (row.broadcasts and reader.shape == node.shape) or reader.op in ("sum", "prod")

    def expression(self, node: Node, args: Sequence[Place]) -> str:
        """Return a function of numbers as text, in which the longest argument gets a name if it is too long."""
        rule = self.language.rules[node.op]
        own = [Place.number(self.text(a, 0), a.level) for a in args]
        while True:
            texts = [operand(node.op, a.base, a.level, i) for i, a in enumerate(own)]
            text = rule.format(*texts)
            compound = [i for i, a in enumerate(own) if a.level < ATOM or "(" in a.base]
            if len(text) < _LONG or not compound:
                return text
            longest = max(compound, key=lambda i: len(texts[i]))
            own[longest] = self.named(own[longest].base, None, node.args[longest].dtype == "bool")


def _sum(counters: Sequence[str], steps: Sequence[int], first: int = 0) -> str:
    """Return a number and so many times each counter as text.

    >>> _sum(["i", "j"], [3, -1]), _sum(["0"], [0])
    ('3 * i - j', '0')
    """
    terms = [f"{'-' * (s < 0)}{c}" if abs(s) == 1 else f"{s} * {c}" for c, s in zip(counters, steps, strict=True) if s]
    return " + ".join([*terms, *[str(first)] * (first != 0 or not terms)]).replace("+ -", "- ")


def operand(op: str, text: str, level: int, position: int) -> str:
    """Return an operand, in brackets where it binds less tightly than what is around it."""
    around = LEVELS.get(op)
    if around is None:
        return text
    # (a + b) + c needs no brackets, and a + (b + c) is another sum.
    own = {"and": 3, "or": 3, "eq": ATOM, "ne": ATOM, "not": ATOM, "neg": 8}
    needed = own.get(op, max(1, around + (position > 0)))
    return text if level >= needed else f"({text})"
