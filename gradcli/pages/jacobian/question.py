"""The question of `gradcli jacobian`: J in formulas and numbers; and its entries that are not zero everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import InputError, Notes
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jacobian import MAX_SINGLE, Sparse, entries, jacobian, sparse
from gradcli.graph.names import all_elements, element_names
from gradcli.graph.node import Node, const
from gradcli.pages.evaluation import Values, seeded
from gradcli.pages.formulas import check_entries, formula_count, symbolic
from gradcli.pages.not_finite import entry_not_finite, not_finite_entry, warn_of_values
from gradcli.pages.question import Columns, Point, Question, Result
from gradcli.pages.results import Array, Named, Row, Shown, defined, style_of
from gradcli.pages.trace import symbolic_trace, trace_of

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

MAX_STEPPED_ROWS = 6  # rows of J whose steps are shown: each is a table as long as the system
MAX_FORMULAS = 100_000  # entries and elements: more would take longer than the numbers of a very large matrix


@dataclass(eq=False, repr=False)
class Jacobian(Question):
    """J; with steps, also the trace of the first rows: row i is what a call with a one-hot v leaves.

    If `numeric`, data leave its formulas out.  A file may have its `sparse` entries, which are not zero everywhere;
    `alone` gives each of these a column of its own.

    Errors: `InputError` for too many entries.
    """

    numeric: bool = False
    sparse: bool = False
    alone: bool = False
    plural = "Jacobians"

    def columns(self) -> Columns:
        """Return the entries of J: a block for each output and leaf, those that are zero everywhere among them."""
        if self.sparse:
            return sparse_columns(self.graph, self.wrt, alone=self.alone)
        _check_rows(self.graph)
        return blocks_of(jacobian(self.graph, self.wrt), self.graph.outputs, self.graph.leaves(self.wrt), "d{}/d{}")

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The leaves, and with steps the cotangents."""
        return self.swept.graph.inputs if self.wanted.steps else self.graph.inputs

    @cached_property
    def _numbers(self) -> NumericJacobian:
        return NumericJacobian(self.graph, self.wrt)

    @cached_property
    def _rows(self) -> list[Named]:
        """The cotangents that pick the first rows."""
        return list(islice(one_hots(self.graph), MAX_STEPPED_ROWS))

    def runs(self, k: int, point: Named) -> Sequence[Named]:
        """Return the cotangents of the rows whose steps are shown."""
        return [seeded("v", row) for row in self._rows] if self.wanted.steps else [{}]

    def nodes(self) -> Iterator[Node]:
        """Yield the blocks of J, and the steps."""
        yield from self._numbers.blocks if self.measured.matrix is None else ()
        yield from self.swept.traced() if self.wanted.steps else ()

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return J at a point."""
        matrix = self.measured.matrix
        if matrix is None:
            matrix = self._numbers.matrix(values[0], self.wanted.block)
        trace = trace_of(self.graph, self.swept, values) if self.wanted.steps else None
        return Point(at, outputs, {"jacobian": matrix}, matrix=matrix, trace=trace)

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield a warning of the first entry that is not finite."""
        if p.matrix is not None and not np.isfinite(p.matrix).all():
            yield "warning", not_finite_entry(self.graph, self.wrt, p.at, p.matrix)

    def formulas(self, numeric: bool, notes: Notes) -> SymbolicJacobian:
        """Return J as formulas."""
        check_entries(self.graph, self.wrt)
        return symbolic(self.graph, self.wrt, self.wanted.steps)

    def in_formulas(self, formulas: SymbolicJacobian | None) -> Point:
        """Return the steps."""
        trace = symbolic_trace(self.graph, self.swept, self._rows) if self.wanted.steps else None
        return Point({}, {}, {}, trace=trace)

    def first(self, result: Result) -> dict[str, Any]:
        """Return the rows and columns of J, and its formulas."""
        common: dict[str, Any] = {"rows": result.formulas.rows, "columns": result.formulas.columns}
        return common if self.numeric else common | {"symbolic": result.texts(), **result.where_object}

    def last(self, result: Result, p: Point) -> dict[str, Any]:
        """Return nothing: the definitions stand beside the formulas."""
        return {}

    def cells(self, result: Result, p: Point) -> Row:
        """Return `dy0/dx0`, …; without a point formulas."""
        names = tuple(f"d{r}/d{c}" for r in result.formulas.rows for c in result.formulas.columns)
        return [(names, p.values["jacobian"])] if p.at else [(names, np.array(result.texts())), *defined(result.where)]

    def origin(self, point: Named, values: Named) -> str:
        """Return where the first entry that is not finite arose."""
        matrix = self._numbers(point, self.wanted.same)
        if np.isfinite(matrix).all():  # as NumPy rounds, and not the engine that computed it
            return "an entry is not finite: it arises where contributions are summed"
        return not_finite_entry(self.graph, self.wrt, point, matrix)


