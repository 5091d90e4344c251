"""J·u, H·u and the Hessian at many points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gradcli.cli.many import Question, answer
from gradcli.cli.many_points import ManyPoints
from gradcli.cli.tangents import read_tangent
from gradcli.explain.columns import Columns, hessian_columns
from gradcli.explain.forward.jvp import jvp
from gradcli.explain.hessian.result import hessian, hvp, lower_half
from gradcli.explain.results import Wanted
from gradcli.explain.shared import check_entries
from gradcli.graph import hessian as second
from gradcli.graph.array import Named
from gradcli.graph.jvp import push
from gradcli.report.data_lines import Data


def jvp_at_points(run: ManyPoints, tangent: Sequence[str]) -> None:
    """Write J·u at all points.

    Errors: `InputError` for tangents that do not fit the leaves, and for tangents in both places.
    """
    run = _with_tangents(run, tangent)

    def explained(points: Sequence[Named]) -> Data:
        u = _tangents(run, points)
        return jvp(run.graph, run.wrt, run.inputs(points), u, [], run.notes, Wanted(warn=False))

    def columns() -> Columns:
        return Columns(push(run.graph, run.wrt).graph)

    answer(run, Question("products J·u", columns, explained, _bad))


def hvp_at_points(run: ManyPoints, tangent: Sequence[str]) -> None:
    """Write H·u at all points.

    Errors: `InputError` as for `jvp_at_points`, and when there is more than one scalar output.
    """
    second.scalar_output(run.graph)
    run = _with_tangents(run, tangent)

    def explained(points: Sequence[Named]) -> Data:
        return hvp(run.graph, run.wrt, run.inputs(points), _tangents(run, points), run.notes, Wanted(warn=False))

    def columns() -> Columns:
        return Columns(second.hvp(run.graph, run.wrt))

    answer(run, Question("products H·u", columns, explained, _bad))


def hessian_at_points(run: ManyPoints) -> None:
    """Write the Hessian at all points.

    Errors: `InputError` for more than a million entries, and when there is more than one scalar output.
    """
    output, _ = second.scalar_output(run.graph)
    slopes = second.gradient(run.graph, run.wrt)
    check_entries(slopes, run.wrt, "choose some inputs with --wrt; --u gives H·u without H", "Hessian")

    written = cache(lower_half)

    def explained(points: Sequence[Named]) -> Data:
        return hessian(run.graph, run.wrt, run.inputs(points), run.notes, Wanted(warn=False), written)

    def columns() -> Columns:
        return hessian_columns(output, slopes, run.wrt)

    answer(run, Question("Hessians", columns, explained, _bad))


def _with_tangents(run: ManyPoints, given: Sequence[str]) -> ManyPoints:
    """Return the run with its tangents: those of `--u`, or of the file."""
    leaves = {name: run.graph.inputs[name] for name in run.wrt}
    return run.seeded("u", leaves, given) or run.with_seeds("u", read_tangent(leaves, given, run.notes))


def _tangents(run: ManyPoints, points: Sequence[Named]) -> list[Named]:
    return [{name: point[f"{name}.u"] for name in run.wrt} for point in points]


def _bad(_: Named, found: Named) -> str:
    """Return which of the numbers found at a point is not finite."""
    name = next(name for name, value in found.items() if not np.isfinite(value).all())
    return f"`{name}` is not finite: a local derivative on the way is not"
