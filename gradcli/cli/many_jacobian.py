"""J at many points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.cli.many import Printed, Question, answer, prints_json
from gradcli.cli.many_points import ManyPoints
from gradcli.cli.options import Files
from gradcli.engine.jacobian import numeric_jacobian
from gradcli.errors import InputError, Notes
from gradcli.explain.columns import Columns, check_rows, jacobian_columns, sparse_columns
from gradcli.explain.jacobian import jacobian
from gradcli.explain.origin import not_finite_entry
from gradcli.explain.results import Wanted
from gradcli.explain.shared import check_entries
from gradcli.graph.array import Named
from gradcli.report.data_lines import json_lines


def jacobian_at_points(run: ManyPoints, files: Files, style: str | None, sparse: bool, notes: Notes) -> None:
    """Write the Jacobian at all points; if `sparse`, only the entries that are not zero everywhere.

    Errors: `InputError` for a Jacobian of more than a million entries, unless it is sparse.
    """
    if prints_json(files, style) and sparse:
        raise InputError("-f json shows whole Jacobians", hint="leave out --sparse, or take -f csv")
    check_rows(run.graph)
    if not sparse:
        check_entries(run.graph, run.wrt, "--sparse writes only those that are not zero everywhere")

    def columns() -> Columns:
        return sparse_columns(run.graph, run.wrt) if sparse else jacobian_columns(run.graph, run.wrt)

    def printed(points: Sequence[Named]) -> Printed:
        result = jacobian(run.graph, run.wrt, [run.inputs(p) for p in points], notes, Wanted(warn=False))
        matrices = [{"J": p.jacobian} for p in result.points]
        return Printed(json_lines(result), [p.value for p in result.points], matrices)

    def origin(point: Named, found: Named) -> str:
        matrix = numeric_jacobian(run.graph, run.wrt, point)
        if np.isfinite(matrix).all():  # a sum in another order
            return "an entry is not finite: it arises where contributions are added"
        return not_finite_entry(run.graph, run.wrt, point, matrix)

    answer(run, files, style, Question("Jacobians", columns, printed, origin), notes)
