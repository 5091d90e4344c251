"""README and guide: every command prints what is shown below it, every link leads somewhere, every table is so."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shlex
from importlib.metadata import entry_points

import click
import numpy as np
import pytest
from conftest import each
from documents import (
    GUIDE,
    HELP,
    INDEX,
    LIVE,
    MOVING,
    PICTURE,
    PICTURED,
    PINNED,
    README,
    ROOT,
    SAMPLES,
    blocks,
    console_session,
    ended_well,
    executed_session,
    index,
    same,
)
from moving_picture import moving

from gradcli import evaluate, parse, vjp
from gradcli.cli.main import COMMANDS, gradcli
from gradcli.vocabulary import FUNCTIONS

pytestmark = pytest.mark.usefixtures("quick")
PAGES = {path: path.read_text("utf-8") for path in [README, INDEX, *GUIDE, HELP]}
GUIDES = {path.stem: path.read_text("utf-8") for path in GUIDE}
SESSIONS = [
    pytest.param(session, id=f"{path.stem}: {session.examples[0].command[:60]}")
    for path, text in (PAGES | {path: path.read_text("utf-8") for path in PINNED}).items()
    for session in map(console_session, blocks(text, "console"))
]
EXAMPLES = [example for session in SESSIONS for example in session.values[0].examples]
MAIN = 'gradcli backward "y0=3*x0**2" "y1=x0**2+2*x1**3" "y2=10*x1" --at x0=1,x1=2 --v 1,10,100'


@pytest.mark.parametrize("session", SESSIONS)
def test_commands_print_what_is_shown(session, cli):
    if session.missing:
        pytest.skip(f"needs {', '.join(session.missing)}")
    for example, now in zip(session.examples, executed_session(cli, session), strict=True):
        if not same(now.text, example.shown):
            assert now.text == example.shown  # the difference; `python -m tests.docs.refresh` takes it over
        assert ended_well(example, now)


def test_a_mistake_is_told_in_a_few_lines():
    (path,) = (path for path in PINNED if path.stem == "mistakes")
    for block in blocks(path.read_text("utf-8"), "console"):
        for example in (e for e in console_session(block).examples if e.command.startswith("gradcli ")):
            assert example.shown.startswith("error: "), example
            assert len(example.shown.splitlines()) <= 12, example
            assert "gradcli failed" not in example.shown


def test_the_main_example_stands_on_the_first_screen():
    text, first = PAGES[README], EXAMPLES[0]
    assert first.command == MAIN
    assert text[: text.index(first.shown)].count("\n") + first.shown.count("\n") <= 40


def test_the_picture_is_what_is_drawn_now(cli):
    assert PICTURE.read_text("utf-8") == cli.done(*PICTURED).out


def test_the_picture_in_motion_is_small_and_stands_still_where_that_is_asked_for():
    text = MOVING.read_text("utf-8")
    assert text == moving(PICTURE.read_text("utf-8"))
    assert len(text.encode()) < 300_000
    assert "prefers-reduced-motion:reduce" in text
    assert text.count(' move"') == PICTURE.read_text("utf-8").count("<text ")
    assert set(re.findall(r"animation-name:(\w+)", text)) <= set(re.findall(r"@keyframes (\w+)", text))


@pytest.mark.parametrize("path", LIVE, ids=lambda path: path.stem)
def test_a_live_page_among_the_samples_is_what_is_written_now(path, cli):
    assert same(cli.done(*LIVE[path]).out, path.read_text("utf-8"))


def test_the_readme_has_two_screens():
    assert PAGES[README].count("\n") <= 115


@pytest.mark.parametrize(
    ("marker", "last"),
    [("<!-- set up and run -->", MAIN), ("<!-- set up and test -->", ".venv/bin/python -m pytest -n 2")],
)
def test_a_set_up_command_is_one_line_below_its_marker(marker, last):
    (command,) = re.findall(rf"^{marker}\n```sh\n(.*)\n```$", PAGES[README], re.MULTILINE)
    assert command.startswith("python3 -m venv .venv && ")
    assert command.split(" && ")[-1] == last


def test_the_set_up_commands_are_given_for_powershell():
    """A shell's words, from which `python3` is `py`, and its folder of programs is another."""
    shell = re.findall(r"^```sh\n(.*)\n```$", PAGES[README], re.MULTILINE)
    (found,) = re.findall(r"^```powershell\n(.*\n.*)\n```$", PAGES[README], re.MULTILINE)
    for command, there in zip(found.splitlines(), shell, strict=True):
        plain = command.replace("py -m", "python3 -m").replace(".venv\\Scripts\\", "").split("; ")
        expected = there.replace(".venv/bin/", "").split(" && ")
        assert [shlex.split(s) for s in plain] == [shlex.split(s) for s in expected if not s.startswith(". ")]
        assert all("," not in word or word.endswith('"') for word in command.split()), "PowerShell parts them"


