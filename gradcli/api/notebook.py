"""Notebook displays: pictures of graphs, Jacobians as mathematics, verdicts and explanations as pages.

Rooms below do not import those above: a graph cannot draw itself.  So the package's front adds to these classes the
display methods that notebooks call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian
    from gradcli.graph.graph import Graph
    from gradcli.pages.check.verdicts import CheckResult
    from gradcli.pages.results import Named

_NODES = 20_000  # of a graph that a notebook draws: a larger one takes seconds
_ENTRIES = 400  # of a Jacobian
_DIGITS = 6


def show_graphs() -> None:
    """Register the display of graphs in notebooks."""
    from gradcli.graph.graph import Graph

    _give(Graph, "_repr_svg_", graph_svg)


def show_jacobians() -> None:
    """Register the display of Jacobians in notebooks, typeset."""
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

    _give(SymbolicJacobian, "_repr_latex_", jacobian_latex)


def show_verdicts() -> None:
    """Register the display of verdicts, in notebooks and by `print`: their page."""
    from gradcli.pages.check.verdicts import CheckResult

    _give(CheckResult, "__str__", verdicts)
    _give(CheckResult, "__repr__", verdicts)
    _give(CheckResult, "_repr_markdown_", lambda result: verdicts(result, "markdown"))


def _give(kind: type, name: str, method: Any) -> None:
    setattr(kind, name, method)


def graph_svg(graph: Graph) -> str | None:
    """Return the picture of a graph, with formulas of the adjoints if it has one scalar output; None if it is large.

    >>> from gradcli import parse
    >>> graph_svg(parse("y = x**2"))[:4]
    '<svg'
    """
    import numpy as np

    from gradcli.pages.picture.boxes import View
    from gradcli.pages.picture.picture import picture
    from gradcli.report.pictures.svg import render

    if len(graph.nodes) > _NODES:
        return None
    alone = [name for name, y in graph.outputs.items() if not y.shape and name.isidentifier()]
    v = {alone[0]: np.ones(())} if len(alone) == len(graph.outputs) == 1 else None
    return render(picture(graph, View(list(graph.inputs), None, v)), _DIGITS)


def jacobian_latex(result: SymbolicJacobian) -> str | None:
    r"""Return a Jacobian as LaTeX, with the intermediates that it mentions; None for a large one.

    >>> from gradcli import parse, symbolic_jacobian
    >>> print(jacobian_latex(symbolic_jacobian(parse("y = x**2"))))
    $\displaystyle J = \frac{\partial y}{\partial x} = 2 x$
    """
    from gradcli.pages.results import Style
    from gradcli.pages.sections import Equal, Listed, Math, Name, Partial, Value
    from gradcli.report.latex_math import LatexWriter

    rows, columns = result.rows, result.columns
    if not 0 < len(rows) * len(columns) <= _ENTRIES:
        return None
    writer = LatexWriter(Style(False, frozenset((*rows, *columns))), None)

    cells = [[Value.of(result.entries.get((i, j), 0)) for j in range(len(columns))] for i in range(len(rows))]
    matrix: Math = Listed(tuple(Listed(tuple(row)) for row in cells)) if len(rows) * len(columns) > 1 else cells[0][0]
    of, by = (names[0] if len(names) == 1 else names for names in (rows, columns))
    where = "".join(
        rf",\quad {writer.write(Equal((Name(name), Value.of(formula))))}" for name, formula in result.where.items()
    )
    return rf"$\displaystyle J = {writer.write(Partial(of, by))} = {writer.write(matrix)}{where}$"


def verdicts(result: CheckResult, style: str = "table") -> str:
    """Return the page of verdicts, by default as a terminal shows it.

    >>> from gradcli import check
    >>> print(verdicts(check("f = x**2; df/dx = 2*x")))
    df/dx = 2*x   right: proved, and finite differences agree at 20 points
    """
    from gradcli.pages.check.page import check_page
    from gradcli.report.render import Look, render_pages

    return render_pages([check_page(result)], Look(style, _DIGITS)).rstrip("\n")


@dataclass(frozen=True, repr=False)
class Explanation:
    """The result of `gradcli.explain`: a system at a point, with the cotangents of its outputs."""

    graph: Graph
    wrt: Sequence[str]
    at: Named
    v: Named
    implicit: bool = False

    def __str__(self) -> str:
        return self.page()

    __repr__ = __str__

    def page(self, style: str = "table") -> str:
        """Return the page of `gradcli backward` in a format of pages: `table`, `html`, `markdown` or `latex`."""
        from gradcli.errors import Notes
        from gradcli.pages.backward.page import backward_pages
        from gradcli.pages.backward.question import Gradients
        from gradcli.pages.results import Wanted
        from gradcli.report.render import Look, is_printed, render_pages

        wanted = Wanted(page=True, implicit=self.implicit)
        notes = Notes()
        result = Gradients(self.graph, self.wrt, wanted, [[self.v]]).result([self.at], notes)
        (page,) = backward_pages(result)
        if not is_printed(style):
            return render_pages([page.with_notes(notes.lines)], Look(style, _DIGITS))
        return "\n\n".join([render_pages([page], Look(style, _DIGITS)).rstrip("\n"), *notes.lines])

    def html(self) -> str:
        """Return the live page, as a file of its own."""
        from gradcli.pages.live import Kernels, live
        from gradcli.pages.picture.boxes import View
        from gradcli.report.live.live_page import live_document

        kernels = Kernels()
        page = live(self.graph, View(self.wrt, self.at, self.v), kernels, formulas=True)
        return live_document(page, kernels.program())

    def _repr_html_(self) -> str:
        """Return the live page in a frame, which has nothing of the notebook's, and is as high as the page says."""
        look = 'width="100%" height="720" style="border:0" sandbox="allow-scripts"'
        as_high = Path(__file__).with_name("frame.js").read_text("utf-8")
        return f'<iframe title="live page" {look} srcdoc="{escape(self.html())}"></iframe><script>\n{as_high}</script>'
