"""Scripts that do whatever a Python program may: each runs and ends as `python` has it."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from conftest import long

X = "import torch, sys, os, signal, threading, io\nx = torch.tensor([1., 2.], requires_grad=True)\n"
BACK = "(x**2).sum().backward()\n"


@pytest.fixture(autouse=True)
def limit():
    """Set the limit of recursion back, which one of the scripts sets."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.fixture
def interruptible():
    """Hear SIGINT in this process, which a shell's `&` and some CI systems start with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("text", "status", "printed"),
    [
        (BACK + "print('a')\nexit(5)\nprint('b')\n", 5, "a\n"),
        ("x.register_hook(lambda g: sys.exit(4))\n" + BACK, 4, ""),
        ("for m in [m for m in sys.modules if m.startswith('torch')]: del sys.modules[m]\n" + BACK +
         "print(x.grad)\n", 0, "tensor([2., 4.])\n"),
        ("torch.tensor = None\ndel torch.Tensor\n" + BACK + "print(x.grad)\n", 0, "tensor([2., 4.])\n"),
        ("sys.setrecursionlimit(200)\n" + BACK + "print(x.grad)\n", 0, "tensor([2., 4.])\n"),
        ("o, sys.stdout = sys.stdout, io.StringIO()\nprint(1)\n" + BACK +
         "o, sys.stdout = sys.stdout, o\nprint([o.getvalue()])\n", 0, "['1\\n']\n"),
        ("import pickle\nprint(pickle.loads(pickle.dumps(x)))\n", 0, "tensor([1., 2.], requires_grad=True)\n"),
        ("class A:\n    def __init__(self):\n        self.t = torch.ones(1)\nimport pickle\n"
         "print(pickle.loads(pickle.dumps(A())).t)\n", 0, "tensor([1.])\n"),
        ("import asyncio\nasync def f():\n    (x**2).sum().backward()\n    return x.grad\nprint(asyncio.run(f()))\n", 0,
         "tensor([2., 4.])\n"),
        ("try:\n    os.kill(os.getpid(), signal.SIGINT)\n    import time; time.sleep(1)\nexcept KeyboardInterrupt:\n"
         "    print('caught')\n", 0, "caught\n"),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=2)\n"
         "print(p.parse_args().n)\n", 0, "2\n"),
        ("def f(n):\n    return f(n + 1)\nf(0)\n", 1, ""),
        (BACK + "sys.exit(10**30)\n", 255, ""),
        (BACK + "sys.exit(-10**30)\n", 255, ""),
        ("class W:\n    def write(self, text):\n        raise OSError('no')\nsys.stdout = W()\n" + BACK, 0, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("quiet", [True, False])
def test_a_script_ends_as_python_ends_it(text, status, printed, quiet, run):
    outcome = run(X + text, *["--quiet"] * quiet, status=status)
    assert outcome.out == printed if quiet else outcome.out.endswith(printed)
    assert "gradcli/" not in outcome.err


def test_threads_may_all_call_backward(run):
    text = X + "found = []\ndef work():\n    x = torch.tensor([1., 2.], requires_grad=True)\n    for i in range(20):\n"
    text += "        (x**2).sum().backward()\n    found.append(x.grad.tolist())\n"
    text += "ts = [threading.Thread(target=work) for k in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n"
    outcome = run(text + "print(found)\n")
    assert f"\n{[[40.0, 80.0]] * 4}\n" in outcome.out
    assert outcome.out.count("── line 7: ") == 1
    assert outcome.err == "line 7, 79 more times; --all shows them\n"


def test_an_error_in_a_thread_is_shown_with_the_scripts_lines(run):
    text = X + "t = threading.Thread(target=lambda: (x*2).backward(), name='T')\nt.start()\nt.join()\nprint('after')\n"
    outcome = run(text, "--quiet")
    assert outcome.out == "after\n"
    assert outcome.err.startswith("Exception in thread T:\nTraceback (most recent call last):\n")
    assert outcome.err.endswith("RuntimeError: grad can be implicitly created only for scalar outputs\n")
    assert "gradcli/" not in outcome.err


def test_an_error_that_another_was_made_of_is_explained(run):
    text = "import torch\ntry:\n    torch.ones(2).sum().backward()\nexcept RuntimeError as e:\n"
    outcome = run(text + "    raise ValueError('mine') from e\n", status=1)
    assert "ValueError: mine\nwhy: nothing that the output was computed from requires a gradient" in outcome.err


def test_an_exception_of_a_hook_is_the_scripts(run, tmp_path):
    text = X + "def bad(g):\n    raise ValueError('bad hook')\nx.register_hook(bad)\n" + BACK
    outcome = run(text, status=1)
    path = tmp_path / "script.py"
    lines = [f'  File "{path}", line 6, in <module>', f'  File "{path}", line 4, in bad']
    assert [line for line in outcome.told.splitlines() if line.startswith("  File")] == lines
    assert outcome.err.endswith("ValueError: bad hook\n")


@pytest.mark.parametrize("text", ["raise self", "return 3", "raise SystemExit(4)"])
def test_an_exception_whose_text_fails(text, run):
    lines = f"class E(Exception):\n    def __str__(self): {text}\nraise E\n"
    result = run(X + BACK + lines, status=1)
    assert result.err.endswith(" raise E\nE: <exception str() failed>\n")


def test_a_script_reads_standard_input(cli):
    text = "n = int(input('n? '))\nprint(n, sys.stdin.read())\n"
    assert cli.done("run", "-c", X + text, stdin="3\nrest").out == "n? 3 rest\n"


def test_output_takes_the_pages_of_each_format(run, tmp_path):
    text, file = X + BACK + "print('here')\n", tmp_path / "pages"
    assert run(text, "--output", str(file)).out == "here\n"
    assert "x.grad: None → [2, 4]" in file.read_text("utf-8")
    outcome = run(text, "-f", "json", "--output", str(file))
    assert (outcome.out, outcome.notes) == ("here\n", "")
    assert json.loads(file.read_text("utf-8"))["line"] == 3
    assert run(text, "-f", "markdown", "--output", str(file)).out == "here\n"
    assert "```text\nhere\n```" in file.read_text("utf-8")
    assert run(text, "-f", "html", "--output", str(file)).out == "here\n"
    assert '<pre class="printed">here' in file.read_text("utf-8")


@long
@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_an_endless_loop_ends_at_ctrl_c(options, process):
    text = "import os, signal, torch\nx = torch.tensor([1., 2.], requires_grad=True)\ni = 0\nwhile True:\n    i += 1\n"
    text += "    if i == 50: os.kill(os.getpid(), signal.SIGINT)\n    (x**2).sum().backward()\n"
    outcome = process("run", *options, "-c", text)
    assert outcome.status == 130
    assert outcome.err.endswith("interrupted\n")
    assert ("line 7, 48 more times" in outcome.err) == (not options)


def test_every_ctrl_c_is_one_that_a_script_may_catch(process):
    text = "import os, signal, time\nfor k in range(3):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
    text += "        time.sleep(5)\n    except KeyboardInterrupt:\n        print('caught', k)\n"
    outcome = process("run", "-c", text)
    assert (outcome.status, outcome.out) == (0, "caught 0\ncaught 1\ncaught 2\n")


def test_a_child_process_goes_its_own_way(process):
    text = "import os, torch\nx = torch.tensor([1., 2.], requires_grad=True)\npid = os.fork()\nif pid == 0:\n"
    text += "    (x**2).sum().backward()\n    print('child', x.grad, flush=True)\n    os._exit(0)\nos.waitpid(pid, 0)\n"
    text += "(x**3).sum().backward()\nprint('parent', x.grad)\n"
    outcome = process("run", "--quiet", "-c", text)
    assert outcome.out == "child tensor([2., 4.])\nparent tensor([ 3., 12.])\n"
