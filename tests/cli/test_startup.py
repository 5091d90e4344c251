"""Nothing is imported before it is needed: a shell loop starts gradcli often."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradcli
from gradcli.cli.main import COMMANDS

MAIN = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100")


LOADED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from gradcli.__main__ import main
main()
"""


def modules(*arguments: str) -> set[str]:
    """Return the modules that are loaded at the end of a run, with their full names."""
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, check=True, text=True)
    return set(done.stderr.split())


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


PAGES = {"sections", "trace", "system", "mentions"}
PAGES |= {f"backward.{name}" for name in ("page", "steps", "gradients", "loss")}
OF_PAGES = {f"gradcli.pages.{name}" for name in PAGES} | {f"gradcli.notation.{n}" for n in ("nodes", "text", "latex")}
OF_PAGES |= {
    f"gradcli.report.{name}"
    for name in ("documents.table", "layout", "text_math", "documents.latex", "documents.markdown")
}
ELSEWHERE = {"gradcli.graph.jacobian", "gradcli.graph.jvp", "gradcli.engine.compiled", "gradcli.lang.claims", "shutil"}


@pytest.mark.parametrize("style", ["json", "csv"])
def test_a_gradient_for_a_program_needs_nothing_of_pages(style):
    found = modules("backward", "y=sin(x)*x", "--at", "x=3", "-f", style)
    assert {"gradcli.cli.commands.backward", "gradcli.pages.backward.question", "gradcli.graph.vjp"} <= found
    assert not found & (OF_PAGES | ELSEWHERE)
    values = {f"gradcli.data{name}" for name in ("", ".arrays", ".csv", ".csv.cells", ".defaults")}
    rooms = {name.split(".")[1] for name in found - values if name.startswith("gradcli.")}
    assert not rooms & {"algebra", "codegen", "pytorch", "data", "batch", "guide"}


def test_gradients_in_formulas_for_a_program_need_no_forms_of_arrays():
    found = modules("backward", "y=sin(x)*x", "-f", "json")
    assert "gradcli.algebra.symbolic_jacobian" in found
    assert not {name for name in found if name.startswith("gradcli.pages.forms")}


def test_the_python_api_reads_a_text_without_the_command_line():
    source = "import gradcli, sys; gradcli.parse('y=x**2'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True, text=True)
    found = set(done.stdout.split())
    assert "gradcli.lang.system" in found
    assert not found & {"click", "rich", "sympy", "gradcli.cli.options", "gradcli.report.render"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_no_other(name):
    found = modules(name, "--help")
    assert {f"gradcli.cli.commands.{n}" for n in COMMANDS} & found == {f"gradcli.cli.commands.{name}"}


def test_no_pattern_has_a_set_up_to_the_last_character():
    """Python takes milliseconds to compile one; what is not ASCII is what is none of ASCII."""
    texts = {path: path.read_text(encoding="utf-8").lower() for path in Path(gradcli.__file__).parent.rglob("*.py")}
    assert not [path for path, text in texts.items() if "u0010ffff" in text]


def test_a_mistake_is_told_without_sympy(process):
    outcome = process("jacobian", "y=sinn(x)", python=("-X", "importtime"))
    assert outcome.status == 2
    assert not re.search(r"\| +(sympy|rich)$", outcome.err, re.MULTILINE)