def one_hots(graph: Graph) -> Iterator[Named]:
    """Yield for each row of J the cotangent that picks it."""
    for name, y in graph.outputs.items():
        for k in range(y.size):
            v = {n: np.zeros(node.shape) for n, node in graph.outputs.items()}
            v[name].reshape(-1)[k] = 1
            yield v


def blocks_of(derivatives: Graph, rows: Mapping[str, Node], across: Mapping[str, Node], label: str) -> Columns:
    """Return the blocks of a Jacobian, and the labels of their entries.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> graph = Graph.of({"x": x}, {"y": 3 * x})
    >>> blocks_of(jacobian(graph, ["x"]), graph.outputs, graph.inputs, "d{}/d{}").names
    {'dy/dx': ['dy[0]/dx[0]', 'dy[0]/dx[1]', 'dy[1]/dx[0]', 'dy[1]/dx[1]']}
    """
    blocks: dict[str, Node] = {}
    names = {}
    for (above, y), (below, x) in product(rows.items(), across.items()):
        name = label.format(above, below)
        blocks[name] = derivatives.outputs.get(f"d{above}/d{below}") or const(0, (*y.shape, *x.shape))
        indices = product(element_names(above, y.shape), element_names(below, x.shape))
        names[name] = [label.format(*index) for index in indices]
    return Columns(Graph.of(derivatives.inputs, blocks), names)


def check_whole(graph: Graph, wrt: Sequence[str]) -> None:
    """Check that all entries of the Jacobian can be columns of a file.

    Errors: `InputError` for more than a million entries, and for too many rows.
    """
    _check_rows(graph)
    check_entries(graph, wrt, "--sparse writes only those that are not zero everywhere")


def _check_rows(graph: Graph) -> None:
    """Check that a Jacobian has few enough rows to be swept one by one."""
    if (rows := dimensions(graph)[0]) > MAX_SINGLE:
        raise InputError(f"the Jacobian would have {rows:,} rows", hint="choose some outputs with --outputs")


# Entries that are not zero everywhere


def sparse_columns(graph: Graph, wrt: Sequence[str], alone: bool = False) -> Columns:
    """Return the entries of J that are not zero everywhere: in one array, or each `alone`.

    Errors: `InputError` where there are none, and for too many of them.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> sparse_columns(Graph.of({"x": x}, {"y": x**2}), ["x"]).names
    {'J': ['dy[0]/dx[0]', 'dy[1]/dx[1]']}
    """
    rows, across = all_elements(graph.outputs), all_elements(graph.leaves(wrt))
    if alone:
        result = {f"d{rows[i]}/d{across[j]}": node for (i, j), node in entries(graph, wrt).items()}
        columns = Columns(Graph.of(graph.inputs, result), {name: [name] for name in result})
    else:
        matrix = sparse(graph, wrt, by_blocks=True)
        indices = zip(matrix.rows.tolist(), matrix.columns.tolist(), strict=True)
        names = [f"d{rows[i]}/d{across[j]}" for i, j in indices]
        columns = Columns(Graph.of(graph.inputs, {"J": matrix.values} if names else {}), {"J": names})
    if not columns.graph.outputs:
        raise InputError("all entries of the Jacobian are zero", hint="leave out --sparse to see them")
    return columns


