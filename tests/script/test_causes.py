"""Broken scripts of `causes.txt` and `collected.txt`: the cause is said, and the fix makes the script right."""

from __future__ import annotations

import json

import pytest
from broken import FIXES, shown
from causes import CAUSES, COLLECTED, told
from conftest import some
from test_fixes import error_of

from gradcli.record.naming import Names
from gradcli.record.record import Cut
from gradcli.script.explainer import knows

TRIED = json.loads(FIXES.read_text("utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", some(CAUSES))
def test_the_cause_is_said_and_the_fix_that_is_shown_makes_the_script_right(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    cause = CAUSES[name]
    result = told(cause.text)
    assert cause.why in result.text
    assert shown(result.changes) == TRIED[name]
    if cause.right:
        assert error_of(cause.checked(cause.text)) != ""
        assert error_of(cause.checked(result.fixed(cause.fixed()))) == ""
    else:  # said in words
        assert not result.changes
        assert [a.fix for a in result.answers] != []


def test_there_are_forty_from_public_places():
    assert len(COLLECTED) == 40


OWN = """\
import torch
import torch.nn.functional as F
x = torch.tensor([1., 2.], requires_grad=True)
policy = torch.nn.Linear(2, 2); target = torch.nn.Linear(2, 2); target.load_state_dict(policy.state_dict())
y = F.gumbel_softmax(x, hard=True).sum() + torch.quantile(x, 0.5) + torch.distributions.Normal(x, 1.).rsample().sum()
y.backward()
torch.nn.utils.clip_grad_norm_([x], 1.)
torch.optim.Adam([x]).step()
z = x.detach().numpy()
"""


def test_a_cut_is_recorded_where_the_script_wrote_it_and_not_where_a_function_of_pytorch_s_does_so_within():
    assert told(OWN).error is None
    cuts = [e for e in knows(None, Names()).record.events if isinstance(e, Cut)]
    assert [(e.site.line, e.how) for e in cuts] == [
        (9, ".detach() returns a tensor without a graph"),
        (9, ".numpy() returns a NumPy array"),
    ]
