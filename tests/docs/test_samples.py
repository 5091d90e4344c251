"""The samples: every system keeps the promises of its comment, every script prints what is recorded."""

from __future__ import annotations

import shlex
import shutil

import pytest
from documents import README, ROOT, SAMPLES, SCRIPTS, execute, execute_all, promised_examples, rounded, same

SYSTEMS = sorted(SAMPLES.glob("*.grad"))
PROMISES = [
    pytest.param(e, id=f"{path.stem}: {e.command}")
    for path in SYSTEMS
    for e in promised_examples(path.read_text("utf-8"))
]


def run_line(cli, line):
    """Run a pipe of gradcli commands in this process; a command reads a file where it says `< FILE`."""
    outcome, errors = None, ""
    for part in line.split(" | "):
        words = shlex.split(part)
        stdin = outcome.out if outcome else ""
        if words[-2] == "<":
            stdin = (ROOT / words[-1]).read_text("utf-8")
            del words[-2:]
        assert words[0] == "gradcli"
        outcome = cli(*words[1:], stdin=stdin)
        errors += outcome.err
    return outcome.out + errors, outcome.status


@pytest.mark.parametrize("promise", PROMISES)
def test_a_system_keeps_its_promises(promise, cli, monkeypatch):
    monkeypatch.chdir(ROOT)
    text, status = run_line(cli, promise.command)
    printed = [rounded(line).strip() for line in text.splitlines()]
    assert promise.shown
    for line in promise.shown.splitlines():
        assert rounded(line).strip() in printed, text
    assert status == (2 if promise.shown.startswith("error:") else 0)


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.stem)
def test_a_system_says_what_it_shows_and_declares_its_inputs(path):
    text = path.read_text("utf-8")
    assert text.startswith("# ")
    assert f"samples/{path.name}" in text.partition("# $ ")[2]
    assert "\ninput " in text


def able(run):
    return "jq" not in (SAMPLES / run.script).read_text("utf-8") or shutil.which("jq")


@pytest.fixture(scope="module")
def printed():
    """What the scripts print, from any directory."""
    runs = [run for run in SCRIPTS if able(run)]
    return dict(zip(runs, execute_all([run.command for run in runs]), strict=True))


@pytest.mark.parametrize("run", SCRIPTS, ids=lambda run: run.name)
def test_a_script_prints_what_is_recorded(run, printed):
    if not able(run):
        pytest.skip("needs jq")
    shown = run.expected.read_text("utf-8")
    if not same(printed[run].text, shown):
        assert printed[run].text == shown  # the difference; `python tests/docs/refresh.py` takes it over
    assert printed[run].status == run.status


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.sh")), ids=lambda path: path.stem)
def test_a_script_is_run_and_documented_and_stops_at_its_first_error(path):
    assert path.name in {run.script for run in SCRIPTS}
    assert f"`samples/{path.name}`" in README.read_text("utf-8")
    text = path.read_text("utf-8")
    assert text.startswith("#!/bin/sh\n# ")
    assert "\nset -eu\n" in text


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_the_handout_compiles(tmp_path):
    (handout,) = (run for run in SCRIPTS if run.name == "handout")
    (tmp_path / "handout.tex").write_text(handout.expected.read_text("utf-8"), "utf-8")
    assert execute(["pdflatex", "-halt-on-error", "handout.tex"], tmp_path).status == 0