def anchors(text):
    """The names by which GitHub finds the headings of a page."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE)
    }


def without_blocks(text):
    """A page without its blocks of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


@each("path", PAGES)
def test_every_link_leads_to_a_page_and_a_heading(path):
    for link in re.findall(r"\]\(([^)]+)\)", re.sub(r"`[^`\n]*`", "", PAGES[path])):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(PAGES[target]), link


@each("path", PAGES)
def test_every_file_and_folder_that_is_named_is_there(path):
    for name in re.findall(r"`((?:samples|tests|gradcli)/[^`\s:]*)(?::\w+)?`", without_blocks(PAGES[path])):
        for placeholder, example in {"TOPIC": "shapes", "data/NAME": "data/npz", "NAME": "numpy"}.items():
            name = name.replace(placeholder, example)
        assert (ROOT / name).exists(), name


def test_commands_that_need_a_cluster_are_written_as_the_programs_read_them():
    lines = [b["body"].replace("\\\n", " ") for b in blocks(GUIDES["several-hosts"], "sh")]
    programs = {words[0]: words[1:] for words in map(shlex.split, lines) if words[0] == "gradcli"}
    name, *arguments = programs["gradcli"]
    command = gradcli.get_command(click.Context(gradcli), name)  # which is imported when it is asked for
    values, rest, _ = command.make_parser(click.Context(command)).parse_args(arguments)
    assert not rest
    assert (values["engine"], values["scheduler"]) == ("dask", "tcp://10.0.0.1:8786")
    pytest.importorskip("distributed")
    known = {entry.name for entry in entry_points(group="dask_cli")}
    assert {words[1] for words in map(shlex.split, lines) if words[0] == "dask"} == {"scheduler", "worker"} <= known


def test_the_index_leads_to_every_page_and_the_readme_to_the_index():
    assert PAGES[INDEX] == index()
    assert {f"{name}.md" for name in GUIDES} == set(re.findall(r"\]\(([^)#]+)\)", PAGES[INDEX]))
    assert "(gradcli/guide/README.md)" in PAGES[README]


@each("path", PAGES)
def test_every_command_named_in_a_sentence_is_there(path):
    for said in re.findall(r"`([^`\n]*)`", without_blocks(PAGES[path])):
        for word in re.findall(r"(?:^|\| )gradcli (\S+)", said):
            assert word in COMMANDS or word in ("-h", "--help", "--version"), said


def test_the_python_sessions_run():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    sessions = [
        parser.get_doctest(b["body"], {}, path.name, path.name, 0)
        for path, text in PAGES.items()
        for b in blocks(text, "python")
        if b["body"].startswith(">>>")
    ]
    assert sessions
    for session in sessions:
        assert session.examples
        assert runner.run(session).failed == 0


def test_every_script_is_listed_with_what_it_says_of_itself():
    listed = dict(row for row in rows(GUIDES["samples"]) if row[0].endswith(".py"))
    first = {path: path.read_text("utf-8").partition("\n")[0] for path in SAMPLES.glob("*.py")}
    assert listed == {f"samples/{path.name}": line.removeprefix("# ") for path, line in first.items()}


def rows(text):
    """The cells of the Markdown tables in a text, without the heads."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().removeprefix("`").removesuffix("`") for cell in line] for line in lines[2:]]


def test_the_table_of_functions_is_complete():
    (table,) = re.findall(r"^## Functions\n(.*?)(?=^## |\Z)", GUIDES["language"], re.MULTILINE | re.DOTALL)
    listed = {frozenset(names.strip("`").split("/")) for row in rows(table) for names in row[1].split(", ")}
    known = {frozenset(name for name, other in FUNCTIONS.items() if other is build) for build in FUNCTIONS.values()}
    assert listed == known


@pytest.mark.parametrize("row", rows(GUIDES["corners"]), ids=lambda row: row[0])
def test_a_corner_has_the_gradient_that_the_table_says(row):
    expression, point, gradient = row[:3]
    value = np.array(ast.literal_eval(point.removeprefix("x = ")), dtype=float)
    graph = parse(f"y = {expression}", x=value.shape)
    (grad,) = evaluate(vjp(graph), {"x": value[..., None], "y.v": np.ones(1)}).values()
    wanted = np.array(json.loads(gradient.replace("inf", "Infinity").replace("nan", "NaN")), dtype=float)
    np.testing.assert_array_equal(grad[..., 0], wanted)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_mentioned(name):
    command = gradcli.get_command(click.Context(gradcli), name)
    text = "\n".join(PAGES.values())
    assert f"gradcli {name}" in text
    for option in command.params:
        if option.param_type_name == "option":
            assert option.opts[-1] in text, option.opts


def test_the_functions_that_the_guide_names_are_there():
    text = (INDEX.parent / "development.md").read_text("utf-8")
    named = re.findall(r"`(gradcli/[\w/]+\.py):(\w+)`", text)
    assert len(named) >= 10
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert name in defined, path
