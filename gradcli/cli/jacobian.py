"""gradcli jacobian: the symbolic Jacobian, and its value at points."""

from __future__ import annotations

import click

from gradcli.cli.options import (
    PAGES,
    Files,
    Pages,
    SystemCommand,
    columns,
    file_options,
    page_options,
    read_situation,
    read_sources,
    system_options,
)
from gradcli.cli.sections import JACOBIAN

EXAMPLES = """\b
Examples:
  gradcli jacobian "y=x**2"
  gradcli jacobian "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2
  gradcli jacobian "y=x@M" --shape x=2,M=2x2 --wrt x
  gradcli jacobian "y=sin(a*b)" -f json
  gradcli jacobian "y0=a*b" "y1=b**2" --points samples/points.csv
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@system_options
@click.option("--sparse", is_flag=True, help="Of many points, write only the entries that are not zero everywhere.")
@page_options(JACOBIAN)
@file_options
def jacobian(
    expr: tuple[str, ...],
    files: tuple[str, ...],
    at: tuple[str, ...],
    shapes: tuple[str, ...],
    wrt: str | None,
    outputs: str | None,
    style: str | None,
    sparse: bool,
    pages: Pages,
    many: Files,
) -> None:
    """Show the Jacobian: J[i, j] = ∂y_i/∂x_j.

    EXPR is a statement NAME = EXPRESSION, or several, parted by ; or newlines.  Inputs are the names that are used but
    never assigned, outputs the assigned names that no later statement uses.  With --at, the Jacobian's value too.
    """
    from gradcli.cli.run import show, tell_notes
    from gradcli.errors import InputError, Notes
    from gradcli.explain.jacobian import jacobian as explained
    from gradcli.explain.pages import Choice, jacobian_pages
    from gradcli.lang.system import read_system
    from gradcli.report.render import render_data, render_pages

    notes = Notes()
    system = read_system(read_sources(expr, files, ["--points"] if many.points == "-" else []))
    if many.wanted:
        from gradcli.cli.many import ManyPoints

        with ManyPoints(system, many, at, shapes, wrt, outputs, style, notes) as run:
            run.jacobian(sparse)
        tell_notes(notes)
        return
    if sparse:
        raise InputError("--sparse is for many points", hint="give them with --points FILE")
    situation = read_situation(system, at, shapes, wrt, outputs)
    style = style or "table"
    look = pages.look(style)
    result = explained(situation.graph, columns(situation, wrt, style), situation.points, notes)
    if style in PAGES:
        show(render_pages(jacobian_pages(result, Choice(pages.only)), look), notes)
    else:
        show(render_data(result, style), notes)
