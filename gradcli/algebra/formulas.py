"""A graph as formulas: for every element of an output a SymPy expression in the elements of the leaves.

Formulas that would be too deep to read are cut: a named intermediate becomes a symbol of its own, and its
definition is kept beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sympy

from gradcli.algebra.display import READABLE
from gradcli.algebra.functions import apply, constant, extremum, symbol
from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.names import element_names, fresh_names
from gradcli.graph.node import Graph, Node, bits
from gradcli.graph.structural import STRUCTURAL

_WHOLE = 5_000  # operations in a formula that is differentiated, but not shown
_PART = 400  # the same, where it is not a sum, so that each derivative is about as long
_WORD = 64  # bits of a number that count as one operation
_MAX_DEPTH = 60  # SymPy recurses
_WHOLE_ALWAYS = frozenset(["input", "const", "argmax_mask", "argmin_mask"]) | {
    op
    for op, row in ELEMENTWISE.items()
    if row.infix and row.constant  # a condition is not a value
}
_MOVEMENT = frozenset(["identity", "index", "reshape", "transpose", "scatter", "stack", "concatenate", "from_diagonal"])

Exprs = np.ndarray[Any, Any]  # of SymPy expressions


class TooDeepError(Exception):
    """The formulas of this graph have to be cut."""


@dataclass
class Formulas:
    """Expressions of the outputs, and the definitions of the intermediates that stand in them, in order."""

    outputs: list[Exprs]
    definitions: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)


class Limits(NamedTuple):
    """From how many operations on a formula stands under a name: a named node's, one's that is read again, any other's.

    What is shown itself is not cut before it is unreadable.
    """

    named: int = 3
    again: int = 8
    other: int = 20


def formulas(
    graph: Graph,
    names: Mapping[Node, str],
    given: Mapping[Node, Exprs] | None = None,
    cut: Limits | None = None,
) -> Formulas:
    """Return the formulas of the outputs, arrays of their shapes.

    A node in `names` stands for itself, unless it is small.  With `cut`, other nodes too, under new names; without, a
    graph too deep to be written out raises `TooDeepError`.  `given` holds formulas to use for nodes as they are.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf("x", (2,))
    >>> formulas(Graph.of([x], [(3 * x**2).called("y")]), {}).outputs[0].tolist()
    [3*x[0]**2, 3*x[1]**2]
    """
    return _Interpreter(graph, names, given or {}, cut).run()


class _Interpreter:
    """Runs the graph on arrays of expressions; remembers how large each expression is."""

    def __init__(
        self, graph: Graph, names: Mapping[Node, str], given: Mapping[Node, Exprs], cut: Limits | None
    ) -> None:
        self.graph = graph
        self.cut = cut
        self.limits = cut or Limits()
        self.given = given
        self.names = names
        self.sizes: dict[Any, tuple[int, int]] = {}
        self.readers = Counter(a for n in graph.nodes for a in n.args)
        self.final = _final(graph)
        self.bounds: dict[Node, int] = {}
        self.definitions: dict[sympy.Symbol, sympy.Expr] = {}
        self.fresh = fresh_names({n.name for n in graph.nodes if n.name} | set(names.values()))

    def run(self) -> Formulas:
        values: dict[Node, Exprs] = {}
        for node in self.graph.nodes:
            if node in self.given:
                values[node] = self.given[node]
                continue
            result = self.interpret(node, [values[a] for a in node.args])
            if node.op not in _WHOLE_ALWAYS:
                result = self.bounded(node, result)
            values[node] = result
        return Formulas([values[n] for n in self.graph.outputs], self.definitions)

    def interpret(self, node: Node, args: list[Exprs]) -> Exprs:
        if node.op == "input":
            return symbols(node, node.name or "")
        if node.op == "const":
            return _array([constant(node.params[0])] * node.size, node)
        if node.op == "corner":
            return _array([f if c != 1 else a for c, a, f in zip(*_flat(node, args), strict=True)], node)
        if node.op in ELEMENTWISE:
            return _array([apply(node.op, *elements) for elements in zip(*_flat(node, args), strict=True)], node)
        if node.op in ("max", "min"):
            return _extremum(node, args[0])
        if node.op in ("argmax_mask", "argmin_mask"):
            return _first_mask(node, args[0])
        if node.op in ("sum", "prod"):
            combine = sympy.Add if node.op == "sum" else sympy.Mul
            return _array([combine(*column) for column in _columns(node, args[0])], node)
        row = STRUCTURAL[node.op]
        if row.definition is not None:
            return self.inline(row.definition(*node.params, *node.args), dict(zip(node.args, args, strict=True)))
        assert row.forward is not None  # or it has a definition
        result = row.forward(*node.params, *(a[..., None] for a in args))[..., 0]
        return _array([sympy.sympify(e) for e in np.ravel(result)], node)

    def inline(self, node: Node, known: dict[Node, Exprs]) -> Exprs:
        """Interpret the definition of an operation in terms of its arguments."""
        for inner in Graph.of(known, [node]).nodes:
            if inner not in known:
                result = self.interpret(inner, [known[a] for a in inner.args])
                known[inner] = result if inner is node else self.bounded(inner, result)
        return known[node]

    def bounded(self, node: Node, result: Exprs) -> Exprs:
        """Give elements that are too large a name, or complain if there is to be no cut."""
        named = node in self.names
        if self.cut is None and not named and self.at_most(node) <= _MAX_DEPTH:
            return result
        measured = [self.size(e) for e in result.ravel()]
        found = zip(result.ravel(), measured, strict=True)
        if self.cut is None and not named:
            if any(size > (_WHOLE if e.is_Add else _PART) or depth > _MAX_DEPTH for e, (size, depth) in found):
                raise TooDeepError
            return result
        limit = self.limit(node)
        if all(size < limit for size, _ in measured):
            return result
        names = element_names(self.names.get(node) or next(self.fresh), node.shape)
        cut = [
            self.define(name, e) if size >= limit else e
            for name, e, (size, _) in zip(names, result.ravel(), measured, strict=True)
        ]
        return _array(cut, node)

    def at_most(self, node: Node) -> int:
        """Return a bound of the size of a scalar's expression that costs nothing to work out."""
        if node.op not in ELEMENTWISE or node.shape:
            return _WHOLE
        self.bounds[node] = bound = 1 + sum(self.bounds.get(a, 1 if not a.args else _WHOLE) for a in node.args)
        return bound

    def limit(self, node: Node) -> int:
        """Return the size from which on an element of the node is cut."""
        if node in self.final:
            return READABLE
        if node in self.names or node.op in ("max", "min"):  # the slope of an extremum mentions it again and again
            return self.limits.named
        return self.limits.again if self.readers[node] > 1 else self.limits.other

    def define(self, name: str, expr: sympy.Expr) -> sympy.Symbol:
        place = symbol(name)
        self.definitions[place] = expr
        return place

    def size(self, expr: Any) -> tuple[int, int]:
        """Return the number of nodes of an expression and its depth; parts that were measured before are known."""
        known = self.sizes.get(expr)
        if known is None:
            parts = [self.size(a) for a in expr.args]
            known = (_own_size(expr) + sum(s for s, _ in parts), 1 + max((d for _, d in parts), default=0))
            self.sizes[expr] = known
        return known


