"""The `gradcli` command: its subcommands, its version, and its help.  Nothing heavy is imported here."""

from __future__ import annotations

from importlib import import_module

import click

from gradcli.cli import environment
from gradcli.cli.memory import watched
from gradcli.cli.outcome import no_command, run
from gradcli.cli.signals import tidily
from gradcli.cli.status import leave
from gradcli.cli.streams import hold_closed, hold_every_character
from gradcli.platform import styles
from gradcli.version import VERSION

COMMANDS = ("backward", "check", "explain", "explore", "export", "graph", "hessian", "jacobian", "jvp", "run")


class Commands(click.Group):
    """The group of the commands; each is imported from the file of its name when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(getattr(import_module(f"gradcli.cli.{cmd_name}"), cmd_name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with.

        Errors: `InputError` where they begin with none, with the command that may be meant.
        """
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise no_command(self, ctx, args)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="gradcli %(version)s")
def gradcli() -> None:
    """Explain gradients, with your numbers beside your formulas.

    What does y.backward(gradient) do?  It leaves vᵀJ in x.grad: the cotangent v, which is the gradient argument,
    times the Jacobian J, the matrix of all ∂y_i/∂x_j.

    \b
    Examples:
      gradcli jacobian "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1"
      gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
      gradcli explain
      gradcli explain gradient-argument
    """


def main() -> None:
    """Run the command line and exit."""
    for library in ("OPENBLAS", "MKL"):  # a product of matrices is one of many that run side by side
        environment.add(f"{library}_NUM_THREADS", "1")
    hold_closed()
    hold_every_character()
    styles()
    leave(watched(lambda: tidily(lambda: run(gradcli))))
