"""J·u, H·u and the Hessian at many points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradcli.cli.many import Printed, Question, answer
from gradcli.cli.many_points import ManyPoints
from gradcli.cli.options import Files
from gradcli.cli.tangents import read_tangent
from gradcli.errors import Notes
from gradcli.explain.columns import Columns, hessian_columns
from gradcli.explain.hessian import hessian, hvp
from gradcli.explain.jvp import jvp
from gradcli.explain.results import Wanted
from gradcli.explain.shared import check_entries
from gradcli.graph import hessian as second
from gradcli.graph.array import Named
from gradcli.graph.jvp import push
from gradcli.report.data_lines import json_lines, row_of

if TYPE_CHECKING:
    from gradcli.report.data_lines import Data


def jvp_at_points(run: ManyPoints, files: Files, style: str | None, tangent: Sequence[str], notes: Notes) -> None:
    """Write J·u at all points.

    Errors: `InputError` for tangents that do not fit the leaves, and for tangents in both places.
    """
    run = _with_tangents(run, tangent, notes)

    def explained(points: Sequence[Named], u: Sequence[Named]) -> Data:
        return jvp(run.graph, run.wrt, points, u, [], notes, Wanted(warn=False))

    question = Question("products J·u", lambda: Columns(push(run.graph, run.wrt).graph), _printer(run, explained), _bad)
    answer(run, files, style, question, notes)


def hvp_at_points(run: ManyPoints, files: Files, style: str | None, tangent: Sequence[str], notes: Notes) -> None:
    """Write H·u at all points.

    Errors: `InputError` as for `jvp_at_points`, and when there is more than one scalar output.
    """
    second.scalar_output(run.graph)
    run = _with_tangents(run, tangent, notes)

    def explained(points: Sequence[Named], u: Sequence[Named]) -> Data:
        return hvp(run.graph, run.wrt, points, u, notes, warn=False)

    def columns() -> Columns:
        return Columns(second.hvp(run.graph, run.wrt))

    answer(run, files, style, Question("products H·u", columns, _printer(run, explained), _bad), notes)


def hessian_at_points(run: ManyPoints, files: Files, style: str | None, notes: Notes) -> None:
    """Write the Hessian at all points.

    Errors: `InputError` for more than a million entries, and when there is more than one scalar output.
    """
    output, _ = second.scalar_output(run.graph)
    slopes = second.gradient(run.graph, run.wrt)
    check_entries(slopes, run.wrt, "choose some inputs with --wrt; --u gives H·u without H")

    def explained(points: Sequence[Named], _: Sequence[Named]) -> Data:
        return hessian(run.graph, run.wrt, points, notes, warn=False)

    def columns() -> Columns:
        return hessian_columns(output, slopes, run.wrt)

    answer(run, files, style, Question("Hessians", columns, _printer(run, explained), _bad), notes)


def _with_tangents(run: ManyPoints, given: Sequence[str], notes: Notes) -> ManyPoints:
    """Return the run with its tangents: those of `--u`, or of the file."""
    leaves = {name: run.graph.inputs[name] for name in run.wrt}
    return run.seeded("u", leaves, given, notes) or run.with_seeds("u", read_tangent(leaves, given, notes))


def _printer(
    run: ManyPoints, explained: Callable[[Sequence[Named], Sequence[Named]], Data]
) -> Callable[[Sequence[Named]], Printed]:
    """Return what prints the result of each point, with its tangents, as `--at` prints it."""

    def printed(points: Sequence[Named]) -> Printed:
        tangents = [{n: p[f"{n}.u"] for n in run.wrt if f"{n}.u" in p} for p in points]
        result = explained([run.inputs(p) for p in points], tangents)
        rows = [row_of(row) for row in result.rows()]
        known = {*run.graph.inputs, *run.graph.outputs}
        values = [{n: row[n] for n in run.graph.outputs} for row in rows]
        found = [{n: value for n, value in row.items() if n not in known} for row in rows]
        return Printed(json_lines(result), values, found)

    return printed


def _bad(_: Named, found: Named) -> str:
    """Return which of the numbers found at a point is not finite."""
    name = next(name for name, value in found.items() if not np.isfinite(value).all())
    return f"`{name}` is not finite: a local derivative on the way is not"
