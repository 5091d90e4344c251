"""The table of slips: the ways in which a local derivative, or a value in it, is written wrong.

A slip is a change of one node of a formula.  `edits` has those of each operation, `wrong_slopes` those of a local
derivative as a whole, and `Quantities` what is written in the place of a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from gradcli.errors import InputError
from gradcli.graph.construct import broadcast, call, index, matmul, reduce, reshape, swap
from gradcli.graph.graph import computed_from
from gradcli.graph.matrices import inv
from gradcli.graph.names import ElementName
from gradcli.graph.node import Exact, Node, const, is_const, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, broadcast_shapes

_OTHERS = 8  # named quantities of a shape that are tried for each other
_INNER = 12  # operations within a value that has no name
# Functions that are taken for each other, and whose derivatives are.
_FAMILIES = (
    ("sin", "cos", "tan"), ("sinh", "cosh"), ("tanh", "sigmoid", "tan", "sech"), ("exp", "log"),
    ("asin", "acos", "atan"), ("atan", "atanh", "asinh"), ("sigmoid", "softplus", "relu"), ("maximum", "minimum"),
    ("erf", "exp"),
)  # fmt: skip
_INDEX = {1: "index ahead", -1: "index behind"}


class Edit(NamedTuple):
    """A change of a node: the kind of the slip, what is written in the node's place, and how surprising that is."""

    kind: str
    new: Node
    cost: float


def edits(node: Node) -> Iterator[Edit]:
    """Yield the slips in one node.

    >>> from gradcli.graph.node import leaf
    >>> x, z = leaf(), leaf()
    >>> [(edit.kind, edit.new.op) for edit in edits(x - z)]
    [('inner sign', 'add'), ('term', 'input'), ('term', 'neg'), ('term', 'input')]
    """
    for kind, new, cost in (*_of_operation(node), *_of_any(node)):
        whole = _fitted(new, node.shape)
        if whole is not None and whole is not node:
            yield Edit(kind, whole, cost)


def _fitted(new: Node | Exact, shape: Shape) -> Node | None:
    """Return a node in a shape that it broadcasts to, or None."""
    new = lift(new)
    try:
        return broadcast(new, shape) if broadcast_shapes([new.shape, shape]) == shape else None
    except InputError:
        return None


Written = Iterator[tuple[str, Node | Exact, float]]


def _of_operation(node: Node) -> Written:
    match node.op, node.args:
        case "neg", (a,):
            yield "inner sign", a, 1.1
        case "add", (a, b):
            yield from (("inner sign", a - b, 1.1), ("term", a, 1.2), ("term", b, 1.2))
        case "sub", (a, b):
            yield from (("inner sign", a + b, 1.1), ("term", a, 1.2), ("term", -b, 1.2), ("term", b, 1.25))
        case "mul", (a, b):
            yield from (("factor", b, 1.2), ("factor", a, 1.2), ("inverted", a / b, 1.6))
            if _is_square(a) and _is_square(b):
                yield "@ for *", matmul(a, b), 1.5
        case "div", (a, b):
            yield from (("factor", a, 1.2), ("inverted", a * b, 1.3))
            if not is_const(a, 1):
                yield "factor", 1 / b, 1.3
        case "pow", (a, n) if n.is_constant:
            yield "power", a, 1.2
            yield from (("power", a ** (n + k), 1.2 + 0.1 * abs(k)) for k in (1, -1, 2, -2))
        case "matmul", (a, b):
            if a.shape == b.shape == node.shape:
                yield from (("transposed", matmul(b, a), 1.3), ("* for @", a * b, 1.4))
            yield from (("factor", a, 1.3), ("factor", b, 1.3))
        case "outer", _:
            yield "transposed", swap(node), 1.3
        case "cofactors", (a,):  # of a determinant, which is missing as a factor
            yield from (("factor", swap(inv(a)), 1.3), ("factor", inv(a), 1.4))
        case "transpose", (a,):
            yield "transposed", a, 1.2
        case (("where" | "corner"), (_, a, b)):
            yield from (("branch", a, 1.3), ("branch", b, 1.3))
        case (("maximum" | "minimum"), (a, b)):
            yield from (("branch", a, 1.3), ("branch", b, 1.3))
        case (("sum" | "mean"), (x,)):
            yield from _of_sums(node, x)
        case "reshape", (x,) if x.op in ("sum", "mean"):
            for kind, new, cost in _of_sums(x, *x.args):
                yield kind, reshape(lift(new), node.shape) if lift(new).size == node.size else new, cost
        case (("index" | "scatter"), (x,)):
            yield from _of_indices(node, x)


def _of_sums(node: Node, x: Node) -> Written:
    """Yield a sum over another axis, and the mean for a sum."""
    (axes, *_) = node.settings
    yield "mean", reduce("mean" if node.op == "sum" else "sum", x, axes), 1.4
    if len(axes) == 1:
        yield from (("axis", reduce(node.op, x, (k,)), 1.2) for k in range(len(x.shape)) if k != axes[0])


def _of_indices(node: Node, x: Node) -> Written:
    """Yield the elements beside those at an index."""
    shape = x.shape if node.op == "index" else node.shape
    *rest, key = node.settings if node.op == "index" else (node.settings[0], *node.settings[1])
    for axis, step in product(range(len(key)), (1, -1)):
        k = key[axis]
        moved = range(k.start + step, k.stop + step, k.step) if isinstance(k, range) else (k or 0) + step
        ends = (moved[0], moved[-1]) if isinstance(moved, range) and moved else (moved, moved)
        whole = k is None or (isinstance(k, range) and len(k) in (0, shape[axis]))
        if not whole and all(isinstance(j, int) and 0 <= j < shape[axis] for j in ends):
            other = (*key[:axis], moved, *key[axis + 1 :])
            new = index(x, other) if node.op == "index" else replace(node, settings=(*rest, (other,)))
            yield _INDEX[step], new, 1.3


