"""What goes wrong in a script without a word of PyTorch's: the pages of `gradcli run` say it."""

from __future__ import annotations

import re

import pytest
from broken import QUIET, SILENT

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute")


@pytest.fixture
def run(run):
    def told(text):
        outcome = run(text, status=None)
        return " ".join(outcome.out.split()), outcome.err

    return told


def test_a_number_that_leaves_for_good_is_not_told_of(run):
    text = (
        "import torch\nx = torch.tensor(2., requires_grad=True)\nw = torch.tensor(3., requires_grad=True)\n"
        "print((x ** 2).item())\n(w ** 2).backward()\n"
    )
    assert "cuts the loss off" not in run(text)[0]


def test_a_gradient_that_only_a_comment_and_a_string_name_is_not_asked_for(run):
    text = "import torch\nx = torch.tensor(2., requires_grad=True)\nh = x * 3\n(h ** 2).backward()  # not h.grad\n"
    assert "h.grad stays None" not in run(f"{text}print('h.grad is None')\n")[0]
    assert "h.grad stays None" in run(f"{text}print(f'{{h.grad}}')\n")[0]


@pytest.mark.parametrize("name", SILENT)
def test_a_surprise_is_told_once_with_its_fix_and_no_more_when_it_is_fixed(name, run):
    silent = SILENT[name]
    broken, fixed = silent.checked()
    out, error = run(broken)
    assert out.count(silent.said) == 1
    assert "AssertionError" in error
    assert all(code in fixed for code in re.findall("[;:] `(.+?)`", silent.said))
    out, error = run(fixed)
    assert silent.said not in out
    assert error == ""


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_told_of_what_is_no_surprise(name, run):
    out, error = run(QUIET[name])
    assert "note:" not in out
    assert "warning:" not in out
    assert "no step changes" not in out
    assert "Error" not in error
