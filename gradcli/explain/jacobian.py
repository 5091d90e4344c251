"""What `gradcli jacobian` shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.engine.jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.explain.origin import not_finite_entry, warn_of_values
from gradcli.explain.results import JacobianPoint, JacobianResult, Named
from gradcli.explain.shared import check_entries, outputs_at, style, symbolic
from gradcli.graph.graph import Graph


@np.errstate(all="ignore")  # inf and nan are results, and told as warnings of ours
def jacobian(
    graph: Graph, wrt: Sequence[str], points: Sequence[Named], notes: Notes, warn: bool = True
) -> JacobianResult:
    """Return the Jacobian of the outputs with respect to the leaves `wrt`, symbolic and at each point.

    Errors: `InputError` when it would have more than a million entries.
    """
    check_entries(graph, wrt)
    formulas = symbolic(graph, wrt)
    found = []
    matrices = map(NumericJacobian(graph, wrt), points) if points else ()
    for at, matrix in zip(points, matrices, strict=True):
        values = outputs_at(graph, at)
        if warn:
            warn_of_values(graph, at, values, notes)
            if not np.isfinite(matrix).all():
                notes.add("warning", not_finite_entry(graph, wrt, at, matrix))
        found.append(JacobianPoint(at, values, matrix))
    return JacobianResult(graph, tuple(wrt), formulas, *style(graph), points=tuple(found))
