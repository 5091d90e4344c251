"""gradcli backward: the vector–Jacobian product that PyTorch's `backward` leaves in `.grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from gradcli.cli.options import (
    Files,
    Pages,
    SystemCommand,
    SystemOptions,
    file_options,
    names_option,
    page_options,
    system_options,
)

if TYPE_CHECKING:
    from gradcli.cli.file_points import FilePoints
    from gradcli.explain.backward.question import Gradients
    from gradcli.explain.sections import Page
    from gradcli.graph.graph import Graph
    from gradcli.lang.system import System

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
EXAMPLES = """\b
Examples:
  gradcli backward "y=x**2" --at x=3
  gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
  gradcli backward "y=3*x**2" --at "x=[1,2]" --v onehot:1
  gradcli backward "h=2*x" "z=h**3" --at x=0.5 --retain h --steps
  gradcli backward "y=x**2" --at x=1 --v 1 --v 10 -f json
  gradcli backward "y0=a*b" "y1=b**2" --points samples/points.csv --v 1,10
"""


@click.command(cls=SystemCommand, epilog=EXAMPLES)
@system_options
@click.option(
    "--v",
    "cotangents",
    metavar="V",
    multiple=True,
    help="The cotangent, PyTorch's gradient argument: 1,10,100, [[1,0],[0,1]], y0=1,y2=100 (the rest 0), ones, "
    "onehot:1, onehot:y1, @file.npy, v for formulas in v (v=1,10 has both), or - for the JSON of another gradcli "
    "backward. Repeated, gradients accumulate.",
)
@click.option("--strict", is_flag=True, help="A v that is longer than a scalar output is an error, as in PyTorch.")
@names_option("--retain", "Also show the gradients of these intermediates.", "NAMES|all")
@click.option("--steps", is_flag=True, help="Show the forward table and the reverse table.")
@click.option(
    "--jacobian/--no-jacobian",
    default=None,
    help="Show J however large it is, or not at all.  [default: up to 36 entries]",
)
@page_options(SECTIONS)
@file_options
def backward(
    options: SystemOptions,
    cotangents: tuple[str, ...],
    strict: bool,
    retain: str | None,
    steps: bool,
    pages: Pages,
    many: Files,
) -> None:
    """Show x.grad = vᵀJ, with the arithmetic that leads to it.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  The cotangent v weights the outputs;
    a single scalar output needs none.  Without --at, the gradients are formulas.
    """
    from gradcli.cli.situation import read_system_of

    system = read_system_of(options, cotangents, many.points)
    if many.wanted:
        from gradcli.cli.answer import answer
        from gradcli.cli.file_points import open_many

        with open_many(system, options, many) as run:
            answer(*_of_file(run, system, cotangents, strict, _Shown(retain, steps, pages)))
    else:
        _show(system, options, cotangents, strict, _Shown(retain, steps, pages))


class _Shown(NamedTuple):
    """The options of a page beside the gradients of leaves."""

    retain: str | None
    steps: bool
    pages: Pages


def _of_file(
    run: FilePoints, system: System, cotangents: Sequence[str], strict: bool, shown: _Shown
) -> tuple[FilePoints, Gradients]:
    """Return the points of a file, with the cotangents in its columns, and the gradients that are wanted there."""
    from gradcli.cli.cotangents import read_calls, same_at_all
    from gradcli.errors import InputError
    from gradcli.explain.backward.question import Gradients
    from gradcli.explain.results import Wanted

    kept = _retained(system, run.graph, shown.retain)
    if shown.steps and not run.prints_json:
        raise InputError(
            "--steps shows single points", hint="add -f json, or give the points with --at", options=("--steps",)
        )
    of_file = run.with_columns("v", run.graph.outputs, cotangents)
    calls = [] if of_file else read_calls(run.graph.outputs, None, cotangents, strict, run.notes)
    run = of_file or run
    same = frozenset(run.same) | (same_at_all(calls) if calls else frozenset())
    wanted = Wanted(kept, shown.steps, warn=False, same=same, block=not shown.steps)
    return run, Gradients(run.graph, run.wrt, calls, wanted)


def _show(system: System, options: SystemOptions, cotangents: tuple[str, ...], strict: bool, shown: _Shown) -> None:
    """Show the gradients at the points of `--at`, or in formulas."""
    from gradcli.cli.cotangents import in_letters, read_calls, same_at_all
    from gradcli.cli.outcome import show_result
    from gradcli.cli.situation import read_situation, shown_leaves
    from gradcli.errors import Notes
    from gradcli.explain.backward.question import Gradients
    from gradcli.explain.results import Wanted

    notes, pages = Notes(), shown.pages
    look = pages.look(options.style)
    situation = read_situation(system, options, notes)
    outputs = situation.graph.outputs
    kept = _retained(system, situation.graph, shown.retain)
    calls = read_calls(outputs, len(situation.points), cotangents, strict, notes)
    wanted = Wanted(
        kept,
        steps=shown.steps or "steps" in pages.only,
        page=options.page is not None,
        jacobian=bool(pages.jacobian or "jacobian" in pages.only),
        implicit=not cotangents,
        letters=in_letters(cotangents, outputs),
        same=situation.same | same_at_all(calls),
    )
    question = Gradients(situation.graph, shown_leaves(situation, options), calls, wanted)
    result = question.result(situation.points, notes)
    if result.forgotten and not kept and options.page == "table":
        notes.add("note", _forgotten(result.forgotten))

    def paged() -> list[Page]:
        from gradcli.explain.backward.backward_page import Choice, backward_pages

        return backward_pages(result, Choice(pages.only, pages.jacobian))

    show_result(result, paged, look, notes)


def _forgotten(names: Sequence[str]) -> str:
    listed = ", ".join(f"{n}.grad" for n in names[:4]) + (", …" if len(names) > 4 else "")
    return (
        f"{listed}: None in PyTorch, which keeps the gradients of leaves only."
        f"\n  `--retain {names[0]}` shows it, as `{names[0]}.retain_grad()` would keep it."
    )


def _retained(system: System, graph: Graph, retain: str | None) -> tuple[str, ...]:
    """Return the intermediates that are to keep their gradients."""
    from gradcli.errors import InputError, nearest
    from gradcli.graph.names import ElementName
    from gradcli.lang.values import read_names

    if retain is None:
        return ()
    computed = list(graph.names)
    if "all" in map(str.strip, retain.split(",")):
        return tuple(n for n in computed if not isinstance(n, ElementName))
    names = [n.replace(" ", "") for n in read_names(retain, "--retain")]
    for name in names:
        if name not in computed:
            leaf = name in system.uses
            raise InputError(
                f"--retain: `{name}` is {'an input, whose gradient is shown anyway' if leaf else 'not in the system'}",
                hint=None if leaf else nearest(name, computed, "computed names"),
                options=("--retain",),
                text=name,
            )
    return tuple(names)
