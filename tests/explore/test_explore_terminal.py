"""The explorer on a real terminal, and what is said where there is none."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="needs textual")

from conftest import long, new_terminal, whole

ROOT = Path(__file__).parents[2]
EXAMPLE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100")
SCRIPT = """\
import torch
x = torch.tensor(3., requires_grad=True)
y = x**2
y.backward()
print("then", x.grad)
z = x**3
z.backward()
print("last", x.grad)
"""


class Tmux:
    """A terminal of tmux's, in which a command runs."""

    def __init__(self, socket: Path, command: str, size: tuple[int, int]) -> None:
        self.base = ["tmux", "-S", str(socket)]
        columns, rows = map(str, size)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
        self._run("-f", os.devnull, "new-session", "-d", "-s", "t", "-x", columns, "-y", rows, command, env=environment)

    def _run(self, *arguments: str, **options: object) -> str:
        done = subprocess.run(  # type: ignore[call-overload]
            [*self.base, *arguments], capture_output=True, text=True, check=True, timeout=30, **options
        )
        return str(done.stdout)

    def type(self, *keys: str) -> None:
        self._run("send-keys", "-t", "t", *keys)

    def until(self, text: str) -> str:
        """Wait for a text, and return the screen."""
        for _ in range(300):
            shown = self._run("capture-pane", "-p", "-t", "t")
            if text in shown:
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{text!r} did not come:\n{shown}")

    def end(self) -> None:
        subprocess.run([*self.base, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def tmux(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    opened = []

    def start(*arguments, size=(80, 24)):
        words = shlex.join([sys.executable, "-m", "gradcli", *arguments])
        opened.append(Tmux(tmp_path / "s", f"echo before; {words}; echo status $?; sleep 60", size))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.end()


def test_the_readme_example_is_explored_and_the_terminal_is_as_before(tmux):
    terminal = tmux("explore", *EXAMPLE)
    terminal.until("x1.grad = 10·24 + 100·10")
    terminal.type("Right")
    terminal.until("x0 = 1.1")
    terminal.type("q")
    shown = terminal.until("status 0")
    assert shown.startswith("before")
    command = " ".join(shown.split("before")[1].split("status")[0].split())
    assert shlex.split(command) == ["gradcli", "backward", *EXAMPLE[:3], "--at", "x0=1.1,x1=2", "--v", "1,10,100"]


@long
def test_a_script_stops_at_each_backward(tmux, tmp_path):
    script = tmp_path / "s.py"
    script.write_text(SCRIPT)
    terminal = tmux("run", "--explore", str(script), size=(90, 30))
    terminal.until("q go on")
    assert "line 4: y.backward()" in terminal.until("x.grad = ")
    terminal.type("Right")
    terminal.until("x = 3.1")
    terminal.type("q")
    shown = terminal.until("line 7: z.backward()")
    terminal.until("q go on")
    terminal.type("q")
    shown = terminal.until("status 0")
    assert "then tensor(6.)" in shown
    assert "last tensor(33.)" in shown  # what was changed in the explorer is not the script's


@pytest.mark.parametrize("command", [("explore", *EXAMPLE), ("explore", "y=x**2", "--steps")])
def test_without_a_terminal_the_command_that_prints_the_page_is_named(command, cli):
    _, _, hint = cli.refused(*command).rpartition("print the page: ")
    assert shlex.split(hint) == ["gradcli", "backward", *command[1:]]


@pytest.mark.parametrize(
    ("variables", "hidden", "told"),
    [
        ({"TERM": "dumb"}, "", "TERM is dumb"),
        ({"TERM": "xterm"}, "import sys; sys.modules['textual'] = None\n", 'pip install "gradcli[explore]"'),
        ({"TERM": "xterm"}, "", "standard error is not one"),
    ],
)
def test_a_terminal_that_cannot_and_a_missing_library_are_told(variables, hidden, told, tmp_path):
    reader, writer = new_terminal()
    (tmp_path / "sitecustomize.py").write_text(hidden)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", "explore", *EXAMPLE],
        stdin=writer,
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables, "PYTHONPATH": path},
        timeout=60,
        check=False,
    )
    os.close(writer)
    os.close(reader)
    assert done.returncode == 2
    assert told in whole(done.stderr.decode())


@pytest.mark.parametrize("more", [("--quiet",), ("--check",), ("-f", "json"), ("--output", "x.txt")])
def test_a_script_is_explored_on_the_terminal_alone(more, cli):
    assert "--explore stops at each page on the terminal" in cli.refused("run", "--explore", *more, "-c", "1")
