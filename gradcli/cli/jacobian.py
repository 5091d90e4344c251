"""gradcli jacobian: the symbolic Jacobian, and its value at points."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from gradcli.cli.options import Files, Pages, SystemCommand, SystemOptions, file_options, page_options, system_options

if TYPE_CHECKING:
    from gradcli.explain.sections import Page
    from gradcli.lang.system import System

SECTIONS = {
    "system": "the statements and their values",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass, and a reverse pass for each row of J",
}
EXAMPLES = """\b
Examples:
  gradcli jacobian "y=x**2"
  gradcli jacobian "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2
  gradcli jacobian "y=x@M" --shape x=2,M=2x2 --wrt x
  gradcli jacobian "y=sin(a*b)" -f json
  gradcli jacobian "y=exp(-x)*sin(x)" --order 3 --at x=0
  gradcli jacobian "y=x**3" --at "x=[1,2,3]" --sparse
  gradcli jacobian "y0=a*b" "y1=b**2" --points samples/points.csv
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@system_options
@click.option("--sparse", is_flag=True, help="Only the entries that are not zero everywhere: as json, csv or .npz.")
@click.option("--steps", is_flag=True, help="Show the forward pass, and a reverse pass for each row.")
@click.option(
    "--order",
    type=click.IntRange(1, 10),
    metavar="N",
    help="For a scalar output of one input: derivatives up to this order.",
)
@click.option("--numeric", is_flag=True, help="Numbers alone: formulas are left out.  It needs a point.")
@page_options(SECTIONS)
@file_options
def jacobian(
    options: SystemOptions, sparse: bool, steps: bool, order: int | None, numeric: bool, pages: Pages, many: Files
) -> None:
    """Show the Jacobian: J[i, j] = ∂y_i/∂x_j.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  Inputs are the names that are used
    but never assigned.  Outputs are the assigned names that no later statement uses.  Without --at, J is in formulas.
    """
    from gradcli.cli.situation import read_system_of
    from gradcli.errors import InputError

    if numeric and (steps or order is not None):
        raise InputError(
            "--numeric leaves formulas out, which --steps and --order show",
            hint="leave one of them out",
            options=("--numeric", "--steps", "--order"),
        )
    system = read_system_of(options, points=many.points)
    if sparse and many.points is None:
        from gradcli.cli.sparse import show_sparse
        from gradcli.errors import Notes

        show_sparse(system, options, many, Notes(), numeric)
    elif many.wanted:
        if order is not None:
            raise InputError("--order is for single points", hint="give them with --at", options=("--order",))
        _answer_file(system, options, sparse, many)
    else:
        _show(system, options, _Shown(steps, order, numeric, pages))


class _Shown(NamedTuple):
    """The options of a page of J."""

    steps: bool
    order: int | None
    numeric: bool
    pages: Pages


def _answer_file(system: System, options: SystemOptions, sparse: bool, many: Files) -> None:
    """Write J at each point of a file."""
    from gradcli.cli.answer import answer
    from gradcli.cli.file_points import open_many
    from gradcli.errors import InputError
    from gradcli.explain.columns import check_whole
    from gradcli.explain.jacobian.dense import Jacobian

    with open_many(system, options, many) as run:
        if run.prints_json and sparse:
            raise InputError(
                "-f json shows whole Jacobians",
                hint="leave out --sparse, or take -f csv",
                options=("-f",),
                text="json",
            )
        if not sparse:
            check_whole(run.graph, run.wrt)
        arrays = f"{many.output}".lower().endswith(".npz")  # which has an array for each entry
        answer(run, Jacobian(run.graph, run.wrt, run.wanted(None), sparse, alone=arrays))


def _show(system: System, options: SystemOptions, shown: _Shown) -> None:
    """Show J at the points of `--at`, or in formulas; with an order, the derivatives up to it."""
    from gradcli.cli.outcome import show_result
    from gradcli.cli.situation import read_situation, shown_leaves
    from gradcli.errors import InputError, Notes
    from gradcli.explain.results import Wanted

    notes, pages = Notes(), shown.pages
    look, page = pages.look(options.style), options.page is not None
    situation = read_situation(system, options, notes)
    if shown.numeric and not situation.points:
        raise InputError(
            "--numeric shows numbers, which need a point", hint="give one with --at", options=("--numeric",)
        )
    if shown.order is not None:
        from gradcli.explain.forward.taylor import taylor

        wanted = Wanted(page=page, same=situation.same)
        derivatives = taylor(situation.graph, situation.wrt, situation.points, shown.order, notes, wanted)
        show_result(derivatives, derivatives.pages, look, notes)
        return
    from gradcli.explain.jacobian.dense import Jacobian

    wanted = Wanted(steps=page and (shown.steps or "steps" in pages.only), page=page, same=situation.same)
    question = Jacobian(situation.graph, tuple(shown_leaves(situation, options)), wanted)
    result = question.result(situation.points, notes)
    if shown.numeric:
        from gradcli.explain.jacobian.numbers import NumericJacobianResult, numeric_pages

        numbers = NumericJacobianResult.of(result)
        show_result(numbers, lambda: numeric_pages(numbers, pages.only), look, notes)
        return

    def paged() -> list[Page]:
        from gradcli.explain.jacobian.jacobian_page import jacobian_pages

        return jacobian_pages(result, pages.only)

    show_result(result, paged, look, notes)
