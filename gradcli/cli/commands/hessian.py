"""gradcli hessian: the second derivatives of a scalar output, or their product H·u with a tangent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemOptions, asking
from gradcli.errors import InputError, Notes

if TYPE_CHECKING:
    from gradcli.cli.answer import Points
    from gradcli.pages.question import Question, Result
    from gradcli.pages.sections import Page

SECTIONS = {
    "system": "the statements and their values",
    "hessian": "H, or H·u",
    "curvature": "the gradient, and what the eigenvalues say",
}


@asking(SECTIONS, click.option("--u", "tangent", metavar="NAME=VALUE,…", multiple=True))
def hessian(options: SystemOptions, tangent: tuple[str, ...], pages: Pages, many: Files) -> None:
    """Show the Hessian H[i, j] = ∂²y/∂x_i∂x_j of a scalar output y.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  With --at, the page also has the
    numbers, and what the eigenvalues mean: a minimum, a maximum or a saddle point.  --u gives the product H·u at the
    point, without H.

    Options:
        --u: A tangent: shows H·u, without H.

    Examples:
        gradcli hessian "f=x**2*y"
        gradcli hessian "f=(1-x)**2+100*(y-x**2)**2" --at x=1,y=1
        gradcli hessian "f=sum(x**4)" --at "x=[1,2]" -f json
        gradcli hessian "f=sum(x**4)" --at "x=[1,2]" --u "x=[1,0]"
        gradcli hessian "f=a*b**2" --points samples/points.csv

    """
    from gradcli.cli.answer import answer
    from gradcli.cli.inputs.points import example_of
    from gradcli.cli.inputs.seeds import read_tangent
    from gradcli.graph.hessian import scalar_output
    from gradcli.pages.hessian.question import Hessian, HessianProduct
    from gradcli.process.platform import quote

    def ask(points: Points) -> Question:
        graph, leaves = points.graph, points.graph.leaves(points.wrt)
        if points.of_file:
            scalar_output(graph)
        from_file = points.has_columns("u", leaves, bool(tangent))
        if not from_file and not tangent:
            return Hessian(graph, points.wrt, points.wanted)
        if points.count == 0:
            example = quote(example_of({name: x.shape for name, x in graph.inputs.items()}))
            raise InputError("H·u needs a point", hint=f"add one: --at {example}")
        u = read_tangent(leaves, tangent, points.notes) if tangent else None
        return HessianProduct(graph, points.wrt, points.wanted, u)

    def paged(result: Result, notes: Notes) -> list[Page]:
        from gradcli.pages.hessian.page import hessian_pages

        return hessian_pages(result, pages.only)

    answer(options, many, pages, ask, paged)
