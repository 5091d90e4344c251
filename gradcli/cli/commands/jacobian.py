"""gradcli jacobian: the symbolic Jacobian, and its value at points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemOptions, asking, format_of, page_of_file
from gradcli.errors import InputError, Notes, option_error

if TYPE_CHECKING:
    from gradcli.cli.answer import Points
    from gradcli.pages.question import Question, Result
    from gradcli.pages.sections import Page

_LINES = 1_000  # that are printed at a time: one by one, printing takes longer than all else
_ENDINGS = {".csv": "csv", ".json": "json", ".npz": "npz"}  # of a file of entries

SECTIONS = {
    "system": "the statements and their values",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass, and a reverse pass for each row of J",
}


@asking(
    SECTIONS,
    click.option("--sparse", is_flag=True),
    click.option("--steps", is_flag=True),
    click.option("--order", type=click.IntRange(1, 10), metavar="N"),
    click.option("--numeric", is_flag=True),
)
def jacobian(
    options: SystemOptions, sparse: bool, steps: bool, order: int | None, numeric: bool, pages: Pages, many: Files
) -> None:
    """Show the Jacobian: J[i, j] = ∂y_i/∂x_j.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  Inputs are the names that are used
    but never assigned.  Outputs are the assigned names that no later statement uses.  Without --at, J is in formulas.

    Options:
        --sparse: Only the entries that are not zero everywhere: as json, csv or .npz.
        --steps: Show the forward pass, and a reverse pass for each row.
        --order: For a scalar output of one input: derivatives up to this order.
        --numeric: Numbers alone: formulas are left out.  It needs a point.

    Examples:
        gradcli jacobian "y=x**2"
        gradcli jacobian "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2
        gradcli jacobian "y=x@M" --shape x=2,M=2x2 --wrt x
        gradcli jacobian "y=sin(a*b)" -f json
        gradcli jacobian "y=exp(-x)*sin(x)" --order 3 --at x=0
        gradcli jacobian "y=x**3" --at "x=[1,2,3]" --sparse
        gradcli jacobian "y0=a*b" "y1=b**2" --points samples/points.csv

    """
    from gradcli.cli.answer import answer

    if numeric and (steps or order is not None):
        message, both = "--numeric leaves formulas out, which --steps and --order show", ("--steps", "--order")
        raise InputError(message, hint="leave one of them out", options=("--numeric", *both))
    if sparse and many.points is None:
        _show_sparse(options, many, numeric)
        return
    if many.are_many and order is not None and not page_of_file(options.style, many):
        raise option_error("--order", "--order is for single points", "give them with --at")

    def ask(points: Points) -> Question:
        from gradcli.pages.jacobian.question import Jacobian, check_whole

        graph, wanted = points.graph, points.wanted
        if points.of_file:
            if sparse and points.prints_json:
                raise option_error("-f", "-f json shows whole Jacobians", "leave out --sparse, or take -f csv", "json")
            if not sparse:
                check_whole(graph, points.wrt)
            arrays = f"{many.output}".lower().endswith(".npz")  # which has an array for each entry
            return Jacobian(graph, points.wrt, wanted, sparse=sparse, alone=arrays)
        if numeric and not points.count:
            raise option_error("--numeric", "--numeric shows numbers, which need a point", "give one with --at")
        if order is not None:
            from gradcli.pages.forward.taylor import Taylor

            return Taylor(graph, points.wrt, wanted, order)
        wanted = wanted._replace(steps=wanted.page and (steps or "steps" in pages.only))
        return Jacobian(graph, points.leaves, wanted, numeric)

    def paged(result: Result, notes: Notes) -> list[Page]:
        if order is not None:
            from gradcli.pages.forward.taylor import taylor_pages

            return taylor_pages(result)
        from gradcli.pages.jacobian.page import jacobian_pages

        return jacobian_pages(result, pages.only, numeric)

    answer(options, many, pages, ask, paged)


def _show_sparse(options: SystemOptions, files: Files, numeric: bool) -> None:
    """Print the entries, or write them to a file: `.csv`, `.json`, or the `.npz` of `scipy.sparse`.

    If `numeric`, formulas are left out.

    Errors: `InputError` for a page, for several points, for a file with another extension.
    """
    from gradcli.cli.inputs.system import read_situation, read_system_of
    from gradcli.cli.output import print_notes, save, show
    from gradcli.pages.jacobian.question import sparse_jacobian
    from gradcli.report.render import PAGES, data_lines

    notes = Notes()
    _ = files._replace(output=None).are_many  # raises an error for options of many points
    output = None if files.output == "-" else files.output
    if options.style in PAGES:
        message = f"-f {options.style} shows whole Jacobians"
        raise option_error("-f", message, "--sparse is for -f json and -f csv", options.style)
    if output is not None and PurePath(output).suffix.lower() not in _ENDINGS:
        raise option_error("--sparse", "--sparse writes .csv, .json and .npz files", "for example --output J.npz")
    style = format_of(options.style, output, _ENDINGS) or "csv"
    situation = read_situation(read_system_of(options), options, notes)
    at = situation.only("--sparse shows one point", "many points are given with --points FILE", "--sparse")
    if at is None and style == "npz":
        raise InputError("a .npz file has the numbers at a point", hint="give one with --at")
    if numeric and at is None:
        raise option_error("--numeric", "--numeric shows numbers, which need a point", "give one with --at")
    result = sparse_jacobian(situation.graph, situation.wrt, at, notes, numeric or style != "json")
    if output is None:
        show(_together(data_lines(result, style)), notes)
        return
    print_notes(notes)
    count = len(result.matrix.rows)
    what = f"{'×'.join(map(str, result.matrix.shape))}, {count:,} {'entry' if count == 1 else 'entries'}"
    if style == "npz":
        import io

        import numpy as np

        buffer = io.BytesIO()
        np.savez_compressed(buffer, **result.archive())  # type: ignore[arg-type]
        save(output, buffer.getvalue(), f"csr, {what}")
    else:
        save(output, "".join(f"{line}\n" for line in data_lines(result, style)).encode(), what)


def _together(lines: Iterator[str]) -> Iterator[str]:
    """Yield many lines as one text."""
    while some := [*islice(lines, _LINES)]:
        yield "\n".join(some)
