"""Runs over many points: what a command asks at each of them is computed, written, and what is not finite told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import click
import numpy as np

from gradcli.batch.job import Job, Tally
from gradcli.batch.progress import progress
from gradcli.cli.many_points import ManyPoints
from gradcli.cli.options import Files
from gradcli.data.result import create_result
from gradcli.errors import Notes
from gradcli.explain.columns import Columns
from gradcli.explain.origin import not_finite_values
from gradcli.graph.array import Named
from gradcli.graph.construct import total
from gradcli.graph.graph import Graph
from gradcli.report.data_lines import Data, json_lines, row_of

_JSON_BLOCK = 2**10  # points whose steps of JSON are worked out at a time


class Question(NamedTuple):
    """What is asked at each point.

    `what` it is called where some are not finite, and `origin` says where the first of those arose: it gets the point
    and what was found there.  A file gets `columns`, and JSON what is `explained` of points, as at those of `--at`.
    """

    what: str
    columns: Callable[[], Columns]
    explained: Callable[[Sequence[Named]], Data]
    origin: Callable[[Named, Named], str]


def answer(run: ManyPoints, question: Question) -> None:
    """Answer a question at all points of a run, and warn of what is not finite.

    Errors: `InputError` for points that cannot be read and results that cannot be written.
    """
    tally = _print(run, question) if run.prints_json else _write(run, question.columns())
    if not tally.points:
        run.notes.add("note", f"{run.label} holds no points, so the result has no rows")
    if (checked := tally.checked) is not None and checked.not_finite:
        told = not_finite_values(run.graph, run.point(checked.at))
        # A sum in another order may be finite.
        _warn(
            checked, "values", told[0] if told else "a value is not finite: it arises where terms are added", run.notes
        )
    if tally.not_finite:
        _warn(tally, question.what, question.origin(run.point(tally.at), tally.found), run.notes)


def _warn(tally: Tally, what: str, first: str, notes: Notes) -> None:
    notes.add(
        "warning",
        f"the {what} of {tally.not_finite:,} of {tally.points:,} points are not finite;"
        f"\n  at the first, point {tally.first + 1:,}, {first}",
    )


def _print(run: ManyPoints, question: Question) -> Tally:
    """Print what `--at` prints, for each point of the file."""
    tally = Tally(checked=(checked := Tally()))
    for block, points in run.blocks(_JSON_BLOCK):
        result = question.explained(points)
        click.echo("\n".join(json_lines(result)))
        rows = [dict(row) for row in result.rows()]
        found = {names: np.stack([row[names] for row in rows], axis=-1) for names in rows[0]}
        checked.add(block, {name: found[name] for name in run.graph.outputs})
        known = {*run.graph.inputs, *run.graph.outputs}
        tally.add(block, {names: value for names, value in found.items() if names not in known})
    tally.found = row_of([*tally.found.items()])
    return tally


def _write(run: ManyPoints, columns: Columns) -> Tally:
    """Compute the columns at all points, and write them; outputs are computed to see whether they are finite."""
    # Numbers that are finite where the outputs are.
    checks = {name: total(0 * y) if y.shape else y for name, y in run.graph.outputs.items()}
    graph = Graph.of(columns.graph.inputs, {**columns.graph.outputs, **checks})
    files = run.files
    job = Job(graph, run.varying, run.same, columns.names, files.engine, files.threads, frozenset(checks))
    if files.engine == "dask":
        return _write_on_cluster(job, files)
    with (
        create_result("-" if files.output is None else files.output, job.shapes, columns.names) as result,
        progress(lambda: run.points.fraction) as told,
    ):
        return job.run(run.points, result, run.notes, told)


def _write_on_cluster(job: Job, files: Files) -> Tally:
    from gradcli.batch.cluster import run_on_cluster

    assert files.points is not None
    assert files.output is not None
    share = 0.0

    def told_both(count: int, so_far: float) -> None:
        nonlocal share
        share = so_far
        told(count)

    with progress(lambda: share) as told:
        return run_on_cluster(job, files.points, files.output, files.scheduler, told_both)
