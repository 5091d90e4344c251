"""A function of small arrays as one of numbers: each element is a node, zeros and repetitions are left out.

What structure makes zero is zero, whatever it is multiplied by: the zeros beside a one in a cotangent, those of an
array of numbers, those around what a slice passes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from gradcli.graph.array import Array, objects
from gradcli.graph.dtypes import DType
from gradcli.graph.einsum import products
from gradcli.graph.graph import scheduled
from gradcli.graph.node import ARITHMETIC, Node, Rule, const, is_const, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import SIGNS, Rewriter
from gradcli.graph.shapes import Shape
from gradcli.loops.rules import RULES, Counter, IndexMap

SMALL = 32  # elements of an array that is written out
MAX_UNROLLED = 20_000  # steps that are looked at, and
MAX_WRITTEN = 3_000  # of which so many are written at most
ZERO = const(0)  # what structure makes zero


@dataclass(frozen=True)
class Unrolled:
    """A function of numbers: its results, its steps in order, and what each node was in its elements.

    A result is a node `elements`, whose arguments are its elements row after row.
    """

    results: dict[str, Node]
    nodes: tuple[Node, ...]
    elements: dict[Node, Array]


def in_elements(results: Mapping[str, Node]) -> Unrolled | None:
    """Return a function in the elements of its arrays; None where they are too many, or an operation has no formula.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> in_elements({"y": 3 * x}).results["y"].args
    (mul(const, index), shape (), mul(const, index), shape ())
    """
    nodes = scheduled(results.values())
    if not all(map(_is_small, nodes)) or sum(map(_steps, nodes)) > MAX_UNROLLED:
        return None
    elements = _Elements()
    for node in nodes:
        elements.done[node] = elements.elements(node)
    result = {
        name: Node("elements", tuple(elements.done[n].flat), n.shape) if n.shape else elements.done[n].item()
        for name, n in results.items()
    }
    read = set(scheduled(result.values()))
    if len(read) > MAX_WRITTEN:
        return None
    order = [n for n in [*elements.inputs, ZERO, *elements.rewriter.first.values()] if n in read]
    return Unrolled(result, tuple(dict.fromkeys([*order, *result.values()])), elements.done)


def _is_small(node: Node) -> bool:
    """Return whether a node's elements are made one by one, and are not too many."""
    if not node.args or (row := OPERATIONS[node.op]).move is not None:
        return True
    return (row.broadcasts or node.op in RULES) and node.size <= SMALL and _steps(node) <= 4 * SMALL


def _steps(node: Node) -> int:
    if node.args and OPERATIONS[node.op].kind == "contraction":
        return products(node)
    return max((a.size for a in node.args), default=node.size) if not node.is_leaf else 0


