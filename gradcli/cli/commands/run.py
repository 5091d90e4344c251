"""gradcli run: a PyTorch script, run without PyTorch, with each backward explained."""

from __future__ import annotations

import gc
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gradcli.cli.options import format_of, gathered, names_option, style_option
from gradcli.errors import InputError, Notes, option_error
from gradcli.process.ending import DONE, MISTAKE, NO
from gradcli.process.platform import is_terminal
from gradcli.process.streams import flush, print_error
from gradcli.text.plain import print_utf8
from gradcli.text.wrapping import in_words

if TYPE_CHECKING:
    from gradcli.process.script import Script
    from gradcli.pytorch.messages import MissingError
    from gradcli.pytorch.session import Ending
    from gradcli.script.check import Calls
    from gradcli.script.drawing import Drawing
    from gradcli.script.explainer import Explainer
    from gradcli.script.shown import Printed
    from gradcli.script.under_pytorch.explainer import PyTorchExplainer

_NEAR = 0.85  # similarity of the script's option and one of gradcli's, from 0 to 1
MAX_SCRIPT_BYTES = 2**24
ENDINGS = {".md": "markdown", ".tex": "latex", ".json": "json", ".jsonl": "json", ".html": "html"}


class _ScriptCommand(click.Command):
    """A command whose options precede the script, or directly follow it; further ones are the script's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the arguments: those after `--`, and after the first that is not gradcli's, are the script's."""
        options, rest = _parted(args, {o: p for p in self.get_params(ctx) for o in (*p.opts, *p.secondary_opts)})
        result = super().parse_args(ctx, options)
        ctx.params["arguments"] = tuple(rest)
        if not ctx.params.get("quiet"):
            _note_options(rest, {o for p in self.get_params(ctx) for o in p.opts})
        return result


