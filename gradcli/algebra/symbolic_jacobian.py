"""The symbolic Jacobian J[i, j] = ∂y_i/∂x_j: the graph of the derivative, written in formulas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import sympy
from sympy.core.parameters import distribute

from gradcli.algebra.display import READABLE, Shorthands, length, shorthands, tidy
from gradcli.algebra.formulas import Limits, TooDeepError, formulas, symbols
from gradcli.algebra.functions import evaluated
from gradcli.errors import InputError
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import entries
from gradcli.graph.names import all_elements
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions

MAX_OPERATIONS = 100_000  # in all entries, and in all that is computed for them: nobody reads more, and SymPy is slow
_SAMPLE = 500  # entries from which the length of all is estimated
_SHORT = 18  # operations in an entry that is read at a glance, without names of intermediates
_ROUNDING = 1e-9  # between two evaluations of one number
_SHORT_DEFINITION = 40  # operations of an intermediate that may turn out to be a number: more are rarely one
# A Jacobian with names of intermediates replaces one without where its length is at most this part of the other's:
# with the user's names, and with names that the user has not seen before.
_SHORTER, _MUCH_SHORTER = 0.8, 0.5

EntryIndex = tuple[int, int]
Entries = dict[EntryIndex, sympy.Expr]


@dataclass(frozen=True)
class SymbolicJacobian:
    """The non-zero entries by row and column, the names of both, and definitions of intermediates in the entries.

    The formulas are computed when they are first read.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    write: Callable[[], _Formulas]

    @cached_property
    def written(self) -> _Formulas:
        """The entries, and the definitions that they need.

        Errors: `InputError` for formulas that are too large together.
        """
        with distribute(False):  # 2*(x - z) stays as it is
            return self.write()

    def worked_out(self) -> SymbolicJacobian:
        """Return this Jacobian after computing its formulas, so that their errors are raised here.

        Errors: `InputError` for formulas that are too large together.
        """
        self.written  # noqa: B018 - kept by the property
        return self

    @property
    def entries(self) -> Entries:
        """The entries that are not 0, by row and column."""
        return self.written.entries

    @property
    def defined(self) -> list[str]:
        """The names of the intermediates that entries mention."""
        return [*self.written.definitions]

    @property
    def worked_out_names(self) -> list[str]:
        """The names in `defined`, or none while the formulas are not computed."""
        return self.defined if "written" in self.__dict__ else []

    @cached_property
    def where(self) -> dict[str, sympy.Expr]:
        """The definitions of the intermediates that entries mention, simplified when one is first read."""
        with distribute(False):  # once: it empties SymPy's caches
            return {name: tidy(e) for name, e in self.written.definitions.items()}

    def __repr__(self) -> str:
        return f"SymbolicJacobian(rows={self.rows}, columns={self.columns}, entries={self.entries}, where={self.where})"


def symbolic_jacobian(graph: Graph, wrt: Sequence[str] | None = None) -> SymbolicJacobian:
    """Return the Jacobian of the outputs with respect to the leaves `wrt` (all by default), in their order.

    Rows are the elements of the outputs, columns those of the leaves.  The cost grows with the number of
    non-zero entries.

    Errors: `InputError` for formulas that are too large together.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> symbolic_jacobian(Graph.of({"x": x}, {"y": 3 * x**2})).entries
    {(0, 0): 6*x[0], (1, 1): 6*x[1]}
    """
    leaves = graph.leaves(wrt)
    return symbolic_entries(graph, graph.outputs, leaves, lambda: entries(graph, leaves)).worked_out()


def symbolic_entries(
    graph: Graph,
    rows: Mapping[str, Node],
    columns: Mapping[str, Node],
    derivatives: Callable[[], Mapping[EntryIndex, Node]],
    taken: Collection[str] = (),
) -> SymbolicJacobian:
    """Return some entries of a matrix in formulas: `derivatives` returns their nodes, by row and column.

    `rows` and `columns` are the nodes whose elements name the rows and the columns; no intermediate gets a name that is
    `taken`.
    """
    names = {*graph.inputs, *graph.names, *taken}
    return SymbolicJacobian(
        all_elements(rows), all_elements(columns), lambda: _best(graph, dict(sorted(derivatives().items())), names)
    )


@dataclass(frozen=True)
class _Formulas:
    """A Jacobian in formulas: its entries, and the definitions of the intermediates in them, not simplified."""

    entries: Entries
    definitions: dict[str, sympy.Expr]

    @property
    def length(self) -> int:
        return sum(map(length, (*self.entries.values(), *self.definitions.values())))


