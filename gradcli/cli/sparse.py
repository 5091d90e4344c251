"""J at one point by its entries that are not zero everywhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

import numpy as np

from gradcli.cli.options import Files, SystemOptions, format_of
from gradcli.cli.outcome import print_notes, show
from gradcli.cli.situation import read_situation
from gradcli.errors import InputError, Notes
from gradcli.explain.jacobian.sparse import sparse_jacobian
from gradcli.lang.system import System
from gradcli.report.render import PAGES, data_lines

_LINES = 1_000  # that are printed at a time: one by one, printing takes longer than all else
_ENDINGS = {".csv": "csv", ".json": "json", ".npz": "npz"}


def show_sparse(system: System, options: SystemOptions, files: Files, notes: Notes, numeric: bool) -> None:
    """Print the entries, or write them to a file: `.csv`, `.json`, or the `.npz` of `scipy.sparse`.

    If `numeric`, formulas are left out.

    Errors: `InputError` for a page, for several points, for a file with another extension.
    """
    _ = files._replace(output=None).wanted  # raises an error for options of many points
    output = None if files.output == "-" else files.output
    if options.style in PAGES:
        raise InputError(
            f"-f {options.style} shows whole Jacobians",
            hint="--sparse is for -f json and -f csv",
            options=("-f",),
            text=options.style,
        )
    if output is not None and PurePath(output).suffix.lower() not in _ENDINGS:
        raise InputError(
            "--sparse writes .csv, .json and .npz files", hint="for example --output J.npz", options=("--sparse",)
        )
    style = format_of(options.style, output, _ENDINGS) or "csv"
    situation = read_situation(system, options, notes)
    if len(situation.points) > 1:
        raise InputError(
            "--sparse shows one point", hint="many points are given with --points FILE", options=("--sparse",)
        )
    at = situation.points[0] if situation.points else None
    if at is None and style == "npz":
        raise InputError("a .npz file has the numbers at a point", hint="give one with --at")
    if numeric and at is None:
        raise InputError(
            "--numeric shows numbers, which need a point", hint="give one with --at", options=("--numeric",)
        )
    result = sparse_jacobian(situation.graph, situation.wrt, at, notes, numeric or style != "json")
    if output is None:
        show(_together(data_lines(result, style)), notes)
        return
    from gradcli.data.replacement import write_whole

    if style == "npz":
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **result.archive())  # type: ignore[arg-type]
        write_whole(output, buffer.getvalue())
    else:
        write_whole(output, "".join(f"{line}\n" for line in data_lines(result, style)).encode())
    print_notes(notes)


def _together(lines: Iterator[str]) -> Iterator[str]:
    """Yield many lines as one text."""
    while some := [*islice(lines, _LINES)]:
        yield "\n".join(some)
