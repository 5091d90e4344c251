"""Rounds of a loop, pictures and formulas of `gradcli run`: --round, --graph, the curves at the end, and JSON."""

from __future__ import annotations

import numpy as np
import pytest

LOOP = """import torch
w = torch.tensor([1., 2.], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for k in range(5):
    opt.zero_grad()
    loss = ((w - 3)**2).sum()
    loss.backward()
    opt.step()
"""


def test_a_round_is_explained_alone_with_the_line_that_cleared_the_gradient(run):
    w = np.array([1.0, 2.0])
    for _ in range(3):
        w = w - 0.1 * 2 * (w - 3)
    out = run(LOOP, "--round", "4").out
    grad = f"[{', '.join(f'{x:.6g}' for x in 2 * (w - 3))}]"
    assert out.count("line 7: loss.backward()") == 1
    assert f"w.grad: None (cleared in line 5) → {grad}\n" in out
    assert f"= {grad}\n" in out


def test_a_round_that_no_line_reaches_is_noted(run):
    outcome = run(LOOP, "--round", "9")
    assert "── line" not in outcome.out
    assert "note: no line is reached 9 times (line 7: 5; line 8: 5)\n" in outcome.err


def test_a_loop_ends_with_the_way_of_the_loss_and_of_its_gradient(run):
    w, way = np.array([1.0, 2.0]), []
    for _ in range(5):
        way.append((((w - 3) ** 2).sum(), np.linalg.norm(2 * (w - 3))))
        w = w - 0.1 * 2 * (w - 3)
    out = run(LOOP).out
    assert "line 7, loss.backward(), 5 times:\n" in out
    for name, (first, last) in {"loss": (way[0][0], way[-1][0]), "|grad|": (way[0][1], way[-1][1])}.items():
        (line,) = [line.split() for line in out.splitlines() if line.split()[:1] == [name] and "▁" in line]
        assert (float(line[1]), float(line[3])) == pytest.approx((first, last), rel=1e-5)
        assert line[4][0] == "█"
        assert line[4][-1] == "▁"


def test_a_picture_of_another_ending_is_refused_before_the_script_runs(cli):
    assert "has an unknown file extension" in cli.refused("run", "--graph", "p.csv", "-c", LOOP)


def test_a_picture_needs_an_explained_call(cli):
    refused = cli.refused("run", "--quiet", "--graph", "p.svg", "-c", LOOP)
    assert "--graph draws a call that is explained" in refused
    assert refused.endswith("leave out --quiet\n")  # and not --check, which is not typed


def test_a_note_of_the_page_stands_in_the_object_too(run):
    text = "import torch; x = torch.tensor(2., requires_grad=True)\nu = (x*x).detach()\n(u*x).backward()\n"
    (row,) = run(text, "-f", "json").objects
    assert row["notes"] == ["u is a constant: detached in line 2"]
    assert row["formulas"]["x.grad"] == ["v·∂y/∂x", "1·u", "1·4"]


WRONG = """import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x**3 * w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return {}, {}
F.apply(torch.tensor([0.5, 1.5], requires_grad=True), torch.tensor([2., 3.], requires_grad=True)).sum().backward()
"""
RIGHT = ("3 * x**2 * w * grad", "x**3 * grad")


@pytest.mark.parametrize(
    ("returned", "corrected"),
    [
        (("3 * x**2 * w", RIGHT[1]), f"return grad * (3 * x**2 * w), {RIGHT[1]}"),
        ((RIGHT[0], "-(x**3) * grad"), f"return {RIGHT[0]}, -(-(x**3) * grad)"),
        (("x**2 * w * grad", RIGHT[1]), f"return 3 * (x**2 * w * grad), {RIGHT[1]}"),
        (("3 * x**2 * grad", RIGHT[1]), f"return w * (3 * x**2 * grad), {RIGHT[1]}"),
    ],
)
def test_the_return_that_corrects_a_backward_makes_it_right(run, returned, corrected):
    wrong = run(WRONG.format(*returned), "--check", status=1)
    assert f"fix: line 10: `{corrected}`" in " ".join(wrong.out.split())
    run(WRONG.replace("return {}, {}", corrected), "--check")
