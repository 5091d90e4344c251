"""The README: every command prints what is shown below it, and every table says what is so."""

from __future__ import annotations

import ast
import doctest
import json
import re

import numpy as np
import pytest
from documents import README, SAMPLES, Printed, blocks, console_session, environment, execute, pipeline, same

from gradcli import evaluate, parse, vjp
from gradcli.cli.main import gradcli
from gradcli.vocabulary import FUNCTIONS

TEXT = README.read_text("utf-8")
SESSIONS = [console_session(block) for block in blocks(TEXT, "console")]
EXAMPLES = [example for session in SESSIONS for example in session.examples]
MAIN = 'gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a session, in which `samples` stands; the width is that of a process in a test."""
    (tmp_path / SAMPLES.name).symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.setenv(name, environment()[name])
    return tmp_path


def executed(cli, command, folder):
    """Run a pipe: its plain calls of gradcli in this process, which takes milliseconds, what remains by the shell."""
    calls, rest = pipeline(command)
    out, err, status = "", "", 0
    for arguments in calls:
        outcome = cli(*arguments, stdin=out)
        out, err, status = outcome.out, err + outcome.told, outcome.status
    if not rest:
        return Printed(out + err, status)
    done = execute(["sh", "-c", rest], folder, out)
    return Printed(done.text + err, done.status)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.examples[0].command)
def test_commands_print_what_is_shown(session, cli, folder):
    if session.missing:
        pytest.skip(f"needs {', '.join(session.missing)}")
    for example in session.examples:
        now = executed(cli, example.command, folder)
        if not same(now.text, example.shown):
            assert now.text == example.shown  # the difference; `python tests/docs/refresh.py` takes it over
        # A pipe ends with the status of its last command.
        assert now.status == (2 if example.shown.startswith("error:") and "|" not in example.command else 0)


def test_most_calls_need_no_process():
    plain = [example.command for example in EXAMPLES if pipeline(example.command)[0]]
    assert len(EXAMPLES) * 0.6 < len(plain) < len(EXAMPLES)


def test_the_main_example_stands_on_the_first_screen():
    assert EXAMPLES[0].command == MAIN
    assert TEXT[: TEXT.index(EXAMPLES[0].shown)].count("\n") + EXAMPLES[0].shown.count("\n") <= 45


@pytest.mark.parametrize(
    ("marker", "last"),
    [("<!-- set up and run -->", MAIN), ("<!-- set up and test -->", ".venv/bin/python -m pytest -n 2")],
)
def test_a_set_up_command_is_one_line_below_its_marker(marker, last):
    (command,) = re.findall(rf"^{marker}\n```sh\n(.*)\n```$", TEXT, re.MULTILINE)
    assert command.startswith("python3 -m venv .venv && ")
    assert command.split(" && ")[-1] == last


def test_the_python_examples_run():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    examples = [parser.get_doctest(b["body"], {}, "README.md", "README.md", 0) for b in blocks(TEXT, "python")]
    assert examples
    for example in examples:
        assert example.examples
        assert runner.run(example).failed == 0


def section(title):
    (body,) = re.findall(rf"^#+ {title}\n(.*?)(?=^#+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return body


def rows(text):
    """The cells of the Markdown tables in a text, without the heads."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line] for line in lines[2:]]


def test_the_table_of_functions_is_complete():
    listed = {
        frozenset(names.strip("`").split("/")) for row in rows(section("Functions")) for names in row[1].split(", ")
    }
    known = {frozenset(name for name, other in FUNCTIONS.items() if other is build) for build in FUNCTIONS.values()}
    assert listed == known


@pytest.mark.parametrize("row", rows(section("Corners")), ids=lambda row: row[0])
def test_a_corner_has_the_gradient_that_the_table_says(row):
    expression, point, gradient = row[:3]
    value = np.array(ast.literal_eval(point.removeprefix("x = ")), dtype=float)
    graph = parse(f"y = {expression}", x=value.shape)
    (grad,) = evaluate(vjp(graph), {"x": value[..., None], "y.v": np.ones(1)}).values()
    wanted = np.array(json.loads(gradient.replace("inf", "Infinity").replace("nan", "NaN")), dtype=float)
    np.testing.assert_array_equal(grad[..., 0], wanted)


@pytest.mark.parametrize("command", gradcli.commands.values(), ids=lambda command: command.name)
def test_every_command_and_option_is_mentioned(command):
    assert f"gradcli {command.name}" in TEXT
    for option in command.params:
        if option.param_type_name == "option":
            assert option.opts[-1] in TEXT, option.opts
