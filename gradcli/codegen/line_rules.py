"""Sorting, medians and linear algebra: a line of an array, or a matrix, is copied and passed to a helper function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gradcli.codegen.loops import LoopWriter
from gradcli.codegen.number_language import Elements, Value
from gradcli.errors import InputError
from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of
from gradcli.loops.rules import Counter, Rule, axes_of


@dataclass(frozen=True)
class Line:
    """The elements of an array along an axis, or a matrix, copied to a local array `name` of `size` numbers.

    `counters` are those of the loops.
    """

    w: LoopWriter
    name: str
    size: int
    counters: Sequence[Counter]

    def array(self, size: int) -> str:
        """Declare another array, and return its name."""
        name = next(self.w.fresh)
        self.w.line(self.w.language.array.format(name=name, size=size))
        return name

    def each(self, array: Elements, pattern: str) -> None:
        """Write a statement for each element along the last axis: {0} in it is the counter, {1} the element."""
        (counter,) = self.w.loops(array.index.shape[-1:])
        element = self.w.element(array, [*self.counters, counter])
        self.w.line(pattern.format(counter, element))
        self.w.close(array.index.shape[-1:])

    def copied(self, array: Elements) -> str:
        """Copy another line of as many numbers, and return the name of the copy."""
        name = self.array(array.index.shape[-1])
        self.each(array, f"{name}[{{0}}] = {{1}};")
        return name

    def call(self, name: str, *arguments: object) -> str:
        """Return a call of a function that the file brings along."""
        name = self.w.language.helper(name)
        self.w.called.add(name)
        return f"{name}({', '.join(map(str, arguments))})"

    def filled(self, size: int, name: str, *arguments: object) -> str:
        """Return the name of an array of a size that such a function fills, as its last argument."""
        result = self.array(size)
        self.w.line(f"{self.call(name, *arguments, result)};")
        return result

    def at(self, index: str) -> str:
        """Return the element of the line at an index, which is a number."""
        return f"{self.name}[{self.w.language.whole.format(index)}]"


def _joined(x: Elements, axes: Sequence[int]) -> Elements:
    """Return an array in which these axes are one, the last."""
    last = x.last(tuple(axes)).index
    return x.seen(last.reshape(*last.shape[: last.ndim - len(axes)], -1))


@contextmanager
def _line(w: LoopWriter, x: Elements) -> Iterator[Line]:
    """Open loops over all axes but the last one, and copy the line; the loops are closed in the end."""
    outer = x.index.shape[:-1]
    line = Line(w, next(w.fresh), x.index.shape[-1], w.loops(outer))
    w.line(w.language.array.format(name=line.name, size=line.size))
    line.each(x, f"{line.name}[{{0}}] = {{1}};")
    yield line
    w.close(outer)


def _number(axes: Callable[[Node], Sequence[int]], value: Callable[[Line], str]) -> Rule:
    """Return a rule that writes a number for each line."""

    def rule(w: LoopWriter, node: Node, out: Elements, x: Elements) -> None:
        with _line(w, _joined(x, axes(node))) as line:
            result = Value(value(line))
            w.store(out, line.counters, result if node.shape else w.let(result))

    return rule


def _numbers(axes: Callable[[Node], Sequence[int]], write: Callable[..., str]) -> Rule:
    """Return a rule that writes a line for each line: `write` returns the element at the counter {0}."""

    def rule(w: LoopWriter, node: Node, out: Elements, *args: Elements) -> None:
        x, *others = (_joined(a, axes(node)) for a in args)
        with _line(w, x) as line:
            line.each(_joined(out, axes(node)), f"{{1}} = {write(line, node, *others)};")

    return rule


def _matrix(node: Node) -> Sequence[int]:
    rank = len(node.args[0].shape)
    return (rank - 2, rank - 1)


def _rows(line: Line) -> int:
    return int(line.size**0.5 + 0.5)


# Order


def _middle(line: Line) -> str:
    return line.call("middle", line.size, line.name, line.array(line.size))


def _middle_mask(line: Line, node: Node) -> str:
    best, number = line.w.let(Value(_middle(line))).text, line.w.language.number
    return f"{{0}} == {best} ? {number(1.0)} : {number(0.0)}"


def _order(line: Line, node: Node) -> str:
    return line.filled(line.size, "argsort", line.size, int(node.settings[1]), line.name) + "[{0}]"


def _put_along(line: Line, node: Node, order: Elements) -> str:
    result = line.array(line.size)
    line.each(order, f"{result}[{line.w.language.whole.format('{1}')}] = {line.name}[{{0}}];")
    return f"{result}[{{0}}]"


# Matrices


def _cofactors(line: Line, node: Node) -> str:
    n = _rows(line)
    minor = line.array((n - 1) ** 2)
    return line.filled(line.size, "cofactors", n, line.name, minor) + "[{0}]"


def _solve(w: LoopWriter, node: Node, out: Elements, *args: Elements) -> None:
    stack = node.shape[:-2]
    a, b = (x.seen(np.broadcast_to(x.index, (*stack, *x.index.shape[-2:]))) for x in args)
    last = (len(stack), len(stack) + 1)
    with _line(w, _joined(a, last)) as line:
        result = line.copied(_joined(b, last))
        w.line(f"{line.call('solve_equations', _rows(line), line.name, size_of(node.shape[-1:]), result)};")
        line.each(_joined(out, last), f"{{1}} = {result}[{{0}}];")


def _without_lapack(w: LoopWriter, node: Node, *args: Elements) -> None:
    raise InputError(
        f"{w.language.name} has no function for `{node.op}`",
        hint="--to numpy, torch or jax writes it; or leave it out with --outputs",
    )


STRUCTURAL: dict[str, Rule] = {
    "argmedian_mask": _numbers(axes_of, _middle_mask),
    "median": _number(axes_of, lambda line: f"{line.name}[{_middle(line)}]"),
    "sort": _numbers(axes_of, lambda line, node: line.at(_order(line, node))),
    "argsort": _numbers(axes_of, _order),
    "take_along": _numbers(axes_of, lambda line, node, order: line.at(f"{line.copied(order)}[{{0}}]")),
    "put_along": _numbers(axes_of, _put_along),
    "det": _number(_matrix, lambda line: line.call("determinant", _rows(line), line.name)),
    "inv": _numbers(_matrix, lambda line, node: line.filled(line.size, "invert", _rows(line), line.name) + "[{0}]"),
    "cofactors": _numbers(_matrix, _cofactors),
    "solve": _solve,
    **dict.fromkeys(("eigvalsh", "eigvecsh", "svdvals", "svd_u", "svd_vh"), _without_lapack),
}
