"""gradcli explain: the pages of the guide, and what a message of PyTorch's means."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gradcli.guide.messages import Found
    from gradcli.guide.topics import Topic

EXAMPLES = """\b
Examples:
  gradcli explain
  gradcli explain gradient-argument
  gradcli explain why do gradients accumulate
  gradcli explain "grad can be implicitly created only for scalar outputs"
"""


_SHOWN = 200  # characters of an unknown text
MAX_BYTES = 2**20  # of a message with its traceback


def _completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics that a word may become."""
    from gradcli.guide.topics import topics

    return [name for name in topics() if name.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("text", nargs=-1, shell_complete=_completed)
def explain(text: tuple[str, ...]) -> None:
    """Answer a question, or explain an error message of PyTorch's.

    TEXT is a topic, or a message, or a whole traceback; - reads it from standard input.  Without TEXT, the topics are
    listed.
    """
    from gradcli.files import read_bytes, standard_input
    from gradcli.guide.messages import answered, find
    from gradcli.guide.topics import topic_named

    if text == ("-",):
        asked = read_bytes(standard_input(), "standard input", MAX_BYTES).decode(errors="replace")
    else:
        asked = " ".join(text)
    if not text:
        _list()
    elif topic := topic_named(asked):
        _show(_page(topic), f"gradcli explain {topic.name}")
    elif result := find(asked) or answered(asked):
        _show(_told(result), 'gradcli explain "TEXT"')
    else:
        raise _unknown(asked)


def _list() -> None:
    """Print the topics with a line each."""
    from gradcli.guide.topics import PARTS, topics
    from gradcli.report.layout import table
    from gradcli.wrapping import page_width, wrapped

    result = topics().values()
    longest = max(len(t.name) for t in result)
    for part, title in PARTS.items():
        rows = [[f"  {t.name.ljust(longest)}", t.summary.rstrip(".")] for t in result if t.part == part]
        click.echo(f"{title}\n" + "\n".join(line for row in table(rows, page_width()) for line in row) + "\n")
    told = 'gradcli explain TOPIC shows one, gradcli explain "TEXT" a message of PyTorch\'s.'
    click.echo("\n".join(wrapped(told, page_width())))
    _tell_of_top(len(result) + 3 * len(PARTS), "gradcli explain")


def _page(topic: Topic) -> str:
    """Return a page, its messages as a list: each has a page of its own."""
    text, _, messages = topic.text.partition("\n## Messages\n")
    if not messages:
        return text
    listed = "\n".join(f"- {section.heading}" for section in topic.sections if section.messages)
    return f'{text}\n## Messages\n\n`gradcli explain "TEXT"` explains each of these:\n\n{listed}\n'


def _told(found: Found) -> str:
    """Return the section that explains a message, and where more stands."""
    more = f"More: `gradcli explain {found.topic.name}`"
    return f"# {found.section.heading}\n\n{found.section.text}\n\n{more}\n"


def _show(markdown: str, command: str) -> None:
    """Print a page: with colours on a terminal, plain elsewhere."""
    from gradcli.report.prose import coloured, plain
    from gradcli.wrapping import page_width

    text = plain(markdown, page_width())
    if _terminal():
        coloured(markdown, page_width())
    else:
        click.echo(text)
    _tell_of_top(text.count("\n"), command)


def _tell_of_top(lines: int, command: str) -> None:
    """Say how to see the top of what is longer than the terminal."""
    from gradcli.wrapping import page_width, wrapped

    if _terminal() and lines >= get_terminal_size().lines - 1:
        click.echo("\n" + "\n".join(wrapped(f"{command} | less shows this from its top.", page_width())))


def _terminal() -> bool:
    return sys.stdout.isatty()


def _unknown(asked: str) -> Exception:
    """Return the error about a text that is neither a topic nor a known message."""
    from gradcli.errors import InputError
    from gradcli.guide.messages import nearest

    lines = asked.strip().splitlines()
    said = lines[-1] if len(lines) > 1 and "Traceback (most recent" in asked else asked  # what was raised stands last
    words = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    words = words.replace("`", "'")[:_SHOWN] + "…" * (len(words) > _SHOWN)
    if not words:
        return InputError("there is no text to explain", hint="`gradcli explain` lists the topics")
    near = ", ".join(t.name for t in nearest(said))
    hint = f"the nearest topics: {near}" if near else "`gradcli explain` lists the topics"
    return InputError(f"no topic, and no known message of PyTorch's: `{words}`", hint=hint)
