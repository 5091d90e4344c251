"""What is imported while a script runs: by the script as by Python, by gradcli without the script's folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import long, some

import gradcli
from gradcli.process.script_imports import OPTIONAL

SCRIPT = """\
import torch
x = torch.tensor(2., requires_grad=True)
(torch.special.expit(x)*torch.erf(x)).backward()
"""
NEIGHBOURS = (
    *("sympy", "scipy", "click", "numpy", "rich", "mpmath", "gmpy2", "pygments", "flint", "typing_extensions"),
    *("random", "difflib", "html", "csv", "json", "decimal", "fractions", "copy", "heapq", "unicodedata", "secrets"),
)


@pytest.fixture(autouse=True)
def folder(own_folder):
    """Stand in a folder of the test's own."""


@pytest.fixture
def hostile(tmp_path):
    """Put modules beside the script that end the process when they are run."""
    for name in NEIGHBOURS:
        Path(f"{name}.py").write_text(f"import os\nos.write(2, b'{name} was run')\nos._exit(9)\n")
    Path("s.py").write_text(SCRIPT)


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("arguments", some([("s.py",), ("-c", SCRIPT), ("-",)]))
def test_no_neighbour_is_run_that_the_script_does_not_import(process, arguments):
    outcome = process("run", *arguments, stdin=SCRIPT)
    assert (outcome.status, outcome.err) == (0, "")
    assert "2*exp(-x**2)*sigmoid(x)" in outcome.out


@long
@pytest.mark.usefixtures("hostile")
def test_no_command_runs_a_module_of_the_current_folder(process):
    outcome = process("backward", "y = ndtr(x)", "--at", "x=1")
    assert (outcome.status, outcome.err) == (0, "")
    assert "x.grad" in outcome.out


OWN = """\
import torch, importlib
import sympy, numpy as np
from numpy.linalg import MINE
from scipy import special
import helper
assert importlib.import_module("sympy") is sympy
x = torch.tensor(2., requires_grad=True)
(torch.special.expit(x)*torch.erf(x)).backward()
import sympy as again
print(sympy.OWN, np.OWN, MINE, special, helper.sympy is sympy, again is sympy, np.linalg.MINE, torch.ones(1).numpy())
"""


@long
def test_the_script_has_its_own_modules_and_gradcli_the_libraries(process):
    Path("sympy.py").write_text("OWN = 1\n")
    Path("scipy.py").write_text("special = 5\n")
    Path("helper.py").write_text("import sympy\n")
    Path("numpy").mkdir()
    Path("numpy/__init__.py").write_text("OWN = 2\nfrom . import linalg\n")
    Path("numpy/linalg.py").write_text("MINE = 3\n")
    Path("s.py").write_text(OWN)
    outcome = process("run", "s.py")
    assert (outcome.status, outcome.err) == (0, "")
    assert "2*exp(-x**2)*sigmoid(x)" in outcome.out
    assert "1 2 3 5 True True 3 [1.]\n" in outcome.out


@long
@pytest.mark.parametrize(("env", "flags"), [({"PYTHONSAFEPATH": "1"}, ()), ({}, ("-P",))])
def test_a_safe_path_has_no_folder_of_a_script(process, env, flags):
    Path("helper.py").write_text("")
    Path("s.py").write_text("import sys\nprint(sys.path)\nimport helper\n")
    outcome = process("run", "s.py", env=env, python=flags)
    assert "ModuleNotFoundError: No module named 'helper'" in outcome.err
    own = subprocess.run([sys.executable, "-P", "s.py"], stdout=subprocess.PIPE, check=False, text=True)
    assert outcome.out == own.stdout


FACTS = """\
# coding: latin-1
import sys, os
print({k: v for k, v in globals().items() if k.startswith("__") and k not in ("__builtins__", "__loader__")})
print(type(__builtins__).__name__, __loader__ if isinstance(__loader__, type) else type(__loader__).__name__)
print(sys.path, sys.argv, sorted(os.environ), "caf\xe9", ascii("caf\xe9"))
"""


@pytest.mark.parametrize("arguments", [("s.py", "a"), ("-c", FACTS, "a"), ("-", "a")])
def test_a_script_sees_what_it_sees_under_python(monkeypatch, arguments):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    Path("s.py").write_text(FACTS, encoding="latin-1")
    data = FACTS.replace("latin-1", "utf-8").encode()  # from a pipe, Python 3.11 reads no other
    printed = [
        subprocess.run([sys.executable, *command, *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout
        for command in ((), ("-m", "gradcli", "run"))
    ]
    assert printed[0].decode().splitlines() == printed[1].decode().splitlines()


@pytest.mark.parametrize("encoding", ["rot13", "unknown", "utf-7", "ascii"])
def test_a_wrong_encoding_is_told_as_python_tells_it(cli, encoding):
    Path("s.py").write_bytes(f"# coding: {encoding}\nprint('caf\xe9')\n".encode("latin-1"))
    outcome = cli("run", "s.py")
    assert (outcome.status, outcome.out) == (1, "")
    assert "SyntaxError: " in outcome.err


def test_optional_libraries_are_those_that_gradcli_imports():
    """They are not required, so a file of that name beside a script may be the only one."""
    needed = {"click", "numpy", "sympy", "rich", "mpmath", "gradcli", "torch"}  # torch is never a file beside a script
    needed |= {"markdown_it", "pygments"}  # which rich needs, too
    files = [path.read_text(encoding="utf-8") for path in Path(gradcli.__file__).parent.rglob("*.py")]
    imported = {
        name for text in files for name in re.findall(r"^ *(?:import|from) (\w+)\b(?= import|\.\w|$)", text, re.M)
    }
    others = imported - needed - sys.stdlib_module_names
    assert others == OPTIONAL
