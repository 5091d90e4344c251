"""The examples of every `--help` run as printed."""

from __future__ import annotations

import shlex

import pytest

from gradcli.cli.main import COMMANDS


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
def test_what_an_option_takes_is_named(command, cli):
    assert "RANGE" not in cli.done(command, "--help").out
