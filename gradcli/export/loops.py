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
from gradcli.graph.einsum import labels
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape, size_of

Array = np.ndarray[Any, Any]

UNROLLED = 16  # assignments that are written out rather than looped over
MAX_NUMBERS = 100_000  # of all arrays of a function together: they stand on the stack
_LONG = 80
_ATOM = 9


@dataclass(frozen=True)
class Place:
    """Where the elements of an array are: `index` numbers them in the array `base`; no base has the one number itself.

    `level` is how tightly a text without index binds.
    """

    base: str
    index: Array
    scalar: bool = False
    level: int = _ATOM

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
        rule = STRUCTURAL.get(node.op)
        if rule is None:
            raise refused(node.op, self.language.name)
        return rule(self, node, args)

    def constant(self, node: Node) -> Place:
        """Return numbers as they stand, or as a table."""
        if node.value is not None:
            text = self.language.number(number(node.value))
            return Place(text, np.zeros(node.shape, dtype=int), True, 2 if text.startswith("-") else _ATOM)
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
            return self.kept(node, rule.format(*texts), _ATOM if rule.endswith("({})") else 0)
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
        return text if level == _ATOM or rule.endswith("({})") else f"({text})"


# Structural operations, in any language of loops

StructuralRule = Callable[[LoopWriter, Node, Sequence[Place]], Place]


def _split(node: Node, x: Array, axes: Sequence[int]) -> tuple[Shape, Shape, Array]:
    """Return the shapes of what is left and of what is reduced, and the index with the reduced axes behind."""
    rest = [a for a in range(x.ndim) if a not in axes]
    turned = x.transpose(*rest, *axes)
    return tuple(x.shape[a] for a in rest), tuple(x.shape[a] for a in axes), turned


def _fold(
    w: LoopWriter, node: Node, shapes: tuple[Shape, Shape], grids: Sequence[Place], update: str, term: str
) -> Place:
    """Write a reduction: `update` joins the result so far with a `term` of the elements."""
    outer, inner = shapes
    place = (
        w.taken(node)
        if node.shape
        else Place(w.function.names.get(node) or next(w.fresh), np.zeros((), dtype=int), True)
    )
    if size_of(outer) * size_of(inner) <= 4 * UNROLLED:
        flat = [g.index.reshape(size_of(outer), size_of(inner)) for g in grids]
        for k in range(size_of(outer)):
            found = ""
            for m in range(size_of(inner)):
                own = term.format(*(_operand(g.seen(f[k, m : m + 1]), w) for g, f in zip(grids, flat, strict=True)))
                found = update.format(found, own) if found else own
                if "{0} > " in update and m:  # an extremum reads what it has so far several times
                    name = next(w.fresh)
                    w.line(w.language.scalar.format(name=name, value=found))
                    found = name
            w.line(
                f"{w.text(place, k)} = {found};"
                if node.shape
                else w.language.scalar.format(name=place.base, value=found)
            )
        return place
    start = [g.seen(g.index.reshape(*outer, -1)[..., 0]) for g in grids]
    if not node.shape:
        w.line(w.language.variable.format(name=place.base, value=w.language.number(0.0)))
    counters = w.loops(outer)
    target = w.counted(place, counters) if node.shape else place.base
    extremum = "{0} > " in update or "{0} < " in update
    first = "" if not extremum else term.format(*(w.counted(g, counters) if outer else w.text(g, 0) for g in start))
    neutral = first if extremum else w.language.number(1.0 if "*" in update else 0.0)
    w.line(f"{target} = {neutral};")
    more = w.loops(inner)
    own = term.format(*(w.counted(g.seen(g.index.reshape(*outer, *inner)), [*counters, *more]) for g in grids))
    if extremum:
        w.line(w.language.scalar.format(name=(name := next(w.fresh)), value=own))
        own = name
    w.line(f"{target} = {update.format(target, own)};")
    w.close(inner)
    w.close(outer)
    return place


def _operand(place: Place, w: LoopWriter) -> str:
    text = w.text(place, 0)
    return text if place.level == _ATOM else f"({text})"


def _reduction(update: str) -> StructuralRule:
    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        outer, inner, index = _split(node, args[0].index, node.settings[0])
        return _fold(w, node, (outer, inner), [args[0].seen(index)], update, "{}")

    return rule


