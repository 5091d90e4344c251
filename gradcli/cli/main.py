"""The `gradcli` command: its subcommands, its version, and its help.  Nothing heavy is imported here."""

from __future__ import annotations

import os

import click

from gradcli.cli.backward import backward
from gradcli.cli.check import check
from gradcli.cli.explain import explain
from gradcli.cli.export import export
from gradcli.cli.graph import graph
from gradcli.cli.hessian import hessian
from gradcli.cli.jacobian import jacobian
from gradcli.cli.jvp import jvp
from gradcli.cli.memory import watched
from gradcli.cli.outcome import run as run_command
from gradcli.cli.run import run
from gradcli.cli.signals import tidily
from gradcli.cli.status import leave
from gradcli.cli.streams import hold_closed
from gradcli.version import VERSION


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="gradcli %(version)s")
def gradcli() -> None:
    """Explain gradients, with your numbers beside your formulas.

    What does y.backward(gradient) do?  It leaves vᵀJ in x.grad: the cotangent v, which is the gradient argument,
    times the Jacobian J.

    \b
    Examples:
      gradcli jacobian "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1"
      gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
      gradcli explain
      gradcli explain gradient-argument
    """


for command in (backward, jacobian, run, check, graph, hessian, jvp, export, explain):
    gradcli.add_command(command)


def main() -> None:
    """Run the command line and exit."""
    for library in ("OPENBLAS", "MKL", "OMP"):  # a product of matrices is one of many that run side by side
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    hold_closed()
    leave(watched(lambda: tidily(lambda: run_command(gradcli))))