def _parted(args: list[str], options: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return gradcli's arguments, with the script's name, and the script's own."""
    script, i = False, 0
    while i < len(args) and args[i] != "--":
        name, equals, _ = args[i].partition("=")
        known = options.get(name) or (options.get(name[:2]) if not name.startswith("--") else None)
        if args[i] in ("", "-") or args[i][0] != "-" or (known is None and script):
            if script:
                return args[:i], args[i:]
            script = True
        elif name in {*options} - {"-h", "--help"} and not equals and not getattr(known, "is_flag", False):
            i += 1  # its value follows it
        script = script or name == "-c"
        i += 1
    return args[:i], args[i + 1 :]


def _note_options(rest: list[str], known: set[str]) -> None:
    """Note which of the script's own arguments gradcli has, or nearly has, as an option."""
    from difflib import get_close_matches

    for argument in rest:
        name = argument.partition("=")[0]
        near = get_close_matches(name, known, n=1, cutoff=_NEAR) if name.startswith("--") and name != "--" else []
        if near:
            print_error(f"note: {name} is the script's own argument; gradcli's option is {near[0]}, before the script")


class RunOptions(NamedTuple):
    """The options of what is printed beside the script's own output."""

    quiet: bool
    every: bool
    lines: tuple[int, ...]
    checks: bool
    steps: bool
    unroll: bool
    explores: bool
    round: int | None
    graph: str | None
    open: str | None
    torch: bool | None
    only: tuple[str, ...]

    @property
    def pages(self) -> bool:
        """Whether calls are explained."""
        return not (self.quiet or self.checks)


_OPTIONS = (
    click.option("-q", "--quiet", is_flag=True),
    click.option("--all", "every", is_flag=True),
    click.option("--line", "lines", metavar="N", type=int, multiple=True),
    click.option("--check", "checks", is_flag=True),
    click.option("--steps", is_flag=True),
    click.option("--unroll", is_flag=True),
    click.option("--round", metavar="K", type=click.IntRange(1)),
    click.option("--graph", metavar="FILE", type=click.Path()),
    names_option("--open", "Draw the definition of a call in its place: of these calls, or of all.", "NAMES|all"),
    click.option("--explore", "explores", is_flag=True),
    click.option("--torch/--no-torch", "torch", default=None),
    click.option(
        "--only",
        metavar="SECTIONS",
        default="",
        callback=lambda _, __, typed: tuple(filter(None, map(str.strip, typed.split(",")))),
    ),
)


@click.command(cls=_ScriptCommand)
@click.argument("script", required=False, metavar="[SCRIPT [ARG]...]")
@click.option("-c", "code", metavar="CODE")
@gathered("options", RunOptions, _OPTIONS)
@style_option(
    ("table", "json", "latex", "markdown", "html"),
    "The format of the explanations.  [default: as --output ends; table]",
)
@click.option("--output", metavar="FILE", type=click.Path(allow_dash=True))
def run(
    script: str | None,
    code: str | None,
    options: RunOptions,
    style: str | None,
    output: str | None,
    arguments: tuple[str, ...] = (),
) -> int:
    """Run a PyTorch script without PyTorch, or with --torch under your own, and explain each backward.

    SCRIPT is a file, or - for standard input; the words after it are the script's own arguments.  The script prints
    what PyTorch would print, and a page after each backward explains it.  --check compares the backward of each
    autograd.Function of the script with its forward, at the values of each call; the status is 1 when one is wrong.

    gradcli's torch has autograd, torch.func, and the common parts of torch.nn, torch.optim and torch.utils.data, on the
    CPU; `gradcli explain run` lists them.  A missing function ends the run with its name and status 2.

    Options:
        --quiet: Print only what the script prints.
        --all: Explain a line every time it is reached, not only the first time.
        --line: Explain only the calls at this line.
        --check: Only check the backward of each autograd.Function.
        --steps: Show the forward table and the reverse table.
        --unroll: Write each round of a loop, which is a recurrence otherwise.
        --round: Explain a line the K-th time it is reached.
        --graph: Draw the first explained call to FILE; .svg, .dot, .mmd, .tex, .html, .pdf, .png and .txt choose the
            format.
        --explore: Stop at each page, and explore its system; q continues.
        --torch: Run the script under your own PyTorch, or never.  [default: where its imports need it]
        --only: Show these sections of each page alone: flow, grad, …
        -c: Run this code.
        --output: Write them to FILE; .md, .tex, .json and .html choose the format, .txt is any.

    Examples:
        gradcli run samples/doubled.py
        gradcli run samples/doubled.py --quiet
        gradcli run -c "import torch; x = torch.tensor(3., requires_grad=True); (x**2).backward(); print(x.grad)"

    """
    from gradcli.files import UsersFolder
    from gradcli.process.ending import as_python_does
    from gradcli.process.platform import users_environment
    from gradcli.pytorch.messages import MissingError
    from gradcli.pytorch.session import run as run_script

    style = format_of(style, output, ENDINGS) or "table"
    output = None if output == "-" else output
    wanted = _script(script, code, arguments)
    uses_torch = _uses_torch(wanted, options)
    if output is not None:
        from gradcli.data.replacement import check_target

        check_target(output)
    destination = _destination(wanted, options, style, output is not None)
    listener = _listener(wanted, options, destination, style, uses_torch)
    folder = UsersFolder()
    if not uses_torch and "torch" in wanted.source:
        import_module("gradcli.pytorch.torch")
    gc.freeze()
    gc.unfreeze()  # what is loaded is old now: a short script does not wait until all of it is searched for cycles
    # As Python looks for cycles: a script may live long, and modules have them.
    gc.set_threshold(*((700, 10, 10) if uses_torch else (10_000, 20, 20)))
    interrupted: KeyboardInterrupt | None = None
    with destination.beside(), listener.listening(), as_python_does(), users_environment():
        try:
            with folder.entered():
                ending = run_script(wanted, emulates=not uses_torch)
        except KeyboardInterrupt as error:
            interrupted = error
        except MissingError as error:
            _print_missing(wanted, error)
            return MISTAKE
    flush()
    if interrupted is not None:  # the pages so far are kept
        if options.pages:
            listener.again()
        _write(destination, output, style)
        raise interrupted
    if ending.error is not None:
        listener.failed(ending.error, _traceback(ending))
    wrong = listener.again()
    _draw(listener, options)
    _write(destination, output, style)
    folder.return_at_exit()
    return ending.status or (NO if wrong else DONE)


def _destination(script: Script, options: RunOptions, style: str, keeps: bool) -> Printed:
    """Return the stream of the pages, beside the script's output; `keeps` collects them for a file.

    Errors: `InputError` where pages are to be explored and there is no terminal, or an option leaves no page on it.
    """
    from gradcli.script.shown import Document, Printed

    if options.explores:
        from gradcli.cli.commands.explore import check_terminal, has_unicode

        if not options.pages or style != "table" or keeps:
            message = "--explore stops at each page on the terminal"
            raise option_error("--explore", message, "leave out --quiet, --check, -f and --output")
        check_terminal("gradcli run SCRIPT.py")
        from gradcli.explore.scripts import Stops

        return Stops(has_unicode())
    if options.pages and style == "html":
        from gradcli.script.live_document import LiveDocument

        return LiveDocument(script, keeps)
    if options.pages and style in ("markdown", "latex"):
        return Document(script.source, style, keeps)
    return Printed(style == "json" and not options.quiet and not keeps, keeps)


def _uses_torch(script: Script, options: RunOptions) -> bool:
    """Return whether a script runs under the user's own PyTorch: where that is wanted, or where its imports need it.

    Errors: `InputError` where PyTorch is wanted and not installed, or too old.
    """
    if options.torch is False:
        return False
    from gradcli.process import pytorch

    if not options.torch:
        name = pytorch.needing(script.source, script.folder) if "import" in script.source else ""
        if not name or not pytorch.is_new_enough(pytorch.version() or ""):
            return False
        if not options.quiet:
            _note(f"note: {name} needs PyTorch itself: the script runs under it (--torch); --no-torch forbids that")
        return True
    installed = pytorch.version()
    if installed is None:
        raise option_error("--torch", "--torch needs PyTorch", f"install it: {pytorch.INSTALL}")
    if not pytorch.is_new_enough(installed):
        least = ".".join(map(str, pytorch.LOWEST))
        hint = f"install it: {pytorch.INSTALL} --upgrade"
        raise option_error("--torch", f"--torch needs PyTorch {least} or later, not {installed}", hint)
    return True


def _listener(
    script: Script, options: RunOptions, destination: Printed, style: str, uses_torch: bool
) -> Calls | Explainer | PyTorchExplainer | _Silent:
    """Return the listener of the script's calls.

    Errors: `InputError` for a picture where no call is explained, and for a check under PyTorch.
    """
    if options.graph is not None and not options.pages:
        without = in_words(["--quiet"] * options.quiet + ["--check"] * options.checks)
        raise option_error("--graph", "--graph draws a call that is explained", f"leave out {without}")
    if options.checks and uses_torch:
        message = "--check runs each autograd.Function again on numbers of its own, which takes gradcli's torch"
        hint = "leave out --torch, or call torch.autograd.gradcheck in the script; --torch compares every formula "
        raise option_error("--check", message, f"{hint}of a page with PyTorch's numbers by itself")
    if options.checks:
        from gradcli.script.check import Calls

        return Calls(script, destination, _note, style)
    if options.quiet:
        return _Silent()
    lines, first, drawing = frozenset(options.lines), options.round or 0, _drawing(options)
    shows = (style, options.every, lines, options.steps, first, options.only, options.unroll, drawing)
    if uses_torch:
        from gradcli.script.under_pytorch.explainer import PyTorchExplainer

        return PyTorchExplainer(script, destination, _note, *shows)
    from gradcli.script.explainer import Explainer

    return Explainer(script, destination, _note, *shows)


def _drawing(options: RunOptions) -> Drawing | None:
    """Return the requested picture.

    Errors: `InputError` where the file's name has an unknown file extension, or it cannot be written.
    """
    if options.open is not None and options.graph is None:
        raise option_error("--open", "--open is about a picture", "add --graph FILE")
    if options.graph is None:
        return None
    from gradcli.cli.commands.graph import names_to_open, style_of_picture
    from gradcli.data.replacement import check_target
    from gradcli.report.pictures.render import CONVERTED, converter
    from gradcli.script.drawing import Drawing

    style = style_of_picture(None, options.graph)
    if style in CONVERTED:
        converter()
    check_target(options.graph)
    return Drawing(style, names_to_open(options.open))


def _draw(listener: Calls | Explainer | PyTorchExplainer | _Silent, options: RunOptions) -> None:
    """Write the picture, or note why there is none."""
    drawing: Drawing | None = getattr(listener, "drawing", None)
    if drawing is None or options.graph is None:
        return
    from gradcli.cli.output import deliver

    if drawing.text:
        deliver(drawing.file(), options.graph, Notes(), drawing.style)
    else:
        _note(f"note: {options.graph} is not written: {drawing.trouble}")


class _Silent:
    """A listener that ignores all calls."""

    def listening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def failed(self, error: BaseException, text: str) -> None:
        pass

    def again(self) -> bool:
        return False


def _note(text: str) -> None:
    flush()
    print_error(text)


def _print_missing(script: Script, error: MissingError) -> None:
    """Print the error of a name that gradcli's torch does not have, with its line in the script."""
    from gradcli.process import pytorch
    from gradcli.process.platform import join
    from gradcli.process.tracebacks import line_of

    flush()
    line = line_of(error)
    code = script.line(line)
    hints = [f"line {line}: {code}" if code else "", error.hint or ""]
    if pytorch.is_new_enough(pytorch.version() or ""):
        file = script.name if script.folder is not None else "…"
        hints.append(f"your own PyTorch has it: gradcli run --torch {join([file, *script.arguments])}")
    print_error("\n  ".join([f"error: gradcli's torch has no `{error.name}`", *filter(None, hints)]))


def _traceback(ending: Ending) -> str:
    """Show how a script failed, as Python does, or as the script does itself; return it as Python has it."""
    from gradcli.process.tracebacks import traceback_text

    error = ending.error
    assert error is not None
    text = traceback_text(error)
    if ending.hook is None:
        sys.stderr.write(text)
    else:
        ending.hook(type(error), error, error.__traceback__)
    return text


def _write(destination: Printed, output: str | None, style: str) -> None:
    """Write the document, or the pages that were collected for a file."""
    from gradcli.script.shown import Document

    text = destination.whole().rstrip("\n")
    if output is not None:
        from gradcli.cli.output import deliver

        deliver(text + "\n" * bool(text), output, Notes(), style)
    elif text or isinstance(destination, Document):
        if not isinstance(destination, Document):
            print_utf8()  # which the page itself says that it is
        click.echo(text)


def _script(name: str | None, code: str | None, arguments: tuple[str, ...]) -> Script:
    """Return the script; where the encoding of a file is wrong, Python says so when it compiles the bytes."""
    from importlib.util import decode_source

    from gradcli.files import note_read, read_bytes, reason, standard_input
    from gradcli.process.script import Script

    if code is not None:
        words = arguments if name is None else (name, *arguments)
        return Script(code if code.endswith("\n") else code + "\n", "-c", None, words)
    if name is None and (sys.stdin is None or is_terminal(sys.stdin)):
        raise click.UsageError("give a script: gradcli run SCRIPT.py, or -c CODE, or - for standard input")
    folder = None
    if name is None or name == "-":
        name, data = "<stdin>", read_bytes(standard_input(), "standard input", MAX_SCRIPT_BYTES)
    elif name.endswith(".ipynb"):
        hint = f"jupyter nbconvert --to script {name} makes one"
        raise InputError(f"`{name}` is a notebook, not a script", hint=hint, text=name)
    else:
        note_read(name)
        try:
            with open(name, "rb") as file:
                data, folder = read_bytes(file, name, MAX_SCRIPT_BYTES), str(Path(name).resolve().parent)
        except (OSError, ValueError) as error:
            raise InputError(f"`{name}` cannot be read: {reason(error)}", text=name) from None
    try:
        source = decode_source(data)
    except (SyntaxError, UnicodeError, LookupError):
        source = data.decode(errors="replace")
    return Script(source, name, folder, arguments, data)
