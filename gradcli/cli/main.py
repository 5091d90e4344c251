"""The `gradcli` command: its subcommands, its help, and how it ends.  Nothing heavy is imported here."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

import click

from gradcli.cli.help import documented
from gradcli.errors import Fix, InputError, did_you_mean, option_error
from gradcli.files import forget_read
from gradcli.lang.own_names import forget_own_names
from gradcli.process import platform
from gradcli.process.ending import DONE, INTERRUPTED, MISTAKE, NO, leave, tidily
from gradcli.process.streams import discard, flush, hold_closed, hold_every_character, print_error, why_not_printed
from gradcli.version import VERSION

# What one has, and the commands for it: a command alone has its own line of help, any other line says what it does.
GROUPS = {
    "Formulas": ("backward", "jacobian", "hessian", "jvp", "graph", "explore", "export"),
    "A PyTorch script": ("run",),
    "An error message, or a question": ("explain",),
    "Nothing yet": ("samples",),
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
COMMANDS = tuple(sorted(entry for entries in GROUPS.values() for entry in entries if isinstance(entry, str)))


class Commands(click.Group):
    """The group of the commands; each is imported from the file of its name when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            command = getattr(import_module(f"gradcli.cli.commands.{cmd_name}"), cmd_name)
            self.add_command(documented(command, cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, by what one has."""
        for name in COMMANDS:
            self.get_command(ctx, name)
        for title, entries in GROUPS.items():
            rows = [(e, self.commands[e].get_short_help_str(100)) if isinstance(e, str) else e for e in entries]
            with formatter.section(title):
                formatter.write_dl(rows)

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
      gradcli run -c "import torch; x = torch.tensor(3., requires_grad=True); (x**2).backward()"
      gradcli explain "why is x.grad None"
      gradcli check "f=x**2*y" "df/dx=2*x*y"
    """


def main() -> None:
    """Run the command line and exit."""
    for library in ("OPENBLAS", "MKL"):  # a product of matrices is one of many that run side by side
        platform.add_variable(f"{library}_NUM_THREADS", "1")
    if platform.memory_limit() is not None:
        platform.add_variable("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others reserve a GiB in advance
    hold_closed()
    hold_every_character()
    platform.styles()
    leave(tidily(lambda: run(gradcli)))


# What others call it, and what gradcli does.
_MEANT = {
    **dict.fromkeys(("forward", "jacfwd", "pushforward"), "jvp"),
    **dict.fromkeys(("grad", "gradient", "vjp"), "backward"),
    **dict.fromkeys(("derivative", "derive", "diff", "jacrev"), "jacobian"),
    **dict.fromkeys(("draw", "plot", "visualize"), "graph"),
    **dict.fromkeys(("docs", "guide", "help", "how", "topics", "what", "why"), "explain"),
    **dict.fromkeys(("--cotangent", "--gradient"), "--v"),
    "--tangent": "--u",
    "hvp": "hessian",
}
_INSTEAD = {
    "live": "the live page is a file: gradcli graph SYSTEM --output y.html",
    **dict.fromkeys(("step", "steps"), "the steps are a part of the page: gradcli backward SYSTEM --steps"),
    **dict.fromkeys(("torch", "script"), "gradcli run SCRIPT.py runs a PyTorch script and explains it"),
}
_LETTER = len("--x")
_QUESTION = re.compile(r"[\w'.]+(?: [\w'.]+){2,}\??")  # three words without a formula's signs


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0 done, 2 an error of the user's, 130 interrupted."""
    # A run is short and its graphs are large and free of cycles: looking for cycles takes a third of the time.
    gc.set_threshold(1_000_000, 50, 50)
    forget_read()
    forget_own_names()
    output = sys.stdout
    typed_words = sys.argv[1:] if arguments is None else arguments
    try:
        result = command.main(args=typed_words, prog_name="gradcli", standalone_mode=False)
        flush()
        return result if isinstance(result, int) else DONE
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return MISTAKE
    except (KeyboardInterrupt, click.Abort):
        print_error("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # click turns a closed pipe into an exit of its own, with another sys.stdout.
        if isinstance(error, SystemExit) and sys.stdout is output:
            raise
        sys.stdout = output
        discard()  # the reader (`| head`) has seen enough
        return DONE
    except Exception as error:
        return _mistake(error, typed_words)


def _input_error(error: click.ClickException, typed_words: Sequence[str]) -> InputError:
    """Return an error of click's as an `InputError`, with a hint."""
    from gradcli.cli.corrections import value_of

    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context and (result := _option_error(error, context, typed_words)):
        return result
    path = context.command_path if context else " ".join(["gradcli", *typed_words[:1]])
    parameter, options = getattr(error, "param", None), tuple[str, ...]()
    word = text = None  # what is typed where click expects one of a few words
    known = getattr(getattr(parameter, "type", None), "choices", [])
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        options = (error.option_name,)
        if isinstance(error, click.NoSuchOption) and context:
            word, known = _MEANT.get(error.option_name, error.option_name), _options(context.command)
    elif isinstance(parameter, click.Option):
        options = tuple(parameter.opts)
        word = text = None if isinstance(error, click.MissingParameter) else value_of(options, typed_words)
    near = did_you_mean(word, [*known]) if word and known else None
    return InputError(_message(error), hint=near or f"`{path} --help` shows what it takes", options=options, text=text)


def _message(error: click.ClickException) -> str:
    """Return click's message of an error, in one line, and in the same words with every version of click."""
    if isinstance(error, click.NoSuchOption):
        return f"No such option '{error.option_name}'"  # without click's own suggestion, which is not what was typed
    return " ".join(error.format_message().split())


def _option_error(error: click.NoSuchOption, context: click.Context, typed_words: Sequence[str]) -> InputError | None:
    """Return the error of an option that a value, or another command, would have; None for any other."""
    from gradcli.cli.corrections import with_command

    whole = context.parent or context
    assert isinstance(whole.command, click.Group)
    commands = _commands(whole.command, whole)
    name = next((name for name, options in commands.items() if error.option_name in options), None)
    wrong = option_error(error.option_name, _message(error))
    if name and not context.parent:
        fix = with_command(typed_words, commands)
        return replace(wrong, hint=f"put the command first: {fix.text}", fix=fix)
    if name and error.option_name != "--gradient":  # PyTorch's argument `gradient` is --v
        return replace(wrong, hint=f"{error.option_name} belongs to `gradcli {name}`")
    if point := _as_point(error, context, typed_words):
        return replace(wrong, hint=f"give values with --at: {point.text}", fix=point)
    return None


def _as_point(error: click.NoSuchOption, context: click.Context, typed_words: Sequence[str]) -> Fix | None:
    """Return the command line with `--at x=3` in place of `--x 3`, unless the option is nearly one of the command's."""
    from gradcli.cli.corrections import with_point

    name, options = error.option_name, _options(context.command)
    similar = did_you_mean(name.strip("-"), [option.strip("-") for option in options])
    near = name in _MEANT or f"-{name}" in options or (len(name) > _LETTER and similar)
    return None if near or "--at" not in options else with_point(typed_words, options)


def no_command(group: click.Group, context: click.Context, arguments: Sequence[str]) -> InputError:
    """Return the error of arguments that begin with no command: with a formula, or with another name for a command."""
    from gradcli.cli.corrections import with_command

    name, known = arguments[0], group.list_commands(context)
    message = f"No such command '{name}'."
    if name.replace("-", "_").isidentifier():
        near = _INSTEAD.get(name) or did_you_mean(_MEANT.get(name, name), known)
        hint = near or "`gradcli --help` lists the commands"
        return InputError(message, hint=hint, text=name)
    if _QUESTION.fullmatch(name):
        return InputError(message, hint=f"ask: gradcli explain {platform.join(arguments)}", text=name)
    if name.endswith(".py"):
        return InputError(message, hint=f"run a script: gradcli run {platform.join(arguments)}", text=name)
    fix = with_command(arguments, _commands(group, context))
    return InputError(message, hint=f"put the system after a command: {fix.text}", fix=fix, text=name)


def _commands(group: click.Group, context: click.Context) -> dict[str, list[str]]:
    """Return the options of each command."""
    return {name: _options(group.get_command(context, name)) for name in group.list_commands(context)}


def _options(command: click.Command | None) -> list[str]:
    """Return the names of a command's options."""
    return [name for p in (command.params if command else ()) for name in p.opts]


def in_command_line(error: Exception, typed_words: Sequence[str]) -> Exception:
    """Return an error of the user's as an `InputError` with its position in the command line; others unchanged."""
    from gradcli.cli.corrections import locate, separated

    if isinstance(error, click.ClickException):
        error = _input_error(error, typed_words)
    if not isinstance(error, InputError):
        return error
    return separated(error, typed_words).at(locate(error.options, error.text, typed_words))


def _mistake(error: Exception, typed_words: Sequence[str]) -> int:
    """Print an error of the user's; any other is a fault of gradcli's, and is printed without a traceback."""
    from gradcli.process.tracebacks import FunctionFailedError, exit_status, traceback_text

    if isinstance(error, FunctionFailedError):
        assert error.__cause__ is not None
        flush()
        if isinstance(error.__cause__, SystemExit):
            return exit_status(error.__cause__)
        sys.stderr.write(traceback_text(error.__cause__))
        return NO
    if platform.is_out_of_memory(error):
        print_error(platform.shortage())
        return MISTAKE
    error = in_command_line(error, typed_words)
    if isinstance(error, InputError):
        from gradcli.text.wrapping import page_width

        print_error(error.render(page_width(), "error: "))
        return MISTAKE
    if isinstance(error, OSError) and platform.is_closed_pipe(error):
        discard()
        return DONE
    if isinstance(error, OSError):
        print_error(f"error: the result cannot be written: {why_not_printed(error)}")
        discard()
        return MISTAKE
    if os.environ.get("GRADCLI_TRACEBACK"):
        raise error
    print_error(
        f"error: gradcli failed: {type(error).__name__}: {error}\n"
        "  This is a fault of gradcli's, not yours: please report the command. GRADCLI_TRACEBACK=1 shows where."
    )
    return MISTAKE
