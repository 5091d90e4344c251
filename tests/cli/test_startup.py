"""Nothing is imported before it is needed: a shell loop starts gradcli often."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

MAIN = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100")


def imported(process, *arguments: str, **env: str) -> set[str]:
    """Return the top-level modules that a whole run imports."""
    outcome = process(*arguments, env=env, python=("-X", "importtime"))
    assert outcome.status == 0
    return {line.rsplit("|")[-1].strip().partition(".")[0] for line in outcome.err.splitlines() if "|" in line}


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("backward", "--help"), ("jacobian", "--help")])
def test_help_needs_neither_numpy_nor_sympy(process, arguments):
    found = imported(process, *arguments)
    assert {"gradcli", "click"} <= found
    assert not found & {"numpy", "sympy", "scipy", "rich"}


def test_what_is_imported_before_an_interrupt_is_heard():
    """An interrupt in it would be shown with a traceback."""
    source = "import sys, re; before = {*sys.modules}; import gradcli.__main__; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True, text=True)
    assert set(done.stdout.split()) <= {"__future__", "gradcli", "gradcli.__main__", "gradcli.version", "signal"}


def test_completion_needs_neither_numpy_nor_sympy(process):
    env = {"_GRADCLI_COMPLETE": "bash_complete", "COMP_WORDS": "gradcli back", "COMP_CWORD": "1"}
    assert not imported(process, **env) & {"numpy", "sympy", "scipy", "rich"}


@pytest.mark.parametrize("style", ["json", "csv"])
def test_a_gradient_for_a_program_needs_no_formulas(process, style):
    found = imported(process, "backward", *MAIN, "-f", style)
    assert "numpy" in found
    assert not found & {"sympy", "mpmath", "scipy", "rich"}


def test_a_mistake_is_told_without_sympy(process):
    outcome = process("jacobian", "y=sinn(x)", python=("-X", "importtime"))
    assert outcome.status == 2
    assert not re.search(r"\| +(sympy|rich)$", outcome.err, re.MULTILINE)
