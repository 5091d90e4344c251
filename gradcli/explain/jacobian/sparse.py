"""The result of `gradcli jacobian --sparse` at a point: the entries that are not 0 everywhere, and their indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import Notes
from gradcli.explain.origin import entry_not_finite, warn_of_values
from gradcli.explain.results import Array, Named, Row, Shown
from gradcli.explain.shared import formulas_of, outputs_at, style_of
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import Sparse, sparse
from gradcli.graph.names import all_elements

MAX_FORMULAS = 100_000  # entries and elements: more would take longer than the numbers of a very large matrix


@dataclass(frozen=True)
class SparseResult(Shown):
    """The result of `gradcli jacobian --sparse`: where the entries are, their formulas, and at a point their values.

    Formulas are None where they would take too long.
    """

    matrix: Sparse
    formulas_of_entries: Sequence[str] | None
    at: Named | None
    value: Named
    values: Array | None

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
    matrix = sparse(graph, wrt)
    symbolic = None
    if not (data and at is not None):
        symbolic = _formulas(graph, wrt, matrix, notes)
    texts: list[str] | None = None
    result = SparseResult(graph, tuple(wrt), style_of(graph), matrix, None, at, {}, None, symbolic=symbolic)
    if symbolic is not None:
        indices = zip(matrix.rows.tolist(), matrix.columns.tolist(), strict=True)
        texts = [result.formula(symbolic.entries.get(entry, 0)) for entry in indices]
    value, values = {}, None
    if at is not None:
        value = outputs_at(graph, at)
        values = at_point(Graph.of(graph.inputs, {"J": matrix.values}), at, [matrix.values])[matrix.values]
        warn_of_values(graph, at, value, notes)
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            entry = int(matrix.rows[k]), int(matrix.columns[k])
            notes.add("warning", entry_not_finite(graph, wrt, at, entry, float(values[k])))
    return SparseResult(graph, result.wrt, result.style, matrix, texts, at, value, values, symbolic=symbolic)


def _formulas(graph: Graph, wrt: Sequence[str], matrix: Sparse, notes: Notes) -> Any:
    """Return the symbolic Jacobian, or None with a note where it would take too long."""
    from gradcli.algebra.symbolic_jacobian import unwritten_jacobian

    if max(len(matrix.rows), formulas_of(graph)) > MAX_FORMULAS:
        notes.add("note", f"formulas are left out: there are {len(matrix.rows):,} entries")
        return None
    return unwritten_jacobian(graph, wrt).worked_out()
