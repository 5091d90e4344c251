"""The outside of every command: how it ends, what it prints where, and with which exit status."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gradcli.activity import before_output, doing, lasting
from gradcli.cli.memory import is_out_of_memory, shortage
from gradcli.cli.status import DONE, INTERRUPTED, MISTAKE
from gradcli.cli.streams import discard, flush, print_error, why_not_printed
from gradcli.files import forget_read
from gradcli.plain import print_utf8
from gradcli.platform import is_closed_pipe, join
from gradcli.report.render import PAGES

if TYPE_CHECKING:
    from gradcli.cli.retyped import ClaimError
    from gradcli.errors import Fix, InputError, Notes
    from gradcli.explain.protocol import Answer
    from gradcli.explain.sections import Page
    from gradcli.report.render import Look

# What others call it, and what gradcli does.
_MEANT = {
    **dict.fromkeys(("forward", "jacfwd", "pushforward"), "jvp"),
    **dict.fromkeys(("grad", "gradient", "vjp"), "backward"),
    **dict.fromkeys(("derivative", "diff", "jacrev"), "jacobian"),
    **dict.fromkeys(("draw", "plot"), "graph"),
    **dict.fromkeys(("docs", "guide", "help", "topics"), "explain"),
    **dict.fromkeys(("--cotangent", "--gradient"), "--v"),
    "--tangent": "--u",
    "hvp": "hessian",
}
_LETTER = len("--x")


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0 done, 2 an error of the user's, 130 interrupted."""
    # A run is short and its graphs are large and free of cycles: looking for cycles takes a third of the time.
    gc.set_threshold(1_000_000, 50, 50)
    forget_read()
    output = sys.stdout
    typed_words = sys.argv[1:] if arguments is None else arguments
    try:
        with lasting("reading the system"):
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
        assert isinstance(command, click.Group)
        return _mistake(error, typed_words, command)


def _input_error(error: click.ClickException, typed_words: Sequence[str]) -> InputError:
    """Return an error of click's as an `InputError`, with a hint."""
    from gradcli.errors import InputError, did_you_mean

    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context and (result := _elsewhere(error, context, typed_words)):
        return result
    path = context.command_path if context else " ".join(["gradcli", *typed_words[:1]])
    options, text = _about(error, typed_words)
    hint = did_you_mean(*_choice(error, context, text)) or f"`{path} --help` shows what it takes"
    return InputError(_message(error), hint=hint, options=options, text=text)