def _contraction(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    first, second, result = labels(node)
    sizes: dict[object, int] = {}
    for own, a in zip((first, second), node.args, strict=True):
        for label, n in zip(own, a.shape, strict=True):
            sizes[label] = max(n, sizes.get(label, 1))
    summed = [label for label in dict.fromkeys([*first, *second]) if label not in result]
    order = [*result, *summed]
    shape = tuple(sizes[label] for label in order)
    grids = []
    for own, place in zip((first, second), args, strict=True):
        index = place.index.transpose([list(own).index(label) for label in order if label in own])
        index = np.expand_dims(index, tuple(i for i, label in enumerate(order) if label not in own))
        grids.append(place.seen(np.broadcast_to(index, shape)))
    cut = len(result)
    if not summed:
        return _fold(w, node, (shape, (1,)), [g.seen(g.index[..., None]) for g in grids], "{} + {}", "{}*{}")
    return _fold(w, node, (shape[:cut], shape[cut:]), grids, "{} + {}", "{}*{}")


def _copies(w: LoopWriter, place: Place, parts: Iterator[tuple[Array, Place]], sign: str) -> Place:
    for index, part in parts:
        for target, value in w.each(index.shape, [place.seen(index), part]):
            w.line(f"{target} {sign} {value};")
    return place


def _joined(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    (axis,) = node.settings
    place = w.taken(node)

    def parts() -> Iterator[tuple[Array, Place]]:
        start = 0
        for arg in args:
            if node.op == "stack":
                yield np.take(place.index, start, axis), arg
                start += 1
            else:
                stop = start + arg.index.shape[axis]
                yield np.take(place.index, range(start, stop), axis), arg
                start = stop

    return _copies(w, place, parts(), "=")


def _moved(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    """Write a copy: of a number that stands in zeros."""
    move = OPERATIONS[node.op].move
    assert move is not None
    place = w.taken(node)
    index = move(*node.settings, args[0].index[..., None] + 1)[..., 0] - 1
    return _copies(w, place, iter([(place.index, args[0].seen(np.asarray(index)))]), "=")


def _zeros(w: LoopWriter, node: Node) -> Place:
    place = w.taken(node)
    zero = Place(w.language.number(0.0), np.zeros((), dtype=int), True)
    return _copies(w, place, iter([(place.index.reshape(-1), zero.seen(np.zeros(node.size, dtype=int)))]), "=")


def _scatter(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    place = _zeros(w, node)
    keys = node.settings[1]
    return _copies(w, place, ((np.asarray(place.index[basic(k)]), a) for k, a in zip(keys, args, strict=True)), "+=")


def _put(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    axis, places, _ = node.settings
    place = _zeros(w, node)
    return _copies(w, place, iter([(place.index.take(places.numbers, axis=axis), args[0])]), "+=")


def _scan(update: str) -> StructuralRule:
    """Return what writes running results: each is made of the one before it and the next element."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        (axis,) = node.settings
        place = w.taken(node)
        out, x = place.index, args[-1].index
        first = np.take(out, 0, axis), args[-1].seen(np.take(x, 0, axis))
        _copies(w, place, iter([first]), "=")
        for k in range(1, node.shape[axis]):
            here, before = (np.take(out, i, axis) for i in (k, k - 1))
            own = [place.seen(here), place.seen(before), args[-1].seen(np.take(x, k, axis))]
            own += [args[0].seen(np.take(args[0].index, k - 1, axis))] * (len(args) > 1)
            for target, *texts in w.each(here.shape, own):
                w.line(f"{target} = {update.format(*texts)};")
        return place

    return rule


def _argument(better: str, mask: bool) -> StructuralRule:
    """Return what writes where the first extremum stands along an axis, as a number or as a mask."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        (axis,) = node.settings
        x = np.moveaxis(args[0].index, axis, -1)
        place = w.taken(node) if node.shape else None
        for k, own in enumerate(x.reshape(-1, x.shape[-1])):
            best, value = next(w.fresh), next(w.fresh)
            w.line(w.language.variable.format(name=value, value=args[0].at(int(own[0]))))
            w.line(w.language.variable.format(name=best, value=w.language.number(0.0)))
            for j in range(1, len(own)):
                test = better.format(args[0].at(int(own[j])), value)
                w.line(
                    f"if ({test}) {{ {value} = {args[0].at(int(own[j]))}; {best} = {w.language.number(float(j))}; }}"
                )
            if place is None:
                return Place(best, np.zeros((), dtype=int), True)
            if mask:
                line = np.moveaxis(place.index, axis, -1).reshape(-1, x.shape[-1])[k]
                for j, element in enumerate(line):
                    w.line(f"{place.at(int(element))} = ({best} == {w.language.number(float(j))}) ? 1 : 0;")
            else:
                w.line(f"{place.at(int(place.index.reshape(-1)[k]))} = {best};")
        assert place is not None
        return place

    return rule


_GREATER = "{0} > {1} || ({0} != {0} && {1} == {1})"
_LESS = "{0} < {1} || ({0} != {0} && {1} == {1})"

STRUCTURAL: dict[str, StructuralRule] = {
    "sum": _reduction("{} + {}"),
    "prod": _reduction("{}*{}"),
    "max": _reduction("({0} > {1} || {0} != {0} ? {0} : {1})"),
    "min": _reduction("({0} < {1} || {0} != {0} ? {0} : {1})"),
    "matmul": _contraction,
    "einsum": _contraction,
    "concatenate": _joined,
    "stack": _joined,
    "scatter": _scatter,
    "put": _put,
    **dict.fromkeys(("from_diagonal", "triu", "tril", "take"), _moved),
    **dict.fromkeys(("transpose", "reshape", "broadcast", "index", "diagonal", "cast"), _moved),
    "cumsum": _scan("{0} + {1}"),
    "cumprod": _scan("{0}*{1}"),
    "recurrence": _scan("{1} + {2}*{0}"),
    "argmax": _argument(_GREATER, False),
    "argmin": _argument(_LESS, False),
    "argmax_mask": _argument(_GREATER, True),
    "argmin_mask": _argument(_LESS, True),
}
# Those that loops over numbers do not say: orders, and the linear algebra of large matrices.
_ORDERS = "sort argsort take_along put_along median argmedian_mask"
_MATRICES = "det inv solve cofactors prod_others"  # of which the small ones are written out
NOT_IN_LOOPS = frozenset([*_ORDERS.split(), *_MATRICES.split()])
