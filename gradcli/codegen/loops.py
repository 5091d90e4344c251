"""The loop form as text of C and JavaScript: the steps of a function are assignments, and loops over larger arrays.

A view takes no step: it is another index map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradcli.codegen.arrays import unsupported
from gradcli.codegen.helpers import calls
from gradcli.codegen.lines import filled
from gradcli.codegen.number_language import ATOM, CONDITIONS, LEVELS, Elements, NumberLanguage, Value, operand
from gradcli.codegen.program import Function
from gradcli.engine.evaluate import number
from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, is_const, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, size_of
from gradcli.loops.rules import Counter, copy

_ROOM = 10_000_000  # numbers that all arrays of a function may have together
UNROLLED = 4  # assignments that are written out rather than looped over
_LONG = 64  # characters of an expression, from which on a part of it gets a name
_OPERATIONS = {"max": "maximum", "min": "minimum"}  # of the loop form, by their names in a language


@dataclass
class LoopWriter:
    """Writes the steps of one function: a builder of the loop form."""

    language: NumberLanguage
    function: Function
    lines: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # that the lines read
    named_tables: dict[tuple[str, ...], str] = field(default_factory=dict)
    done: dict[Node, Elements] = field(default_factory=dict)
    depth: int = 1
    numbers: int = 0
    scalar: Value | None = None  # the result of a structural operation that is a scalar
    name: str | None = None  # that the user gave it
    called: set[str] = field(default_factory=set)  # functions that the lines call

    def __post_init__(self) -> None:
        taken = {*self.function.names.values(), *self.function.results}
        self.fresh = fresh_names(taken)
        self.counters = [c for c in "ijklmnopqrs" if c not in taken] + [f"{c}_" for c in "ijklmnopqrs"] * 3
        self.result_names = {
            n: name for name, n in self.function.results.items() if self.function.readers[n] < 2 and n.shape
        }
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
        for (kind, *numbers), name in self.named_tables.items():
            if f"{name}[" in text:
                table = self.language.table.format(type=kind).format(name=name, size=len(numbers))
                start, end = table.split("|")
                self.tables += filled(start, end, numbers)
        return self.lines

    def table(self, kind: str, numbers: Sequence[str]) -> str:
        """Return the name of a table of numbers, which functions share that have the same."""
        key = (kind, *numbers)
        if key not in self.named_tables:
            self.named_tables[key] = next(self.constants)
        return self.named_tables[key]

    def result(self, name: str, node: Node) -> None:
        """Write a result to where the caller wants it."""
        if elements := operands(node, "elements"):
            self.elements(name, elements)
            return
        array = self.done[node]
        if not node.shape:
            self.line(self.language.result(name).format(value=self.element(array, ())))
        elif array.base != name:
            copy(self, Elements.array(name, node.shape), array)

    def elements(self, name: str, elements: Sequence[Node]) -> None:
        """Write a result that is given by its elements: many zeros in a loop."""
        zeros = sum(is_const(e, 0) for e in elements)
        if zeros > UNROLLED and not self.language.zeroed:
            counter = self.counters[0]
            self.line(f"{self.language.loop.format(i=counter, n=len(elements))} {{")
            self.line(f"{self.language.indent}{name}[{counter}] = {self.language.number(0.0)};")
            self.line("}")
        for k, e in enumerate(elements):
            if not is_const(e, 0) or not (self.language.zeroed or zeros > UNROLLED):
                self.line(f"{name}[{k}] = {self.element(self.done[e], ())};")

    # Lines and loops

    def line(self, text: str) -> None:
        """Write a line, indented by the loops around it."""
        self.lines.append(self.language.indent * self.depth + text)

    def nest(self, shape: Shape, body: Callable[[list[Counter]], None], unroll: bool = False) -> None:
        """Write loops over the axes of a shape, or write their body out for each element of a small one."""
        if unroll and size_of(shape) <= UNROLLED:
            for k in np.ndindex(shape):
                body(list(k))
            return
        body(self.loops(shape))
        self.close(shape)

    def loops(self, shape: Shape) -> list[Counter]:
        """Open a loop for each axis of more than one element; return the counters, with 0 for other axes."""
        counters: list[Counter] = []
        for n in shape:
            counters.append(self.counters[self.depth - 1] if n > 1 else 0)
            if n > 1:
                self.line(self.language.loop.format(i=counters[-1], n=n) + " {")
                self.depth += 1
        return counters

    def close(self, shape: Shape) -> None:
        """Close the loops over a shape."""
        for n in shape:
            if n > 1:
                self.depth -= 1
                self.line("}")

    def fold(
        self, shape: Shape, starts: tuple[Value, ...], step: Callable[..., tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        """Write a loop that assigns to a variable for each value that it carries."""
        variables = tuple(self.variable(start, self.name if len(starts) == 1 else None) for start in starts)
        results = step(self.loops(shape), *variables)
        for variable, value in zip(variables, results, strict=True):
            self.assign(variable.text, value)
        self.close(shape)
        return variables

    def total(self, shape: Shape, factors: Callable[[list[Counter]], Sequence[Value]]) -> Value:
        """Write a loop that adds up products; one of them alone needs no variable."""
        if size_of(shape) == 1:
            return self.product(factors([0] * len(shape)))
        variable = self.variable(self.number(0.0), self.name)
        self.line(f"{variable.text} += {self.product(factors(self.loops(shape))).text};")
        self.close(shape)
        return variable

    def product(self, factors: Sequence[Value]) -> Value:
        """Return a product of one or two factors."""
        if len(factors) == 1:
            return factors[0]
        texts = [v.text if v.level >= LEVELS["mul"] else f"({v.text})" for v in factors]
        return Value(" * ".join(texts), LEVELS["mul"])

    def variable(self, start: Value, name: str | None = None) -> Value:
        """Write the declaration of a variable."""
        name = name or next(self.fresh)
        self.line(self.language.variable.format(name=name, value=start.text))
        return Value(name, is_name=True)

    # Values

    def load(self, array: Elements, counters: Sequence[Counter]) -> Value:
        """Return an element at these counters, those of the last axes."""
        return Value(self.element(array, counters), array.level)

    def store(self, array: Elements, counters: Sequence[Counter], value: Value) -> None:
        """Write the assignment to an element; a scalar result needs none."""
        if array.scalar:
            self.scalar = value
        else:
            self.assign(self.element(array, counters), value)

    def assign(self, target: str, value: Value) -> None:
        """Write an assignment: `+=` or `*=` where the value is made so."""
        sign = {"add": "+=", "mul": "*="}.get(value.op)
        if sign is not None and value.operands[0].text == target:
            self.line(f"{target} {sign} {value.operands[1].text};")
        elif value.text != target:
            self.line(f"{target} = {value.text};")

    def number(self, value: float) -> Value:
        """Return a constant."""
        text = self.language.number(value)
        return Value(text, LEVELS["neg"] if text.startswith("-") else ATOM)

    def op(self, op: str, *values: Value) -> Value:
        """Return an elementwise operation."""
        name = _OPERATIONS.get(op, op)
        texts = [operand(name, v.text, v.level, i) for i, v in enumerate(values)]
        return Value(self.computed(name, texts), LEVELS.get(name, ATOM), op, values)

    def computed(self, op: str, texts: Sequence[str]) -> str:
        """Return the text of an operation in those of its operands."""
        rule = self.language.rules[op]
        self.called |= calls(rule)
        return rule.format(*texts)

    def position(self, counter: Counter) -> Value:
        """Return a counter as a number."""
        return Value(str(counter))

    def let(self, value: Value) -> Value:
        """Write the declaration of a constant."""
        return Value(self.named(value.text, None, value.op in CONDITIONS).base, is_name=True)

    def element(self, array: Elements, counters: Sequence[Counter]) -> str:
        """Return the text of an element."""
        index = array.index
        counters = counters[len(counters) - index.ndim :]
        fixed = [0 if n == 1 else k if isinstance(k, int) else None for k, n in zip(counters, index.shape, strict=True)]
        part = array.seen(np.asarray(index[tuple(slice(None) if k is None else k for k in fixed)]))
        return self.counted(part, [str(c) for c, k in zip(counters, fixed, strict=True) if k is None])

    def counted(self, array: Elements, counters: Sequence[str]) -> str:
        """Return the element at the counters of loops: its offset is affine in them, or from a table."""
        index = array.index
        if array.formula is not None:
            node, args = array.formula
            operands = [a.seen(np.asarray(a.index.reshape(-1)[index])) for a in args]
            return self.expression(node, [Value(self.counted(a, counters), a.level) for a in operands])
        if (index < 0).all():
            return self.language.number(0.0)
        whole = bool((index >= 0).all())
        if array.scalar and whole:
            return array.base
        if array.strides is not None:
            return array.at(_affine(counters, array.strides, int(index.flat[0])))
        offset = self.from_table(index, counters)
        if whole:
            return array.at(offset)
        at = next(self.fresh)
        self.line(self.language.constant.format(type="int", name=at, value=offset))
        return f"({at} < 0 ? {self.language.number(0.0)} : {array.at(at)})"

    def from_table(self, index: Array, counters: Sequence[str]) -> str:
        """Return the offset of an element at these counters, out of a table of all offsets."""
        table = self.table("int", [str(k) for k in index.flat])
        strides = [size_of(index.shape[axis + 1 :]) if n > 1 else 0 for axis, n in enumerate(index.shape)]
        return f"{table}[{_affine(counters, strides)}]"

    # Arrays

    def taken(self, node: Node) -> Elements:
        """Return an array for a node: the result's that it is, or one under the user's name or a new one."""
        if node in self.result_names and node not in self.function.names:
            return Elements.array(self.result_names[node], node.shape)
        self.numbers += node.size
        if self.numbers > _ROOM:
            raise InputError(
                f"`{self.function.name}` needs arrays of more than {_ROOM:,} numbers",
                hint=f"smaller shapes, or --to numpy, fit better than {self.language.name}",
            )
        name = self.function.names.get(node) or next(self.fresh)
        declared = self.language.array if self.numbers <= self.language.stack else self.language.large
        self.line(declared.format(name=name, size=node.size))
        return Elements.array(name, node.shape)

    def kept(self, node: Node, text: str, level: int) -> Elements:
        """Return a scalar: its expression, or the name that it gets where it is read again or long."""
        name = self.function.names.get(node)
        if name is None and self.function.readers[node] < 2 and len(text) < _LONG and node not in self.looped:
            return Elements.number(text, level)
        return self.named(text, name, node.dtype == "bool")

    def named(self, text: str, name: str | None = None, condition: bool = False) -> Elements:
        """Write the declaration of a number, and return it."""
        name = name or next(self.fresh)
        kind = "int" if condition else "double"
        self.line(self.language.constant.format(type=kind, name=name, value=text))
        return Elements.number(name)

    # Nodes

    def node(self, node: Node) -> Elements:
        """Return a node's elements, after writing what computes them."""
        if node.is_leaf:
            name = self.function.names[node]
            return Elements.array(name, node.shape) if node.shape else Elements.number(name)
        if node.is_constant:
            return self.constant(node)
        if node.op == "elements":
            return Elements(np.zeros(node.shape, dtype=int))
        args = [self.done[a] for a in node.args]
        row = OPERATIONS.get(node.op)
        if row is None or row.broadcasts:
            return self.elementwise(node, args)
        if row.move is not None and row.kind != "scatter" and len(args) == 1:
            moved = args[0].moved(node)
            if (moved.index >= 0).all() or not args[0].scalar:
                return moved
        return self.structural(node, args)

    def structural(self, node: Node, args: Sequence[Elements]) -> Elements:
        """Write the loops of a structural operation."""
        rule = self.language.structural.get(node.op)
        if rule is None:
            raise unsupported(node.op, self.language.name)
        if node.shape:
            array = self.taken(node)
            rule(self, node, array, *args)
            return array
        self.name = self.function.names.get(node)
        rule(self, node, Elements.number(""), *args)
        name, self.name, value = self.name, None, self.scalar
        assert value is not None
        if value.is_name and name in (None, value.text):
            return Elements.number(value.text)
        return self.kept(node, value.text, value.level)

    def constant(self, node: Node) -> Elements:
        """Return a constant as literals or, with several values, as a table."""
        if node.value is not None:
            value = self.number(number(node.value))
            return Elements(np.zeros(node.shape, dtype=int), value.text, True, value.level)
        table = self.table("double", [self.language.number(number(v)) for v in node.values])
        return Elements.array(table, node.shape)

    def elementwise(self, node: Node, args: Sequence[Elements]) -> Elements:
        """Write a function of numbers, for each element."""
        if node.op not in self.language.rules:
            raise unsupported(node.op, self.language.name)
        level = LEVELS.get(node.op, ATOM)
        if not node.shape:
            return self.kept(node, self.expression(node, [self.load(a, ()) for a in args]), level)
        if self.read_once(node):
            index = np.arange(node.size).reshape(node.shape)
            whole = tuple(a.seen(np.broadcast_to(a.index, node.shape)) for a in args)
            return Elements(index, level=level, formula=(node, whole))
        array = self.taken(node)

        def body(k: list[Counter]) -> None:
            target = self.element(array, k)
            self.line(f"{target} = {self.expression(node, [self.load(a, k) for a in args])};")

        self.nest(node.shape, body, unroll=True)
        return array

    def read_once(self, node: Node) -> bool:
        """Return whether an array's elements are read once each, so that it needs no memory."""
        if node in self.function.names or self.function.readers[node] > 1:
            return False
        reader = self.reader.get(node)
        if reader is None:
            return True
        row = OPERATIONS[reader.op]
        return (row.broadcasts and reader.shape == node.shape) or reader.op in ("sum", "prod")

    def expression(self, node: Node, values: Sequence[Value]) -> str:
        """Return a function of numbers as text, in which the longest argument gets a name if it is too long."""
        result = list(values)
        while True:
            texts = [operand(node.op, v.text, v.level, i) for i, v in enumerate(result)]
            text = self.computed(node.op, texts)
            compound = [i for i, v in enumerate(result) if v.level < ATOM or "(" in v.text]
            if len(text) < _LONG or not compound:
                return text
            longest = max(compound, key=lambda i: len(texts[i]))
            result[longest] = Value(self.named(result[longest].text, None, node.args[longest].dtype == "bool").base)


def _affine(counters: Sequence[str], strides: Sequence[int], first: int = 0) -> str:
    """Return an offset and so many times each counter as text.

    >>> _affine(["i", "j"], [3, -1]), _affine([], [])
    ('3 * i - j', '0')
    """
    terms = [
        f"{'-' * (s < 0)}{c}" if abs(s) == 1 else f"{s} * {c}" for c, s in zip(counters, strides, strict=True) if s
    ]
    return " + ".join([*terms, *[str(first)] * (first != 0 or not terms)]).replace("+ -", "- ")