def _about(error: click.ClickException, typed_words: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the options that an error of click's is about, and the text of a value that is wrong."""
    from gradcli.cli.typed import value_of

    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return (error.option_name,), None
    parameter = getattr(error, "param", None)
    if not isinstance(parameter, click.Option):
        return (), None
    options = tuple(parameter.opts)
    return options, None if isinstance(error, click.MissingParameter) else value_of(options, typed_words)


def _message(error: click.ClickException) -> str:
    """Return click's message of an error, in one line, and in the same words with every version of click."""
    if isinstance(error, click.NoSuchOption):
        return f"No such option '{error.option_name}'"  # without click's own suggestion, which is not what was typed
    return " ".join(error.format_message().split())


def _elsewhere(error: click.NoSuchOption, context: click.Context, typed_words: Sequence[str]) -> InputError | None:
    """Return the error of an option that a value, or another command, would have; None for any other."""
    from gradcli.cli.retyped import with_command
    from gradcli.errors import InputError

    whole = context.parent or context
    assert isinstance(whole.command, click.Group)
    commands = _commands(whole.command, whole)
    name = next((name for name, options in commands.items() if error.option_name in options), None)
    wrong = InputError(_message(error), options=(error.option_name,))
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
    from gradcli.cli.retyped import with_point
    from gradcli.errors import did_you_mean

    name, options = error.option_name, _options(context.command)
    similar = did_you_mean(name.strip("-"), [option.strip("-") for option in options])
    near = name in _MEANT or f"-{name}" in options or (len(name) > _LETTER and similar)
    return None if near or "--at" not in options else with_point(typed_words, options)


def no_command(group: click.Group, context: click.Context, arguments: Sequence[str]) -> InputError:
    """Return the error of arguments that begin with no command: with a formula, or with another name for a command."""
    from gradcli.cli.retyped import with_command
    from gradcli.errors import InputError, did_you_mean

    name, known = arguments[0], group.list_commands(context)
    message = f"No such command '{name}'."
    if name.replace("-", "_").isidentifier():
        hint = did_you_mean(_MEANT.get(name, name), known) or "`gradcli --help` lists the commands"
        return InputError(message, hint=hint, text=name)
    if name.endswith(".py"):
        return InputError(message, hint=f"run a script: gradcli run {join(arguments)}", text=name)
    fix = with_command(arguments, _commands(group, context))
    return InputError(message, hint=f"put the system after a command: {fix.text}", fix=fix, text=name)


def _commands(group: click.Group, context: click.Context) -> dict[str, list[str]]:
    """Return the options of each command."""
    return {name: _options(group.get_command(context, name)) for name in group.list_commands(context)}


def _options(command: click.Command | None) -> list[str]:
    """Return the names of a command's options."""
    return [name for p in (command.params if command else ()) for name in p.opts]


def _choice(error: click.ClickException, context: click.Context | None, text: str | None) -> tuple[str, list[str]]:
    """Return the typed word where click expects one of a few words, and these."""
    if isinstance(error, click.NoSuchOption) and context:
        options = _options(context.command)
        return _MEANT.get(error.option_name, error.option_name), options
    kind = getattr(getattr(error, "param", None), "type", None)
    return (text, [*kind.choices]) if text and isinstance(kind, click.Choice) else ("", [])


def in_command_line(error: Exception, typed_words: Sequence[str], group: click.Group) -> Exception:
    """Return an error of the user's as an `InputError` with its position in the command line; others unchanged."""
    from gradcli.cli.retyped import ClaimError, separated
    from gradcli.cli.typed import typed
    from gradcli.errors import InputError

    if isinstance(error, click.ClickException):
        error = _input_error(error, typed_words)
    if isinstance(error, ClaimError):
        return _to_check(error, typed_words, group)
    if not isinstance(error, InputError):
        return error
    return separated(error, typed_words).at(typed(error.options, error.text, typed_words))


def _to_check(error: ClaimError, typed_words: Sequence[str], group: click.Group) -> InputError:
    """Return the error of a claim, with the command line that checks it."""
    from gradcli.cli.retyped import as_check
    from gradcli.errors import InputError

    context = click.Context(group)
    command, check = (group.get_command(context, name) for name in (typed_words[0], "check"))
    assert command is not None
    options = {name: not getattr(p, "is_flag", False) for p in command.params for name in p.opts}
    fix = as_check(
        typed_words, options, {*_options(check)} - {"-f", "--format"}
    )  # a format of data may not be one of check
    return InputError(error.message, error.span, f"check it: {fix.text}", fix=fix)


def _mistake(error: Exception, typed_words: Sequence[str], group: click.Group) -> int:
    """Print an error of the user's; any other is a fault of gradcli's, and is printed without a traceback."""
    from gradcli.errors import InputError
    from gradcli.tracebacks import FunctionFailedError, traceback_text

    if isinstance(error, FunctionFailedError):
        assert error.__cause__ is not None
        flush()
        sys.stderr.write(traceback_text(error.__cause__))
        return error.status
    if is_out_of_memory(error):
        print_error(shortage())
        return MISTAKE
    error = in_command_line(error, typed_words, group)
    if isinstance(error, InputError):
        from gradcli.wrapping import page_width

        print_error(error.render(page_width(), "error: "))
        return MISTAKE
    if isinstance(error, OSError) and is_closed_pipe(error):
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


def print_mistake(error: InputError, name: str) -> None:
    """Print the error of one of several files, behind the results of the others."""
    from gradcli.wrapping import page_width

    flush()
    print_error(error.render(page_width(), f"error in {name}: "))


def show(text: str | Iterable[str], notes: Notes) -> None:
    """Print a result to standard output, and the notes to standard error."""
    try:
        for line in [text.rstrip("\n")] if isinstance(text, str) else text:
            before_output()
            click.echo(line)
        flush()
    except OSError as error:
        if not is_closed_pipe(error):
            raise
        discard()  # the reader (`| head`) has seen enough
    print_notes(notes)


def show_result(result: Answer, pages: Callable[[], Iterable[Page]], look: Look, notes: Notes) -> None:
    """Print a result as pages, or as data, and the notes."""
    from gradcli.report.render import data_lines, is_printed, render_pages

    if look.style not in PAGES:
        print_utf8()
        show(data_lines(result, look.style), notes)
        return
    doing("writing formulas")
    shown = list(pages())
    if not is_printed(look.style) and shown:
        shown[-1] = shown[-1].with_notes(notes.lines)
    show(render_pages(shown, look), notes)


def deliver(result: str | bytes, output: str | None, notes: Notes) -> None:
    """Write a text, or the bytes of a file, to a file, or print it where there is none, or `-`; and print the notes.

    Errors: `InputError` for a file that cannot be written.
    """
    if output is None or output == "-":
        show(result.decode() if isinstance(result, bytes) else result, notes)
        return
    from gradcli.data.replacement import write_whole

    write_whole(output, result.encode() if isinstance(result, str) else result)
    print_notes(notes)


def print_notes(notes: Notes) -> None:
    """Print the notes to standard error, after all that standard output has."""
    flush()
    if notes.lines:
        from gradcli.errors import in_lines
        from gradcli.wrapping import page_width

        for text in notes.lines:
            for line in in_lines(text, page_width()):
                print_error(line)
