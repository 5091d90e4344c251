"""`gradcli run`: how scripts are given, what they get, and how they end."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

GREETING = "import sys\nprint(__name__, sys.argv[1:])\n"


@pytest.fixture
def write(tmp_path):
    def made(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return made


def test_a_script_is_the_main_module_with_its_own_arguments(cli, write):
    path = write(GREETING)
    assert cli.done("run", path, "a", "--steps", "-q").out == "__main__ ['a', '--steps', '-q']\n"
    assert cli.done("run", "-q", path, "--", "--quiet").out == "__main__ ['--quiet']\n"
    assert cli.done("run", "-c", GREETING, "b").out == "__main__ ['b']\n"
    assert cli.done("run", "-", "c", stdin=GREETING).out == "__main__ ['c']\n"
    assert cli.done("run", stdin=GREETING).out == "__main__ []\n"
    assert cli.done("run", "-", "c", stdin=b"\xef\xbb\xbfimport sys\r\nprint(sys.argv)").out == "['-', 'c']\n"
    assert "is longer than 16 MiB" in cli.refused("run", "/dev/zero")


@pytest.mark.parametrize(
    ("text", "status"),
    [("", 0), ("exit()", 0), ("import sys; sys.exit(3)", 3), ("1/0", 1), ("raise SystemExit('no')", 1), ("x = = 1", 1)],
)
def test_the_status_is_the_scripts(text, status, cli, write):
    assert cli("run", write(text)).status == status


def test_anomaly_detection_shows_the_operation_and_warns_at_the_backward(cli, write):
    text = "import torch\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(1, requires_grad=True)\n"
    path = write(f"{text}y = x.sqrt()\n(y * 0).backward()\n")
    with pytest.warns(UserWarning, match=r"line 4, in <module>\n    y = x.sqrt\(\)\n") as warned:
        cli("run", "--quiet", path)
    assert [(w.filename, w.lineno) for w in warned] == [(path, 5)]


def test_a_mistake_is_shown_as_python_shows_it(cli, process, write):
    path = write("def f():\n    return 1/0\nf()\n")
    expected = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False).stderr
    assert expected.startswith(f'Traceback (most recent call last):\n  File "{path}", line 3, in <module>\n    f()\n')
    assert process("run", path).told == expected
    error = cli("run", write("print('a'\n")).err
    assert error.startswith("  File ")
    assert "SyntaxError: '(' was never closed" in error


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("import torch\ntorch.stft(1)", "torch.stft", None),
        ("import torch\nx = torch.ones(2).stft(2)", "Tensor.stft", None),
        ("import torch.nn as nn\nnn.AdaptiveLogSoftmaxWithLoss(1)", "torch.nn.AdaptiveLogSoftmaxWithLoss", None),
        (
            "import torch.nn.functional as F\nF.fractional_max_pool2d(1)",
            "torch.nn.functional.fractional_max_pool2d",
            None,
        ),
        (
            "import torch.nn as nn\nnn.ConvTranspose3d",
            "torch.nn.ConvTranspose3d",
            "that there is: `torch.nn.ConvTranspose2d`",
        ),
        ("import torch.nn as nn\nnn.ReLU().to_empty()", "torch.nn.Module.to_empty", None),
        ("import torchvision", "torchvision", "python -m pip install torch torchvision"),
        ("import torch\ntorch.ones(2) * 1j  # complex64", "torch.complex64", None),
        ("import torch\ntorch.full((2,), 1j)  # complex64", "torch.complex64", None),
        ("import torch\ntorch.tensor(1 + 2j)  # complex64", "torch.complex64", None),
        ("import torch\ntry:\n    torch.fft\nexcept Exception:\n    pass", "torch.fft", None),
        ("import torch\ntorch.linalg.eigvals", "torch.linalg.eigvals", "did you mean `torch.linalg.eigvalsh`"),
    ],
)
def test_what_is_missing_ends_the_run_with_its_name_and_line(text, name, hint, cli, write):
    outcome = cli("run", write(text))
    assert outcome.status == 2
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert lines[0] == f"error: gradcli's torch has no `{name}`"
    at = next(i for i, line in enumerate(text.splitlines(), 1) if name.rpartition(".")[2] in line)
    assert lines[1] == f"  line {at}: {text.splitlines()[at - 1].strip()}"
    assert hint is None or hint in lines[2]


@pytest.mark.parametrize(
    ("text", "told"),  # what Python 3.11 with PyTorch prints last
    [
        ("torch.tensr", "AttributeError: module 'torch' has no attribute 'tensr'"),
        ("torch.ones(2).sun()", "AttributeError: 'Tensor' object has no attribute 'sun'. Did you mean: 'sgn'?"),
        ("torch.ones(2).backwards()", "'Tensor' object has no attribute 'backwards'. Did you mean: 'backward'?"),
        ("torch.nn.Linar(2, 1)", "module 'torch.nn' has no attribute 'Linar'. Did you mean: 'Linear'?"),
        ("weight = 1\nprint(weigth)", "NameError: name 'weigth' is not defined. Did you mean: 'weight'?"),
        ("from torch import tensr", "ImportError: cannot import name 'tensr' from 'torch' ("),
    ],
)
def test_a_slip_is_told_as_pytorch_tells_it(text, told, cli, write):
    assert told in cli("run", write(f"import torch\n{text}\n")).err


def test_neighbours_are_found_and_nothing_is_left_behind(cli, write):
    write("from torch import nn\ndef make():\n    return nn.ReLU()\n", "neighbour.py")
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    assert cli.done("run", write("import neighbour\nprint(neighbour.make())\n")).out == "ReLU()\n"
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before
    assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
    sys.modules.pop("neighbour")


def test_another_torch_is_put_back(cli, monkeypatch):
    other = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", other)
    assert cli.done("run", "-c", "import torch; print(torch.__version__)").out == "2.13.0+cpu\n"
    assert sys.modules["torch"] is other


def test_threads_are_waited_for(cli, write):
    text = "import threading, time\ndef work():\n    time.sleep(0.05)\n    print('done')\n"
    assert cli.done("run", write(text + "threading.Thread(target=work).start()\n")).out == "done\n"
    assert cli("run", write(text + "threading.Thread(target=work).start(); 1/0\n")).out == "done\n"


def test_quiet_imports_no_formulas(process, write):
    path = write("import torch\nx = torch.tensor(2., requires_grad=True)\n(x**2).backward()\nprint(x.grad)\n")
    outcome = process("run", "--quiet", path, python=("-X", "importtime"))
    assert outcome.out == "tensor(4.)\n"
    imported = {line.rsplit("|")[-1].strip().partition(".")[0] for line in outcome.err.splitlines() if "|" in line}
    assert not imported & {"sympy", "scipy", "rich"}


def test_a_graph_that_is_dropped_is_freed(cli, write):
    text = """\
