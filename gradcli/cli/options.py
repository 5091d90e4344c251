"""The options that the commands share, and what they mean: the system, the points, the names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from gradcli.cli.help import add_help
from gradcli.engine.names import ENGINES, OLDER_NAMES
from gradcli.errors import option_error, unknown_name
from gradcli.process.platform import STANDARD_INPUT
from gradcli.report.render import FORMATS, PAGE_ENDINGS, PAGES, Look, has_documents

if TYPE_CHECKING:
    from gradcli.data.block import Policy
    from gradcli.lang.values import Assignment

MAX_THREADS = 1024
MAX_DIGITS = 17
_SHORT = len("-f")

Command = TypeVar("Command", bound=Callable[..., Any])


class PointText(str):
    """A point as it is typed, which is read once: it may be on standard input."""

    @cached_property
    def assignments(self) -> list[Assignment]:
        """The values that it gives to names.

        Errors: `InputError`, with its position in the text.
        """
        from gradcli.lang.values import read_point  # where no point is typed, nothing reads one

        return read_point(self)


class SystemOptions(NamedTuple):
    """The options of every command: the system (expressions, files), the points, and the format."""

    expr: tuple[str, ...]
    files: tuple[str, ...]
    at: tuple[PointText, ...]
    shapes: tuple[str, ...]
    wrt: str | None
    outputs: str | None
    style: str | None = None

    @property
    def page(self) -> str | None:
        """The requested page format, by default `table`; None for a data format."""
        style = self.style or PAGES[0]
        return style if style in PAGES else None

    @property
    def words(self) -> list[str]:
        """The words of a command line that define the system."""
        words = [*self.expr, *(word for name in self.files for word in ("-F", name))]
        for option, value in (("--wrt", self.wrt), ("--outputs", self.outputs)):
            words += [option, value] if value is not None else []
        return words


file_option = click.option(
    "-F", "--file", "files", metavar="FILE", multiple=True, type=click.Path(allow_dash=True),
    help="Read statements from FILE; - is standard input.",
)  # fmt: skip


class _Engine(click.Choice[str]):
    """The name of an engine; an older name means the same engine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that the engine has now."""
        return super().convert(OLDER_NAMES.get(value, value), param, ctx)


def _once(_: click.Context, parameter: click.Parameter, typed: tuple[str, ...]) -> str | None:
    if len(typed) > 1:
        option = parameter.opts[0]
        raise option_error(option, f"{option} is given twice", "put all points into one file")
    path = typed[0] if typed else None
    return "-" if path in STANDARD_INPUT else path


def points_option(help_text: str) -> Callable[[Command], Command]:
    """Return the option of a file of points, of which there is one."""
    kind = click.Path(allow_dash=True)
    return click.option("--points", metavar="FILE", type=kind, multiple=True, callback=_once, help=help_text)


# A point, a cotangent and shapes: each may be repeated, and has a help of its own.
at_option = partial(click.option, "--at", "at", metavar="NAME=VALUE,…", multiple=True, type=PointText)
cotangents_option = partial(click.option, "--v", "cotangents", metavar="V", multiple=True)
shapes_option = partial(click.option, "--shape", "shapes", metavar="NAME=SIZE,…", multiple=True)


def names_option(name: str, help_text: str, metavar: str = "NAMES", default: str = "") -> Callable[[Command], Command]:
    """Return an option of several names, which may be repeated: --wrt x --wrt z is --wrt x,z."""
    return click.option(
        name, metavar=metavar, multiple=True, help=help_text, callback=lambda _, __, typed: ",".join(typed) or None,
        default=(default,) if default else (), show_default=bool(default),
    )  # fmt: skip


reading_options = (
    click.option("--columns", metavar="NAME=HEADER,…", multiple=True),
    click.option("--missing", type=click.Choice(("error", "skip", "nan")), default="error", show_default=True),
)
wrt_option = names_option("--wrt", "The inputs to differentiate with respect to, in this order; others are constants.")
outputs_option = names_option("--outputs", "The outputs, in this order.")
_SYSTEM = (
    click.argument("expr", nargs=-1),
    file_option,
    at_option(help="One point; repeat the option for more."),
    shapes_option(help="Shapes of the inputs when there is no point: x=3,M=2x2."),
    wrt_option,
    outputs_option,
)  # fmt: skip
_FILES = (
    points_option("Many points, instead of --at: a .csv, .tsv, .jsonl, .npz or .parquet file; - is standard input."),
    *reading_options,
    click.option("--values", is_flag=True),
    names_option("--keep", "Copy these columns of the file of points into the result.", "HEADERS"),
    click.option("--output", metavar="FILE", type=click.Path(allow_dash=True)),
    click.option("--engine", type=_Engine([*ENGINES, "dask"]), default="numpy", show_default=True),
    click.option("--scheduler", metavar="ADDRESS"),
    click.option("--threads", type=click.IntRange(1, MAX_THREADS), metavar="N"),
)


def system_options_with(formats: Sequence[str], help_text: str) -> Callable[[Command], Command]:
    """Return the decorator that adds the same options to a command with formats of its own."""
    return gathered("options", SystemOptions, (*_SYSTEM, style_option(formats, help_text)))


def style_option(formats: Sequence[str], help_text: str) -> Callable[[Command], Command]:
    """Return the option of the format."""
    return click.option("-f", "--format", "style", type=click.Choice(formats), help=help_text)


def format_of(style: str | None, output: str | None, endings: Mapping[str, str], option: str = "-f") -> str | None:
    """Return the requested format, or that of a file extension; None where there is neither.

    Errors: `InputError` where they contradict each other; a file of text may have any format.
    """
    said = endings.get(PurePath(output or "-").suffix.lower())
    if style is not None and said not in (None, "text", style):
        from gradcli.data.mistakes import label

        message = f"{option} {style}, but the file extension of {label(output or '-')} says {said}"
        raise option_error(option, message, f"give the file another extension, or use {option} {said}", style)
    return style or said


def gathered(name: str, kind: Any, options: Sequence[Callable[[Any], Any]]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, which gets them as one argument: a tuple of type `kind`.

    The docstring of the type has the help of options that have none of their own.
    """

    def add(command: Command) -> Command:
        def with_one(**typed: Any) -> Any:
            options = kind(**{option: typed.pop(option) for option in kind._fields if option in typed})
            return command(**typed, **{name: options})

        wrapped: Any = update_wrapper(with_one, command)
        for decorate in reversed(options):
            wrapped = decorate(wrapped)
        add_help(wrapped.__click_params__[-len(options) :], kind.__doc__)
        return cast(Command, wrapped)

    return add


