"""Random programs print what PyTorch printed for them; the few that do not are known, each with its reason."""

from __future__ import annotations

import re

import pytest
from comparison import difference
from conftest import long
from random_programs import HEAD, recorded
from test_scripts import outcome

CONSTANT = "a Jacobian of constants has no history, for PyTorch one that leads to zeros"
KNOWN = {102: "a softmax's gradient that is 0 but for rounding", 128: CONSTANT, 186: CONSTANT}


@long
def test_nineteen_of_twenty_random_programs_agree():
    programs = recorded()
    assert len(programs) == 200
    differ = {}
    for i, program in enumerate(programs):
        found = outcome("program", HEAD + program["program"])
        apart = [k for k in ("error", "warnings") if found[k] != program[k]]
        texts = found["out"], program["out"]
        if "create_graph" in program["program"]:  # steps of a second backward have names of their own here
            texts = tuple(" ".join(re.sub(r",\s*grad_fn=<\w+>", "", text).split()) for text in texts)
        if apart := difference(*texts) or apart:
            differ[i] = apart
    assert {i: differ[i] for i in differ if i not in KNOWN} == {}
    assert len(differ) <= len(programs) // 20


def test_the_programs_do_much():
    text = "".join(program["program"] for program in recorded())
    for part in ("backward(", "autograd.grad(", "retain_grad", "create_graph", "+=", "no_grad", ".view(", "float64"):
        assert text.count(part) >= 5, part
    assert sum(bool(p["error"]) for p in recorded()) >= 10


@long
@pytest.mark.filterwarnings("ignore")
def test_random_programs_are_explained(cli):
    shown = [cli("run", "-c", HEAD + program["program"]) for program in recorded()]
    assert [i for i, o in enumerate(shown) if "fault of gradcli" in o.out + o.err] == []
    assert [i for i, o in enumerate(shown) if "as below" in o.out and i not in KNOWN] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text",
    [
        "a = torch.ones(2, 0, requires_grad=True)\na.logsumexp(0).sum().backward()\n",
        "a = torch.randn(0, requires_grad=True)\na.std().backward()\n",
        "a = torch.ones(3, 2, requires_grad=True)\nb = a - 10\nwith torch.no_grad():\n    a.t_()\nb.sum().backward()\n",
        "a = torch.ones(2, 1, requires_grad=True)\nb = a - a\na.detach_()\nb.sum().backward()\n",
        "a = torch.randn(0)\ntorch.func.hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))(a, a)\n",
    ],
)
def test_nothing_to_show_is_no_fault(cli, text):
    outcome = cli("run", "-c", HEAD + text)
    assert outcome.status == 0
    assert "fault of gradcli" not in outcome.out