import gc, torch, weakref
gc.disable()
x = torch.ones(2, requires_grad=True)
y = (x * 2).sum()
step = weakref.ref(y.grad_fn)
y.backward()
del y
print(step())
class Net(torch.nn.Module):
    def forward(self, x):
        return x.exp()
z = Net()(x)
step = weakref.ref(z.grad_fn)
del z
print(step())
"""
    assert cli.done("run", "--quiet", write(text)).out == "None\nNone\n"


def test_what_pytorch_says_in_a_file_of_its_own_is_said_once(process, write):
    text = "import torch, warnings\nx = torch.ones(2, requires_grad=True)\n"
    text += "(x**2).sum().backward(create_graph=True)\n(x**3).sum().backward(create_graph=True)\n"
    text += "loss = torch.nn.MSELoss()\nloss(x, torch.ones(1, 2))\nloss(x, torch.ones(1, 2))\n"
    text += "torch.nn.L1Loss()(x, torch.ones(1, 2))\nx.exp().grad\nx.exp().grad\n"
    told = process("run", "-q", write(text)).err
    counts = {"reference cycle": 1, "different to the input size": 2, "not a leaf Tensor is being": 2}
    assert {part: told.count(part) for part in counts} == counts
    told = process("run", "-q", write(text.replace("warnings", "warnings; warnings.simplefilter('always')"))).err
    assert [told.count(part) for part in counts] == [2, 3, 2]


@pytest.mark.parametrize(("option", "name"), [("--output", "o.md"), ("--graph", "o.svg")])
def test_a_script_that_goes_to_another_folder_leaves_the_files_there_alone(cli, own_folder, option, name):
    Path("sub").mkdir()
    Path("sub", name).write_text("precious", "utf-8")
    Path("s.py").write_text(
        "import torch, os\nx = torch.ones(2, requires_grad=True)\n(x*x).sum().backward()\nos.chdir('sub')\n", "utf-8"
    )
    cli.done("run", option, name, "s.py")
    assert Path("sub", name).read_text("utf-8") == "precious"
    assert Path(name).stat().st_size > 100
