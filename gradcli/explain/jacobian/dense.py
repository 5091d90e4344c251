"""The result of `gradcli jacobian`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.explain.columns import Columns, jacobian_columns, sparse_columns
from gradcli.explain.corners import Corners
from gradcli.explain.evaluation import evaluated_calls
from gradcli.explain.origin import not_finite_entry, warn_of_values
from gradcli.explain.results import UNMEASURED, Array, Measured, Named, Row, Shown, Wanted, defined, noted
from gradcli.explain.shared import check_entries, style_of, symbolic
from gradcli.explain.trace import Trace, symbolic_trace, trace_of
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

MAX_STEPPED_ROWS = 6  # rows of J whose steps are shown: each is a table as long as the system


class JacobianPoint(NamedTuple):
    """The Jacobian at one point."""

    at: Named
    value: Named
    jacobian: Array
    trace: Trace | None = None  # of a call for each of the first rows
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class JacobianResult(Shown):
    """The result of `gradcli jacobian`; `trace` has the steps without a point."""

    points: tuple[JacobianPoint, ...] = ()
    trace: Trace | None = None

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; a single one without a point."""
        common: dict[str, Any] = {"rows": self.formulas.rows, "columns": self.formulas.columns}
        common |= {"symbolic": self.texts(), **self.where_object}
        for p in self.points:
            yield common | {"at": p.at, "value": p.value, "jacobian": p.jacobian, **noted(p.notes)}
        if not self.points:
            yield common

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: the point, the outputs, then `dy0/dx0`, …; without a point formulas."""
        names = tuple(f"d{r}/d{c}" for r in self.formulas.rows for c in self.formulas.columns)
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), (names, p.jacobian)]
        if not self.points:
            yield [(names, np.array(self.texts())), *defined(self.where)]


@np.errstate(all="ignore")  # inf and nan are results, with warnings of our own
def jacobian(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    notes: Notes,
    wanted: Wanted,
    written: Callable[[Graph, Sequence[str], bool], SymbolicJacobian] = symbolic,
    measured: Measured = UNMEASURED,
) -> JacobianResult:
    """Return the Jacobian of the outputs with respect to the leaves `wrt`, as `written` and at each point.

    With steps, also the trace of the first rows: row i is what a call with a one-hot v leaves.  What was `measured`, at
    one point, is not computed.

    Errors: `InputError` when it would have more than a million entries.
    """
    check_entries(graph, wrt)
    formulas = written(graph, wrt, wanted.steps)
    result = []
    swept = sweep(graph, wrt) if wanted.steps else None
    vectors = list(islice(one_hots(graph), MAX_STEPPED_ROWS)) if swept else [{}]
    numeric = NumericJacobian(graph, wrt) if points and measured.matrix is None else None
    corners = Corners(graph, wanted.notes)
    nodes = [*graph.outputs.values(), *corners.nodes]
    nodes += [] if numeric is None else numeric.blocks
    nodes += [] if swept is None else swept.traced()
    inputs = graph.inputs if swept is None else swept.graph.inputs
    known = measured.values
    computed = evaluated_calls(inputs, points, [vectors] * len(points), nodes, wanted.same, wanted.block, known)
    for at, rows in zip(points, computed, strict=True):
        matrix = measured.matrix if numeric is None else numeric.matrix(rows[0], wanted.block)
        assert matrix is not None
        values = {name: rows[0][y] for name, y in graph.outputs.items()}
        own = Notes()
        if wanted.warn:
            warn_of_values(graph, at, values, own)
            if not np.isfinite(matrix).all():
                own.add("warning", not_finite_entry(graph, wrt, at, matrix))
        trace = None if swept is None else trace_of(graph, swept, rows)
        on_values = corners.note(rows[0], own, notes, wanted.page)
        result.append(JacobianPoint(at, values, matrix, trace, on_values))
    without = symbolic_trace(graph, swept, vectors) if swept is not None and not points else None
    return JacobianResult(graph, tuple(wrt), style_of(graph), tuple(result), without, symbolic=formulas)


def one_hots(graph: Graph) -> Iterator[Named]:
    """Yield for each row of J the cotangent that picks it."""
    for name, y in graph.outputs.items():
        for k in range(y.size):
            v = {n: np.zeros(node.shape) for n, node in graph.outputs.items()}
            v[name].reshape(-1)[k] = 1
            yield v


_symbolic = cache(symbolic)  # the same for all blocks of points


@dataclass(frozen=True)
class Jacobian:
    """J, or its `sparse` entries, which are not zero everywhere; `alone` gives each of these a column of its own.

    Errors: `InputError` for too many entries.
    """

    graph: Graph
    wrt: tuple[str, ...]
    wanted: Wanted
    sparse: bool = False
    alone: bool = False
    plural = "Jacobians"

    @property
    def seeds(self) -> Named:
        """Nothing: J has no seeds."""
        return {}

    def columns(self) -> Columns:
        """Return the entries of J."""
        if self.sparse:
            return sparse_columns(self.graph, self.wrt, alone=self.alone)
        return jacobian_columns(self.graph, self.wrt)

    def result(self, points: Sequence[Named], notes: Notes) -> JacobianResult:
        """Return J in formulas, and at each point."""
        return jacobian(self.graph, self.wrt, points, notes, self.wanted, _symbolic)

    def origin(self, point: Named, results: Named) -> str:
        """Return where the first entry that is not finite arose."""
        matrix = NumericJacobian(self.graph, self.wrt)(point, self.wanted.same)
        if np.isfinite(matrix).all():  # as NumPy rounds, and not the engine that computed it
            return "an entry is not finite: it arises where contributions are summed"
        return not_finite_entry(self.graph, self.wrt, point, matrix)
