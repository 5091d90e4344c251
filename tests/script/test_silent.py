"""What goes wrong in a script without a word of PyTorch's: the pages of `gradcli run` say it."""

from __future__ import annotations

import re

import pytest
from detached import QUIET
from detached import SILENT as SURPRISES

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute")


@pytest.fixture
def run(cli, tmp_path):
    def run(text):
        path = tmp_path / "script.py"
        path.write_text(text, "utf-8")
        outcome = cli("run", str(path))
        assert outcome.status == 0, outcome.err
        return outcome

    return run


SILENT = {
    "a detour through NumPy": (
        "import torch, numpy as np\nx = torch.tensor([1., 2.], requires_grad=True)\n"
        "w = torch.tensor([3., 4.], requires_grad=True)\ndef feature(a):\n"
        "    return torch.from_numpy(np.tanh(a.detach().numpy()))\nloss = (feature(x) * w).sum()\nloss.backward()\n",
        "x.grad stays None: line 5, `return torch.from_numpy(np.tanh(a.detach().numpy()))`, cuts the loss "
        "off from it: .detach() returns a tensor without a graph and .numpy() returns a NumPy array.",
    ),
    "a number on the way": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nw = torch.tensor(3., requires_grad=True)\n"
        "s = (x ** 2).item()\n(s * w).backward()\n",
        "x.grad stays None: line 4, `s = (x ** 2).item()`, cuts the loss off from it: .item() returns a plain number.",
    ),
    "an intermediate": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nh = x * 3\n(h ** 2).backward()\nprint(h.grad)\n",
        "h.grad stays None: h is computed, not a leaf. h.retain_grad() before this keeps it.",
    ),
    "a retained gradient behind detach": (
        "import torch\nx = torch.tensor(3., requires_grad=True)\nu = x * x\nu.retain_grad()\nz = u.detach() * x\n"
        "z.backward()\n",
        "u.grad stays None: line 5, `z = u.detach() * x`, cuts the loss off from it: .detach() returns a "
        "tensor without a graph.",
    ),
    "a parameter that the optimizer does not have": (
        "import torch\nw = torch.tensor(2., requires_grad=True)\nb = torch.tensor(3., requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n(w * b).backward()\nopt.step()\n",
        "b has a .grad, but is not among the parameters of an optimizer: no step changes it",
    ),
    "a layer that was replaced": (
        "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet[1] = torch.nn.Linear(1, 1)\n"
        "net(torch.ones(1, 1)).sum().backward()\nopt.step()\n",
        "no step changes them. An optimizer keeps the parameters that it was created with: create it after the layers",
    ),
    "layers in a list": (
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = [torch.nn.Linear(1, 1, bias=False)]\n        self.out = torch.nn.Linear(1, 1)\n"
        "    def forward(self, x):\n        return self.out(self.layers[0](x))\nnet = Net()\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(torch.ones(1, 1)).sum().backward()\nopt.step()\n",
        "no step changes it. net.layers is a Python list: make it a torch.nn.ModuleList, which is registered",
    ),
    "gradients that are cleared too late": (
        "import torch\nw = torch.tensor(2., requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "(w ** 2).backward()\nopt.zero_grad()\nopt.step()\n",
        "line 6, opt.step(): no parameter changes: line 5 cleared each .grad after the backward of line 4. Call "
        "`zero_grad()` before the backward",
    ),
    "a target without the axis of the outputs": (
        "import torch, warnings\nwarnings.simplefilter('ignore')\nw = torch.ones(3, 1, requires_grad=True)\n"
        "y = torch.arange(3.)\n"
        "torch.nn.functional.mse_loss(w * 2, y).backward()\n",
        "broadcasts y (3) and a column (3×1) to 3×3: each number is paired with each row; y.view(-1, 1) pairs them",
    ),
    "parameters that were replaced": (
        "import torch\nnet = torch.nn.Linear(1, 1, bias=False)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net.weight = torch.nn.Parameter(torch.ones(1, 1))\nnet(torch.ones(1, 1)).sum().backward()\nopt.step()\n",
        "line 6, opt.step(): no parameter changes: none of them has a .grad net.weight has a .grad",
    ),
    "two backwards that add up": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\n(x ** 2).backward()\n(x ** 3).backward()\n",
        "x.grad: 4 (left by line 3) + 12 → 16",
    ),
    "a softmax before one": (
        "import torch\nw = torch.ones(2, 3, requires_grad=True)\np = torch.softmax(w, dim=1)\n"
        "loss = torch.nn.CrossEntropyLoss()(p, torch.tensor([0, 1]))\nloss.backward()\n",
        "note: the loss of line 4, `loss = torch.nn.CrossEntropyLoss()(p, torch.tensor([0, 1]))`, applies "
        "softmax itself: pass the raw scores (logits), not their softmax",
    ),
    "a sigmoid before one": (
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "torch.nn.functional.binary_cross_entropy_with_logits(w.sigmoid(), torch.ones(2)).backward()\n",
        "applies sigmoid itself: pass the raw scores (logits), not their sigmoid",
    ),
    "a softmax for logarithms": (
        "import torch\nw = torch.ones(2, 3, requires_grad=True)\n"
        "torch.nn.functional.nll_loss(w.softmax(1), torch.tensor([0, 1])).backward()\n",
        "takes log-probabilities: use log_softmax in place of softmax",
    ),
    "numbers and rows": (
        "import torch\nnet = torch.nn.Linear(1, 1)\nx, y = torch.ones(4, 1), torch.arange(4.)\n"
        "loss = ((net(x) - y) ** 2).mean()\nloss.backward()\n",
        "note: line 4, `loss = ((net(x) - y) ** 2).mean()`, broadcasts y (4) and net (4×1) to 4×4: each number is "
        "paired with each row; y.view(-1, 1) pairs them row by row",
    ),
    "a flat function": (
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ny = (3 * x).round()\ny.sum().backward()\n",
        "note: the gradient of x is 0: round (line 3) has the derivative 0 everywhere; `x + (x.round() - x).detach()` "
        "has the same values and the derivative 1",
    ),
    "units that are dead": (
        "import torch\nw = torch.tensor([-1., -2.], requires_grad=True)\nb = w.detach().clone().requires_grad_()\n"
        "h = torch.relu(w + b)\nh.sum().backward()\n",
        "note: the gradients of b and w are 0: relu (line 4) has the derivative 0 at all of its inputs: none of "
        "them is above 0",
    ),
    "numbers that change unseen": (
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ny = (x ** 2).sum()\nx.data.mul_(10)\n"
        "y.backward()\n",
        "note: line 4, `x.data.mul_(10)`, changed x in place through .data, after line 3, `y = (x ** 2).sum()`, had "
        "read it. PyTorch does not notice this, and the backward of line 3 reads the new numbers: change a copy, made "
        "with clone(), or change it after the backward",
    ),
}


