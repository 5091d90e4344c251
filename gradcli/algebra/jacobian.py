"""The symbolic Jacobian J[i, j] = ∂y_i/∂x_j, sparse: an entry that is structurally zero is never differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import sympy

from gradcli.algebra.formulas import READABLE, Formulas, TooDeepError, formulas, size
from gradcli.algebra.functions import Extremum, function, winners
from gradcli.algebra.functions import symbol as symbol_of
from gradcli.errors import InputError
from gradcli.graph.names import element_names
from gradcli.graph.node import Graph, Node

MAX_OPERATIONS = 100_000  # in all entries together
_SHORT = 12  # operations in an adjoint that is written out wherever it is passed on

Row = dict[sympy.Symbol, sympy.Expr]


@dataclass(frozen=True)
class SymbolicJacobian:
    """The non-zero entries by place, the names of rows and columns, and the intermediates that entries mention."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: dict[tuple[int, int], sympy.Expr]
    where: dict[str, sympy.Expr] = field(default_factory=dict)


def symbolic_jacobian(graph: Graph, wrt: Sequence[str] | None = None) -> SymbolicJacobian:
    """Return the Jacobian of the outputs with respect to the leaves `wrt` (all by default), in their order.

    Rows are the elements of the outputs, columns those of the leaves.  The cost grows with the number of
    non-zero entries.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf("x", (2,))
    >>> symbolic_jacobian(Graph.of([x], [(3 * x**2).called("y")])).entries
    {(0, 0): 6*x[0], (1, 1): 6*x[1]}
    """
    leaves = {n.name: n for n in graph.inputs}
    chosen = [leaves[n] for n in wrt] if wrt is not None else list(graph.inputs)
    rows = _names(graph.outputs)
    columns = _names(chosen)
    try:
        entries, _ = _entries(graph, formulas(graph), rows, columns, READABLE)
        return SymbolicJacobian(rows, columns, entries)
    except (TooDeepError, RecursionError):
        entries, definitions = _entries(graph, formulas(graph, cut=True), rows, columns)
    return SymbolicJacobian(rows, columns, entries, _mentioned(entries, definitions))


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(name for n in nodes for name in element_names(n.name or "", n.shape))


def _entries(
    graph: Graph, found: Formulas, rows: Sequence[str], columns: Sequence[str], limit: int | None = None
) -> tuple[dict[tuple[int, int], sympy.Expr], Row]:
    """Return the non-zero entries, and the definitions with those of the adjoints that were given names.

    Errors: `TooDeepError` for an entry larger than the limit.
    """
    places = {symbol_of(name): j for j, name in enumerate(columns)}
    chain = _Chain(found.definitions, {n.name for n in graph.nodes if n.name})
    entries: dict[tuple[int, int], sympy.Expr] = {}
    total = 0
    exprs = [e for array in found.outputs for e in array.ravel()]
    for i, (name, expr) in enumerate(zip(rows, exprs, strict=True)):
        for symbol, derivative in chain.row(name, expr).items():
            if symbol in places:
                entry = tidy(derivative)
                total += (operations := size(entry))
                if limit is not None and operations > limit:
                    raise TooDeepError
                if total > MAX_OPERATIONS:
                    raise InputError(
                        f"the formulas of this Jacobian have more than {MAX_OPERATIONS:,} operations",
                        hint="choose some with --outputs and --wrt; `gradcli backward` with --at works in numbers",
                    )
                if entry != 0:
                    entries[i, places[symbol]] = entry
    return dict(sorted(entries.items())), chain.definitions


class _Chain:
    """The chain rule through intermediates that have names, one output at a time."""

    def __init__(self, definitions: Row, taken: set[str]) -> None:
        self.definitions = dict(definitions)
        self.taken = taken | {symbol.name for symbol in definitions}
        self.order = {symbol: k for k, symbol in enumerate(definitions)}
        self.local: dict[sympy.Symbol, Row] = {}

    def row(self, name: str, expr: sympy.Expr) -> Row:
        """Return the derivatives of an output with respect to the leaves that it depends on."""
        pending: dict[sympy.Symbol, list[sympy.Expr]] = {}
        last: list[tuple[int, sympy.Symbol]] = []

        def add(symbol: sympy.Symbol, term: sympy.Expr) -> None:
            if symbol not in pending and symbol in self.order:
                heappush(last, (-self.order[symbol], symbol))
            pending.setdefault(symbol, []).append(term)

        for symbol, derivative in gradient(expr).items():
            add(symbol, derivative)
        while last:
            _, cut = heappop(last)
            adjoint = self.named(f"d{name}_d{cut.name}", tidy(sympy.Add(*pending.pop(cut))))
            if cut not in self.local:
                self.local[cut] = self.slopes(cut)
            for symbol, derivative in self.local[cut].items():
                add(symbol, _times(adjoint, derivative))
        return {symbol: sympy.Add(*terms) for symbol, terms in pending.items()}

    def slopes(self, cut: sympy.Symbol) -> Row:
        """Return the derivatives of a definition, in terms of its own value where they mention it."""
        definition = self.definitions[cut]
        known = {definition: cut}
        if isinstance(definition, Extremum) and definition.ties != "first":
            count = winners(definition)
            known[count] = self.define(f"{cut.name}_winners", count.xreplace(known))
        return {s: d.xreplace(known) for s, d in gradient(definition).items()}

    def named(self, name: str, adjoint: sympy.Expr) -> sympy.Expr:
        """Return an adjoint under a name of its own if it is not small."""
        if size(adjoint) <= _SHORT:
            return adjoint
        return self.define(name, adjoint)

    def define(self, name: str, expr: sympy.Expr) -> sympy.Symbol:
        """Return a new symbol for an expression, under that name or one like it."""
        plain = "".join(c if c.isalnum() else "_" for c in name).rstrip("_")
        while plain in self.taken:
            plain += "_"
        self.taken.add(plain)
        symbol = sympy.Symbol(plain)
        self.definitions[symbol] = expr
        return symbol


