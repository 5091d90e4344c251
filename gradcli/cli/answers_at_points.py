"""The answer to a question at the points of a file: computed block by block, written, and checked to be finite."""

from __future__ import annotations

from dataclasses import replace

import click
import numpy as np

from gradcli.batch.job import Job, Tally
from gradcli.batch.progress import progress
from gradcli.cli.inputs.file_points import FilePoints
from gradcli.cli.options import Files
from gradcli.cli.output import wrote
from gradcli.data.block import COPIED, Block
from gradcli.data.formats import create_result
from gradcli.errors import Notes, option_error
from gradcli.graph.array import Array
from gradcli.graph.construct import total
from gradcli.graph.graph import Graph
from gradcli.graph.shapes import size_of
from gradcli.pages.not_finite import not_finite_values
from gradcli.pages.question import Columns, Question
from gradcli.pages.results import Row
from gradcli.report.data import json

_JSON_BLOCK = 2**15  # points that are read at a time for JSON, and
_READ = 2**20  # numbers
_STEPPED = 2**10  # points whose steps are computed at a time
_WRITTEN = 2**18  # numbers in lines of JSON that are text at a time


def answer_file(run: FilePoints, question: Question) -> None:
    """Compute the outputs of a question at all points of a file, and warn of values that are not finite.

    Errors: `InputError` for points that cannot be read and results that cannot be written.
    """
    run.add_seeds(question.seeds)
    tally = _print_json(run, question) if run.prints_json else _write(run, question.columns())
    run.note_skipped(tally.skipped)
    if not tally.points:
        run.notes.add("note", f"{run.label} contains no points, so the result has no rows")
    if (checked := tally.checked) is not None and checked.not_finite:
        # An engine that rounds in another way than NumPy may have a sum that is not finite alone.
        first = [*not_finite_values(run.graph, run.point(checked.at), run.same), "a sum in it overflows"]
        _warn(checked, "values", first[0], run.notes)
    if tally.not_finite:
        _warn(tally, question.plural, question.origin(run.point(tally.at), tally.results), run.notes)
    if (output := run.files.output) not in (None, "-"):
        run.notes.lines.append(wrote(output, f"{tally.points:,} point{'s' * (tally.points != 1)}"))


def _warn(tally: Tally, what: str, first: str, notes: Notes) -> None:
    wrong = f"the {what} of {tally.not_finite:,} of {tally.points:,} points are not finite"
    notes.add("warning", f"{wrong};\n  at the first, point {tally.first + 1:,}, {first}")


def _print_json(run: FilePoints, question: Question) -> Tally:
    """Print a line of JSON for each point of the file, as `--at` does for its points."""
    tally = Tally(checked=(checked := Tally()))
    known = {*run.graph.inputs, *run.graph.outputs}
    show = _show_block if question.wanted.block else _show_points
    most = 1  # until the first line says how many numbers it has
    for block in run.blocks(int(np.clip(_READ // sum(map(size_of, run.varying.values())), 1, _JSON_BLOCK))):
        start, count = 0, next(iter(block.values())).shape[-1]
        while start < count:
            some = {name: value[..., start : start + most] for name, value in block.items()}
            start += most
            copied = {header: some.pop(COPIED + header) for header in run.kept}
            row, most = show(run, question, some, copied)
            arrays = dict(row)
            checked.add(some, {name: arrays[name] for name in run.graph.outputs})
            tally.add(some, {names: value for names, value in arrays.items() if names not in known})
            tally.skipped = run.points.skipped
    tally.results = _by_name([*tally.results.items()])
    return tally


def _show_block(run: FilePoints, question: Question, block: Block, copied: Block) -> tuple[Row, int]:
    """Print the lines of a block of points; return their arrays, and how many points a block may have."""
    result = question.result([{**run.same, **block}], run.notes)
    lines, pieces = json.block_lines(replace(result, copied=[copied] if copied else ()))
    click.echo(lines)
    (row,) = result.rows()
    return row, max(1, _WRITTEN // pieces)


def _show_points(run: FilePoints, question: Question, block: Block, copied: Block) -> tuple[Row, int]:
    """Print the lines of a block of points one by one, as steps are; the rest is as in `_show_block`."""
    count = next(iter(block.values())).shape[-1]
    points = [run.point({name: value[..., k] for name, value in block.items()}) for k in range(count)]
    values = [{header: column[k] for header, column in copied.items()} for k in range(count)]
    result = question.result(points, run.notes)
    click.echo("\n".join(json.lines(replace(result, copied=values if copied else ()))))
    rows = [dict(row) for row in result.rows()]
    return [(names, np.stack([row[names] for row in rows], axis=-1)) for names in rows[0]], _STEPPED


def _write(run: FilePoints, columns: Columns) -> Tally:
    """Compute the columns at all points, and write them; outputs are computed to see whether they are finite."""
    values = run.graph.outputs if run.files.values else {}
    names = [*values, *(n for name in columns.graph.outputs for n in columns.names.get(name, [name]))]
    if repeated := next((header for header in run.kept if header in names), None):
        raise option_error("--keep", f"--keep: the result has a column `{repeated}` of its own", text=repeated)
    # Numbers that are finite where the outputs are.
    checks = {f"0*{name}": total(0 * y) if y.shape else y for name, y in run.graph.outputs.items()}
    graph = Graph.of(columns.graph.inputs, {**values, **columns.graph.outputs, **checks})
    files = run.files
    job = Job(graph, run.varying, run.same, columns.names, files.engine, files.threads, frozenset(checks))
    job = replace(job, values=frozenset(values), kept=run.kept, reading=run.reading)
    if files.engine == "dask":
        return _write_on_cluster(job, files)
    with (
        create_result("-" if files.output is None else files.output, job.shapes, columns.names) as write,
        progress(lambda: run.points.fraction) as shown,
    ):
        return job.run(run.points, write, run.notes, shown)


def _write_on_cluster(job: Job, files: Files) -> Tally:
    from gradcli.batch.cluster import run_on_cluster

    assert files.points is not None
    assert files.output is not None
    share = 0.0

    def report_both(count: int, so_far: float) -> None:
        nonlocal share
        share = so_far
        shown(count)

    with progress(lambda: share) as shown:
        return run_on_cluster(job, files.points, files.output, files.scheduler, report_both)


def _by_name(cells: Row) -> dict[str, Array]:
    """Return the arrays of a row by their names; where elements have names of their own, each by its own."""
    result: dict[str, Array] = {}
    for names, array in cells:
        result |= {names: array} if isinstance(names, str) else dict(zip(names, array.reshape(-1), strict=True))
    return result
