"""gradcli jvp: the Jacobian–vector product J·u, by forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemCommand, SystemOptions, file_options, page_options, system_options

if TYPE_CHECKING:
    from gradcli.lang.system import System

SECTIONS = {
    "system": "the statements and their values",
    "u": "how fast the inputs change",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass with its tangents",
    "jvp": "J·u, with its arithmetic",
    "pairing": "vᵀ(J·u) and (vᵀJ)·u",
}
EXAMPLES = """\b
Examples:
  gradcli jvp "y=x**2" --at x=3
  gradcli jvp "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --u x0=1,x1=2
  gradcli jvp "h=x*a" "y=sin(h)" --at x=1,a=2 --u a=1 --steps
  gradcli jvp "y=x@M" --at "x=[1,2],M=[[1,2],[3,4]]" --u "x=[1,0]" --v 1,10
  gradcli jvp "y0=a*b" "y1=b**2" --points samples/points.csv --u a=1
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@system_options
@click.option(
    "--u",
    "tangent",
    metavar="NAME=VALUE,…",
    multiple=True,
    help="The tangent; an input left out has 0, and a single scalar input 1.",
)
@click.option("--v", "cotangents", metavar="V", multiple=True, help="A cotangent: shows vᵀ(J·u) = (vᵀJ)·u too.")
@click.option("--steps", is_flag=True, help="Show the forward table, each value with its tangent.")
@page_options(SECTIONS)
@file_options
def jvp(
    options: SystemOptions,
    tangent: tuple[str, ...],
    cotangents: tuple[str, ...],
    steps: bool,
    pages: Pages,
    many: Files,
) -> None:
    """Show J·u: how fast the outputs change when the inputs change at the rates u.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  Forward mode computes J·u in one
    pass over the system, without J.  Without --at, the result is formulas.
    """
    from gradcli.cli.situation import read_system_of
    from gradcli.errors import InputError

    system = read_system_of(options, cotangents, many.points)
    if not many.wanted:
        _show(system, options, tangent, cotangents, steps, pages)
        return
    from gradcli.cli.answer import answer
    from gradcli.cli.file_points import open_many
    from gradcli.cli.tangents import read_tangent
    from gradcli.explain.forward.jvp import JacobianProduct

    if steps or cotangents:
        option = "--steps" if steps else "--v"
        raise InputError(f"{option} is for single points", hint="give the points with --at", options=(option,))
    with open_many(system, options, many) as run:
        leaves = {name: run.graph.inputs[name] for name in run.wrt}
        of_file = run.with_columns("u", leaves, tangent)
        u = None if of_file else read_tangent(leaves, tangent, run.notes)
        run = of_file or run
        answer(run, JacobianProduct(run.graph, run.wrt, u, [], run.wanted(u)))


def _show(
    system: System, options: SystemOptions, tangent: Sequence[str], cotangents: Sequence[str], steps: bool, pages: Pages
) -> None:
    """Show J·u at the points of `--at`, or in formulas."""
    import numpy as np

    from gradcli.cli.cotangents import read_calls
    from gradcli.cli.outcome import show_result
    from gradcli.cli.situation import read_situation
    from gradcli.cli.tangents import read_tangent
    from gradcli.errors import InputError, Notes
    from gradcli.explain.evaluation import seeded
    from gradcli.explain.forward.jvp import JacobianProduct
    from gradcli.explain.forward.jvp_page import jvp_pages
    from gradcli.explain.results import Wanted

    notes = Notes()
    look = pages.look(options.style)
    graph, wrt, points, same = read_situation(system, options, notes)
    if cotangents and not points:
        raise InputError("--v is for points", hint="vᵀ(J·u) = (vᵀJ)·u is shown in numbers: give --at", options=("--v",))
    u = read_tangent({name: graph.inputs[name] for name in wrt}, tangent, notes)
    calls = read_calls(graph.outputs, len(points), cotangents, True, notes) if cotangents else []
    v = [{name: np.sum([c[name] for c in of_point], axis=0) for name in graph.outputs} for of_point in calls]
    same = same | {*seeded("u", u)}
    wanted = Wanted(steps=steps or "steps" in pages.only, page=options.page is not None, same=same)
    result = JacobianProduct(graph, wrt, u, v, wanted).result(points, notes)
    show_result(result, lambda: jvp_pages(result, pages.only), look, notes)
