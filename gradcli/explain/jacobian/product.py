"""The section `jacobian`: J with its formulas and numbers, v beside its rows and vᵀJ below its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.explain.backward.record import Call
from gradcli.explain.backward.weights import flat
from gradcli.explain.results import Array, Named, Shown
from gradcli.explain.sections import (
    Block,
    Equal,
    Equations,
    Line,
    Math,
    Matrix,
    Name,
    Partial,
    Section,
    Text,
    Value,
    sentence,
)
from gradcli.explain.shared import formulas_of
from gradcli.graph.names import array_name, indexed_name
from gradcli.graph.node import Node
from gradcli.graph.sparsity import MAX_COLUMNS, dependencies

_ZEROS = 3  # derivatives of one output that are listed though they are 0: a few are shorter than a sentence
_LONG = 40  # characters of a derivative that is not shown for each element: half a line
OPERATIONS = 500  # elements that a system computes whose derivatives are taken to be long, without computing them
_PATTERN = 100_000  # entries of a J whose zeros are counted: more would keep the reader waiting
_NAMES = 4  # of outputs, or of leaves, in the heading: a line
_ZERO = Value.of(0.0)


def jacobian_sections(
    result: Shown, matrix: Array | None, call: Call | None = None, total: Named | None = None, brief: bool = False
) -> list[Section]:
    """Return J, at a point with its numbers; with a call, also its v and the product vᵀJ.

    If `brief`, formulas are left out beside numbers; with a call, those alone that are long to read.
    """
    symbolic = result.formulas
    cells = _cells(result, matrix, call, brief)
    if len(symbolic.rows) == 1:
        return [Section("jacobian", tuple(_row(result, cells)))]
    shown = Matrix(
        "J",
        tuple(map(Name, symbolic.rows)),
        tuple(Partial("", column) for column in symbolic.columns),
        cells,
        () if call is None else tuple(Value.of(w) for w in flat(call.v)),
        () if total is None else tuple(Value.of(g) for g in flat(total)),
    )
    said = (Text(sentence("For the product, {}, outputs and inputs are read as flat vectors, row by row.", Name("v"))),)
    return [Section("jacobian", (shown, *(said if call and _matrices(result) else ())), heading(result))]


def _cells(result: Shown, matrix: Array | None, call: Call | None, brief: bool) -> Mapping[tuple[int, int], Math]:
    """Return the entries of J; if `brief`, numbers alone where formulas are long or need further definitions."""
    if brief and matrix is not None and (call is None or is_long(result) or has_new_names(result)):
        return number_cells(matrix)
    return entry_cells(result, matrix)


def number_cells(matrix: Array) -> dict[tuple[int, int], Math]:
    """Return the entries of a matrix that are not 0, by their indices."""
    return {(int(i), int(j)): Value.of(matrix[i, j]) for i, j in np.argwhere(matrix != 0)}


def has_new_names(result: Shown) -> bool:
    """Return whether formulas mention intermediates that the user has not named."""
    return any(array_name(name) not in result.graph.names for name in result.formulas.defined)


def is_long(result: Shown) -> bool:
    """Return whether J has a derivative that is too long to be shown for each element."""
    return formulas_of(result.graph) > OPERATIONS or any(
        len(result.formula(entry)) > _LONG for entry in result.formulas.entries.values()
    )


def _row(result: Shown, cells: Mapping[tuple[int, int], Math]) -> list[Block]:
    """Return the only row of J: a derivative by each element of the leaves."""
    (row,), columns = result.formulas.rows, result.formulas.columns
    zeros = len(columns) - len(cells)
    shown = range(len(columns)) if zeros <= _ZEROS else sorted(j for _, j in cells)
    lines = tuple(Line((Partial(row, columns[j]), cells.get((0, j), _ZERO))) for j in shown)
    some = f"The other {zeros:,} of {len(columns):,}" if lines else f"All {zeros:,}"
    counted = [Text((f"{some} derivatives are 0.",))] if len(lines) < len(columns) else []
    return [*([Equations(lines)] if lines else []), *counted]


def entry_cells(result: Shown, matrix: Array | None) -> dict[tuple[int, int], Math]:
    """Return the entries of J that are not zero everywhere, or not here: their formulas with their numbers."""
    entries = result.formulas.entries
    if matrix is None:
        return {index: Value.of(e) for index, e in entries.items()}
    indices = {(int(i), int(j)) for i, j in np.argwhere(matrix != 0)} | set(entries)
    return {(i, j): cell(entries.get((i, j)), matrix[i, j]) for i, j in sorted(indices)}


def cell(entry: Any, number: float) -> Math:
    """Return an entry of J: its formula with its number."""
    value = Value.of(float(number))
    if entry is None:  # terms cancel in the formula, and not in numbers
        return Equal((_ZERO, value))
    # A formula that leaves the real numbers is written nan; the number says more.
    return Equal((Value.of(entry), value)) if _is_real(entry) else value


def _is_real(entry: Any) -> bool:
    import sympy

    return not entry.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo)


def _matrices(result: Shown) -> bool:
    return any(len(n.shape) > 1 for n in (*result.graph.outputs.values(), *result.leaves.values()))


def heading(result: Shown) -> tuple[Math, ...]:
    """Return the definition of J[i, j] in the names of outputs and leaves."""
    of, i = _side(result.graph.outputs, "i")
    by, j = _side(result.leaves, "j")
    indices = ", ".join(filter(None, (i, j)))
    return "Jacobian ", Equal((Name(indexed_name("J", indices) if indices else "J"), Partial(of, by)))


def _side(nodes: Mapping[str, Node], index: str) -> tuple[str | tuple[str, ...], str]:
    """Return the variable of the rows or columns: y, y[i] with the index, or several."""
    (name, node), *others = nodes.items()
    if others:
        return (*list(nodes)[:_NAMES], *["…"] * (len(nodes) > _NAMES)), ""
    return (indexed_name(name, index), index) if node.shape else (name, "")


def zeros(result: Shown, rows: int, columns: int) -> str:
    """Return which entries of a J that is not shown are zero everywhere, in words."""
    if not 1 < rows * columns <= _PATTERN or columns > MAX_COLUMNS:
        return ""
    leaves = list(result.leaves.values())
    columns_of = dependencies(result.graph, leaves)
    sets = [int(columns) for y in result.graph.outputs.values() for columns in columns_of[y].reshape(-1)]
    if rows == columns and all(columns == 1 << i for i, columns in enumerate(sets)):
        return ", and 0 unless i = j"
    none = rows * columns - sum(columns.bit_count() for columns in sets)
    return f", of which {none:,} entries are 0 everywhere" if none else ""
