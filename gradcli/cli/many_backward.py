"""vᵀJ at many points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradcli.cli.cotangents import read_calls
from gradcli.cli.many import Question, answer
from gradcli.cli.many_points import ManyPoints
from gradcli.errors import InputError
from gradcli.explain.backward.result import backward
from gradcli.explain.columns import Columns
from gradcli.explain.origin import not_finite
from gradcli.explain.results import Wanted
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep
from gradcli.report.data_lines import Data

if TYPE_CHECKING:
    from gradcli.cli.backward import Backward


def backward_at_points(run: ManyPoints, asked: Backward) -> None:
    """Write vᵀJ at all points, with the cotangents of the file, or with those of `--v` at every point.

    Errors: `InputError` for cotangents that do not fit the outputs, and for cotangents in both places.
    """
    if asked.steps and not run.prints_json:
        raise InputError("--steps shows single points", hint="add -f json, or give the points with --at")
    run, calls = _with_cotangents(run, asked)
    swept = sweep(run.graph, run.wrt, asked.retain)
    wanted = Wanted(asked.retain, asked.steps, warn=False)

    def columns() -> Columns:
        grads = {f"{name}.grad": swept.gradients[name] for name in (*run.wrt, *asked.retain)}
        return Columns(Graph.of(swept.graph.inputs, grads))

    def explained(points: Sequence[Named]) -> Data:
        own = [calls or [{n: p[f"{n}.v"] for n in run.graph.outputs}] for p in points]
        return backward(run.graph, run.wrt, run.inputs(points), own, wanted, run.notes)

    def origin(point: Named, found: Named) -> str:
        at = {name: value[..., None] for name, value in point.items()}
        return not_finite(swept, at, {n: found[f"{n}.grad"] for n in (*run.wrt, *asked.retain)})[0]

    answer(run, Question("gradients", columns, explained, origin))


def _with_cotangents(run: ManyPoints, asked: Backward) -> tuple[ManyPoints, list[Named] | None]:
    """Return the run with its cotangents, and the calls of `--v`: None where the file has cotangents."""
    outputs = run.graph.outputs
    if seeded := run.seeded("v", outputs, asked.cotangents):
        return seeded, None
    calls = read_calls(outputs, None, asked.cotangents, asked.strict, run.notes)[0]
    return run.with_seeds("v", {n: np.sum([c[n] for c in calls], axis=0) for n in calls[0]}), calls
