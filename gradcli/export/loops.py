"""Functions in a language of numbers: each step a few assignments, or a loop where its array is larger.

Movement takes no steps: a view of an array, a transpose, a slice, is another way to number its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.errors import InputError
from gradcli.export.arrays import refused
from gradcli.export.program import Function
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, size_of

Array = np.ndarray[Any, Any]

UNROLLED = 16  # assignments that are written out rather than looped over
MAX_NUMBERS = 100_000  # of all arrays of a function together: they stand on the stack
_LONG = 80
ATOM = 9


@dataclass(frozen=True)
class Place:
    """Where the elements of an array are: `index` numbers them in the array `base`; no base has the one number itself.

    `level` is how tightly a text without index binds.
    """

    base: str
    index: Array
    scalar: bool = False
    level: int = ATOM

    def at(self, element: int) -> str:
        """Return an element, by its number in `base`."""
        return self.base if self.scalar else f"{self.base}[{element}]"

    def seen(self, index: Array) -> Place:
        """Return the same elements, numbered in another way."""
        return Place(self.base, index, self.scalar, self.level)


@dataclass(frozen=True)
class NumberLanguage:
    """A target: its name, what each operation of numbers is, and how it declares arrays, tables and loops.

    `helpers` are functions that an operation may need, by the name that stands in its rule.
    """

    name: str
    rules: Mapping[str, str]
    array: str  # of a name and a size
    table: str  # of a name, a size and the numbers
    places: str
    scalar: str  # of a name and a value
    variable: str
    loop: str  # of a counter and a size
    number: Callable[[float], str]
    helpers: Mapping[str, str]
    starred: Callable[[str], str]  # a result that is a number
    structural: Mapping[str, Callable[[LoopWriter, Node, Sequence[Place]], Place]]


@dataclass
class LoopWriter:
    """Writes the steps of one function."""

    language: NumberLanguage
    function: Function
    lines: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # that the lines read
    named_tables: list[tuple[str, str]] = field(default_factory=list)
    done: dict[Node, Place] = field(default_factory=dict)
    depth: int = 1
    numbers: int = 0

    def __post_init__(self) -> None:
        taken = {*self.function.names.values(), *self.function.results}
        self.fresh = fresh_names(taken)
        self.counters = fresh_names(taken, "i")
        self.constants = fresh_names(taken, f"{self.function.name}_c")

    def write(self) -> list[str]:
        """Return the lines of the function."""
        for node in self.function.nodes:
            self.done[node] = self.node(node)
        for name, node in self.function.results.items():
            self.result(name, node)
        text = "\n".join(self.lines)
        self.tables = [t for name, t in self.named_tables if f"{name}[" in text]
        return self.lines

    def result(self, name: str, node: Node) -> None:
        """Write a result to where the caller wants it."""
        place = self.done[node]
        if not node.shape:
            self.line(f"{self.language.starred(name)} = {self.text(place, 0)};")
            return
        out = Place(name, np.arange(node.size).reshape(node.shape))
        for target, value in self.each(node.shape, [out, place]):
            self.line(f"{target} = {value};")

    # Lines and loops

    def line(self, text: str) -> None:
        """Write a line, indented by the loops around it."""
        self.lines.append("    " * self.depth + text)

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
            counter = next(self.counters) if n > 1 else "0"
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
        return self.language.number(0.0) if element < 0 else place.at(element)

    def counted(self, place: Place, counters: Sequence[str]) -> str:
        """Return the element at these counters: its number is linear in them, or stands in a table."""
        index = place.index
        if place.scalar and (index >= 0).all():
            return place.base
        first = int(index.reshape(-1)[0])
        steps = [
            int(np.take(index, 1, axis)[(0,) * (index.ndim - 1)]) - first if n > 1 else 0
            for axis, n in enumerate(index.shape)
        ]
        linear = first + sum(
            (
                np.arange(n).reshape([-1 if a == axis else 1 for a in range(index.ndim)]) * steps[axis]
                for axis, n in enumerate(index.shape)
            ),
            np.zeros(index.shape, dtype=int),
        )
        if (linear == index).all():
            terms = [c if s == 1 else f"{s}*{c}" for c, s in zip(counters, steps, strict=True) if s]
            terms += [str(first)] if first or not terms else []
            return place.at(" + ".join(terms).replace("+ -", "- "))  # type: ignore[arg-type]
        table = next(self.constants)
        numbers = ", ".join(map(str, index.reshape(-1)))
        self.named_tables.append((table, self.language.places.format(name=table, size=index.size, numbers=numbers)))
        weights = [size_of(index.shape[axis + 1 :]) for axis in range(index.ndim)]
        flat = (
            " + ".join(c if w == 1 else f"{w}*{c}" for c, w in zip(counters, weights, strict=True) if c != "0") or "0"
        )
        if (index < 0).any():
            return f"({table}[{flat}] < 0 ? {self.language.number(0.0)} : {place.at(f'{table}[{flat}]')})"  # type: ignore[arg-type]
        return place.at(f"{table}[{flat}]")  # type: ignore[arg-type]

    # Places

    def taken(self, node: Node) -> Place:
        """Return an array for a node, under the user's name or a new one."""
        self.numbers += node.size
        if self.numbers > MAX_NUMBERS:
            raise InputError(
                f"`{self.function.name}` would keep more than {MAX_NUMBERS:,} numbers on the stack",
                hint=f"smaller shapes, or --to numpy, fit better than {self.language.name}",
            )
        name = self.function.names.get(node) or next(self.fresh)
        self.line(self.language.array.format(name=name, size=node.size))
        return Place(name, np.arange(node.size).reshape(node.shape))

    def kept(self, node: Node, text: str, level: int) -> Place:
        """Return the place of a number: its expression, or the name that it gets where it is read again or long."""
        name = self.function.names.get(node)
        if name is None and self.function.readers[node] < 2 and len(text) < _LONG and not self.looped(node):
            return Place(text, np.zeros((), dtype=int), True, level)
        name = name or next(self.fresh)
        kind = "condition" if node.dtype == "bool" else "scalar"
        declared = self.language.scalar if kind == "scalar" else self.language.variable
        self.line(declared.format(name=name, value=text))
        return Place(name, np.zeros((), dtype=int), True)

    def looped(self, node: Node) -> bool:
        """Tell whether larger nodes may read this number in a loop: it is not worked out again and again."""
        return any(node in n.args and n.size > 1 for n in self.function.nodes)

    # Nodes

    def node(self, node: Node) -> Place:
        """Return where a node's elements are, after writing what computes them."""
        if node.op == "input":
            name = self.function.names[node]
            return Place(name, np.arange(node.size).reshape(node.shape), not node.shape)
        if node.op == "const":
            return self.constant(node)
        args = [self.done[a] for a in node.args]
        row = OPERATIONS[node.op]
        if row.broadcasts:
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
            return Place(text, np.zeros(node.shape, dtype=int), True, 2 if text.startswith("-") else ATOM)
        table = next(self.constants)
        numbers = ", ".join(self.language.number(number(v)) for v in node.values)
        self.named_tables.append((table, self.language.table.format(name=table, size=node.size, numbers=numbers)))
        return Place(table, np.arange(node.size).reshape(node.shape))

    def elementwise(self, node: Node, args: Sequence[Place]) -> Place:
        """Write a function of numbers, for each element."""
        rule = self.language.rules.get(node.op, "refused")
        if rule == "refused":
            raise refused(node.op, self.language.name)
        if not node.shape:
            texts = [self.operand(rule, self.text(a, 0), a.level, i) for i, a in enumerate(args)]
            return self.kept(node, rule.format(*texts), ATOM if rule.endswith("({})") else 0)
        place = self.taken(node)
        levels = [a.level for a in args]
        for target, *texts in self.each(node.shape, [place, *args]):
            texts = [self.operand(rule, t, level, i) for i, (t, level) in enumerate(zip(texts, levels, strict=True))]
            self.line(f"{target} = {rule.format(*texts)};")
        return place

    def operand(self, rule: str, text: str, level: int, position: int) -> str:
        """Return an operand, in brackets where it is not a name or a call; one that stands twice gets a name."""
        if rule.count(f"{{{position}}}") > 1 and not text.replace(".", "").isalnum() and "[" not in text:
            name = next(self.fresh)
            self.line(self.language.scalar.format(name=name, value=text))
            return name
        return text if level == ATOM or rule.endswith("({})") else f"({text})"
