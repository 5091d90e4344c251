"""The examples of every `--help` run as printed."""

from __future__ import annotations

import re
import shlex

import pytest
from documents import HELP

from gradcli.cli.main import COMMANDS, GROUPS


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_the_examples_of_the_help_run(command, cli):
    _, _, examples = cli.done(*command, "--help").out.partition("Examples:\n")
    lines = [line.strip() for line in examples.partition("\n\n")[0].splitlines()]
    assert lines
    for line in lines:
        name, *arguments = shlex.split(line)
        assert name == "gradcli"
        if arguments[0] == "explore":  # which needs a terminal, and says what does not
            _, _, command = cli.refused(*arguments).rpartition("print the page: ")
            name, *arguments = shlex.split(command)
        cli.done(*arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_begins_with_the_most_common_example_and_its_output(command, cli):
    """The output is that of `help.md`, whose commands are run with those of the guide."""
    _, _, example, *rest = cli.done(command, "--help").out.split("\n\n")
    assert example.startswith(f"  $ gradcli {command} ")
    if command != "explore":  # which has no output
        (block,) = re.findall(rf"^# {command}\n\n```console\n(.*?)^```$", HELP.read_text("utf-8"), re.M | re.S)
        shown = [line.strip() for line in "\n\n".join([example, *rest]).splitlines()]
        lines = [line.strip() for line in block.splitlines()]
        assert shown[: len(lines)] == lines
    assert example.count("$ gradcli") == 1


def test_each_command_is_in_a_group(cli):
    named = [entry for entries in GROUPS.values() for entry in entries if isinstance(entry, str)]
    assert sorted(named) == sorted(COMMANDS)
    out = cli.done("--help").out
    places = [out.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_option_takes_is_named(command, cli):
    assert "RANGE" not in cli.done(command, "--help").out
