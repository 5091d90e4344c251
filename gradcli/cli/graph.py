"""gradcli graph: a picture of the system, with values, adjoints and local derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Asked, SystemCommand, asking, digits_option, format_of
from gradcli.plain import print_utf8

if TYPE_CHECKING:
    from gradcli.cli.situation import Situation
    from gradcli.errors import Notes
    from gradcli.graph.array import Named
    from gradcli.graph.graph import Graph

STYLES = ("text", "svg", "dot", "mermaid", "tikz")
LAID_OUT = 10_000  # boxes
MERMAID = 500  # arrows that Mermaid draws by itself
ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".tex": "tikz", ".txt": "text"}

EXAMPLES = """\b
Examples:
  gradcli graph "y=x**2+x" --at x=3
  gradcli graph "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
  gradcli graph "h=tanh(x@W)" "y=sum(h**2)" --shape x=2,W=2x3
  gradcli graph -F samples/bundle_adjustment.grad --v ones -f svg
  gradcli graph "y=sin(x)*x" -f mermaid
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@asking(STYLES, "How the picture is drawn: text for a terminal, or a language.  [default: as --output ends; text]")
@click.option(
    "--v",
    "cotangents",
    metavar="V",
    multiple=True,
    help="The cotangent, as in `gradcli backward`: adjoints are those of the sum of the outputs that it weights.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Every operation: long chains, parts that are alike and the middle of a long system are not folded.",
)
@digits_option("in the picture, or full: nothing is rounded.")
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Write the picture to FILE; .svg, .dot, .mmd (Mermaid), .tex (TikZ) and .txt choose the format.",
)
def graph(asked: Asked, cotangents: tuple[str, ...], every: bool, digits: int | None, output: str | None) -> None:
    """Draw what is computed from what, with values and derivatives.

    EXPR is a statement NAME = EXPRESSION, or several, parted by ; or newlines.  With --at, each box shows its value.
    With a cotangent, which is 1 for a single scalar output, it shows its adjoint too, x̄ = ∂L/∂x.  Each arrow shows its
    local derivative.  Long chains, and parts that are alike, are drawn once; the middle of a long system is one box.
    """
    from gradcli.activity import doing
    from gradcli.cli.outcome import deliver
    from gradcli.cli.situation import read_asked, read_situation, shown_leaves
    from gradcli.errors import InputError, Notes
    from gradcli.explain.picture import View, picture
    from gradcli.report.pictures.render import render_picture

    notes = Notes()
    style = _style(asked.style, output)
    situation = read_situation(read_asked(asked, cotangents), asked, notes)
    if len(situation.points) > 1:
        raise InputError(f"a picture is of one point, and these are {len(situation.points)}", hint="give one --at")
    at = situation.points[0] if situation.points else None
    doing("drawing")
    view = View(shown_leaves(situation, asked), at, _call(situation, cotangents, notes), not every)
    if every and style in ("svg", "tikz"):
        _check_size(situation.graph)
    result = picture(situation.graph, view)
    if result.middle:
        notes.add(
            "note", f"one box has {result.middle}: --all draws every one, --outputs NAME what NAME is computed from"
        )
    arrows = sum(len(box.arrows) for box in result.boxes)
    if style == "mermaid" and arrows > MERMAID:
        notes.add(
            "note", f"Mermaid draws {MERMAID} arrows unless its setting maxEdges allows more: these are {arrows:,}"
        )
    if style != "text" or output not in (None, "-"):
        print_utf8()
    drawn = render_picture(result, style, digits)
    deliver(drawn, output, notes)


def _check_size(graph: Graph) -> None:
    """Refuse a picture that nobody could look at before it is computed, which takes long."""
    from gradcli.errors import InputError
    from gradcli.explain.picture import least_boxes

    if len(graph.nodes) > LAID_OUT and (boxes := least_boxes(graph, fold=False)) > LAID_OUT:
        raise InputError(
            f"the picture would have {boxes:,} boxes, and more than {LAID_OUT:,} are not laid out",
            hint="leave out --all, or choose some with --outputs; -f text has a line for each",
        )


def _style(style: str | None, output: str | None) -> str:
    """Return the format: as it is asked for, or as the file's name ends."""
    from gradcli.data.mistakes import label
    from gradcli.errors import InputError

    result = format_of(style, output, ENDINGS)
    if result is None and output not in (None, "-"):
        raise InputError(
            f"{label(output)} has no ending of a picture", hint=f"{', '.join(ENDINGS)} choose the format, or -f"
        )
    return result or "text"


def _call(situation: Situation, cotangents: tuple[str, ...], notes: Notes) -> Named | None:
    """Return the cotangent of the picture: None where none is given and there is more than one output."""
    from gradcli.cli.cotangents import read_calls
    from gradcli.errors import InputError

    outputs = situation.graph.outputs
    if not cotangents and sum(y.size for y in outputs.values()) != 1:
        return None
    calls = read_calls(outputs, 1, cotangents, False, notes)[0]
    if len(calls) > 1:
        raise InputError(
            f"a picture is of one call of backward, and v makes {len(calls)}", hint="gradcli backward shows several"
        )
    return calls[0]
