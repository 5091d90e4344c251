"""Standard streams that are closed, signals at any moment, and memory that is limited: one sentence, and the status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import ENDINGS, HANG, Outcome, environment, interruptible, long, needs

resource = pytest.importorskip("resource")  # and signals, and a shell

pytestmark = pytest.mark.usefixtures("own_folder")

ROOT = Path(__file__).resolve().parents[2]
MODULE = ("-m", "gradcli")
ENTRY, _, FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["gradcli"].partition(
    ":"
)
SCRIPT = ("-c", f"import sys; from {ENTRY} import {FUNCTION}; sys.exit({FUNCTION}())")  # as pip writes it
ONE = ("backward", "y=x**2", "--at", "x=3")
CLOSED = "error: the result cannot be written: standard output is closed\n"


def run(*arguments, python=MODULE, stub="", **options):
    """Run gradcli; a module in the folder `stub` takes the place of another one."""
    path = os.pathsep.join(filter(None, (stub, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *python, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(PYTHONPATH=path),
        timeout=2 * HANG,
        check=False,
        **options,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def stub(name, text):
    """Write a module, and return its folder."""
    Path("stub").mkdir()
    Path("stub", f"{name}.py").write_text(f"import os, signal, time\n{text}\n")
    return os.path.abspath("stub")


# Streams


def redirected(redirection, *arguments):
    """Run gradcli with a redirection of a shell's."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, *MODULE, *arguments]
    return subprocess.run(
        command, env=environment(), stderr=subprocess.PIPE, timeout=HANG, check=False, stdin=subprocess.DEVNULL
    )


def points():
    np.savez("p.npz", x=np.arange(3.0))
    return "backward", "y=x**2", "--points", "p.npz"


@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [
        ((*ONE, "-f", "json"), ">&-"),
        (("backward", "y=x**2", "--points", "p.npz"), ">&-"),
        (("jacobian", "y=x**2"), ">&- <&-"),
        (("jacobian", "y=x**2"), "1</dev/null"),
        (("--version",), ">&-"),
        (("jacobian", "--help"), ">&-"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_closed_standard_output_is_told(arguments, redirection):
    points()
    done = redirected(redirection, *arguments)
    assert done.returncode == 2
    assert done.stderr.decode() == CLOSED


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_needs_no_streams(cli, ending):
    """A file that is opened while they are closed does not get their descriptors: some library may print there."""
    needs(ending)
    given = (*points(), "--output", f"r.{ending}")
    assert cli.done(*given).err == f"wrote r.{ending}: 3 points\n"
    expected = Path(f"r.{ending}").read_bytes()
    done = redirected("<&- >&- 2>&-", *given)
    assert done.returncode == 0
    assert Path(f"r.{ending}").read_bytes() == expected


# Signals


@long
@pytest.mark.parametrize("python", [MODULE, SCRIPT], ids=["-m", "gradcli"])
@pytest.mark.parametrize("module", ["click", "numpy", "sympy"])
def test_an_interrupt_in_an_import(python, module):
    folder = stub(module, "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(1)")
    done = run("jacobian", "y=x**2", python=python, stub=folder, preexec_fn=interruptible)
    assert done.err.strip() == "interrupted"
    assert (done.status, done.out) == (130, "")


@pytest.mark.parametrize(("style", "page"), [("html", "details open"), ("markdown", "## "), ("table", "x.grad: None")])
def test_an_interrupted_script_has_its_pages_so_far(style, page):
    text = "import torch\nx = torch.ones(2, requires_grad=True)\n(x ** 2).sum().backward()\nraise KeyboardInterrupt"
    done = run("run", "-c", text, "-f", style)
    assert (done.status, done.err.strip()) == (130, "interrupted")
    assert page in done.out


def test_an_interrupt_that_is_ignored_stays_so():
    folder = stub("numpy", "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\nraise SystemExit(7)")
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    assert run(*ONE, stub=folder, **ignoring) == Outcome(7, "", "")


IN_A_CALLBACK = """
import os, signal, time, weakref
from gradcli.process.ending import tidily
class Thing: pass
def callback(_):
    os.kill(os.getpid(), {number})
    time.sleep(0.01)
def work():
    thing = Thing()
    kept = weakref.ref(thing, callback)
    del thing
    time.sleep({long})
    return 7
raise SystemExit(tidily(work))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_a_callback_is_not_lost(number, status):
    """Imports have callbacks, and Python goes on from an exception in one."""
    source = IN_A_CALLBACK.format(number=int(number), long=HANG)
    assert run(python=("-c", source), preexec_fn=interruptible) == Outcome(
        status, "", "interrupted\n" if number == signal.SIGINT else ""
    )


TWICE = """
import os, signal, time
from gradcli.process.ending import tidily
def work():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        print("tidied up")
raise SystemExit(tidily(work))
"""


def test_the_first_signal_counts():
    assert run(python=("-c", TWICE), preexec_fn=interruptible) == Outcome(143, "tidied up\n", "")


# Memory


def at_most(mebibytes):
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)
        interruptible()

    return {"preexec_fn": limited}


def test_a_mistake_of_the_parser_s_is_no_lack_of_memory():
    deep = "y=" + "(" * 5000 + "x" + ")" * 5000
    done = run("jacobian", deep, **at_most(4000))
    assert done.status == 2
    assert "more memory" not in done.err
