"""gradcli backward: the vector–Jacobian product that PyTorch's `backward` leaves in `.grad`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.cli.options import Files, Pages, SystemOptions, asking, cotangents_option, names_option
from gradcli.errors import Notes, option_error, unknown_name

if TYPE_CHECKING:
    from gradcli.cli.answer import Points
    from gradcli.graph.graph import Graph
    from gradcli.pages.question import Result
    from gradcli.pages.sections import Page

SECTIONS = {
    "system": "the statements and their values",
    "v": "the cotangent, and the scalar whose gradient it asks for",
    "jacobian": "J, with v beside its rows and vᵀJ below",
    "steps": "the forward and the reverse pass",
    "calls": "what each call adds to .grad",
    "grad": "the gradients, with their arithmetic",
    "why": "why, where a rule may surprise",
    "images": "inputs that are images, each beside its gradient",
    "pytorch": "the same in PyTorch; alone, a complete script",
}


@asking(
    SECTIONS,
    cotangents_option(
        help="The cotangent, PyTorch's gradient argument: 1,10,100, [[1,0],[0,1]], y0=1,y2=100 (the rest 0), ones, "
        "onehot:1, onehot:y1, @file.npy, v for formulas in v (v=1,10 has both), or - for the JSON of another gradcli "
        "backward. Repeated, gradients accumulate."
    ),
    click.option("--strict", is_flag=True),
    names_option("--retain", "Also show the gradients of these intermediates.", "NAMES|all"),
    click.option("--steps", is_flag=True),
    click.option("--unroll", is_flag=True),
    click.option("--jacobian/--no-jacobian", default=None),
)
def backward(
    options: SystemOptions,
    cotangents: tuple[str, ...],
    strict: bool,
    retain: str | None,
    steps: bool,
    unroll: bool,
    pages: Pages,
    many: Files,
) -> None:
    """Show x.grad = vᵀJ, with the arithmetic that leads to it.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  The cotangent v weights the outputs;
    a single scalar output needs none.  Without --at, the gradients are formulas.

    Options:
        --strict: A v that is longer than a scalar output is an error, as in PyTorch.
        --steps: Show the forward table and the reverse table.
        --unroll: Write each round of a loop, which is a recurrence otherwise.
        --jacobian: Show J however large it is, or not at all.  [default: up to 36 entries]

    Examples:
        gradcli backward "y=x**2" --at x=3
        gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
        gradcli backward "y=3*x**2" --at "x=[1,2]" --v onehot:1
        gradcli backward "h=2*x" "z=h**3" --at x=0.5 --retain h --steps
        gradcli backward "y=x**2" --at x=1 --v 1 --v 10 -f json
        gradcli backward "y0=a*b" "y1=b**2" --points samples/points.csv --v 1,10

    """
    from gradcli.cli.answer import answer
    from gradcli.cli.inputs.seeds import in_letters, read_calls
    from gradcli.pages.backward.question import Gradients

    def ask(points: Points) -> Gradients:
        graph, only = points.graph, () if points.of_file else pages.only
        kept = _retained(graph, retain)
        if steps and points.of_file and not points.prints_json:
            raise option_error("--steps", "--steps shows single points", "add -f json, or give the points with --at")
        from_file = points.has_columns("v", graph.outputs, bool(cotangents))
        wanted = points.wanted._replace(
            retain=kept,
            steps=steps or "steps" in only,
            unroll=unroll,
            jacobian=bool(pages.jacobian or "jacobian" in only),
            implicit=not cotangents,
            letters=not points.of_file and in_letters(cotangents, graph.outputs),
            block=points.of_file and not steps,
        )
        calls = [] if from_file else read_calls(graph.outputs, points.count, cotangents, strict, points.notes)
        return Gradients(graph, points.leaves, wanted, calls)

    def paged(result: Result, notes: Notes) -> list[Page]:
        from gradcli.pages.backward.page import backward_pages, forgotten

        if options.page == "table" and not result.wanted.retain and (names := forgotten(result)):
            listed = ", ".join(f"{n}.grad" for n in names[:4]) + (", …" if len(names) > 4 else "")
            why = f"{listed}: None in PyTorch, which keeps the gradients of leaves only."
            shows = f"`--retain {names[0]}` shows it, as `{names[0]}.retain_grad()` would keep it."
            notes.add("note", f"{why}\n  {shows}")
        return backward_pages(result, pages.only, pages.jacobian)

    answer(options, many, pages, ask, paged, "-" in cotangents)


def _retained(graph: Graph, retain: str | None) -> tuple[str, ...]:
    """Return the intermediates that are to keep their gradients."""
    from gradcli.graph.names import ElementName
    from gradcli.lang.values import read_names

    if retain is None:
        return ()
    computed = list(graph.names)
    if "all" in map(str.strip, retain.split(",")):
        return tuple(n for n in computed if not isinstance(n, ElementName))
    names = [n.replace(" ", "") for n in read_names(retain, "--retain")]
    if not {*names}.issubset(computed):
        from gradcli.pages.recurrence import loops_of_formulas

        known = {element: name for name, element in loops_of_formulas(graph).elements.items()}
        names = [known.get(name, name) for name in names]
    for name in [n for n in names if n not in computed]:
        if name in graph.inputs:
            message = f"--retain: `{name}` is an input, whose gradient is shown anyway"
            raise option_error("--retain", message, text=name)
        raise unknown_name("--retain", name, f"`{name}` is not in the system", computed, "computed names")
    return tuple(names)