# The system, the points and the format, or without a format; the command gets them as `options`.
system_options = system_options_with(FORMATS, "The output format.  [default: table; csv with --points]")
only_system_options = gathered("options", SystemOptions, _SYSTEM)


class Pages(NamedTuple):
    """The options of pages."""

    digits: int | None
    only: tuple[str, ...]
    standalone: bool
    jacobian: bool | None = None

    def look(self, style: str | None, to_file: bool = False) -> Look:
        """Return how the result looks in a format, `table` unless said; HTML, and a file of Markdown, are documents.

        Errors: `InputError` for a document of its own in a format that has none.
        """
        if self.standalone and (style not in PAGES or not has_documents(style)):
            message = "--standalone makes a document of LaTeX or Markdown"
            raise option_error("--standalone", message, "it goes with -f latex and -f markdown")
        standalone = self.standalone or style == "html" or (to_file and style == "markdown")
        return Look(style or PAGES[0], self.digits, standalone)


def page_options(sections: Mapping[str, str]) -> Callable[[Command], Command]:
    """Add the options of pages; the command, whose pages have these sections, gets them as one argument `pages`."""
    named = "; ".join(f"{name}: {what}" for name, what in sections.items())
    options = (
        digits_option("on a page, or full: nothing is rounded.  Data has every digit."),
        click.option(
            "--only", metavar="SECTIONS", multiple=True, callback=partial(_sections, sections),
            help=f"Show only these sections of the page.  {named}.",
        ),
        click.option("--standalone", is_flag=True, help="With -f latex or markdown: a complete document."),
    )  # fmt: skip
    return gathered("pages", Pages, options)


def digits_option(where: str) -> Callable[[Command], Command]:
    """Return the option that says to how many digits numbers are rounded: None for all of them."""
    return click.option(
        "--digits", metavar="N|full", default="6", show_default=True, callback=_digits,
        help=f"Significant digits of the numbers {where}",
    )  # fmt: skip


