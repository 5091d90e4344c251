"""`gradcli run --torch`: which PyTorch runs a script, and the errors of that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.process import pytorch

SCRIPT = "import torch; x = torch.tensor(3., requires_grad=True); (x**2).backward(); print(x.grad)"


def test_without_pytorch_an_error_says_how_to_install_it(cli, monkeypatch):
    monkeypatch.setattr(pytorch, "version", lambda: None)
    error = cli.refused("run", "--torch", "-c", SCRIPT)
    assert "--torch needs PyTorch" in error
    assert "pip install torch" in error


def test_an_old_pytorch_is_refused(cli, monkeypatch):
    monkeypatch.setattr(pytorch, "version", lambda: "2.5.1")
    assert "needs PyTorch 2.6 or later, not 2.5.1" in cli.refused("run", "--torch", "-c", SCRIPT)


def test_nothing_of_the_room_is_imported_without_the_option():
    code = f"import sys; from gradcli.cli.main import gradcli, run; run(gradcli, ['run', '-q', '-c', {SCRIPT!r}]); "
    code += "print([n for n in sys.modules if n.startswith(('gradcli.realtorch', 'gradcli.script.under_pytorch'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines() == ["tensor(6.)", "[]"]


def test_a_page_is_that_of_the_emulation(process):
    pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    without, under = process("run", "-c", SCRIPT), process("run", "--torch", "-c", SCRIPT)
    assert under.out == without.out
    assert under.status == 0


def test_the_picture_and_the_live_page_are_those_of_the_emulation(process, tmp_path):
    pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    for way in ("--torch", "--no-torch"):
        assert process("run", way, "--graph", str(tmp_path / f"{way}.svg"), "-c", SCRIPT).status == 0
        assert process("run", way, "--output", str(tmp_path / f"{way}.html"), "-c", SCRIPT).status == 0
    for ending in ("svg", "html"):
        texts = [(tmp_path / f"{way}.{ending}").read_text("utf-8") for way in ("--torch", "--no-torch")]
        assert texts[0] == texts[1]


def test_a_call_with_many_parameters_is_drawn(process, tmp_path):
    """Its page has no formulas, and says that `--graph` draws each operation: of large intermediates, too."""
    pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    code = """
import torch
net = torch.nn.Sequential(*(torch.nn.Linear(70, 70) for _ in range(13)))
net(torch.ones(100, 70)).sum().backward()
"""
    done = process("run", "--torch", "--graph", str(tmp_path / "net.svg"), "-c", code)
    assert "wrote" in done.err
    assert "linear" in (tmp_path / "net.svg").read_text("utf-8")


def test_a_check_under_pytorch_is_refused_with_the_reason(cli):
    pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    error = cli.refused("run", "--torch", "--check", "-c", SCRIPT)
    assert "takes gradcli's torch" in " ".join(error.split())
    assert "torch.autograd.gradcheck" in error


STACK = """\
import torch, traceback
def f():
    print(*traceback.format_stack())
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        f()
        return x * 2
f()
Twice.apply(torch.ones(2, requires_grad=True))
"""


@pytest.mark.parametrize("way", ["--no-torch", "--torch"])
@pytest.mark.parametrize("options", [(), ("-q",)])
def test_a_stack_that_a_script_prints_begins_with_the_script(way, options, cli, tmp_path):
    if way == "--torch":
        pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    path = str(tmp_path / "script.py")
    Path(path).write_text(STACK)
    lines = [line for line in cli("run", way, *options, path).out.splitlines() if line.lstrip().startswith("File ")]
    within = [line.rpartition(", ")[2] for line in lines if path in line]
    assert within == ["in <module>", "in f", "in <module>", "in forward", "in f"]
    assert len(lines) == len(within) + (way == "--torch")  # PyTorch's own `apply`


def test_an_error_is_explained_where_the_script_imports_pytorch(process):
    pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
    script = "import torch\nx = torch.ones(2, requires_grad=True)\nx.grad.zero_()"
    without, under = process("run", "-c", script), process("run", "--torch", "-c", script)
    assert under.err == without.err
    assert "why: x.grad is None: no backward has run yet." in under.err
