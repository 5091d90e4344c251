"""Consoles, pipes and files in other encodings than UTF-8: what they lack is printed in plain characters."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import GRADCLI, environment

from gradcli.cli.main import gradcli as group
from gradcli.cli.main import run
from gradcli.process.streams import hold_every_character
from gradcli.text.plain import spelled

pytestmark = pytest.mark.usefixtures("own_folder")

ENCODINGS = ["cp1252", "cp437", "ascii", "latin-1"]
ONE = ("backward", "y=sin(θ)**2", "z=θ*x", "--at", "θ=1,x=2", "--v", "1,10")
SAID = [
    ONE,
    (*ONE, "--steps"),
    (*ONE, "-f", "markdown"),
    (*ONE, "-f", "latex"),
    ("check", "y=tanh(x)", "dy/dx = 1 - x**2"),
    ("explain", "chain-rule"),
    ("graph", "y=tanh(w*x)", "--at", "x=1,w=2"),
    ("hessian", "y=x**2*z"),
    ("jacobian", "Σ=sqrt(σ)*ȳ"),
    ("jvp", "y=x**2", "--at", "x=3", "--u", "x=1"),
    ("run", "-c", "import torch; x = torch.ones(2, requires_grad=True); (x**2).sum().backward(); print('∂é雪')"),
    ("backward", "y=√(x"),
    *((name, "--help") for name in group.list_commands(None)),
]
DATA = [
    (*ONE, "-f", "json"),
    (*ONE, "-f", "csv"),
    ("export", "y=θ*x"),
    *(("graph", "y=θ*x", "--at", "x=1,θ=2", "-f", style) for style in ("svg", "dot", "mermaid", "tikz")),
]


@pytest.fixture
def printed(monkeypatch):
    """Run a command whose streams have an encoding, and return what they got."""

    def of(encoding, arguments):
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding, write_through=True))
        hold_every_character()
        status = run(group, [*arguments])
        return status, *(stream.buffer.getvalue() for stream in (sys.stdout, sys.stderr))

    return of


def plainly(text, encoding):
    """Return the letters of a text, plain ones where an encoding lacks some; in which lines does not count."""
    letters = (c if _has(encoding, c) else spelled(c) for c in text)
    return Counter(re.sub(r"[\s|│-]+", "", "".join(letters)))


def _has(encoding, letter):
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_an_encoding_lacks_is_printed_in_plain_characters(encoding, printed):
    for arguments in SAID:
        status, *streams = printed("utf-8", arguments)
        there, *others = printed(encoding, arguments)
        assert there == status
        for expected, found in zip(streams, others, strict=True):
            assert plainly(expected.decode(), encoding) == plainly(found.decode(encoding), encoding), arguments


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_data_and_programs_are_utf8_as_in_a_file(encoding, printed):
    for arguments in DATA:
        assert printed(encoding, arguments) == printed("utf-8", arguments)


def test_a_page_is_laid_out_for_what_is_printed(printed):
    _, out, _ = printed("ascii", ("graph", "y=x**2+x", "--at", "x=3"))
    assert out.decode().splitlines() == [
        "o     x  = 3             x_bar  = 7   t1: 1*6 = 6, y: 1*1 = 1",
        "+-*   t1 = x**2 = 9      t_bar1 = 1   dt1/dx = 2*x = 6",
        "#-+   y  = t1 + x = 12   y_bar  = 1   dy/dt1 = 1, dy/dx = 1",
        "",
        "o leaf   * intermediate   # output",
        "x_bar = dy/dx",
        "t1: 1*6 = 6 is t_bar1*dt1/dx, the part of x_bar from t1",
    ]


def test_a_process_whose_pipes_are_ascii():
    done = subprocess.run(
        [*GRADCLI, *ONE, "--u"], env=environment(PYTHONIOENCODING="ascii"), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"gradcli backward" in done.stderr
    assert done.stderr.isascii()


def test_a_file_that_a_shell_writes_is_utf8():
    with open("page.txt", "wb") as file:
        env = environment(PYTHONUTF8="0", LC_ALL="C", PYTHONCOERCECLOCALE="0")
        subprocess.run([*GRADCLI, "jacobian", "y=x**2"], stdout=file, env=env, check=True)
    assert "∂x" in Path("page.txt").read_text("utf-8")


# What other systems write


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_system_as_editors_and_shells_of_windows_write_it(cli, encoding):
    text = "input x = 2\r\n\r\n# θ\r\ny = x**2 + \\\r\n  θ\r\nz = (x +\r\n  1)\r\n"
    start = "\ufeff" if encoding == "utf-16-be" else ""
    Path("S.GRAD").write_bytes((start + text).encode(encoding))
    found = cli.json("backward", "-F", "S.GRAD", "--at", "θ=1", "--v", "ones")
    assert found["grad"] == {"x": 5.0, "θ": 1.0}
    Path("S.GRAD").write_bytes((f"{start}{text}\r\nq = )\r\n").encode(encoding))
    assert "S.GRAD, line 9:\n  q = )\n      ^\n" in cli.refused("backward", "-F", "S.GRAD")


def test_a_script_as_editors_of_windows_write_it(cli):
    Path("S.PY").write_bytes(
        b"\xef\xbb\xbfimport torch\r\nx = torch.tensor(3., requires_grad=True)\r\n(x*x).backward()\r\n"
    )
    assert "line 3" in cli.done("run", "S.PY").out