class _Elements:
    """Makes the elements of nodes, each operation on the same numbers once."""

    def __init__(self) -> None:
        self.rewriter = Rewriter(definitions=_SIMPLER)
        self.done: dict[Node, Array] = {}
        self.inputs: list[Node] = []
        self.plus = np.frompyfunc(lambda a, b: self.make("add", self.node(a), self.node(b)), 2, 1)

    def node(self, value: Any) -> Node:
        """Return an element of an array; the number 0, which fills new arrays, is the zero."""
        return value if isinstance(value, Node) else ZERO

    def elements(self, node: Node) -> Array:
        """Return the elements of a node, from those of its arguments."""
        if node.is_leaf:
            self.inputs.append(node)
            keys = list(np.ndindex(node.shape))
            return objects(
                [self.make("index", node, settings=(k,)) for k in keys] if node.shape else [node], node.shape
            )
        if node.is_constant:
            values = node.values if len(node.values) > 1 else node.values * node.size
            return objects([self.constant(v, node) for v in values], node.shape)
        args = [self.done[a] for a in node.args]
        row = OPERATIONS[node.op]
        if row.broadcasts:
            nodes = [self.make(node.op, *operands, dtype=node.dtype) for operands in np.broadcast(*args)]
            return objects(nodes, node.shape)
        if row.move is not None:
            moved = row.moved(node.settings, *args, join=self.plus)
            return objects([self.node(v) for v in np.asarray(moved, dtype=object).flat], node.shape)
        out = _Cells(np.arange(node.size).reshape(node.shape), np.full(node.size, ZERO))
        cells = (_Cells(np.arange(a.size).reshape(a.shape), a.reshape(-1)) for a in args)
        RULES[node.op](self, node, out, *cells)
        return out.nodes.reshape(node.shape)

    def constant(self, value: Any, node: Node) -> Node:
        """Return a number; a zero of an array is the zero."""
        if node.shape and value == 0:
            return ZERO
        return self.rewriter.unique(const(value, (), node.dtype))

    def make(self, op: str, *args: Node, settings: tuple[Any, ...] = (), dtype: DType = "float64") -> Node:
        """Return the node of an operation on numbers, the one that there is already, or a simpler one."""
        return self.rewriter.node(Node(op, args, (), settings, dtype))

    # The loop form, with all loops written out

    def nest(self, shape: Shape, body: Callable[[list[Counter]], None], unroll: bool = False) -> None:
        """Run the body for each element."""
        for k in np.ndindex(shape):
            body(list(k))

    def fold(self, shape: Shape, starts: tuple[Node, ...], step: Callable[..., tuple[Node, ...]]) -> tuple[Node, ...]:
        """Return the values after all steps."""
        return reduce(lambda values, k: step(list(k), *values), np.ndindex(shape), starts)

    def total(self, shape: Shape, factors: Callable[[list[Counter]], Sequence[Node]]) -> Node:
        """Return the sum of products."""
        products = (reduce(partial(self.make, "mul"), factors(list(k))) for k in np.ndindex(shape))
        return reduce(partial(self.make, "add"), products, ZERO)

    def load(self, array: _Cells, counters: Sequence[Counter]) -> Node:
        """Return an element."""
        node: Node = array.nodes[array.offset(counters)]
        return node

    def store(self, array: _Cells, counters: Sequence[Counter], value: Node) -> None:
        """Set an element."""
        array.nodes[array.offset(counters)] = value

    def number(self, value: float) -> Node:
        """Return a constant."""
        return self.position(int(value))

    def position(self, counter: Counter) -> Node:
        """Return an index as a number."""
        return self.constant(counter, ZERO)

    def op(self, op: str, *values: Node) -> Node:
        """Return an elementwise operation."""
        dtype: DType = "bool" if op in _CONDITIONS else "float64"
        return self.make(_NAMES.get(op, op), *values, dtype=dtype)

    def let(self, value: Node) -> Node:
        """Return a value: it is the same node each time."""
        return value


_NAMES = {"max": "maximum", "min": "minimum"}  # of operations, by those of the loop form
_CONDITIONS = ("eq", "exceeds", "undercuts")


@dataclass(frozen=True)
class _Cells(IndexMap):
    """An array whose elements are nodes."""

    nodes: Array

    def offset(self, counters: Sequence[Any]) -> int:
        """Return the index of an element among the nodes; an axis of one element has the counter 0."""
        aligned = zip(counters[len(counters) - self.index.ndim :], self.index.shape, strict=True)
        return int(self.index[tuple(0 if n == 1 else k for k, n in aligned)])


# Arithmetic


def _zeros(op: str, arithmetic: Rule, node: Node) -> Node | None:
    """Return an operation without what structure makes zero, by arithmetic and signs; None where it stays."""
    if ZERO in node.args and (known := _OF_ZERO[op](*node.args)) is not None:
        return known
    return arithmetic(node) or SIGNS.get(op, _unchanged)(node)


def _unchanged(node: Node) -> None:
    """Return None: the node stays as it is."""


def _minus(node: Node) -> Node | None:
    """Return 0 − b as −b, and (−a) − b as −(a + b)."""
    a, b = node.args
    if is_const(a, 0):
        return -b
    simpler = ARITHMETIC["sub"](node) or SIGNS["sub"](node)
    positive = operand(a, "neg") if simpler is None else None
    return simpler if positive is None else -Node("add", (positive, b))


def _where(node: Node) -> Node | None:
    condition, a, b = node.args
    if condition.args == (a, b) and (extremum := _EXTREMA.get(condition.op)):
        return Node(extremum, (b, a))
    if is_const(a, 0) and is_const(b, 0) and ZERO in (a, b):
        return ZERO
    return a if a is b else None


_EXTREMA = {"exceeds": "maximum", "undercuts": "minimum"}  # the operation that chooses by each comparison
_OF_ZERO: dict[str, Callable[..., Node | None]] = {
    "add": lambda a, b: b if a is ZERO else a,
    "sub": lambda a, b: -b if a is ZERO else a,
    "mul": lambda a, b: ZERO,
    "div": lambda a, b: ZERO if a is ZERO else None,
    "neg": lambda a: ZERO,
    "pow": lambda a, b: ZERO if isinstance(b.value, int) and b.value > 0 else None,
}
_SIMPLER: dict[str, Rule] = {
    **{op: partial(_zeros, op, rule) for op, rule in (ARITHMETIC | {"sub": _minus}).items()},
    "where": _where,
    "identity": lambda node: node.args[0],
    **dict.fromkeys(("maximum", "minimum"), lambda node: node.args[0] if node.args[0] is node.args[1] else None),
}
