"""gradcli explain: answers to questions from the guide, its pages, and what PyTorch's messages mean."""

from __future__ import annotations

import sys
from itertools import accumulate
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gradcli.guide.messages import Hit
    from gradcli.guide.search import Answers
    from gradcli.guide.topics import Topic

EXAMPLES = """\b
Examples:
  gradcli explain "why does my gradient double when I call backward twice"
  gradcli explain "grad can be implicitly created only for scalar outputs"
  gradcli explain gradient-argument
  gradcli explain
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
    """Answer a question about gradients, or explain an error message of PyTorch's.

    TEXT is a question, a message, a whole traceback, or the name of a topic; - reads it from standard input.  Without
    TEXT, the topics are listed.
    """
    from gradcli.files import read_bytes, standard_input
    from gradcli.guide.messages import find
    from gradcli.guide.search import answers
    from gradcli.guide.topics import topic_named

    if text == ("-",):
        question = read_bytes(standard_input(), "standard input", MAX_BYTES).decode(errors="replace")
    else:
        question = " ".join(text)
    if not text:
        _list()
    elif topic := topic_named(question):
        _show(_page(topic), f"gradcli explain {topic.name}")
    elif message := find(question):
        _show(_explained(message), 'gradcli explain "TEXT"')
    elif (result := answers(_last(question))).sure:
        _show(_answer(result), 'gradcli explain "TEXT"')
    else:
        raise _unknown(_last(question), result)


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
    usage = 'gradcli explain TOPIC shows a page; gradcli explain "TEXT" answers a question.'
    click.echo("\n".join(wrapped(usage, page_width())))
    _note_top(len(result) + 3 * len(PARTS), "gradcli explain")


def _parts(text: str) -> list[str]:
    """Return the paragraphs and the blocks of code of a text."""
    parts: list[list[str]] = [[]]
    fence = ""
    for line in text.splitlines():
        if line.startswith("```"):
            fence = line.rstrip("abcdefghijklmnopqrstuvwxyz") if not fence else "" if line == fence else fence
        if line or fence:
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return ["\n".join(lines) for lines in parts if lines]


def _page(topic: Topic) -> str:
    """Return a page of the guide, with its messages as a list of headings."""
    text, _, messages = topic.text.partition("\n## Messages\n")
    if not messages:
        return text
    listed = "\n".join(f"- {section.heading}" for section in topic.sections if section.messages)
    return f'{text}\n## Messages\n\n`gradcli explain "TEXT"` explains each of these:\n\n{listed}\n'


def _explained(result: Hit) -> str:
    """Return the section that explains a message, and the command for its page."""
    more = f"More: `gradcli explain {result.topic.name}`"
    return f"# {result.section.heading}\n\n{result.section.text}\n\n{more}\n"


def _answer(answers: Answers) -> str:
    """Return the section that answers a question best, as far as it fits a screen, and the commands for more."""
    from gradcli.report.prose import plain
    from gradcli.wrapping import page_width

    best, *others = answers.hits
    more = f"The whole page: `gradcli explain {best.topic.name}`"
    listed = "\n".join(f"- `gradcli explain {result.topic.name}`: {_heading(result)}" for result in others)
    end = f"{more}\n\nSee also:\n\n{listed}" if listed else more
    rows = get_terminal_size().lines - plain(end, page_width()).count("\n") - 6 if _terminal() else sys.maxsize
    return f"# {best.section.heading}\n\n{_beginning(best.section.text, rows)}\n\n{end}\n"


def _heading(result: Hit) -> str:
    """Return the line that describes a section of another page."""
    first = result.section.heading == result.topic.title
    return result.topic.summary.rstrip(".") if first else result.section.heading


def _beginning(text: str, rows: int) -> str:
    """Return the first paragraphs and blocks of code of a text, as many as fit into rows, and at least one."""
    from gradcli.report.prose import plain
    from gradcli.wrapping import page_width

    parts = _parts(text)
    ends = accumulate(plain(part, page_width()).count("\n") + 2 for part in parts)
    fitting = max(1, sum(end <= rows for end in ends))
    return "\n\n".join([*parts[:fitting], *(["…"] if fitting < len(parts) else [])])


def _show(markdown: str, command: str) -> None:
    """Print a page: with colours on a terminal, plain elsewhere."""
    from gradcli.report.prose import coloured, plain
    from gradcli.wrapping import page_width

    text = plain(markdown, page_width())
    if _terminal():
        coloured(markdown, page_width())
    else:
        click.echo(text)
    _note_top(text.count("\n"), command)


def _note_top(lines: int, command: str) -> None:
    """Print a note on how to see the top of a text that is longer than the terminal."""
    from gradcli.wrapping import page_width, wrapped

    if _terminal() and lines >= get_terminal_size().lines - 1:
        click.echo("\n" + "\n".join(wrapped(f"{command} | less shows this from its top.", page_width())))


def _terminal() -> bool:
    return sys.stdout.isatty()


def _last(text: str) -> str:
    """Return the last line of a traceback, which has the message; any other text as it is."""
    lines = text.strip().splitlines()
    return lines[-1] if len(lines) > 1 and "Traceback (most recent" in text else text


def _unknown(text: str, answers: Answers) -> Exception:
    """Return the error about a text that the guide does not answer, with the nearest topics."""
    from gradcli.errors import InputError

    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    words = words.replace("`", "'")[:_SHOWN] + "…" * (len(words) > _SHOWN)
    if not words:
        return InputError("there is no text to explain", hint="`gradcli explain` lists the topics")
    near = ", ".join(result.topic.name for result in answers.hits)
    hint = f"the nearest topics: {near}" if near else "`gradcli explain` lists the topics"
    return InputError(f"the guide has no answer to `{words}`", hint=hint, text=words)
