"""gradcli hessian: the second derivatives of a scalar output, or their product H·u with a tangent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemCommand, SystemOptions, file_options, page_options, system_options

if TYPE_CHECKING:
    from gradcli.lang.system import System

SECTIONS = {
    "system": "the statements and their values",
    "hessian": "H, or H·u",
    "curvature": "the gradient, and what the eigenvalues say",
}
EXAMPLES = """\b
Examples:
  gradcli hessian "f=x**2*y"
  gradcli hessian "f=(1-x)**2+100*(y-x**2)**2" --at x=1,y=1
  gradcli hessian "f=sum(x**4)" --at "x=[1,2]" -f json
  gradcli hessian "f=sum(x**4)" --at "x=[1,2]" --u "x=[1,0]"
  gradcli hessian "f=a*b**2" --points samples/points.csv
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@system_options
@click.option("--u", "tangent", metavar="NAME=VALUE,…", multiple=True, help="A tangent: shows H·u, without H.")
@page_options(SECTIONS)
@file_options
def hessian(options: SystemOptions, tangent: tuple[str, ...], pages: Pages, many: Files) -> None:
    """Show the Hessian H[i, j] = ∂²y/∂x_i∂x_j of a scalar output y.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  With --at, the page also has the
    numbers, and what the eigenvalues mean: a minimum, a maximum or a saddle point.  --u gives the product H·u at the
    point, without H.
    """
    from gradcli.cli.situation import read_system_of

    system = read_system_of(options, points=many.points)
    if not many.wanted:
        _show(system, options, tangent, pages)
        return
    from gradcli.cli.answer import answer
    from gradcli.cli.file_points import open_many
    from gradcli.cli.tangents import read_tangent
    from gradcli.explain.hessian.second_order import Hessian, HessianProduct
    from gradcli.graph.hessian import scalar_output

    with open_many(system, options, many) as run:
        scalar_output(run.graph)
        leaves = {name: run.graph.inputs[name] for name in run.wrt}
        of_file = run.with_columns("u", leaves, tangent)
        u = read_tangent(leaves, tangent, run.notes) if tangent else None
        run = of_file or run
        if of_file or tangent:
            answer(run, HessianProduct(run.graph, run.wrt, u, run.wanted(u)))
        else:
            answer(run, Hessian(run.graph, run.wrt, run.wanted(None)))


def _show(system: System, options: SystemOptions, tangent: Sequence[str], pages: Pages) -> None:
    """Show H at the points of `--at`, or in formulas; with a tangent, H·u."""
    from gradcli.cli.outcome import show_result
    from gradcli.cli.points import example_of
    from gradcli.cli.situation import read_situation
    from gradcli.cli.tangents import read_tangent
    from gradcli.errors import InputError, Notes
    from gradcli.explain.evaluation import seeded
    from gradcli.explain.hessian.hessian_page import hessian_pages, hvp_pages
    from gradcli.explain.hessian.second_order import Hessian, HessianProduct
    from gradcli.explain.results import Wanted
    from gradcli.platform import quote

    notes = Notes()
    look = pages.look(options.style)
    graph, wrt, points, same = read_situation(system, options, notes)
    wanted = Wanted(page=options.page is not None, same=same)
    if not tangent:
        result = Hessian(graph, tuple(wrt), wanted).result(points, notes)
        show_result(result, lambda: hessian_pages(result, pages.only), look, notes)
        return
    if not points:
        shapes = {name: x.shape for name, x in graph.inputs.items()}
        raise InputError("H·u needs a point", hint=f"add one: --at {quote(example_of(shapes))}")
    u = read_tangent({name: graph.inputs[name] for name in wrt}, tangent, notes)
    wanted = wanted._replace(same=same | {*seeded("u", u)})
    product = HessianProduct(graph, wrt, u, wanted).result(points, notes)
    show_result(product, lambda: hvp_pages(product, pages.only), look, notes)