MEANT = {
    "rows that are made for it": "d = x.unsqueeze(1) - x\n(d ** 2).sum().backward()\n",
    "rows that are views": "d = x.view(-1, 1) - x\n(d ** 2).sum().backward()\n",
    "one softmax": "torch.nn.functional.cross_entropy(x.reshape(1, 2), torch.tensor([1])).backward()\n",
    "a minimum": "(x - x.detach()).pow(2).sum().backward()\n",
    "units of which one lives": "torch.relu(x - 1.5).sum().backward()\n",
    "a change that is seen": "x.sum().backward()\nwith torch.no_grad():\n    x += 1\n(x ** 2).sum().backward()\n",
}


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_not_told_of(name, run):
    assert "note:" not in run("import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n" + MEANT[name]).out


@pytest.mark.parametrize("name", SILENT)
def test_what_goes_wrong_silently_is_told(name, run):
    text, said = SILENT[name]
    assert said in " ".join(run(text).out.split())


def test_a_number_that_leaves_for_good_is_not_told_of(run):
    text = (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nw = torch.tensor(3., requires_grad=True)\n"
        "print((x ** 2).item())\n(w ** 2).backward()\n"
    )
    assert "cuts the loss off" not in run(text).out


def test_a_gradient_that_only_a_comment_and_a_string_name_is_not_asked_for(run):
    text = "import torch\nx = torch.tensor(2., requires_grad=True)\nh = x * 3\n(h ** 2).backward()  # not h.grad\n"
    assert "h.grad stays None" not in run(f"{text}print('h.grad is None')\n").out
    assert "h.grad stays None" in run(f"{text}print(f'{{h.grad}}')\n").out


def test_code_in_a_document_is_left_as_it_is(cli, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SILENT["a detour through NumPy"][0], "utf-8")
    out = cli("run", "-f", "markdown", str(path)).out
    assert "`return torch.from_numpy(np.tanh(a.detach().numpy()))`" in out


@pytest.fixture
def page(cli, tmp_path):
    def page(text):
        path = tmp_path / "script.py"
        path.write_text(text, "utf-8")
        outcome = cli("run", str(path))
        return " ".join(outcome.out.split()), outcome.err

    return page


@pytest.mark.parametrize("name", SURPRISES)
def test_a_surprise_is_told_once_with_its_fix_and_no_more_when_it_is_fixed(name, page):
    silent = SURPRISES[name]
    broken, fixed = silent.checked()
    out, error = page(broken)
    assert out.count(silent.said) == 1
    assert "AssertionError" in error
    assert all(code in fixed for code in re.findall("[;:] `(.+?)`", silent.said))
    out, error = page(fixed)
    assert silent.said not in out
    assert error == ""


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_told_of_what_is_no_surprise(name, page):
    out, error = page(QUIET[name])
    assert "note:" not in out
    assert "no step changes" not in out
    assert "Error" not in error
