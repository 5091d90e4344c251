"""Where results and notes go, how a process ends, and what a terminal and a shell get."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import GRADCLI, HANG, each, environment, interruptible, new_terminal, start


@pytest.mark.parametrize("command", ["backward", "jacobian", "hessian", "jvp --u x=1", "hessian --u x=1"])
def test_the_warnings_of_a_point_stand_in_json(cli, command):
    notes = cli.json(*command.split(), "y=1/x", "--at", "x=0").get("notes")
    assert notes[0] == "warning: y is inf: it arises in `div` (1/x), whose value is not finite"
    assert "notes" not in cli.json(*command.split(), "y=1/x", "--at", "x=1")


LEAVING = """
import atexit, sys, types
from gradcli.process.ending import leave
class Threads(types.ModuleType):
    def __del__(self):
        print("aborted")
sys.modules["threads"] = Threads("threads")
atexit.register(print, "and cleaned up")
print("printed")
leave(3)
"""


def test_at_the_end_nothing_is_taken_down():
    """What Python would do at its end to modules, C++ does to the threads of pyarrow, which abort the process then."""
    command = [sys.executable, "-c", LEAVING]
    done = subprocess.run(command, capture_output=True, timeout=HANG, check=False, text=True)
    assert done.returncode == 3
    assert done.stdout == "printed\nand cleaned up\n"
    assert not done.stderr


@pytest.mark.parametrize("line", ["backward h=x**2 y=sqrt(h) --at x=0", "--version", "backward y=x)", "nonsense"])
def test_the_process_prints_what_the_fixture_captures_and_ends_with_its_status(process, cli, line):
    assert process(*line.split()) == cli(*line.split())


def test_a_closed_pipe_leaves_the_verdict(forked):
    with start("check", "y=x", "dy/dx=2", command=[forked]) as process:
        process.stdout.close()
        assert process.wait(HANG) == 1


def test_a_script_may_be_a_pipe(forked):
    done = subprocess.run(
        [forked, "run", "/dev/stdin"], input=b"print(1)\nprint(2)", stdout=subprocess.PIPE, timeout=HANG
    )
    assert done.stdout == b"1\n2\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_an_interrupt_ends_with_130(tmp_path):
    path = tmp_path / "endless.grad"
    os.mkfifo(path)
    with start("jacobian", "-F", path, preexec_fn=interruptible) as process:
        with open(path, "wb"):  # waits until gradcli reads
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANG)
        assert process.returncode == 130
        assert err.decode().split() == ["interrupted"]


@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [
        (("jacobian", "y=x"), ">&-"),
        (("jacobian", "-F", "-"), "<&-"),
        (("backward", "y=x", "--v", "-"), "<&-"),
        (("run",), "<&-"),
        (("explain", "-"), "<&-"),
    ],
    ids=["no stdout", "no stdin", "no stdin for v", "no script", "no message"],
)
def test_a_stream_that_is_closed_is_no_fault_of_ours(arguments, redirection):
    script = f'exec "$@" {redirection}'
    command = ["sh", "-c", script, "sh", *GRADCLI, *arguments]
    done = subprocess.run(command, env=environment(), stderr=subprocess.PIPE, timeout=HANG, check=False)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    assert b"gradcli failed" not in done.stderr


@pytest.fixture
def terminal(forked):
    """Return what a command prints at a terminal."""

    def run(*arguments, **env):
        reader, writer = new_terminal()
        streams = {"stdin": writer, "stdout": writer, "stderr": writer}
        with start(*arguments, command=[forked], env=environment(**{"TERM": "xterm", **env}), **streams):
            os.close(writer)
            printed = b""
            try:
                while data := os.read(reader, 4096):
                    printed += data
            except OSError:  # Linux: the other side is closed
                pass
        os.close(reader)
        return printed.decode().replace("\r\n", "\n")

    return run


STYLE = re.compile(r"\x1b\[[\d;]*m")


def test_a_terminal_gets_the_same_text_and_a_pipe_no_colour(cli, terminal, monkeypatch):
    arguments = ("backward", "y=x**2; z=2*x", "--at", "x=3", "--v", "1,10")
    piped = cli(*arguments).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in piped + cli(*arguments).out
    shown = terminal(*arguments)
    assert "\x1b[2m" not in shown  # nothing is dim: on black it is unreadable
    assert [line.rstrip() for line in STYLE.sub("", shown).splitlines()] == piped.splitlines()


RED, ORANGE, GREEN, WRONG, BOLD = "\x1b[31m", "\x1b[38;5;166m", "\x1b[32m", "\x1b[1;37;41m", "\x1b[1m"


@each(
    ("arguments", "coloured"),
    [
        (("backward", "y=x**2; z=2*x", "--at", "x=3", "--v", "1,10"),
         [(RED, "x.grad"), (RED, "vᵀJ"), (ORANGE, "v"), (ORANGE, "10")]),
        (("check", "f=x**2*y", "df/dx=2*x*y", "df/dy=x"), [(GREEN, "right"), (WRONG, "wrong")]),
        (("backward", "y=sqrt(x)*x", "--at", "x=0"), [(BOLD, "nan"), (BOLD, " !")]),
        (("graph", "y=x**2+x", "--at", "x=3"), [(RED, "x̄"), (RED, "t̄1")]),
        (("backward", "y=x***"), [(WRONG, "error")]),
    ],
)  # fmt: skip
def test_a_colour_has_one_meaning(terminal, arguments, coloured):
    shown = terminal(*arguments)
    for colour, word in coloured:
        assert f"{colour}{word}\x1b[0m" in shown


def test_a_v_of_the_users_is_no_cotangent(terminal):
    assert ORANGE not in terminal("backward", "y=v**2", "--at", "v=3", "--only", "system,grad")


def test_a_terminal_is_not_read_for_a_system(terminal):
    assert "no system is given" in terminal("backward", "--at", "x=1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(process, shell):
    if shell == "bash" and not shutil.which("bash"):
        pytest.skip("needs bash")
    script = process(env={"_GRADCLI_COMPLETE": f"{shell}_source"})
    assert (script.status, script.err) == (0, "")
    assert f"_GRADCLI_COMPLETE={shell}_complete" in script.out


def test_version(cli):
    assert re.fullmatch(r"gradcli \d+\.\d+\.\d+\S*\n", cli.done("--version").out)


@pytest.mark.parametrize("output", ["r.csv", "r.npz"])
def test_two_numbers_of_threads_are_no_mistake(process, tmp_path, output):
    """OpenMP takes one for each level of nested loops."""
    (tmp_path / "p.csv").write_text("x\n3\n")
    at = ("--points", str(tmp_path / "p.csv"), "--output", str(tmp_path / output))
    outcome = process("backward", "y=x**2", *at, env={"OMP_NUM_THREADS": "4,2"})
    assert outcome.status == 0, outcome.err
    assert (tmp_path / output).exists()
