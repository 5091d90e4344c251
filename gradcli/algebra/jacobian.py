"""The symbolic Jacobian J[i, j] = ∂y_i/∂x_j: the graph of the derivative, written in formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy.core.parameters import distribute

from gradcli.algebra.display import READABLE, length, tidy
from gradcli.algebra.formulas import Formulas, Limits, TooDeepError, formulas
from gradcli.errors import InputError
from gradcli.graph.jacobian import jacobian
from gradcli.graph.names import element_names
from gradcli.graph.node import Graph, Node
from gradcli.graph.passes import dead_code, representatives

MAX_OPERATIONS = 100_000  # in all entries together
_SHORT = 18  # operations in an entry that needs no names in it
# Of its length, what makes a Jacobian better to read in which intermediates stand under the user's names, or new ones.
_SHORTER, _MUCH_SHORTER = 0.8, 0.5

Entries = dict[tuple[int, int], sympy.Expr]


@dataclass(frozen=True)
class SymbolicJacobian:
    """The non-zero entries by place, the names of rows and columns, and the intermediates that entries mention."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Entries
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
    rows, columns = _names(graph.outputs), _names(chosen)
    derivative = jacobian(graph, wrt, by_entry=True)
    places = {f"d{row}/d{column}": (i, j) for i, row in enumerate(rows) for j, column in enumerate(columns)}
    order = [places[n.name or ""] for n in derivative.outputs]
    with distribute(False):  # 2*(x - z) stays as it is
        best = _best(graph, derivative, order)
    return SymbolicJacobian(rows, columns, best.entries, best.where)


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(name for n in nodes for name in element_names(n.name or "", n.shape))


@dataclass(frozen=True)
class _Written:
    """A Jacobian in formulas: its entries, and the definitions that they need."""

    entries: Entries
    where: dict[str, sympy.Expr]

    @property
    def length(self) -> int:
        return sum(map(length, (*self.entries.values(), *self.where.values())))


def _best(graph: Graph, derivative: Graph, order: Sequence[tuple[int, int]]) -> _Written:
    """Return the entries in terms of the leaves, or of intermediates that have names, whichever is better to read."""
    # The derivative has the nodes of the graph in it, each of which one of its equals may stand for.
    same = representatives(derivative)
    named = {same[n]: n.name for n in graph.nodes if n.name and n.op != "input" and n in same}
    outputs = {same[n] for n in graph.outputs if n in same}
    intermediates = {n: name for n, name in named.items() if n not in outputs}
    derivative = dead_code(
        Graph(tuple(dict.fromkeys(same.values())), graph.inputs, tuple(same[n] for n in derivative.outputs))
    )
    best: _Written | None = None
    with suppress(TooDeepError, RecursionError):
        best = _written(derivative, order, {})
        if max(map(length, best.entries.values()), default=0) <= _SHORT:
            return best
    ways: list[tuple[Mapping[Node, str], Limits | None, float]] = [
        (intermediates, None, _SHORTER),
        (named, None, _SHORTER),
        (named, Limits(), _MUCH_SHORTER),
    ]
    for names, cut, share in ways:
        with suppress(TooDeepError, RecursionError):
            found = _written(derivative, order, names, cut)
            if best is None or found.length < share * best.length:
                best = found
    assert best is not None  # formulas that are cut are never too deep
    return best


def _written(
    derivative: Graph, order: Sequence[tuple[int, int]], names: Mapping[Node, str], cut: Limits | None = None
) -> _Written:
    found = formulas(derivative, names, cut=cut)
    entries = _entries(found, order, None if cut else READABLE)
    return _Written(entries, _mentioned(entries, found.definitions))


def _entries(found: Formulas, order: Sequence[tuple[int, int]], limit: int | None = None) -> Entries:
    """Return the entries, tidied, without those that are 0.

    Errors: `TooDeepError` for an entry larger than the limit, `InputError` where they are too large together.
    """
    entries: Entries = {}
    total = 0
    for place, expr in zip(order, found.outputs, strict=True):
        entry = tidy(expr[()])
        total += (operations := length(entry))
        if limit is not None and operations > limit:
            raise TooDeepError
        if total > MAX_OPERATIONS:
            raise InputError(
                f"the formulas of this Jacobian have more than {MAX_OPERATIONS:,} operations",
                hint="choose some with --outputs and --wrt; `gradcli backward` with --at works in numbers",
            )
        if entry != 0:
            entries[place] = entry
    return dict(sorted(entries.items()))


def _mentioned(entries: Entries, definitions: Mapping[sympy.Symbol, sympy.Expr]) -> dict[str, sympy.Expr]:
    """Return the definitions that the entries need, in order; each mentions only earlier ones."""
    needed: set[Any] = set().union(*(e.free_symbols for e in entries.values()))
    for symbol in reversed(definitions):
        if symbol in needed:
            needed |= definitions[symbol].free_symbols
    return {s.name: tidy(e) for s, e in definitions.items() if s in needed}
