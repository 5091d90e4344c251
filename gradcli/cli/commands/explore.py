"""gradcli explore: a system on the terminal, whose values are changed with the keys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from gradcli.cli.options import SystemCommand, SystemOptions, cotangents_option, only_system_options
from gradcli.errors import InputError, Notes
from gradcli.process.platform import is_terminal

if TYPE_CHECKING:
    from gradcli.cli.inputs.system import Situation
    from gradcli.explore.app import Setting
    from gradcli.explore.state import Explorer
    from gradcli.graph.array import Named


@click.command(cls=SystemCommand)
@only_system_options
@cotangents_option(help="The cotangent, as in `gradcli backward`.  [default: 1 for each output]")
@click.option("--steps", is_flag=True)
def explore(options: SystemOptions, cotangents: tuple[str, ...], steps: bool) -> None:
    """Explore a system in the terminal: change a number, and see the gradients follow.

    \b
    $ gradcli explore "y=x**2" --at x=3

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  Without --at, all inputs begin at 1.

    Up and down choose an input or a cotangent, left and right change it (with Shift ten times as far), and Enter types
    a value.  c calls backward again, z zeroes .grad, d is a step of gradient descent, n and p go through the steps.
    q leaves, and prints the `gradcli backward` command for what was on the screen.

    Options:
        --steps: Begin with the forward table and the reverse table.

    Examples:
        gradcli explore "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
        gradcli explore "h=tanh(w*x+b)" "L=(h-1)**2" --at w=0.5,x=2,b=0
        gradcli explore -F samples/chain.grad

    """
    from gradcli.cli.inputs.system import check_branch, read_situation, read_system_of
    from gradcli.cli.output import show
    from gradcli.explore.command import command_text, command_words

    # `gradcli backward` has these options, too, and prints the page of the explorer.
    check_terminal(command_text(["gradcli", "backward", *click.get_current_context().meta["typed"]]))
    notes = Notes()
    system = read_system_of(options, stdin_has_v="-" in cotangents)
    situation = read_situation(system, options, notes)
    situation.only("explore takes one point, not {}")
    explorer, setting = _explorer(situation, situation.leaves, cotangents, steps, notes)
    explorer.check = lambda at: check_branch(system.subsystems, situation.graph, at)
    from gradcli.explore.app import run_app

    app = run_app(explorer, setting)
    show(command_text(command_words(explorer, options.words, app.steps)), notes)


def check_terminal(instead: str) -> None:
    """Raise an `InputError` where there is no terminal to explore on, or no Textual.

    `instead` is the command that works there.
    """
    hint = f"print the page: {instead}"
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise InputError("explore needs a terminal, and standard input or output is not one", hint=hint)
    if os.environ.get("TERM") == "dumb":
        raise InputError("explore needs a terminal whose cursor can be moved, and TERM is dumb", hint=hint)
    try:
        import textual  # noqa: F401
    except ImportError:
        hint = f'pip install "gradcli[explore]"; or {hint}'
        raise InputError("explore needs the package textual", hint=hint) from None
    if not is_terminal(sys.stderr):  # on which Textual draws
        raise InputError("explore needs a terminal, and standard error is not one", hint=hint)


def _explorer(
    situation: Situation, wrt: list[str], cotangents: tuple[str, ...], steps: bool, notes: Notes
) -> tuple[Explorer, Setting]:
    """Return the explorer of a situation; without a point all inputs are 1, and without a cotangent each v."""
    import numpy as np

    from gradcli.cli.inputs.seeds import read_calls
    from gradcli.explore.app import Setting
    from gradcli.explore.state import Explorer, State

    graph = situation.graph
    at: Named = {n: np.ones(x.shape) for n, x in graph.inputs.items()}
    at |= {n: x for point in situation.points for n, x in point.items()}
    scalar = sum(y.size for y in graph.outputs.values()) == 1
    if cotangents:
        (calls,) = read_calls(graph.outputs, 1, cotangents, False, notes)
    else:
        calls = [{name: np.ones(y.shape) for name, y in graph.outputs.items()}]
    at = {name: at[name] for name in (*wrt, *(n for n in at if n not in wrt))}
    state = State(at, tuple(calls), implicit=scalar and not cotangents)
    return Explorer(graph, wrt, state), Setting(steps=steps, unicode=has_unicode())


def has_unicode() -> bool:
    """Return whether the terminal shows letters beyond ASCII."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
