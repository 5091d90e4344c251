"""The samples: every system keeps the promises of its comment, every script prints what is recorded."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest
from conftest import some
from documents import (
    GUIDE,
    ROOT,
    SAMPLES,
    SCRIPTS,
    environment,
    execute,
    execute_elsewhere,
    promised_examples,
    rounded,
    same,
)

pytestmark = pytest.mark.usefixtures("quick")
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


def lacking(run):
    """Return the programs that a script runs and that this machine does not have."""
    words = set(re.findall(r"\w+", (SAMPLES / run.script).read_text("utf-8")))
    return [program for program in ("cc", "jq") if program in words and not shutil.which(program)]


@pytest.mark.parametrize("run", some(SCRIPTS), ids=lambda run: run.name)
def test_a_script_prints_what_is_recorded(run):
    """From any folder."""
    if programs := lacking(run):
        pytest.skip(f"needs {', '.join(programs)}")
    shown, now = run.expected.read_text("utf-8"), execute_elsewhere(run.command)
    if not same(now.text, shown):
        assert now.text == shown  # the difference; `python -m tests.docs.refresh` takes it over
    assert now.status == run.status


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.sh")), ids=lambda path: path.stem)
def test_a_script_is_run_and_documented_and_stops_at_its_first_error(path):
    assert path.name in {run.script for run in SCRIPTS}
    assert any(f"`samples/{path.name}`" in page.read_text("utf-8") for page in GUIDE)
    text = path.read_text("utf-8")
    assert text.startswith("#!/bin/sh\n# ")
    assert "\nset -eu\n" in text


def outcome(script, *arguments):
    """Run a script, and return its status and what it writes to standard output."""
    command = ["sh", str(SAMPLES / script), *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout


def test_a_handout_that_fails_is_not_begun(tmp_path):
    (tmp_path / "bad.grad").write_text("y = sinn(x)")
    assert outcome("handout.sh", str(tmp_path / "bad.grad")) == (2, "")


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_the_handout_compiles(tmp_path):
    (handout,) = (run for run in SCRIPTS if run.name == "handout")
    (tmp_path / "handout.tex").write_text(handout.expected.read_text("utf-8"), "utf-8")
    assert execute(["pdflatex", "-halt-on-error", "handout.tex"], tmp_path).status == 0
