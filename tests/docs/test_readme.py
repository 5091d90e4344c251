"""The README: every command prints what is shown below it, and every table says what is so."""

from __future__ import annotations

import ast
import doctest
import re

import numpy as np
import pytest
from documents import README, blocks, console_session, execute_sessions, same

from gradcli import evaluate, parse, vjp
from gradcli.cli.main import gradcli
from gradcli.lang.functions import FUNCTIONS

TEXT = README.read_text("utf-8")
SESSIONS = [console_session(block) for block in blocks(TEXT, "console")]
EXAMPLES = [example for session in SESSIONS for example in session.examples]
PLACES = [
    pytest.param(session, k, id=example.command) for session in SESSIONS for k, example in enumerate(session.examples)
]
MAIN = 'gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100'


@pytest.fixture(scope="module")
def printed():
    able = [session for session in SESSIONS if not session.missing]
    return dict(zip(able, execute_sessions(able), strict=True))


@pytest.mark.parametrize(("session", "k"), PLACES)
def test_a_command_prints_what_is_shown(session, k, printed):
    if session.missing:
        pytest.skip(f"needs {', '.join(session.missing)}")
    example, now = session.examples[k], printed[session][k]
    if not same(now.text, example.shown):
        assert now.text == example.shown  # the difference; `python tests/docs/refresh.py` takes it over
    # A pipe ends with the status of its last command.
    assert now.status == (2 if example.shown.startswith("error:") and "|" not in example.command else 0)


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
    wanted = np.array(ast.literal_eval(gradient.replace("inf", "1e999").replace("nan", "None")), dtype=float)
    np.testing.assert_array_equal(grad[..., 0], wanted)


@pytest.mark.parametrize("command", gradcli.commands.values(), ids=lambda command: command.name)
def test_every_command_and_option_is_mentioned(command):
    assert f"gradcli {command.name}" in TEXT
    for option in command.params:
        if option.param_type_name == "option":
            assert option.opts[-1] in TEXT, option.opts