def _best(graph: Graph, nodes: Mapping[EntryIndex, Node], taken: set[str]) -> _Formulas:
    """Return the entries in terms of the leaves, or of intermediates that have names, whichever is better to read."""
    read = scheduled(nodes.values(), graph.nodes)
    if sum(n.size for n in read if n.args and OPERATIONS[n.op].move is None) > MAX_OPERATIONS:
        raise _too_long()
    # The derivative reads nodes of the graph.  Where two of them are equal, only the first is read, so names go to it.
    same = common_subexpressions(read)
    derivative = _Derivative(graph, {index: same[n] for index, n in nodes.items()}, taken)
    derivative.check_length()
    best = derivative.tried({})
    if best is not None and max(map(length, best.entries.values()), default=0) <= _SHORT:
        return best
    inner = set(scheduled(derivative.nodes.values())) - derivative.leaves.keys()  # an entry can have no other name
    named = {same[n]: name for n, name in graph.labels.items() if same[n] in inner}
    outputs = {same[n] for n in graph.outputs.values()}
    intermediates = {n: name for n, name in named.items() if n not in outputs}
    choices = (named,) if intermediates == named else (intermediates, named)
    by_names = [derivative.tried(names) for names in choices if names]
    for ways, share in ((by_names, _SHORTER), ([derivative.tried(named, Limits())], _MUCH_SHORTER)):
        other = min((way for way in ways if way is not None), key=lambda way: way.length, default=None)
        if other is not None and (best is None or other.length < share * best.length):
            best = other
    assert best is not None  # formulas that are cut are never too deep
    return best


class _Derivative:
    """The entries of a Jacobian as nodes, ready to be written."""

    def __init__(self, graph: Graph, nodes: Mapping[EntryIndex, Node], taken: set[str]) -> None:
        self.graph = graph
        self.taken = taken
        self.nodes = nodes
        self.leaves = {n: symbols(name, n.shape) for name, n in graph.inputs.items()}

    def check_length(self) -> None:
        """Check the total length of the formulas, estimated from a sample of the entries.

        Errors: `InputError` for formulas that are too large together.
        """
        if len(self.nodes) <= 2 * _SAMPLE:
            return
        some = _Derivative(self.graph, dict(islice(self.nodes.items(), _SAMPLE)), self.taken)
        written = some.written({}, Limits())
        if written.length * len(self.nodes) > 2 * _SAMPLE * MAX_OPERATIONS:
            raise _too_long()

    def tried(self, names: Mapping[Node, str], cut: Limits | None = None) -> _Formulas | None:
        """Return the entries, as `written` does, unless they are too deep.

        SymPy turns the sign of a cosine's argument without an end where a minus is not distributed, in
        cos(x - (z + w)) for one.
        """
        for distributed in (False, True):
            with suppress(RecursionError), distribute(distributed):
                try:
                    return self.written(names, cut)
                except TooDeepError:
                    return None
        return None

    def written(self, names: Mapping[Node, str], cut: Limits | None = None) -> _Formulas:
        """Return the entries, in which the nodes in `names` may be symbols of these names."""
        result = formulas(self.nodes.values(), self.leaves, names, cut, self.taken)
        numbers = _numbers(result.definitions)
        definitions = {k: e.xreplace(numbers) for k, e in result.definitions.items() if k not in numbers}
        exprs: Entries = {index: result.exprs[n][()] for index, n in self.nodes.items()}
        exprs = {index: e.xreplace(numbers) for index, e in exprs.items()} if numbers else exprs
        written = _tidied(exprs, shorthands(definitions), None if cut else READABLE)
        return _Formulas(written, _mentioned(written, definitions))


def _numbers(definitions: Mapping[sympy.Symbol, sympy.Expr]) -> dict[sympy.Symbol, sympy.Expr]:
    """Return the definitions that are numbers and need no name, as p/p in the derivatives of log(softmax(z))."""
    with distribute(False):
        result = {name: tidy(e) for name, e in definitions.items() if length(e) <= _SHORT_DEFINITION and _is_flat(e)}
    return {name: e for name, e in result.items() if e.is_Rational}


def _is_flat(expr: sympy.Expr) -> bool:
    """Return whether an expression has the same value at two points, which a number has."""
    variables = sorted(expr.free_symbols, key=str)
    points = ({s: sympy.Float(start + k / 7) for k, s in enumerate(variables)} for start in (0.3, 0.8))
    a, b = (evaluated(expr.xreplace(point)) for point in points)
    return bool(a.is_Float and b.is_Float and abs(a - b) < _ROUNDING)


def _tidied(exprs: Entries, known: Shorthands, limit: int | None) -> Entries:
    """Return the entries simplified for display, without those that are 0.

    Errors: `TooDeepError` for an entry larger than the limit, `InputError` where they are too large together.
    """
    result: Entries = {}
    total = 0
    # The longest comes first: if it is too long, the others are not simplified.
    for index, expr in sorted(exprs.items(), key=lambda entry: -length(entry[1])):
        entry = tidy(expr, known)
        total += (operations := length(entry))
        if limit is not None and operations > limit:
            raise TooDeepError
        if total > MAX_OPERATIONS:
            raise _too_long()
        if entry != 0:
            result[index] = entry
    return dict(sorted(result.items()))


def _too_long() -> InputError:
    return InputError(
        f"the formulas of this Jacobian have more than {MAX_OPERATIONS:,} operations",
        hint="choose some with --outputs and --wrt, or compute numbers with `gradcli backward` and --at",
    )


def _mentioned(entries: Entries, definitions: Mapping[sympy.Symbol, sympy.Expr]) -> dict[str, sympy.Expr]:
    """Return the definitions that the entries need, in order; each mentions only earlier ones."""
    needed: set[Any] = set().union(*(e.free_symbols for e in entries.values()))
    for symbol in reversed(definitions):
        if symbol in needed:
            needed |= definitions[symbol].free_symbols
    return {s.name: e for s, e in definitions.items() if s in needed}
