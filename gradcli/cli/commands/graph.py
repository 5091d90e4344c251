"""gradcli graph: a picture of the system, with values, adjoints and local derivatives."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from gradcli.cli import options as shared
from gradcli.errors import InputError, Notes, option_error
from gradcli.text.plain import print_utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.cli.inputs.system import Situation
    from gradcli.graph.array import Named
    from gradcli.graph.graph import Graph
    from gradcli.pages.picture.boxes import View

STYLES = ("text", "svg", "dot", "mermaid", "tikz", "html")
LAID_OUT = 10_000  # boxes
MERMAID = 500  # arrows that Mermaid draws by itself
ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".tex": "tikz", ".html": "html"}
ENDINGS |= {".pdf": "pdf", ".png": "png", ".txt": "text"}


@click.command(cls=shared.SystemCommand)
@shared.system_options_with(
    STYLES, "How the picture is drawn: text for a terminal, or a language.  [default: as --output ends; text]"
)
@shared.cotangents_option(
    help="The cotangent, as in `gradcli backward`: adjoints are those of the sum of the outputs that it weights."
)
@click.option("--all", "every", is_flag=True)
@shared.names_option("--open", "Draw the definition of a call in its place: of these calls, or of all.", "NAMES|all")
@click.option("--unroll", is_flag=True)
@click.option("--layout", type=click.Choice(("vertical", "horizontal")), default="vertical", show_default=True)
@shared.digits_option("in the picture, or full: nothing is rounded.")
@click.option("--output", metavar="FILE", type=click.Path(allow_dash=True))
def graph(
    options: shared.SystemOptions,
    cotangents: tuple[str, ...],
    every: bool,
    open: str | None,
    unroll: bool,
    layout: str,
    digits: int | None,
    output: str | None,
) -> None:
    """Draw the computation graph, with values and derivatives.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  With --at, each box shows its value.
    With a cotangent, which is 1 for a single scalar output, each box also shows its adjoint x̄ = ∂L/∂x.  Each arrow
    shows its local derivative.  A call, such as conv2d, is one box.  Long chains and equal branches are drawn once; the
    middle of a long system is one box.

    --output FILE.html writes a live page: change an input or v, and all numbers follow.

    Options:
        --all: Every operation: long chains, equal branches and the middle of a long system are not folded.
        --unroll: Draw each round of a loop, which is one box otherwise.
        --layout: From top to bottom, or from left to right for a slide; text is always vertical.
        --output: Write the picture to FILE; .svg, .dot, .mmd (Mermaid), .tex (TikZ), .html (a live page), .pdf, .png
            and .txt choose the format.

    Examples:
        gradcli graph "y=x**2+x" --at x=3
        gradcli graph "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
        gradcli graph "h=tanh(x@W)" "y=sum(h**2)" --shape x=2,W=2x3
        gradcli graph -F samples/bundle_adjustment.grad --v ones -f svg
        gradcli graph "y=mse_loss(linear(x, W), t)" --shape x=2x3,W=1x3,t=2x1 --open all
        gradcli graph "y=sin(x)*x" -f mermaid
        gradcli graph "y=sin(x)*x" --at x=2 -f html

    """
    from dataclasses import replace

    from gradcli.cli.inputs.system import read_situation, read_system_of
    from gradcli.cli.output import deliver
    from gradcli.pages.picture.boxes import View
    from gradcli.pages.picture.opening import opened_by_name
    from gradcli.report.pictures.render import drawn_as, picture_file

    notes = Notes()
    style = style_of_picture(options.style, output)
    _check_style(style, layout)
    system = read_system_of(options, stdin_has_v="-" in cotangents)
    situation = read_situation(system, options, notes)
    at = situation.only("a picture shows one point, and there are {}")
    situation = replace(situation, graph=opened_by_name(situation.graph, names_to_open(open)))
    view = View(situation.leaves, at, _call(situation, cotangents, notes), not every, unroll=unroll)
    if every and drawn_as(style) in ("svg", "tikz", "html"):
        _check_size(situation.graph)
    nodes = sum(not node.is_constant for node in situation.graph.nodes)
    what = f"{'live page' if style == 'html' else style}, {nodes:,} node{'s' * (nodes != 1)}"
    if style == "html":
        print_utf8()
        page_notes = [text for part in system.subsystems for text in part.notes]
        deliver(_live_page(situation, view, options, layout == "horizontal", page_notes), output, notes, what)
        return
    to_file = output not in (None, "-")
    deliver(picture_file(_drawn(situation, view, style, digits, layout, to_file, notes), style), output, notes, what)


def names_to_open(names: str | None) -> list[str]:
    """Return the names of an option --open, in which an index may have commas.

    >>> names_to_open("net.c1, h[0,1]"), names_to_open(None)
    (['net.c1', 'h[0,1]'], [])
    """
    return [name.replace(" ", "") for name in re.split(r",(?![^\[]*\])", names or "") if name.strip()]


def _check_style(style: str, layout: str) -> None:
    """Check that the format has the layout, and that what converts to it is installed."""
    from gradcli.report.pictures.render import CONVERTED, converter

    if layout == "horizontal" and style == "text":
        message = "--layout horizontal: a picture in text is vertical"
        raise option_error("--layout", message, "add -f svg, or --output y.svg", "horizontal")
    if style in CONVERTED:
        converter()


def _drawn(
    situation: Situation, view: View, style: str, digits: int | None, layout: str, to_file: bool, notes: Notes
) -> str:
    """Return the picture of a system as text: drawn, or in the language of a program that draws."""
    from gradcli.pages.picture.picture import picture
    from gradcli.process.platform import has_styles
    from gradcli.report.pictures.render import Options, drawn_as, render_picture

    result = picture(situation.graph, view)
    if result.middle:
        more = "--all draws every one, --outputs NAME what NAME is computed from"
        notes.add("note", f"one box has {result.middle}: {more}")
    arrows = sum(len(box.arrows) for box in result.boxes)
    if style == "mermaid" and arrows > MERMAID:
        most = f"Mermaid draws {MERMAID} arrows unless its setting maxEdges allows more"
        notes.add("note", f"{most}: these are {arrows:,}")
    if style != "text" or to_file:
        print_utf8()
    drawing = Options(layout == "horizontal", styled=not to_file and has_styles(sys.stdout))
    return render_picture(result, drawn_as(style), digits, drawing)


def _live_page(
    situation: Situation, view: View, options: shared.SystemOptions, horizontal: bool, notes: Sequence[str]
) -> str:
    """Return the live page of a system, as one file, with the command for the same in numbers if it can be typed."""
    from gradcli.explore.command import command_text
    from gradcli.pages.live import Kernels, live
    from gradcli.report.live.live_page import live_document

    is_typed = "-" not in options.files and (options.files or options.expr)
    command = command_text(["gradcli", "backward", *options.words]) if is_typed else ""
    kernels = Kernels()
    page = live(situation.graph, view, kernels, command, formulas=True)
    return live_document(page, kernels.program(), horizontal, notes)


def _check_size(graph: Graph) -> None:
    """Check the size of a picture before it is computed, which takes long."""
    from gradcli.pages.picture.picture import least_boxes

    if len(graph.nodes) > LAID_OUT and (boxes := least_boxes(graph, fold=False)) > LAID_OUT:
        message = f"the picture would have {boxes:,} boxes, and more than {LAID_OUT:,} are not laid out"
        hint = "leave out --all, or choose some with --outputs; -f text has a line for each"
        raise InputError(message, hint=hint)


def style_of_picture(style: str | None, output: str | None) -> str:
    """Return the requested format, or that of the file extension."""
    from gradcli.data.mistakes import label

    result = shared.format_of(style, output, ENDINGS)
    if result is None and output not in (None, "-"):
        hint = f"{', '.join(ENDINGS)} choose the format, or -f"
        raise InputError(f"{label(output)} has an unknown file extension", hint=hint, text=output)
    return result or "text"


def _call(situation: Situation, cotangents: tuple[str, ...], notes: Notes) -> Named | None:
    """Return the cotangent of the picture: None where none is given and there is more than one output."""
    from gradcli.cli.inputs.seeds import read_calls

    outputs = situation.graph.outputs
    if not cotangents and sum(y.size for y in outputs.values()) != 1:
        return None
    calls = read_calls(outputs, 1, cotangents, False, notes)[0]
    if len(calls) > 1:
        message = f"a picture shows one call of backward, and v makes {len(calls)}"
        raise InputError(message, hint="gradcli backward shows several")
    return calls[0]
