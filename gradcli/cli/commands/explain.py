"""gradcli explain: answers to questions from the guide, its pages, and what PyTorch's messages mean."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.errors import InputError
from gradcli.process.platform import has_styles

if TYPE_CHECKING:
    from gradcli.guide.messages import Hit
    from gradcli.guide.topics import Topic


_SHOWN = 200  # characters of an unknown text
MAX_BYTES = 2**20  # of a message with its traceback


def _completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics that a word may become."""
    from gradcli.guide.topics import topics

    return [name for name in topics() if name.startswith(incomplete)]


@click.command()
@click.argument("text", nargs=-1, shell_complete=_completed)
@click.option("--site", metavar="DIR")
def explain(text: tuple[str, ...], site: str | None) -> None:
    """Answer a question about gradients, or explain an error message of PyTorch's.

    TEXT is a question, a message, a whole traceback, the name of a topic, or a heading; - reads it from standard input.
    A question shows the sections of the guide that answer it best.  Without TEXT, the topics are listed.

    Options:
        --site: Write the whole guide as a web site of plain files into a new folder.

    Examples:
        gradcli explain "why does my gradient double when I call backward twice"
        gradcli explain "grad can be implicitly created only for scalar outputs"
        gradcli explain gradient-argument
        gradcli explain

    """
    from gradcli.files import read_bytes, standard_input
    from gradcli.guide.messages import find
    from gradcli.guide.search import answers, headed
    from gradcli.guide.topics import topic_named

    if text == ("-",):
        question = read_bytes(standard_input(), "standard input", MAX_BYTES).decode(errors="replace")
    else:
        question = " ".join(text)
    if site is not None:
        _write_site(site)
    elif not text:
        _list()
    elif topic := topic_named(question):
        _show(_page(topic))
    elif section := find(question) or headed(question):
        _show(_whole(section))
    elif hits := answers(_last(question)):
        _show(_whole(hits[0]) if len(hits) == 1 else _beginnings(hits))
    else:
        raise _unknown(_last(question))


def _write_site(folder: str) -> None:
    """Write the guide as a web site, with the samples that it links to."""
    from gradcli.cli.commands.samples import copy_samples
    from gradcli.cli.output import wrote
    from gradcli.data.replacement import write_folder
    from gradcli.guide.site import write_site
    from gradcli.guide.topics import topics
    from gradcli.process.streams import print_error

    def fill(new: Path) -> None:
        copy_samples(new / "samples")
        write_site(new, _draw)

    count = write_folder(folder, fill)
    print_error(wrote(folder, f"{len(topics())} pages, {count} files; begin with index.html"))


def _draw(arguments: Sequence[str], file: Path) -> bool:
    """Write the live page that a command of the guide shows, and return whether it shows one."""
    from gradcli.cli.commands.graph import graph
    from gradcli.cli.commands.run import run
    from gradcli.cli.commands.samples import samples_folder

    folder = samples_folder().parent
    name, *rest = [re.sub(r"(^|=@|@)samples/", rf"\1{folder.as_posix()}/samples/", word) for word in arguments]
    command = {"graph": graph, "run": run}[name]
    with suppress(InputError), redirect_stderr(StringIO()), redirect_stdout(StringIO()):
        command.main([*rest, "--output", str(file)], standalone_mode=False)
    if file.exists() and "data-input" not in file.read_text("utf-8"):
        file.unlink()  # a script without a call that has a live page
    return file.exists()


def _list() -> None:
    """Print the topics with a line each."""
    from gradcli.guide.topics import PARTS, topics
    from gradcli.report.layout import table
    from gradcli.text.wrapping import page_width, wrapped

    result = topics().values()
    longest = max(len(t.name) for t in result)
    for part, title in PARTS.items():
        rows = [[f"  {t.name.ljust(longest)}", t.summary.rstrip(".")] for t in result if t.part == part]
        click.echo(f"{title}\n" + "\n".join(line for row in table(rows, page_width()) for line in row) + "\n")
    usage = 'gradcli explain TOPIC shows a page; gradcli explain "TEXT" answers a question.'
    click.echo("\n".join(wrapped(usage, page_width())))


def _page(topic: Topic) -> str:
    """Return a page of the guide, with its messages as a list of headings."""
    text, _, messages = topic.text.partition("\n## Messages\n")
    if not messages:
        return text
    listed = "\n".join(f"- {section.heading}" for section in topic.sections if section.messages)
    return f'{text}\n## Messages\n\n`gradcli explain "TEXT"` explains each of these:\n\n{listed}\n'


def _whole(hit: Hit) -> str:
    """Return a section, and the command for its page."""
    more = f"More: `gradcli explain {hit.topic.name}`"
    return f"# {hit.section.heading}\n\n{hit.section.text}\n\n{more}\n"


def _beginnings(hits: list[Hit]) -> str:
    """Return sections with their headings, their first paragraphs, and the commands that show them whole."""
    parts = [f"# {h.section.heading}\n\n{h.section.beginning}\n\nAll of it: `{_command(h)}`" for h in hits]
    return "\n\n".join(parts) + "\n"


def _command(hit: Hit) -> str:
    """Return the command that shows a section: its page for the first one."""
    first = hit.section.heading == hit.topic.title
    quoted = hit.section.heading.replace('"', "").replace("`", "")
    return f"gradcli explain {hit.topic.name}" if first else f'gradcli explain "{quoted}"'


def _show(markdown: str) -> None:
    """Print a page: with colours on a terminal, plain elsewhere."""
    from gradcli.report.prose import coloured, plain
    from gradcli.text.wrapping import page_width

    styled = has_styles(sys.stdout)
    click.echo((coloured if styled else plain)(markdown, page_width()), color=styled)


def _last(text: str) -> str:
    """Return the last line of a traceback, which has the message; any other text as it is."""
    lines = text.strip().splitlines()
    return lines[-1] if len(lines) > 1 and "Traceback (most recent" in text else text


def _unknown(text: str) -> Exception:
    """Return the error about a text of which the guide has no word."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    words = words.replace("`", "'")[:_SHOWN] + "…" * (len(words) > _SHOWN)
    message = f"the guide has no word of `{words}`" if words else "there is no text to explain"
    return InputError(message, hint="`gradcli explain` lists the topics", text=words)