def gradient(expr: sympy.Expr) -> Row:
    """Return the derivatives by each symbol that the expression contains, all in one walk.

    SymPy's `diff` walks the whole expression once for every symbol.  The rules for sums, products and powers stand
    here, in the form a textbook gives them; the slopes of functions are SymPy's `fdiff`.

    >>> x, y = sympy.symbols("x y")
    >>> gradient(x**2 * sympy.sin(y))
    {x: 2*x*sin(y), y: x**2*cos(y)}
    """
    if expr.is_Symbol:
        return {expr: sympy.S.One}
    if expr.is_Add:
        return _sum((s, d) for term in expr.args for s, d in gradient(term).items())
    inner = [gradient(a) if not a.is_Number else {} for a in expr.args]
    return _sum((s, _times(_slope(expr, i), d)) for i, row in enumerate(inner) for s, d in row.items())


def _times(adjoint: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
    """Return adjoint·inner; where inner is a choice that may be 0, it chooses the adjoint.

    The engine does the same: the slope of sqrt(relu(x)) at -1 is 0, and not infinity times 0.
    """
    if inner.is_Atom:
        return adjoint if inner == 1 else adjoint * inner
    if inner.is_Add and any(_choice(f) for term in inner.args for f in sympy.Mul.make_args(term)):
        return sympy.Add(*(_times(adjoint, term) for term in inner.args))
    factors = sympy.Mul.make_args(inner)
    choice = next(filter(_choice, factors), None)
    if choice is None:
        return adjoint * inner
    condition, yes, no = choice.args
    chosen = choice.func(condition, _times(adjoint, yes), _times(adjoint, no))
    return sympy.Mul(chosen, *(f for f in factors if f is not choice))


def _choice(expr: sympy.Expr) -> bool:
    """Tell whether this is a `where` with a branch that is 0."""
    if not isinstance(expr, function("where")):
        return False
    return any(branch == 0 or _choice(branch) for branch in expr.args[1:])


def _sum(terms: Iterable[tuple[sympy.Symbol, sympy.Expr]]) -> Row:
    gathered: dict[sympy.Symbol, list[sympy.Expr]] = {}
    for symbol, term in terms:
        gathered.setdefault(symbol, []).append(term)
    return {s: parts[0] if len(parts) == 1 else sympy.Add(*parts) for s, parts in gathered.items()}


def _slope(expr: sympy.Expr, i: int) -> sympy.Expr:
    """Return the derivative of a product, a power or a function by its i-th argument."""
    if expr.is_Mul:
        return sympy.Mul(*expr.args[:i], *expr.args[i + 1 :])
    if expr.is_Pow:
        base, exponent = expr.args
        if i == 0 and exponent == 2 and base.is_Add:
            return sympy.Mul(2, base, evaluate=False)  # SymPy would multiply it out
        return exponent * base ** (exponent - 1) if i == 0 else expr * sympy.log(base)
    return expr.fdiff(i + 1)


def tidy(expr: sympy.Expr) -> sympy.Expr:
    """Return the expression as a textbook would print it: one fraction where that is shorter.

    >>> x = sympy.Symbol("x")
    >>> tidy(sympy.diff(x / (1 + x**2), x))
    (1 - x**2)/(x**2 + 1)**2
    """
    if not expr.is_Add or not any(_divides(f) for term in expr.args for f in sympy.Mul.make_args(term)):
        return expr
    if size(expr) > READABLE:
        return expr
    numerator, denominator = sympy.fraction(sympy.together(expr))
    candidates = [expr, numerator / denominator, sympy.expand(numerator) / denominator]
    return min(candidates, key=size)


def _divides(factor: sympy.Expr) -> bool:
    return bool(factor.is_Pow and factor.exp.could_extract_minus_sign())


def _mentioned(entries: dict[tuple[int, int], sympy.Expr], definitions: Row) -> dict[str, sympy.Expr]:
    """Return the definitions that the entries need, in order."""
    needed: set[Any] = set().union(*(e.free_symbols for e in entries.values()))
    # A definition mentions only earlier ones, except that adjoints, which come last, mention anything.
    for symbol in reversed(definitions):
        if symbol in needed:
            needed |= definitions[symbol].free_symbols
    return {s.name: e for s, e in definitions.items() if s in needed}