def _of_any(node: Node) -> Written:
    """Yield the argument of a function, a function that it is taken for, and a transpose."""
    if _is_square(node) and node.op != "transpose" and not node.is_constant:
        yield "transposed", swap(node), 1.3
    if not node.args or node.dtype == "bool":
        return
    row = OPERATIONS[node.op]
    if len(node.args) == 1 and row.kind in ("elementwise", "step", "along", "whole", "scan", "matrix"):
        yield "function", node.args[0], 1.2
    if row.broadcasts:
        for f in _neighbours(node.op):
            if len(OPERATIONS[f].slopes) == len(node.args):
                yield "neighbour", call(f, *node.args), 1.4


def _neighbours(op: str) -> list[str]:
    """Return the functions that one is taken for."""
    return [f for family in _FAMILIES if op in family for f in family if f != op]


def _is_square(node: Node) -> bool:
    return len(node.shape) == 2 and node.shape[0] == node.shape[1]  # rows and columns


def wrong_slopes(node: Node, position: int, slope: Node) -> Iterator[Edit]:
    """Yield local derivatives of an elementwise operation that are wrong as a whole.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> square = x**2
    >>> [edit.kind for edit in wrong_slopes(square, 0, 2 * x)][:4]
    ['left out', 'inverted', 'power', 'power']
    """
    if slope.is_constant and slope.value in (1, -1):
        return
    yield Edit("left out", const(1), 1.0)
    yield Edit("inverted", 1 / slope, 1.4)
    match node.op, node.args, position:
        case "pow", (a, n), 0 if n.is_constant:
            yield Edit("power", n * node, 1.1)
            yield Edit("power", a ** (n - 1), 1.05)
            yield Edit("power", n * a ** (n + 1), 1.2)
            yield Edit("power", n * a ** (n - 2), 1.3)
        case "sqrt", _, _:
            yield Edit("power", node / 2, 1.1)
            yield Edit("power", 1 / node, 1.05)
    if len(node.args) > 1:
        yield from (Edit("value", a, 1.4) for a in node.args if a is not slope and not a.is_constant)
    elif not slope.is_constant:
        yield from _of_functions(node, node.args[0], slope)


def _of_functions(node: Node, x: Node, slope: Node) -> Iterator[Edit]:
    """Yield the derivatives of functions that one is taken for, by its argument or its value, and these functions."""
    yield Edit("not differentiated", node, 1.2)
    for f in _neighbours(node.op):
        value, row = call(f, x), OPERATIONS[f]
        if len(row.slopes) == 1:
            for new in (value, lift(row.slopes[0](value, x)), lift(row.slopes[0](node, x))):
                yield Edit("neighbour", new, 1.3)
                yield Edit("neighbour", -new, 1.35)
    yield Edit("neighbour", -(slope**2), 1.6)  # of log, -1/x**2
    yield Edit("value", lift(OPERATIONS[node.op].slopes[0](call(node.op, node), node)), 1.3)  # at the value
    if node.op == "erf":
        yield Edit("factor", call("exp", -(x**2)), 1.2)
    if node.op == "exp":  # as if it were a power
        yield Edit("power", x * call("exp", x - 1), 1.3)


@dataclass(frozen=True, eq=False)
class Quantities:
    """What a system computes, and what is called by a name; an element of an array may have several.

    Named `constants` are not taken for other quantities: they have values and units of their own.
    """

    nodes: tuple[Node, ...]
    named: Mapping[str, Node]
    constants: frozenset[Node] = frozenset()

    @cached_property
    def names(self) -> dict[Node, str]:
        """The first name of each node, an array's before that of an element."""
        ordered = sorted(self.named.items(), key=lambda item: isinstance(item[0], ElementName))
        return {n: name for name, n in reversed(ordered)}

    @cached_property
    def _elements(self) -> dict[Node, list[ElementName]]:
        result: dict[Node, list[ElementName]] = {}
        for name, n in self.named.items():
            if isinstance(name, ElementName):
                result.setdefault(n, []).append(name)
        return result

    def edits(self, value: Node) -> Iterator[Edit]:
        """Yield what is written in the place of a value of the system, or of a part of it that has no name."""
        yield from edits(value)
        for n in self.nodes:
            if n.args == (value,) and OPERATIONS[n.op].broadcasts and n.dtype != "bool":
                yield Edit("value", n, 1.3)
        for name in self._elements.get(value, ()):
            yield from (Edit(_INDEX[step], n, 1.3) for step, n in self._beside(name) if n is not value)
        if value in self.names and value not in self._elements and value not in self.constants:
            others = self.names.keys() - self._elements.keys() - self.constants - {value}
            alike = [n for n in self.names if n in others and n.shape == value.shape and not n.is_constant]
            yield from (Edit("value", n, 1.5) for n in alike[:_OTHERS])

    def _beside(self, name: ElementName) -> Iterator[tuple[int, Node]]:
        """Yield the elements of an array whose index is one off."""
        key = [int(k) for k in name.key.split(",")]
        for axis in range(len(key)):
            for step in (1, -1):
                other = ",".join(str(k + step * (i == axis)) for i, k in enumerate(key))
                if (n := self.named.get(f"{name.array}[{other}]")) is not None:
                    yield step, n

    def parts(self, value: Node) -> list[Node]:
        """Return a value, the operations in it that have no name, and, of one without a name, what these read."""
        inner = computed_from(self.names.keys() - {value}, [value])
        read = dict.fromkeys(a for n in inner for a in n.args if a in self.names and value not in self.names)
        return [*(n for n in reversed(inner) if n.args), *read][:_INNER] if inner[-1].args else [value]
