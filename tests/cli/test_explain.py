"""gradcli explain: lists topics, shows a page, explains a message, and says what is nearest to anything else."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from conftest import each

from gradcli.guide.topics import topics
from gradcli.text.wrapping import cells

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    y.backward()
RuntimeError: grad can be implicitly created only for scalar outputs
"""


def test_topics_are_listed_with_a_line_each(cli):
    lines = cli.done("explain").out.splitlines()
    for topic in topics().values():
        (line,) = [line for line in lines if line.startswith(f"  {topic.name} ")]
        assert line.endswith(topic.summary.rstrip("."))
    assert len(lines) == len(topics()) + 3 + 3 + 1  # headings, empty lines, what to type


@each("topic", topics())
@each("columns", [60, 80, 120])
def test_a_page_is_no_wider_than_others(cli, monkeypatch, topic, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = cli.done("explain", topic).out
    assert out.startswith(f"# {topics()[topic].title}\n")
    assert not re.search(r"\]\(|^<!--|^```", out, re.MULTILINE)
    assert all(cells(line) <= columns or " " not in line.strip() for line in out.splitlines())


@each("heading", [s.heading for t in topics().values() for s in t.sections if s.messages])
def test_a_message_is_explained_within_a_screen(cli, monkeypatch, heading):
    monkeypatch.setenv("COLUMNS", "60")
    lines = cli.done("explain", heading.replace("…", "7")).out.splitlines()
    assert "".join(lines).replace(" ", "").startswith(f"# {heading}".replace(" ", ""))
    assert len(lines) <= 50
    assert all(cells(line) <= 60 for line in lines)


def test_a_topic_has_other_names_and_needs_no_quotes(cli):
    page = cli.done("explain", "retain-graph").out
    assert cli.done("explain", "retain", "graph").out == page
    assert cli.done("explain", "retain_graph").out == page
    assert cli.done("explain", "leaf").out == cli.done("explain", "leaf-and-intermediate").out


@pytest.mark.parametrize("arguments", [(TRACEBACK,), ("-",), ("grad", "can", "be", "implicitly", "created")])
def test_a_message_is_explained_with_a_wrong_and_a_right_example(cli, arguments):
    out = cli.done("explain", *arguments, stdin=TRACEBACK).out
    assert out.startswith('# "grad can be implicitly created only for scalar outputs"\n')
    assert out.index("\nWrong:\n") < out.index("\n  y.backward()\n") < out.index("\nRight:\n")
    assert "\n  y.backward(torch.tensor([1., 10.]))\n" in out
    assert out.rstrip().endswith("More: `gradcli explain gradient-argument`")


def test_a_question_is_answered_by_three_sections_each_with_the_command_for_all_of_it(cli):
    out = cli.done("explain", "my gradient is None after backward, is the tensor a leaf").out
    sections = re.findall(r"^# (.*)\n\n(.+(?:\n.*)*?)\n\nAll of it: `gradcli explain ([^`]*)`$", out, re.MULTILINE)
    assert len(sections) == 3
    assert sections[0][0] == "Leaves and intermediates"
    assert sections[0][2] == "leaf-and-intermediate"
    for heading, _, command in sections:
        assert cli.done("explain", command.strip('"').replace("\n", " ")).out.startswith(f"# {heading}\n")


def test_a_section_is_shown_whole_where_no_other_comes_near(cli):
    out = cli.done("explain", "where does 2222 come from, when it is accumulated").out
    assert out.startswith("# Where does 2222 come from?\n")
    assert "All of it" not in out
    assert out.endswith("\nMore: `gradcli explain accumulation`\n")


def test_of_a_traceback_that_is_not_known_the_last_line_is_quoted(cli):
    said = cli("explain", "-", stdin=TRACEBACK.rpartition("Runtime")[0] + "KeyError: 'quux'\n").refused()
    assert "`KeyError: 'quux'`" in said
    assert "`gradcli explain` lists the topics" in said


@pytest.mark.parametrize("text", ["", " \n", "\x1b"])
def test_no_text_is_not_quoted(cli, text):
    assert cli.refused("explain", text).startswith("error: there is no text to explain\n")


def test_a_terminal_gets_colours_and_no_markup(cli, monkeypatch):
    monkeypatch.setattr("gradcli.cli.commands.explain.has_styles", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = cli.done("explain", "shapes").out
    assert "\x1b[" in out
    assert "```" not in out
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in out.splitlines()]
    assert all(cells(line) <= 80 for line in lines)
    assert not any(one == other == "" for one, other in pairwise(lines))


def test_a_script_that_fails_is_told_the_topic_of_its_message(cli):
    script = "import torch; x = torch.tensor(3., requires_grad=True); y = x**2; y.backward(); y.backward()"
    failed = cli("run", "-c", script)
    assert failed.status == 1
    assert "\nmore: gradcli explain retain-graph\n" in failed.told
    assert "more:" not in cli("run", "-c", "1/0").told
