"""The help of a command, which its docstring has: a text, lines for its options, and examples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import cleandoc
from pathlib import Path

import click

_FIRST = Path(__file__).with_name("help.md")  # the most common example of each command, with its output
_OPTION = re.compile(r"^ {4}(--?[\w-]+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def add_help(parameters: Iterable[click.Parameter], docstring: str | None) -> str:
    """Give options without a help the one that a docstring has; return its text before that."""
    text, _, options = cleandoc(docstring or "").partition("\n\nOptions:\n")
    texts = {option: re.sub(r"\n +", " ", words) for option, words in _OPTION.findall(options)}
    for parameter in parameters:
        if isinstance(parameter, click.Option) and parameter.help is None:
            parameter.help = next((texts[option] for option in parameter.opts if option in texts), None)
    return text


def documented(command: click.Command, name: str) -> click.Command:
    """Return a command with the help of its docstring.

    Behind the first paragraph stands its first example with the output; the others stand at the end.
    """
    text, _, examples = cleandoc(command.callback.__doc__ or "").partition("\n\nExamples:\n")
    text = add_help(command.params, text)
    first = re.search(rf"^# {name}\n\n```console\n(.*?)^```$", _FIRST.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    if first:
        parts = [f"\b\n{part}" for part in first[1].rstrip("\n").split("\n\n")]
        begins, rest = text.split("\n\n", 1)
        text = "\n\n".join([begins, *parts, rest])
    command.help = text
    if examples:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line.strip()}" for line in examples.splitlines())
    return command
