"""The section `jacobian`: J, with v beside its rows and vᵀJ below; and the page of `gradcli jacobian`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import plan
from gradcli.graph.names import array_name, fresh_names, indexed_name
from gradcli.graph.node import Node
from gradcli.graph.sparsity import MAX_COLUMNS, dependencies
from gradcli.pages.backward.loss import flat
from gradcli.pages.backward.steps import steps_sections
from gradcli.pages.formulas import formula_count
from gradcli.pages.jacobian.question import one_hots
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Call, Point, Result
from gradcli.pages.results import Array, Named, Shown
from gradcli.pages.sections import (
    Block,
    Code,
    Equal,
    Equations,
    Line,
    Math,
    Matrix,
    Name,
    Page,
    Partial,
    Section,
    Text,
    Typed,
    Value,
    chosen,
    sentence,
)
from gradcli.pages.system import system_section
from gradcli.pages.trace import Trace

_ZEROS = 3  # derivatives of one output that are listed though they are 0: a few are shorter than a sentence
_LONG = 40  # characters of a derivative that is not shown for each element: half a line
OPERATIONS = 500  # elements that a system computes whose derivatives are taken to be long, without computing them
_PATTERN = 100_000  # entries of a J whose zeros are counted: more would keep the reader waiting
_NAMES = 4  # of outputs, or of leaves, in the heading: a line
_ZERO = Value.of(0.0)
_SHOWN = 100  # entries of a J that a page shows: a matrix of 10 by 10 is a screen and a half
_FIRST = 4  # entries that show how a J begins, a line each
_DEFINITIONS = 12  # intermediates that these may need, a line each
_ENTRIES = 400  # entries of a J at a point that a page shows: more are several screens
_WHOLE = 36  # derivatives of one output that need no sentence on the mode: they take one pass
_COLLECTED = 6  # outputs, or leaves, that one line has room for: more would hide what the loop does

_ALL = Typed("--only jacobian")


def jacobian_sections(
    result: Shown, matrix: Array | None, call: Call | None = None, total: Named | None = None, brief: bool = False
) -> list[Section]:
    """Return J, at a point with its numbers; with a call, also its v and the product vᵀJ.

    If `brief`, formulas are left out beside numbers; with a call, those alone that are long to read.
    """
    symbolic = result.formulas
    brief = brief and (call is None or is_long(result) or has_new_names(result))
    cells = number_cells(matrix) if brief and matrix is not None else entry_cells(result, matrix)
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
    parts: tuple[Block, ...] = (shown,)
    if call and any(len(n.shape) > 1 for n in (*result.graph.outputs.values(), *result.leaves.values())):
        said = "For the product, {}, outputs and inputs are read as flat vectors, row by row."
        parts = (shown, Text(sentence(said, Name("v"))))
    return [Section("jacobian", parts, heading(result))]


def number_cells(matrix: Array) -> dict[tuple[int, int], Math]:
    """Return the entries of a matrix that are not 0, by their indices."""
    return {(int(i), int(j)): Value.of(matrix[i, j]) for i, j in np.argwhere(matrix != 0)}


def has_new_names(result: Shown) -> bool:
    """Return whether formulas mention intermediates that the user has not named."""
    return any(array_name(name) not in result.graph.names for name in result.formulas.defined)


def is_long(result: Shown) -> bool:
    """Return whether J has a derivative that is too long to be shown for each element."""
    return formula_count(result.graph) > OPERATIONS or any(
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
    import sympy

    entry = sympy.S.Zero if entry is None else entry  # where terms cancel in the formula, and not in numbers
    # A formula that leaves the real numbers is written nan, and one may cancel what is nan: the number says more.
    is_other = entry.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo) or (entry.is_number and not np.isfinite(number))
    return value if is_other else Equal((Value.of(entry), value))


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


def shown_sections(result: Shown, matrix: Array | None) -> list[Section]:
    """Return the sections of J, shortened where it is large or its formulas are long; `matrix` has its numbers."""
    rows, columns = len(result.formulas.rows), len(result.formulas.columns)
    if rows * columns > _SHOWN:
        return _beginning(result, matrix)
    if len(result.formulas.defined) <= _DEFINITIONS and (rows == 1 or not is_long(result)):
        return jacobian_sections(result, matrix)
    if matrix is not None:
        said = Text(sentence("The formulas are long: {} shows them.", _ALL))
        return [*jacobian_sections(result, matrix, brief=True), Section("jacobian", (said,))]
    return _beginning(result, matrix)


def _beginning(result: Shown, matrix: Array | None) -> list[Section]:
    """Return the section of a J that is too large for a page: its shape, its zeros, and a few entries."""
    symbolic = result.formulas
    rows, columns = len(symbolic.rows), len(symbolic.columns)
    said = f": {rows:,} × {columns:,}{zeros(result, rows, columns)}"
    first = dict(islice(symbolic.entries.items(), _FIRST))
    defined = _needed(result, list(first.values()))
    if len(defined) > _DEFINITIONS and matrix is None:
        first, defined = {}, []
    shown: dict[tuple[int, int], Math] = {index: Value.of(entry) for index, entry in first.items()}
    if matrix is not None:
        shown = {p: Value.of(float(matrix[p])) if defined else cell(e, matrix[p]) for p, e in first.items()}
        defined = []
    lines = [Line((Partial(symbolic.rows[i], symbolic.columns[j]), math)) for (i, j), math in shown.items()]
    begins = Text((*heading(result), said, ". It begins" if lines else ""))
    more = Text(sentence("{} shows all of it; {} and {} write it.", _ALL, Typed("-f json"), Typed("-f csv")))
    sections = [Section("jacobian", (begins, *([Equations(tuple(lines))] if lines else [])))]
    return [*sections, Section("jacobian", (more,))]


def _needed(result: Shown, exprs: list[Any]) -> list[str]:
    """Return the definitions that formulas mention, and those that these mention: no more than one too many."""
    where, pending = {*result.formulas.defined}, list(exprs)
    names: dict[str, None] = {}
    while pending and len(names) <= _DEFINITIONS:
        mentioned = {str(s) for s in pending.pop().free_symbols if str(s) in where} - names.keys()
        names |= dict.fromkeys(sorted(mentioned))
        pending += map(result.formulas.where.__getitem__, mentioned)
    return [*names]


@np.errstate(all="ignore")
def jacobian_pages(result: Result, only: Sequence[str], numeric: bool = False) -> list[Page]:
    """Return a page for each point; if `numeric`, without formulas and steps."""
    return [page_of(result, _jacobian(result, point, only, numeric)) for point in result.points]


def _jacobian(result: Result, point: Point, only: Sequence[str], numeric: bool) -> Iterator[Section]:
    show = jacobian_sections if "jacobian" in only else shown_sections
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, point.at or None, point.outputs)],
        "jacobian": lambda: [*show(result, point.matrix), *_calls_for_rows(result)],
        "steps": lambda: _stepped_rows(result, point.trace),
    }
    if numeric and point.matrix is not None:
        matrix = point.matrix
        build = {"system": build["system"], "jacobian": lambda: _numbers(result, matrix)}
    return chosen(build, only, {"system"} if point.at and point.trace is not None else set())


def _calls_for_rows(result: Result) -> list[Section]:
    """Return how calls of `backward` give the rows of J, and in which mode gradcli computes them."""
    mode = modes(result)
    if len(result.formulas.rows) == 1:
        return [Section("jacobian", (Text(mode),))] if mode else []
    y = result.formulas.rows[0]
    said = "Row i is what backward leaves in {} for a one-hot {} ({} gives the first), one call per row."
    rows = sentence(said, Typed(".grad"), Name("v"), Typed(f"--v onehot:{y}"))
    blocks = (Text(rows), collected(result.graph, result.wrt), Text(mode) if mode else None)
    return [Section("jacobian", (block,)) for block in blocks if block is not None]


def _stepped_rows(result: Result, trace: Trace | None) -> list[Section]:
    """Return the calls of `backward` that give the first rows of J."""
    if trace is None:
        return []
    vectors = list(islice(one_hots(result.graph), len(trace.calls)))
    names = [f"the row of {row}" for row in result.formulas.rows[: len(vectors)]]
    sections = steps_sections(trace, vectors, names)
    left_out = len(result.formulas.rows) - len(vectors)
    said = [Section("steps", (Text((f"… and {left_out:,} more rows",)),))] if left_out else []
    return [*sections, *said]


def _numbers(result: Result, matrix: Array) -> list[Section]:
    rows, columns = matrix.shape
    if rows * columns <= _ENTRIES:
        return jacobian_sections(result, matrix, brief=True)
    said = sentence(f": {rows:,} × {columns:,}. {{}} and {{}} write it.", Typed("-f json"), Typed("-f csv"))
    return [Section("jacobian", (Text((*heading(result), *said)),))]


def modes(result: Result) -> tuple[Math, ...]:
    """Return a sentence on the mode (forward or reverse) and the number of passes; nothing for a short gradient."""
    rows, columns = len(result.formulas.rows), len(result.formulas.columns)
    if rows == 1 and columns <= _WHOLE:
        return ()
    planned = plan(result.graph, result.wrt)
    forward = _Mode("forward", "column", "output", columns, planned.forward_sweeps)
    reverse = _Mode("reverse", "row", "input", rows, planned.reverse_sweeps)
    taken, other = (forward, reverse) if planned.forward else (reverse, forward)
    there = ""
    if other.sweeps > taken.sweeps:
        there = f", where {other.name} mode takes {other.sweeps:,}"
        there += f": {other.together}" * (other.sweeps < other.lines)
    each = f"one per {taken.line}" if taken.sweeps == taken.lines else taken.together
    passes = f"{taken.sweeps:,} pass{'es' * (taken.sweeps > 1)}"
    return sentence(f"gradcli computes {{}} in {taken.name} mode: {passes}, {each}{there}.", Name("J"))


class _Mode(NamedTuple):
    """A mode: what a pass gives (a row or a column), how many of these J has, and how many passes J takes."""

    name: str
    line: str
    shared: str
    lines: int
    sweeps: int

    @property
    def together(self) -> str:
        """Why there are fewer passes than lines."""
        return f"{self.line}s that share no {self.shared} go together"


def collected(graph: Graph, wrt: Sequence[str]) -> Code | None:
    """Return the lines of PyTorch that collect J row by row; None where their names do not fit a line."""
    if max(len(graph.outputs), len(wrt)) > _COLLECTED:
        return None
    taken = {*graph.inputs, *graph.names}
    names = fresh_names(taken)
    each, rows, matrix, row, grad, out = (
        name if name not in taken else next(names) for name in ("v", "rows", "J", "row", "g", "out")
    )
    lines = []
    if len(graph.outputs) > 1:
        scalars = all(not y.shape for y in graph.outputs.values())
        parts = ", ".join(name if scalars else f"{name}.flatten()" for name in graph.outputs)
        lines.append(f"{out} = torch.{'stack' if scalars else 'cat'}(({parts}))")
    else:
        (out,) = graph.outputs
    size = sum(y.size for y in graph.outputs.values())
    flat = len(graph.outputs) > 1 or len(graph.outputs[out].shape) == 1
    seed = each if flat else f"{each}.view_as({out})"
    leaves = wrt[0] if len(wrt) == 1 else f"({', '.join(wrt)})"
    lines.append(f"{rows} = [torch.autograd.grad({out}, {leaves}, {seed}, retain_graph=True)")
    lines.append(f"{' ' * len(rows)}    for {each} in torch.eye({size})]")
    stacking = f"{matrix} = torch.stack(["
    lines.append(f"{stacking}torch.cat([{grad}.flatten() for {grad} in {row}])")
    lines.append(f"{' ' * len(stacking)}for {row} in {rows}])")
    lines.append(f"# or, where f({', '.join(wrt)}) returns {out}:")
    lines.append(f"# torch.autograd.functional.jacobian(f, {leaves})")
    return Code(tuple(lines), "in PyTorch, one gradient per row")