def _digits(_: click.Context, parameter: click.Parameter, typed: str) -> int | None:
    text = typed.strip()
    if text == "full":
        return None
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_DIGITS:
        message = f"--digits: `{text}` is not a number of digits"
        raise option_error("--digits", message, f"1 to {MAX_DIGITS}, or full", text)
    return int(text)


def _sections(
    sections: Mapping[str, str], _: click.Context, parameter: click.Parameter, typed: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of sections in the options `--only`, each a list with commas.

    Errors: `InputError` for a name that the page has no section of.
    """
    names = tuple(name.strip() for option in typed for name in option.split(","))
    for name in names:
        if name not in sections:
            raise unknown_name("--only", name, f"there is no section `{name}`", sections, "sections")
    return names


class Files(NamedTuple):
    """The options of files: the points, the results, and the engine.

    Options:
        --columns: The column to read an input from, if its header is not the name of the input: x=flow rate.
        --missing: What an empty or NA cell in the file of points means: an error, a point to skip, or nan.
        --values: Add the values of the outputs as columns to those of many points.
        --output: Write the results to a .csv, .npz or .parquet file, or the page to a .html, .md, .tex or .txt file;
            - is CSV on standard output.
        --engine: The engine for many points: NumPy, LLVM or JAX (compiled), or Dask (Parquet data, on a cluster).
        --scheduler: The address of a running Dask cluster, such as tcp://10.0.0.1:8786, instead of a local one.
        --threads: All processor cores by default.
    """

    points: str | None
    output: str | None = None
    engine: str = "numpy"
    scheduler: str | None = None
    threads: int | None = None
    columns: tuple[str, ...] = ()
    missing: Policy = "error"
    values: bool = False
    keep: str | None = None

    @property
    def are_many(self) -> bool:
        """Whether the run is one over many points.

        Errors: `InputError` for an option that only a run over many points has, in a run at one point.
        """
        if self.points is not None or self.output is not None:
            return True
        for name in ("engine", "scheduler", "threads", "columns", "missing", "keep", "values"):
            if getattr(self, name) != self._field_defaults[name]:
                raise option_error(f"--{name}", f"--{name} is for many points", "give them with --points FILE")
        return False


def page_of_file(style: str | None, files: Files) -> str | None:
    """Return the format of the page that `--output` asks for by its file extension; None where it asks for data.

    Errors: `InputError` where `-f` says another format, and for an extension of neither.
    """
    if files.points is not None or files.output in (None, "-"):
        return None
    from gradcli.data.formats import WRITERS, listed
    from gradcli.data.mistakes import unknown_ending

    ending = PurePath(files.output).suffix.lower()
    if ending not in {**PAGE_ENDINGS, **WRITERS}:
        hint = f"a page is written to {listed(PAGE_ENDINGS)} files, numbers to {listed(WRITERS)} files"
        raise unknown_ending(files.output, f"{hint}; `--output -` writes CSV")
    return format_of(style, files.output, PAGE_ENDINGS) if ending in PAGE_ENDINGS else None


# The options of a run over many points; the command gets them as `many`.
file_options = gathered("many", Files, _FILES)


class SystemCommand(click.Command):
    """A command whose EXPR may begin with a minus sign: -sin(x) is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a space before what looks like an expression; no option begins with one."""
        ctx.meta["typed"] = [*args]
        options = {o for p in self.get_params(ctx) for o in p.opts}
        known = {o for o in options if len(o) == _SHORT}
        marked = []
        for before, arg in zip(["", *args], args, strict=False):
            expression = re.match(r"-\s*[\w.(\[|√‖]", arg) and (arg[:_SHORT] not in known or re.search(r"[()*/=]", arg))
            typo = f"-{arg}" in options or before in ("-F", "--file")  # `-v 1` is meant to be `--v 1`
            marked.append(f" {arg}" if expression and not typo else arg)
        return super().parse_args(ctx, marked)


def asking(sections: Mapping[str, str], *own: Callable[[Any], Any]) -> Callable[[Command], click.Command]:
    """Return the decorator of a command that answers a question, whose pages have these sections.

    It has the options of the system, its `own`, and those of pages and of files, in this order.
    """

    def add(command: Command) -> click.Command:
        for decorate in (file_options, page_options(sections), *reversed(own), system_options):
            command = decorate(command)
        return click.command(cls=SystemCommand)(command)

    return add
