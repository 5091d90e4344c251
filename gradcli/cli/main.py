"""The `gradcli` command: its subcommands, its version, and its help.  Nothing heavy is imported here."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

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

# What one has, and the commands for it: a command alone has its own line of help, any other line says what it does.
GROUPS = {
    "Formulas": ("backward", "jacobian", "hessian", "jvp", "graph", "explore", "export"),
    "A PyTorch script": ("run",),
    "An error message, or a question": ("explain",),
    "A gradient derived by hand": ("check",),
    "A model, or a NumPy function": (
        ("backward -F model.onnx", "An ONNX model as the system, in each command."),
        ("backward -F file.py:NAME", "A Python function on NumPy arrays, likewise."),
    ),
    "A file of points": (
        ("backward --points FILE", "The gradients at each row of a .csv, .npz or .parquet file."),
        ("jacobian --points FILE", "The Jacobian at each row."),
    ),
}
_HELP = Path(__file__).parent / "help.md"
_EXAMPLE = r"^# {}\n\n```console\n(.*?)^```$"


def _with_example(command: click.Command, name: str) -> click.Command:
    """Return a command whose help begins with its most common example and the output, which `help.md` has."""
    example = re.search(_EXAMPLE.format(name), _HELP.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    if example and command.help:
        parts = [f"\b\n{part}" for part in example[1].rstrip("\n").split("\n\n")]
        first, rest = cleandoc(command.help).split("\n\n", 1)
        command.help = "\n\n".join([first, *parts, rest])
    return command


class Commands(click.Group):
    """The group of the commands; each is imported from the file of its name when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            command = getattr(import_module(f"gradcli.cli.{cmd_name}"), cmd_name)
            self.add_command(_with_example(command, cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, by what one has."""
        for title, entries in GROUPS.items():
            rows = [(e, self._short_help(ctx, e)) if isinstance(e, str) else e for e in entries]
            with formatter.section(title):
                formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(100) if command else ""

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

    y.backward(v) leaves vᵀJ in x.grad: the cotangent v, PyTorch's gradient argument, times the Jacobian J, the matrix
    of all ∂y_i/∂x_j.  Choose a command by what you have.

    \b
    Examples:
      gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100
      gradcli run samples/doubled.py
      gradcli explain "why is x.grad None"
      gradcli check "f=x**2*y" "df/dx=2*x*y"
    """


def main() -> None:
    """Run the command line and exit."""
    for library in ("OPENBLAS", "MKL"):  # a product of matrices is one of many that run side by side
        environment.add(f"{library}_NUM_THREADS", "1")
    hold_closed()
    hold_every_character()
    styles()
    leave(watched(lambda: tidily(lambda: run(gradcli))))
