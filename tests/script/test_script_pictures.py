"""Pictures of a script's call: loops are recurrences, calls are boxes that open."""

from __future__ import annotations

import pytest

RNN = """import torch
torch.manual_seed(0)
W = torch.randn(3, 3, requires_grad=True)
U = torch.randn(3, 2, requires_grad=True)
xs = torch.randn(5, 2)
h = torch.zeros(3)
for t in range(5):
    h = torch.tanh(W @ h + U @ xs[t])
(h**2).sum().backward()
"""
LOSS = """import torch
x = torch.tensor([[1.0, 2.0]], requires_grad=True)
y = torch.nn.functional.cross_entropy(x, torch.tensor([0]))
y.backward()
"""


@pytest.fixture
def drawn(run, tmp_path):
    def draw(script, ending, *options):
        target = tmp_path / f"graph{ending}"
        run(script, "--graph", str(target), *options)
        return target.read_text("utf-8")

    return draw


def test_a_loop_of_a_script_is_a_recurrence_in_each_format(drawn):
    statement = "h[t] = tanh(W @ h[t-1] + U @ xs[t-1]) for t in 1..5"
    assert f"↻─┴─╯   h[0] = zeros(3)\n│       {statement}" in drawn(RNN, ".txt")
    for ending in (".svg", ".html"):
        assert f">{statement}<" in drawn(RNN, ending)
    assert "n3 -> n3" in drawn(RNN, ".dot")
    assert 'n3 -->|"5 times"| n3' in drawn(RNN, ".mmd")
    assert r"h_{t} = \tanh\left(W h_{t-1} + U \, \mathit{xs}_{t-1}\right)\text{ for }t" in drawn(RNN, ".tex")


def test_unroll_draws_each_round(drawn):
    for ending, rounds in ((".txt", "tanh("), (".html", "tanh(")):
        assert " for t in " not in drawn(RNN, ending, "--unroll")
        assert drawn(RNN, ending, "--unroll").count(rounds) >= 5


def test_the_document_of_a_script_has_its_loops_too(run, tmp_path):
    target = tmp_path / "page.html"
    for more, boxes in (((), 1), (("--unroll",), 0)):
        run(RNN, *more, "-f", "html", "--output", str(target))
        assert target.read_text("utf-8").count("data-rounds=") >= boxes * 3
        assert (" for t in 1..5</text>" in target.read_text("utf-8")) == bool(boxes)


def test_a_call_of_a_script_opens(drawn, cli, tmp_path):
    assert "cross_entropy(x, " in drawn(LOSS, ".txt")
    assert "log_softmax" not in drawn(LOSS, ".txt")
    assert "log_softmax" in drawn(LOSS, ".txt", "--open", "y")
    path = tmp_path / "script.py"
    assert "`z` is not in the picture" in cli("run", str(path), "--graph", str(tmp_path / "g.svg"), "--open", "z").err
    assert "--graph" in cli.refused("run", str(path), "--open", "y")
