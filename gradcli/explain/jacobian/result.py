"""What `gradcli jacobian` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gradcli.engine.evaluate import at_points
from gradcli.engine.jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.explain.origin import not_finite_entry, warn_of_values
from gradcli.explain.results import Array, JacobianPoint, JacobianResult, Named, Wanted
from gradcli.explain.shared import check_entries, style_of, symbolic
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep

if TYPE_CHECKING:
    from gradcli.algebra.jacobian import SymbolicJacobian
    from gradcli.explain.trace import Trace

MAX_STEPPED_ROWS = 6  # of J


@np.errstate(all="ignore")  # inf and nan are results, and told as warnings of ours
def jacobian(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    notes: Notes,
    wanted: Wanted,
    written: Callable[[Graph, Sequence[str], bool], SymbolicJacobian] = symbolic,
) -> JacobianResult:
    """Return the Jacobian of the outputs with respect to the leaves `wrt`, as `written` and at each point.

    With steps, also the trace of the first rows: row i is what a call with a one-hot v leaves.

    Errors: `InputError` when it would have more than a million entries.
    """
    check_entries(graph, wrt)
    formulas = written(graph, wrt, wanted.steps)
    result = []
    matrices: Iterable[Array] = NumericJacobian(graph, wrt).each(points) if points else ()
    computed = at_points(graph, points, list(graph.outputs.values()))
    for at, matrix, numbers in zip(points, matrices, computed, strict=True):
        values = {name: numbers[y] for name, y in graph.outputs.items()}
        if wanted.warn:
            warn_of_values(graph, at, values, notes)
            if not np.isfinite(matrix).all():
                notes.add("warning", not_finite_entry(graph, wrt, at, matrix))
        corners: tuple[str, ...] = ()
        if wanted.notes:
            from gradcli.explain.corners import note_corners

            corners = note_corners(graph, at, notes, wanted.page)
        result.append(JacobianPoint(at, values, matrix, _rows(graph, wrt, at) if wanted.steps else None, corners))
    without = _rows(graph, wrt, None) if wanted.steps and not points else None
    return JacobianResult(graph, tuple(wrt), style_of(graph), tuple(result), without, symbolic=formulas)


def _rows(graph: Graph, wrt: Sequence[str], at: Named | None) -> Trace:
    """Return the trace of a call for each of the first rows of J, in formulas where there is no point."""
    from gradcli.explain.trace import numeric_trace, symbolic_trace

    swept, vectors = sweep(graph, wrt), list(islice(one_hots(graph), MAX_STEPPED_ROWS))
    return symbolic_trace(graph, swept, vectors) if at is None else numeric_trace(graph, swept, at, vectors)


def one_hots(graph: Graph) -> Iterator[Named]:
    """Yield for each row of J the cotangent that picks it."""
    for name, y in graph.outputs.items():
        for k in range(y.size):
            v = {n: np.zeros(node.shape) for n, node in graph.outputs.items()}
            v[name].reshape(-1)[k] = 1
            yield v
