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
from gradcli.graph.einsum import aligned, products
from gradcli.graph.graph import scheduled
from gradcli.graph.node import ARITHMETIC, Node, Rule, const, is_const, operand
from gradcli.graph.operations import JOINS, OPERATIONS
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.signs import SIGNS

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
    return (row.broadcasts or node.op in _RULES) and node.size <= SMALL and _steps(node) <= 4 * SMALL


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
        return _RULES[node.op](self, node, args)

    def constant(self, value: Any, node: Node) -> Node:
        """Return a number; a zero of an array is the zero."""
        if node.shape and value == 0:
            return ZERO
        return self.rewriter.unique(const(value, (), node.dtype))

    def make(self, op: str, *args: Node, settings: tuple[Any, ...] = (), dtype: DType = "float64") -> Node:
        """Return the node of an operation on numbers, the one that there is already, or a simpler one."""
        return self.rewriter.node(Node(op, args, (), settings, dtype))


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
    _, a, b = node.args
    if is_const(a, 0) and is_const(b, 0) and ZERO in (a, b):
        return ZERO
    return a if a is b else None


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
}


# Structure


def _folded(op: str, elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
    axes = node.settings[0]
    lines = np.moveaxis(args[0], axes, range(-len(axes), 0)).reshape(node.size, -1)
    return objects([reduce(lambda a, b: elements.make(op, a, b), line) for line in lines], node.shape)


def _scan(op: str, elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
    return _along(node, args, lambda before, x: elements.make(op, before, x))


def _recurrence(elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
    return _along(node, args, lambda before, x, a: elements.make("add", x, elements.make("mul", a, before)))


def _along(node: Node, args: Sequence[Array], step: Callable[..., Node]) -> Array:
    """Return a scan along an axis: `step` gets the element before, the one here, and the coefficient between them."""
    (axis,) = node.settings
    *coefficients, rows = (np.moveaxis(a, axis, 0) for a in args)
    result = [rows[0]]
    for k, x in enumerate(rows[1:]):
        elements = np.broadcast(result[-1], x, *(a[k] for a in coefficients))
        result.append(objects([step(*e) for e in elements], x.shape))
    return np.moveaxis(np.stack(result), 0, axis)


def _contraction(elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
    terms = np.broadcast(*aligned(node, args))
    products = objects([elements.make("mul", a, b) for a, b in terms], terms.shape).reshape(node.size, -1)
    return objects([reduce(lambda a, b: elements.make("add", a, b), line) for line in products], node.shape)


def _first_extremum(better: str, best: str, elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
    """Return the index of the first extremum along an axis."""
    lines = np.moveaxis(args[0], node.settings[0], -1)
    indices = [_index(elements, line, better, best) for line in lines.reshape(-1, lines.shape[-1])]
    return objects(indices, lines.shape[:-1])


def _index(elements: _Elements, line: Array, better: str, best: str) -> Node:
    index, value = _integer(elements, 0), line[0]
    for k, x in enumerate(line[1:], 1):
        index = elements.make("where", elements.make(better, x, value, dtype="bool"), _integer(elements, k), index)
        value = elements.make(best, value, x)
    return index


def _mask(first: Callable[..., Array]) -> Callable[..., Array]:
    """Return the rule of the one-hot mask of the first extremum along an axis."""

    def rule(elements: _Elements, node: Node, args: Sequence[Array]) -> Array:
        (axis,) = node.settings
        indices = first(elements, node, args)
        masks = [
            [elements.make("eq", i, _integer(elements, k), dtype="bool") for i in indices.flat]
            for k in range(node.shape[axis])
        ]
        return np.stack([objects(mask, indices.shape) for mask in masks], axis)

    return rule


def _integer(elements: _Elements, k: int) -> Node:
    return elements.constant(k, const(0))


_GREATEST, _LEAST = partial(_first_extremum, "exceeds", "maximum"), partial(_first_extremum, "undercuts", "minimum")


_RULES: dict[str, Callable[..., Array]] = {
    **{op: partial(_folded, name) for op, name in JOINS["reduction"].items()},
    **{op: partial(_scan, name) for op, name in JOINS["scan"].items()},
    "recurrence": _recurrence,
    **dict.fromkeys(("matmul", "einsum"), _contraction),
    "argmax": _GREATEST, "argmin": _LEAST, "argmax_mask": _mask(_GREATEST), "argmin_mask": _mask(_LEAST),
}  # fmt: skip
