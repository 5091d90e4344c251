"""J at many points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gradcli.cli.many import Question, answer
from gradcli.cli.many_points import ManyPoints
from gradcli.engine.jacobian import numeric_jacobian
from gradcli.errors import InputError
from gradcli.explain.columns import Columns, check_rows, jacobian_columns, sparse_columns
from gradcli.explain.jacobian.result import jacobian
from gradcli.explain.origin import not_finite_entry
from gradcli.explain.results import Wanted
from gradcli.explain.shared import check_entries, symbolic
from gradcli.graph.array import Named
from gradcli.report.data_lines import Data


def jacobian_at_points(run: ManyPoints, sparse: bool) -> None:
    """Write the Jacobian at all points; if `sparse`, only the entries that are not zero everywhere.

    Errors: `InputError` for a Jacobian of more than a million entries, unless it is sparse.
    """
    if run.prints_json and sparse:
        raise InputError("-f json shows whole Jacobians", hint="leave out --sparse, or take -f csv")
    if not sparse:
        check_rows(run.graph)
        check_entries(run.graph, run.wrt, "--sparse writes only those that are not zero everywhere")

    def columns() -> Columns:
        if not sparse:
            return jacobian_columns(run.graph, run.wrt)
        arrays = f"{run.files.output}".lower().endswith(".npz")  # which has an array for each entry
        return sparse_columns(run.graph, run.wrt, alone=arrays)

    written = cache(symbolic)

    def explained(points: Sequence[Named]) -> Data:
        return jacobian(run.graph, run.wrt, run.inputs(points), run.notes, Wanted(warn=False), written)

    def origin(point: Named, found: Named) -> str:
        matrix = numeric_jacobian(run.graph, run.wrt, point)
        if np.isfinite(matrix).all():  # a sum in another order
            return "an entry is not finite: it arises where contributions are added"
        return not_finite_entry(run.graph, run.wrt, point, matrix)

    answer(run, Question("Jacobians", columns, explained, origin))
