"""vᵀJ at many points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradcli.cli.cotangents import read_calls
from gradcli.cli.many import Printed, Question, answer, prints_json
from gradcli.cli.many_points import ManyPoints
from gradcli.cli.options import Files
from gradcli.errors import InputError, Notes
from gradcli.explain.backward import backward
from gradcli.explain.columns import Columns
from gradcli.explain.origin import not_finite
from gradcli.explain.results import Wanted
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep
from gradcli.report.data_lines import json_lines

if TYPE_CHECKING:
    from gradcli.cli.backward import Backward


def backward_at_points(run: ManyPoints, files: Files, style: str | None, asked: Backward, notes: Notes) -> None:
    """Write vᵀJ at all points, with the cotangents of the file, or with those of `--v` at every point.

    Errors: `InputError` for cotangents that do not fit the outputs, and for cotangents in both places.
    """
    if asked.steps and not prints_json(files, style):
        raise InputError("--steps shows single points", hint="add -f json, or give the points with --at")
    run, calls = _with_cotangents(run, asked, notes)
    swept = sweep(run.graph, run.wrt, asked.retain)
    wanted = Wanted(asked.retain, asked.steps, warn=False)

    def columns() -> Columns:
        grads = {f"{name}.grad": swept.gradients[name] for name in (*run.wrt, *asked.retain)}
        return Columns(Graph.of(swept.graph.inputs, grads))

    def printed(points: Sequence[Named]) -> Printed:
        own = [calls or [{n: p[f"{n}.v"] for n in run.graph.outputs}] for p in points]
        result = backward(run.graph, run.wrt, [run.inputs(p) for p in points], own, wanted, notes)
        grads = [{f"{n}.grad": g for n, g in (p.grad | p.retained).items()} for p in result.points]
        return Printed(json_lines(result), [p.value for p in result.points], grads)

    def origin(point: Named, found: Named) -> str:
        at = {name: value[..., None] for name, value in point.items()}
        return not_finite(swept, at, {n.removesuffix(".grad"): g for n, g in found.items()})[0]

    answer(run, files, style, Question("gradients", columns, printed, origin), notes)


def _with_cotangents(run: ManyPoints, asked: Backward, notes: Notes) -> tuple[ManyPoints, list[Named] | None]:
    """Return the run with its cotangents, and the calls of `--v`: None where the file has cotangents."""
    outputs = run.graph.outputs
    if seeded := run.seeded("v", outputs, asked.cotangents, notes):
        return seeded, None
    calls = read_calls(outputs, None, asked.cotangents, asked.strict, notes)[0]
    return run.with_seeds("v", {n: np.sum([c[n] for c in calls], axis=0) for n in calls[0]}), calls
