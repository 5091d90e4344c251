"""PyTorch's own errors: the cause and the fix where the message and its line say them, the topic of the guide else."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.pytorch.session import Script, run
from gradcli.script.errors.under_pytorch import known_under_pytorch
from gradcli.script.errors.why import why

ERRORS = {
    "y = (x**2).sum()\ny.backward()\ny.backward()": "more: gradcli explain retain-graph",
    "y = x.exp()\ny += 1\ny.sum().backward()": "more: gradcli explain in-place",
    "(x * 2).backward()": "more: gradcli explain gradient-argument",
    "x.detach().sum().backward()": "more: gradcli explain leaf-and-intermediate",
    "x += 1": "why: line 3, `x += 1`, changes a leaf in place",
    "torch.arange(3).mean()": "why: the mean of integers may be a fraction",
    "torch.ones(2, 3) @ torch.ones(2, 3)": "more: gradcli explain matrices",
    "torch.ones(2) + torch.ones(3)": "more: gradcli explain broadcasting",
    "torch.tensor(1, requires_grad=True)": "why: integers have no derivatives.",
    "raise ValueError('a text of the program')": "",
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_of_pytorch_is_explained(code):
    script = Script(f"import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n{code}\n", "-c", None)
    error = run(script, emulates=False).error
    text = why(error, script, known_under_pytorch())
    assert ERRORS[code] in text if ERRORS[code] else not text
    assert ("fix: " in text) == ("why: " in text)