def _final(graph: Graph) -> set[Node]:
    """Return the outputs, and the nodes whose elements they show."""
    final = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in final and node.op in _MOVEMENT:
            final.update(node.args)
    return final


def _flat(node: Node, args: list[Exprs]) -> list[Any]:
    """Return the elements of the arguments of an elementwise operation, for each element of its result."""
    return [(a if a.shape == node.shape else np.broadcast_to(a, node.shape)).ravel() for a in args]


def _extremum(node: Node, x: Exprs) -> Exprs:
    """Return for each place the extremum of the elements along the reduced axes."""
    return _array([extremum(node.op)(*column) for column in _columns(node, x)], node)


def _first_mask(node: Node, x: Exprs) -> Exprs:
    """Return for each element the condition that it is the first extremum along an axis."""
    (axis,) = node.params
    result = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        along = [x[(*place[:axis], k, *place[axis + 1 :])] for k in range(x.shape[axis])]
        best = extremum(node.op.removeprefix("arg").removesuffix("_mask"))(*along)
        wins = apply("eq", x[place], best)
        for before in along[: place[axis]]:
            wins = apply("and", wins, apply("ne", before, best))
        result[place] = wins
    return result


def _columns(node: Node, x: Exprs) -> Exprs:
    """Return for each place of a reduction the elements that are reduced to it."""
    axes = node.params[0]
    return np.moveaxis(x, axes, range(len(axes))).reshape(-1, node.size).T


def symbols(node: Node, name: str) -> Exprs:
    """Return a symbol for each element of a node."""
    return _array([symbol(n) for n in element_names(name, node.shape)], node)


def _array(elements: list[Any], node: Node) -> Exprs:
    """Return expressions as an array of a node's shape; NumPy is not to look into them."""
    result = np.empty(node.shape, dtype=object)
    if node.shape:
        result.reshape(-1)[:] = elements
    else:
        result[()] = elements[0]
    return result


def _own_size(expr: Any) -> int:
    return 1 + bits(max(abs(expr.p), expr.q)) // _WORD if expr.is_Rational else 1
