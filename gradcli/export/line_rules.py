"""Structural operations on lines and matrices: each is copied out, and a function of the file works on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gradcli.export.loop_rules import StructuralRule
from gradcli.export.loops import LoopWriter, Place
from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of


@dataclass(frozen=True)
class Line:
    """A line of an array, or a matrix, inside of the loops over the others: `name` is the copy of its `size` numbers.

    `counters` are those of the loops.
    """

    w: LoopWriter
    name: str
    size: int
    counters: Sequence[str]

    def array(self, size: int) -> str:
        """Declare another array, and return its name."""
        name = next(self.w.fresh)
        self.w.line(self.w.language.array.format(name=name, size=size))
        return name

    def each(self, place: Place, pattern: str) -> None:
        """Write a line for each element of a place along its last axis: its counter is 0, the element 1."""
        (counter,) = self.w.loops(place.index.shape[-1:])
        element = self.w.counted(place, [*self.counters, counter])
        self.w.line(pattern.format(counter, element))
        self.w.close(place.index.shape[-1:])

    def copied(self, place: Place) -> str:
        """Copy another line of as many numbers, and return the name of the copy."""
        name = self.array(place.index.shape[-1])
        self.each(place, f"{name}[{{0}}] = {{1}};")
        return name

    def run(self, name: str, *arguments: object) -> None:
        """Write a call of a function that works on arrays."""
        self.w.line(f"{self.call(name, *arguments)};")

    def call(self, name: str, *arguments: object) -> str:
        """Return a call of a function that the file brings along."""
        return f"{self.w.language.helper(name)}({', '.join(map(str, arguments))})"


def _seen(x: Place, axes: Sequence[int]) -> Place:
    """Return a place with these axes as its last one."""
    turned = np.moveaxis(x.index, axes, range(-len(axes), 0))
    return x.seen(turned.reshape(*turned.shape[: turned.ndim - len(axes)], -1))


@contextmanager
def _line(w: LoopWriter, x: Place) -> Iterator[Line]:
    """Open loops over all axes but the last one, and copy the line; the loops are closed in the end."""
    outer = x.index.shape[:-1]
    line = Line(w, next(w.fresh), x.index.shape[-1], w.loops(outer))
    w.line(w.language.array.format(name=line.name, size=line.size))
    line.each(x, f"{line.name}[{{0}}] = {{1}};")
    yield line
    w.close(outer)


def _number(axes: Callable[[Node], Sequence[int]], value: Callable[[Line], str]) -> StructuralRule:
    """Return what writes a number for each line."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        place = w.taken(node) if node.shape else None
        with _line(w, _seen(args[0], axes(node))) as line:
            result = value(line)
            if place is None:
                return w.named(result, w.function.names.get(node))
            w.line(f"{w.counted(place, line.counters)} = {result};")
        return place

    return rule


def _numbers(axes: Callable[[Node], Sequence[int]], write: Callable[..., None]) -> StructuralRule:
    """Return what writes a line for each line: `write` has the line, that of the result, and the node."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        place = w.taken(node)
        x, *others = (_seen(a, axes(node)) for a in args)
        with _line(w, x) as line:
            write(line, _seen(place, axes(node)), node, *others)
        return place

    return rule


def _axis(node: Node) -> Sequence[int]:
    return (node.settings[0],)


def _axes(node: Node) -> Sequence[int]:
    return tuple(node.settings[0])


def _matrix(node: Node) -> Sequence[int]:
    rank = len(node.args[0].shape)
    return (rank - 2, rank - 1)


def _rows(line: Line) -> int:
    return int(line.size**0.5 + 0.5)


# Order


def _middle(line: Line) -> str:
    return line.call("middle", line.size, line.name, line.array(line.size))


def _mask(place: Callable[[Line], str]) -> Callable[..., None]:
    def write(line: Line, out: Place, node: Node) -> None:
        best = line.w.named(place(line)).base
        line.each(out, f"{{1}} = {{0}} == {best} ? {line.w.language.number(1.0)} : {line.w.language.number(0.0)};")

    return write


def _order(line: Line, node: Node) -> str:
    order = line.array(line.size)
    line.run("put_in_order", line.size, int(node.settings[1]), line.name, order)
    return order


def _sort(line: Line, out: Place, node: Node) -> None:
    place = line.w.language.whole.format(f"{_order(line, node)}[{{0}}]")
    line.each(out, f"{{1}} = {line.name}[{place}];")


def _argsort(line: Line, out: Place, node: Node) -> None:
    line.each(out, f"{{1}} = {_order(line, node)}[{{0}}];")


def _take_along(line: Line, out: Place, node: Node, order: Place) -> None:
    place = line.w.language.whole.format(f"{line.copied(order)}[{{0}}]")
    line.each(out, f"{{1}} = {line.name}[{place}];")


def _put_along(line: Line, out: Place, node: Node, order: Place) -> None:
    result = line.array(line.size)
    line.each(order, f"{result}[{line.w.language.whole.format('{1}')}] = {line.name}[{{0}}];")
    line.each(out, f"{{1}} = {result}[{{0}}];")


# Matrices


def _inv(line: Line, out: Place, node: Node) -> None:
    result = line.array(line.size)
    line.run("invert", _rows(line), line.name, result)
    line.each(out, f"{{1}} = {result}[{{0}}];")


def _cofactors(line: Line, out: Place, node: Node) -> None:
    n = _rows(line)
    minor, result = line.array((n - 1) ** 2), line.array(line.size)
    line.run("cofactors", n, line.name, minor, result)
    line.each(out, f"{{1}} = {result}[{{0}}];")


def _solve(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    place = w.taken(node)
    stack = node.shape[:-2]
    a, b = (x.seen(np.broadcast_to(x.index, (*stack, *x.index.shape[-2:]))) for x in args)
    last = (len(stack), len(stack) + 1)
    with _line(w, _seen(a, last)) as line:
        result = line.copied(_seen(b, last))
        line.run("solve_equations", _rows(line), line.name, size_of(node.shape[-1:]), result)
        line.each(_seen(place, last), f"{{1}} = {result}[{{0}}];")
    return place


STRUCTURAL: dict[str, StructuralRule] = {
    "argmax": _number(_axis, lambda line: line.call("greatest", line.size, line.name)),
    "argmin": _number(_axis, lambda line: line.call("least", line.size, line.name)),
    "argmax_mask": _numbers(_axis, _mask(lambda line: line.call("greatest", line.size, line.name))),
    "argmin_mask": _numbers(_axis, _mask(lambda line: line.call("least", line.size, line.name))),
    "argmedian_mask": _numbers(_axis, _mask(_middle)),
    "median": _number(_axes, lambda line: f"{line.name}[{_middle(line)}]"),
    "sort": _numbers(_axis, _sort),
    "argsort": _numbers(_axis, _argsort),
    "take_along": _numbers(_axis, _take_along),
    "put_along": _numbers(_axis, _put_along),
    "det": _number(_matrix, lambda line: line.call("determinant", _rows(line), line.name)),
    "inv": _numbers(_matrix, _inv),
    "cofactors": _numbers(_matrix, _cofactors),
    "solve": _solve,
}
