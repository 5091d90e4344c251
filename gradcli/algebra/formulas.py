"""A graph as formulas: for every element of an output a SymPy expression in the elements of the leaves.

Formulas that would be too deep to read are cut: a named intermediate becomes a symbol of its own, and its
definition is kept beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from gradcli.algebra.arrays import RULES, Exprs
from gradcli.algebra.display import READABLE
from gradcli.algebra.functions import constant, symbol
from gradcli.graph.array import objects
from gradcli.graph.graph import computed_from
from gradcli.graph.names import element_names, fresh_names
from gradcli.graph.node import MAX_BITS, Node, bits
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret
from gradcli.graph.shapes import Shape

_WHOLE = 5_000  # operations in a sum that is differentiated, but not shown: each of its terms has a short derivative
_PART = 150  # operations in any other such formula: each of its derivatives is about as long as the formula
_WORD = 64  # bits of a number that count as one operation
_MAX_DEPTH = 60  # SymPy recurses


class TooDeepError(Exception):
    """The formulas of this graph have to be cut."""


@dataclass(frozen=True)
class Formulas:
    """Expressions of nodes, and the definitions of the intermediates in them, in order."""

    exprs: Mapping[Node, Exprs]
    definitions: Mapping[sympy.Symbol, sympy.Expr]


class Limits(NamedTuple):
    """The numbers of operations from which formulas get a name: of a named node, a node with several uses, any other.

    What is shown itself is not cut before it is unreadable.
    """

    named: int = 2
    again: int = 8
    other: int = 20


def formulas(
    wanted: Iterable[Node],
    known: Mapping[Node, Exprs],
    names: Mapping[Node, str],
    cut: Limits | None = None,
    taken: Iterable[str] = (),
) -> Formulas:
    """Return the formulas of nodes, arrays of their shapes.

    `known` holds the formulas of some nodes, those of the leaves among them.  A node in `names` whose formula is not
    short is written as its name.  With `cut`, so are other nodes with long formulas, under new names that are not
    `taken`.

    Errors: `TooDeepError`, without `cut`, where formulas are too deep to be written out.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> y = 3 * x**2
    >>> formulas([y], {x: symbols("x", (2,))}, {}).exprs[y].tolist()
    [3*x[0]**2, 3*x[1]**2]
    """
    return _Interpreter(list(wanted), known, names, cut, set(taken)).run()


@dataclass(eq=False)
class _Interpreter:
    """Runs nodes on arrays of expressions; remembers how large each expression is."""

    wanted: Sequence[Node]
    known: Mapping[Node, Exprs]
    names: Mapping[Node, str]
    cut: Limits | None
    taken: set[str]

    def __post_init__(self) -> None:
        self.nodes = computed_from(self.known, self.wanted)
        self.limits = self.cut or Limits()
        self.sizes: dict[Any, tuple[int, int]] = {}
        self.readers = Counter(a for n in self.nodes for a in n.args)
        self.final = _final(self.nodes, self.wanted)
        self.bounds: dict[Node, int] = {}
        self.definitions: dict[sympy.Symbol, sympy.Expr] = {}
        self.fresh = fresh_names(self.taken | set(self.names.values()))

    def run(self) -> Formulas:
        values = interpret(self.nodes, self.bounded_formulas, dict(self.known))
        return Formulas({n: values[n] for n in self.wanted}, self.definitions)

    def bounded_formulas(self, node: Node, args: Sequence[Exprs]) -> Exprs:
        return self.bounded(node, self.formulas(node, args))

    def formulas(self, node: Node, args: Sequence[Exprs]) -> Exprs:
        if node.is_constant:
            values = [constant(v) for v in node.values]
            return objects(values * node.size if len(values) == 1 else values, node.shape)
        definition = OPERATIONS[node.op].for_formulas
        if definition is not None and (simpler := definition(*node.settings, *node.args)) is not None:
            return self.inline(simpler, dict(zip(node.args, args, strict=True)))
        return RULES[node.op](node, *args)

    def inline(self, node: Node, known: dict[Node, Exprs]) -> Exprs:
        """Return the formulas of an operation's definition in those of its arguments."""
        inner = [n for n in computed_from(known, [node]) if n is not node]
        known = interpret(inner, self.bounded_formulas, known)
        return known[node] if node in known else self.formulas(node, [known[a] for a in node.args])

    def bounded(self, node: Node, result: Exprs) -> Exprs:
        """Return formulas in which large elements are replaced by names.

        Errors: `TooDeepError` for large elements of a node without a name, if nothing is to be cut.
        """
        if node.dtype == "bool" or not node.args:  # conditions get no names
            return result
        if self.cut is None and node not in self.names:
            if self.at_most(node) > _MAX_DEPTH and any(map(self.is_too_deep, result.flat)):
                raise TooDeepError
            return result
        limit = self.limit(node)
        is_large = [self.size(e)[0] >= limit for e in result.flat]
        if not any(is_large):
            return result
        names = element_names(self.names.get(node) or next(self.fresh), node.shape)
        elements = zip(names, result.flat, is_large, strict=True)
        return objects([self.define(name, e) if large else e for name, e, large in elements], node.shape)

    def is_too_deep(self, expr: Any) -> bool:
        if (
            expr.is_Pow and expr.exp.is_Integer and bits(expr.exp.p) > MAX_BITS
        ):  # x**(2**10000): squared again and again
            return True
        size, depth = self.size(expr)
        return size > (_WHOLE if expr.is_Add else _PART) or depth > _MAX_DEPTH

    def at_most(self, node: Node) -> int:
        """Return an upper bound of the size of a scalar's expression, from those of its arguments."""
        if node.shape or not OPERATIONS[node.op].broadcasts:
            return _WHOLE
        self.bounds[node] = bound = 1 + sum(self.bounds.get(a, 1 if not a.args else _WHOLE) for a in node.args)
        return bound

    def limit(self, node: Node) -> int:
        """Return the size from which on an element of the node is cut."""
        if node in self.final and node not in self.names:
            return READABLE
        if node in self.names or node.op in ("max", "min"):  # the slope of an extremum mentions it again and again
            return self.limits.named
        return self.limits.again if self.readers[node] > 1 else self.limits.other

    def define(self, name: str, expr: sympy.Expr) -> sympy.Symbol:
        letter = symbol(name)
        self.definitions[letter] = expr
        return letter

    def size(self, expr: Any) -> tuple[int, int]:
        """Return the number of nodes of an expression and its depth; parts that were measured before are known."""
        known = self.sizes.get(expr)
        if known is None:
            parts = [self.size(a) for a in expr.args]
            known = (_size_of_head(expr) + sum(s for s, _ in parts), 1 + max((d for _, d in parts), default=0))
            self.sizes[expr] = known
        return known


def _final(nodes: Sequence[Node], wanted: Iterable[Node]) -> set[Node]:
    """Return the wanted nodes, and those whose elements they show."""
    final = set(wanted)
    for node in reversed(nodes):
        if node in final and node.args and OPERATIONS[node.op].move is not None:
            final.update(node.args)
    return final


def symbols(name: str, shape: Shape) -> Exprs:
    """Return a symbol for each element of an array of that name."""
    return objects([symbol(n) for n in element_names(name, shape)], shape)


def _size_of_head(expr: Any) -> int:
    """Return the size of an expression without its arguments; a number of many digits counts more."""
    return 1 + bits(max(abs(expr.p), expr.q)) // _WORD if expr.is_Rational else 1
