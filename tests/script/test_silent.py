"""What goes wrong in a script without a word of PyTorch's: the pages of `gradcli run` say it."""

from __future__ import annotations

import pytest

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
        "x.grad stays None: line 5, `return torch.from_numpy(np.tanh(a.detach().numpy()))`, cut the thread to it by "
        ".detach() and .numpy().",
    ),
    "a number on the way": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nw = torch.tensor(3., requires_grad=True)\n"
        "s = (x ** 2).item()\n(s * w).backward()\n",
        "x.grad stays None: line 4, `s = (x ** 2).item()`, cut the thread to it by .item().",
    ),
    "an intermediate": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nh = x * 3\n(h ** 2).backward()\nprint(h.grad)\n",
        "h.grad stays None: h is computed, not a leaf; h.retain_grad() before this keeps it.",
    ),
    "a parameter that the optimizer does not have": (
        "import torch\nw = torch.tensor(2., requires_grad=True)\nb = torch.tensor(3., requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n(w * b).backward()\nopt.step()\n",
        "b has a .grad, and is not among the parameters of an optimizer: no step changes it",
    ),
    "parameters that were replaced": (
        "import torch\nnet = torch.nn.Linear(1, 1, bias=False)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net.weight = torch.nn.Parameter(torch.ones(1, 1))\nnet(torch.ones(1, 1)).sum().backward()\nopt.step()\n",
        "line 6, opt.step(): nothing changes: none of its parameters has a .grad net.weight has a .grad",
    ),
    "two backwards that add up": (
        "import torch\nx = torch.tensor(2., requires_grad=True)\n(x ** 2).backward()\n(x ** 3).backward()\n",
        "x.grad: 4 (left by line 3) + 12 → 16",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_goes_wrong_silently_is_told(name, run):
    text, said = SILENT[name]
    assert said in " ".join(run(text).out.split())


def test_a_number_that_leaves_for_good_is_not_told_of(run):
    text = (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nw = torch.tensor(3., requires_grad=True)\n"
        "print((x ** 2).item())\n(w ** 2).backward()\n"
    )
    assert "cut the thread" not in run(text).out


def test_code_in_a_document_is_left_as_it_is(cli, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SILENT["a detour through NumPy"][0], "utf-8")
    out = cli("run", "-f", "markdown", str(path)).out
    assert "`return torch.from_numpy(np.tanh(a.detach().numpy()))`" in out
