"""gradcli jvp: the Jacobian–vector product J·u, by forward mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemOptions, asking, cotangents_option, page_of_file
from gradcli.errors import option_error

if TYPE_CHECKING:
    from gradcli.cli.answer import Points

SECTIONS = {
    "system": "the statements and their values",
    "u": "how fast the inputs change",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass with its tangents",
    "jvp": "J·u, with its arithmetic",
    "pairing": "vᵀ(J·u) and (vᵀJ)·u",
}


@asking(
    SECTIONS,
    click.option("--u", "tangent", metavar="NAME=VALUE,…", multiple=True),
    cotangents_option(help="A cotangent: shows vᵀ(J·u) = (vᵀJ)·u too."),
    click.option("--steps", is_flag=True),
)
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

    Options:
        --u: The tangent: x0=1,x1=0.5, or 1,0.5 in order, or ones.  An input left out has 0, and a single scalar input
            1.
        --steps: Show the forward table, each value with its tangent.

    Examples:
        gradcli jvp "y=x**2" --at x=3
        gradcli jvp "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --u x0=1,x1=2
        gradcli jvp "h=x*a" "y=sin(h)" --at x=1,a=2 --u a=1 --steps
        gradcli jvp "y=x@M" --at "x=[1,2],M=[[1,2],[3,4]]" --u "x=[1,0]" --v 1,10
        gradcli jvp "y0=a*b" "y1=b**2" --points samples/points.csv --u a=1

    """
    import numpy as np

    from gradcli.cli.answer import answer
    from gradcli.cli.inputs.seeds import read_calls, read_tangent
    from gradcli.pages.forward.jvp import JacobianProduct, jvp_pages

    if many.are_many and (steps or cotangents) and not page_of_file(options.style, many):
        option = "--steps" if steps else "--v"
        raise option_error(option, f"{option} is for single points", "give the points with --at")

    def ask(points: Points) -> JacobianProduct:
        graph, leaves = points.graph, points.graph.leaves(points.wrt)
        if cotangents and not points.count:
            raise option_error("--v", "--v is for points", "vᵀ(J·u) = (vᵀJ)·u is shown in numbers: give --at")
        from_file = points.has_columns("u", leaves, bool(tangent))
        u = None if from_file else read_tangent(leaves, tangent, points.notes)
        calls = read_calls(graph.outputs, points.count, cotangents, True, points.notes) if cotangents else []
        v = [{name: np.sum([c[name] for c in of_point], axis=0) for name in graph.outputs} for of_point in calls]
        wanted = points.wanted._replace(steps=steps or (not points.of_file and "steps" in pages.only))
        return JacobianProduct(graph, points.wrt, wanted, u, v)

    answer(options, many, pages, ask, lambda result, notes: jvp_pages(result, pages.only), "-" in cotangents)
