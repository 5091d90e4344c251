"""PyTorch's own errors: the cause and the fix from the message, the tensors and the text, or else the topic."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.process.script import Script
from gradcli.pytorch.session import run
from gradcli.script.errors.under_pytorch import known_under_pytorch
from gradcli.script.errors.why import why

PACKED = """\
import torch
from torch import nn
torch.manual_seed(0)
emb, lstm = nn.Embedding(10, 4, padding_idx=0), nn.LSTM(4, 5, batch_first=True, bidirectional=True)
out = nn.Linear(10, 2)
x, n = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 0, 0, 0]]), torch.tensor([4, 2, 1])
packed = nn.utils.rnn.pack_padded_sequence(emb(x), n, batch_first=True)
h, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
nn.functional.cross_entropy(out(h.sum(1) / n[:, None]), torch.tensor([0, 1, 1])).backward()
"""
ERRORS = {
    "y = (x**2).sum()\ny.backward()\ny.backward()": "more: gradcli explain retain-graph",
    "y = x.exp()\ny += 1\ny.sum().backward()": "more: gradcli explain in-place",
    "(x * 2).backward()": "more: gradcli explain gradient-argument",
    "y = x * 2\ny.backward()": "line 4: y.sum().backward()",
    "x = torch.ones(2)\ny = x.sum()\ny.backward()": "line 3: x = torch.ones(2, requires_grad=True)",
    "torch.autograd.grad(x.sum(), torch.ones(2))": "more: gradcli explain autograd-grad",
    "y = x * 2\ny.backward(torch.ones(3))": "line 4: y.backward(torch.ones_like(y))",
    "y = torch.linspace(0, 1, 2)\ny += 1\ny.backward()": "requires_grad=True",
    "x += 1": "why: line 3, `x += 1`, changes a leaf in place",
    "torch.arange(3).mean()": "why: the mean of integers may be a fraction",
    "torch.ones(2, 3) @ torch.ones(2, 3)": "line 3: torch.ones(2, 3) @ torch.ones(2, 3).T",
    "torch.ones(2) + torch.ones(3)": "here they are 2 and 3 at axis 0",
    "net = torch.nn.Linear(3, 1)\nnet(torch.ones(4, 2))": "line 3: net = torch.nn.Linear(2, 1)",
    "torch.optim.SGD(torch.nn.Tanh().parameters(), 0.1)": "why: an optimizer updates tensors",
    "print(x.grad.norm())": "why: x.grad is None: no backward has run yet.",
    "x.sum().backward()\nx.grad = None\nprint(x.grad.norm())": "more: gradcli explain zero-grad",
    "torch.tensor(1, requires_grad=True)": "why: integers have no derivatives.",
    "raise ValueError('a text of the program')": "",
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_of_pytorch_is_explained(code):
    script = Script(f"import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n{code}\n", "-c", None)
    error = run(script, emulates=False).error
    text = " ".join(why(error, script, known_under_pytorch).split())
    assert ERRORS[code] in text if ERRORS[code] else not text
    assert ("fix: " in text) == ("why: " in text)


def test_an_error_behind_the_recording_says_how_to_record_it(cli, tmp_path):
    path = tmp_path / "late.py"
    path.write_text(
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\nfor k in range(9):\n    y = (x**2).sum()\n"
        "    y.backward()\n    if k == 7:\n        y.backward()\n"
    )
    error = cli("run", "--torch", str(path)).err
    assert "why:" not in error
    assert f"--line 7 --round 2 {path}" in " ".join(error.split())
    assert "why: the backward at line 5" in cli("run", "--torch", "--line", "7", "--round", "2", str(path)).err


def test_calls_that_are_not_counted_to_the_end_are_told_as_such(process, tmp_path):
    path = tmp_path / "late.py"
    path.write_text(
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\nfor k in range(300):\n    y = (x**2).sum()\n"
        "    y = y.detach() if k == 250 else y\n    y.backward()\n"
    )
    outcome = process("run", "--torch", str(path))
    assert "line 6, at least 100 more times" in outcome.out + outcome.err
    assert f"--line 6 --all {path}" in " ".join(outcome.err.split())
    assert "why: line 5" in process("run", "--torch", "--line", "6", "--all", str(path)).err


def test_a_packed_lstm_has_a_page_without_a_hook(cli):
    out = cli.done("run", "--torch", "-c", PACKED).out
    assert "not explained" not in out
    assert "hook" not in out