@dataclass(frozen=True)
class SparseResult(Shown):
    """The result of `gradcli jacobian --sparse`: where the entries are, their formulas, and at a point their values."""

    matrix: Sparse
    at: Named | None
    value: Named
    values: Array | None

    @cached_property
    def formulas_of_entries(self) -> list[str]:
        """The formulas of the entries; none where these would take too long."""
        known, indices = self.symbolic, zip(self.matrix.rows.tolist(), self.matrix.columns.tolist(), strict=True)
        return [] if known is None else [self.formula(known.entries.get(index, 0)) for index in indices]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield one object."""
        columns: list[Sequence[Any]] = [self.matrix.rows.tolist(), self.matrix.columns.tolist()]
        columns.append(self.formulas_of_entries or [None] * len(columns[0]))
        result: dict[str, Any] = {"rows": all_elements(self.graph.outputs), "columns": all_elements(self.leaves)}
        if self.values is not None:
            columns.append(self.values.tolist())
        result |= {"sparse": [list(entry) for entry in zip(*columns, strict=True)], **self.where_object}
        yield result if self.at is None else result | {"at": self.at, "value": self.value}

    def rows(self) -> Iterator[Row]:
        """Yield a row for each entry: row, column and value, or the formula where there is no point."""
        last = ("formula", self.formulas_of_entries) if self.values is None else ("value", self.values.tolist())
        cells = last[1] or [""] * len(self.matrix.rows)
        for i, j, cell in zip(self.matrix.rows.tolist(), self.matrix.columns.tolist(), cells, strict=True):
            yield [("row", np.array(str(i))), ("column", np.array(str(j))), (last[0], np.array(cell))]

    def archive(self) -> dict[str, Array]:
        """Return the arrays of the `.npz` file that `scipy.sparse.load_npz` reads: compressed sparse rows."""
        assert self.values is not None
        size = np.int32 if max(*self.matrix.shape, len(self.values)) < 2**31 else np.int64
        counts = np.bincount(self.matrix.rows, minlength=self.matrix.shape[0])
        return {
            "format": np.array(b"csr"),
            "shape": np.array(self.matrix.shape),
            "data": self.values,
            "indices": self.matrix.columns.astype(size),
            "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(size),
            "_is_array": np.array(True),
        }


@np.errstate(all="ignore")  # inf and nan are results, and there are warnings of them
def sparse_jacobian(graph: Graph, wrt: Sequence[str], at: Named | None, notes: Notes, data: bool) -> SparseResult:
    """Return the entries of the Jacobian that are not zero everywhere, with their values where there is a point.

    `data` says that formulas are not shown.

    Errors: `InputError` for too many entries.
    """
    matrix, value, values = sparse(graph, wrt), {}, None
    symbolic = None if data and at is not None else _formulas(graph, wrt, matrix, notes)
    if at is not None:
        whole = Graph.of(graph.inputs, {**graph.outputs, "\0J": matrix.values})
        computed = at_point(whole, at, whole.outputs.values())
        value, values = {name: computed[y] for name, y in graph.outputs.items()}, computed[matrix.values]
        warn_of_values(graph, at, value, notes)
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            entry = int(matrix.rows[k]), int(matrix.columns[k])
            notes.add("warning", entry_not_finite(graph, wrt, at, entry, float(values[k])))
    return SparseResult(graph, tuple(wrt), style_of(graph), matrix, at, value, values, symbolic=symbolic)


def _formulas(graph: Graph, wrt: Sequence[str], matrix: Sparse, notes: Notes) -> Any:
    """Return the symbolic Jacobian, or None with a note where it would take too long."""
    from gradcli.algebra.symbolic_jacobian import symbolic_jacobian

    if max(len(matrix.rows), formula_count(graph)) > MAX_FORMULAS:
        notes.add("note", f"formulas are left out: there are {len(matrix.rows):,} entries")
        return None
    return symbolic_jacobian(graph, wrt)
