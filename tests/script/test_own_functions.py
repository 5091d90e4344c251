"""`gradcli run --check`: the backward of each own function of a script against its own forward."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import long

HEAD = "import torch\nimport numpy as np\nx = torch.tensor([[1., 2.5], [-0.5, 0.7]], requires_grad=True)\n"
OWN = """\
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {arguments}):
        {forward}
    @staticmethod
    def backward(ctx, {cotangents}):
        {backward}
"""


def own(forward, backward, arguments="x", cotangents="g", call="Own.apply(x)"):
    text = HEAD + OWN.format(forward=forward, backward=backward, arguments=arguments, cotangents=cotangents)
    return text + f"y = {call}\n" + "print('ran')\n"


SAVED = "x, = ctx.saved_tensors; return "
SAVE = "ctx.save_for_backward(x); return "
RIGHT = {
    "square": own(SAVE + "x ** 2", SAVED + "2 * x * g"),
    "the result is kept": own(
        "y = x.exp(); ctx.save_for_backward(y); return y", "y, = ctx.saved_tensors; return g * y"
    ),
    "a mask": own(SAVE + "x.clamp(min=0)", "x, = ctx.saved_tensors; g = g.clone(); g[x < 0] = 0; return g"),
    "two arguments and a number": own(
        "ctx.save_for_backward(x, w); ctx.k = k; return x @ w * k",
        "x, w = ctx.saved_tensors; return g @ w.t() * ctx.k, x.t() @ g * ctx.k, None",
        "x, w, k",
        call="Own.apply(x, x.detach().clone().requires_grad_(), 3)",
    ),
    "two results": own(SAVE + "(x * 2, x ** 3)", SAVED + "a * 2 + 3 * b * x ** 2", cotangents="a, b"),
    "numpy": own(
        "ctx.a = x.detach().numpy(); return torch.from_numpy(np.sin(ctx.a))",
        "return g * torch.from_numpy(np.cos(ctx.a))",
    ),
    "numpy in backward alone": own(
        SAVE + "x.sin()", "x, = ctx.saved_tensors; return g * torch.from_numpy(np.cos(x.detach().numpy()))"
    ),
    "ways that depend on the numbers": own(
        SAVE + "x ** 2 if x.sum() > 0 else -x", SAVED + "2 * x * g if x.sum() > 0 else -g", call="Own.apply(-x)"
    )
    + "Own.apply(x)\nOwn.apply(2 * x)\n",
    "it prints": own("print('forward'); " + SAVE + "x ** 2", "print('backward'); " + SAVED + "2 * x * g"),
}


@pytest.fixture
def check(run):
    return lambda text, *options: run(text, "--check", *options, status=None)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_backward_is_right(name, check):
    outcome = check(RIGHT[name])
    assert outcome.status == 0, outcome.out
    _, _, told = outcome.out.partition("ran\n")
    assert told.startswith("x.grad = Own.backward(")
    assert "right: at " in told
    assert "wrong" not in told
    assert "undecided" not in told
    assert "backward\n" not in told


SAID = {
    "SwishBad": "missing: + x*v*sigmoid(x)*(1 - sigmoid(x))",
    "StraightThroughBad": "times 0, the derivative of sign(x)",
    "InNumpyBad": "it differs from the derivative",
    "NormBad": "the incoming gradient v is missing",
    "LinearBad": "yours is 1/3 times the right value: off by 1/n? v has 3 elements along axis 0, and a mean divides by",
    "ScaleBad": "the sign",
    "PolarBad": "missing: + v1*sin(t)",
    "MatMulBad": "you wrote v @ b: it is v @ b.T",
    "CrossEntropyBad": "yours is 3 times the right value: off by 1/n?",
    "LayerNormBad": "is left out",
    "HuberBad": "you took abs(r) for r: right only where r > 0",
    "StackBad": "you wrote v[0]: it is v[1]",
    "ForgottenBad": "yours is 0",
    "SquaresBad": "the minus before b is left out",
    "InPlaceBad": "the inner derivative is missing, that of 2*x",
    "BranchBad": "yours is 2/3 times the right value",
    "BroadcastBad": "you wrote sum(v, axis=1): it is sum(v, axis=0)",
    "ConvolutionBad": "",
    "DropoutBad": "yours is 1/2 times the right value",
    "PowerBad": "you wrote 4*x**4: the derivative of x**4 is 4*x**3",
}


@long
def test_functions_as_people_write_them(check):
    text = Path(__file__).with_name("own_functions.py").read_text()
    found = {}
    for line in check(text, "-f", "json").out.splitlines():
        verdict = json.loads(line)
        found.setdefault(verdict["said"].partition(".")[0], []).append(verdict)
    assert found.keys() == set(re.findall(r"^class (\w+)", text, re.M))
    for name, verdicts in found.items():
        wrong = [v["why"] for v in verdicts if v["verdict"] != "right"]
        assert len(wrong) == name.endswith("Bad"), (name, wrong)
        assert all(SAID[name] in why for why in wrong), (name, wrong)


def test_each_argument_has_a_verdict_as_json(check):
    text = own(
        "ctx.save_for_backward(x, w); return (x * w).sum()",
        "x, w = ctx.saved_tensors; return g * w, g * w",
        "x, w",
        call="Own.apply(x, torch.tensor(3., requires_grad=True) * x.detach())",
    )
    outcome = check(text, "-f", "json")
    assert outcome.status == 1
    assert outcome.err == "ran\n"
    first, second = map(json.loads, outcome.out.splitlines())
    assert (first["claim"], first["verdict"]) == ("x.grad", "right")
    assert (second["claim"], second["verdict"], second["entry"]) == ("w.grad", "wrong", "[0,1]")
    assert second["difference"] == pytest.approx(second["is"])
    assert second["at"]["x"] == [[1.0, 2.5], [-0.5, 0.7]]


def test_calls_of_one_kind_are_points_of_one_verdict(check):
    outcome = check(RIGHT["square"] + "Own.apply(x + 1)\nOwn.apply(x * 2)\n")
    assert "right: at 3 points" in outcome.out


def test_what_cannot_be_run_again_is_undecided(check):
    outcome = check(own(SAVE + "x ** 2", "raise ValueError('not today')"))
    assert "undecided: it failed: ValueError: not today" in outcome.out
    assert outcome.status == 1


def test_a_corner_is_not_counted(check):
    outcome = check(own(SAVE + "x.abs()", SAVED + "g * x.sign()", call="Own.apply(x * 0)"))
    assert "undecided: the system has a corner there" in outcome.out


def test_a_script_without_own_functions_is_told(check):
    outcome = check("print('ran')\n")
    assert (outcome.status, outcome.out) == (0, "ran\n")
    assert "calls no autograd.Function" in outcome.err


def test_the_scripts_own_failure_counts(check):
    outcome = check(RIGHT["square"] + "import sys\nsys.exit(5)\n")
    assert outcome.status == 5
    assert "right: at 1 point" in outcome.out


def test_calls_that_go_another_way_are_not_points_of_one_system(check):
    forward = SAVE + "x * 2 if x.sum() > 0 else x * 3"
    outcome = check(own(forward, "return g * 2", call="Own.apply(x)") + "Own.apply(-x)\n")
    assert "wrong" in outcome.out
    assert "at 1 of 2 points" in outcome.out
