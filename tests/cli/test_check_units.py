"""Verdicts of gradcli check do not depend on units: tiny and huge derivatives are judged as those near 1 are."""

import numpy as np
import pytest

from gradcli.engine.differences import along


def test_the_tolerance_is_relative(cli):
    system = ("y = 2*pi*1e-20*x", "dy/dx = 6.283e-20")
    assert cli("check", *system).status == 1
    assert cli("check", *system, "--tolerance", "1e-3").status == 0


def test_own_functions_of_small_numbers(cli, tmp_path):
    path = tmp_path / "own.py"
    text = """
import torch
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return FORWARD
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2e-9*x*g
Own.apply(torch.tensor([1., 2.], requires_grad=True)).sum().backward()
"""
    for forward in ("1e-9*x**2", "torch.from_numpy(1e-9*x.detach().numpy()**2)"):
        path.write_text(text.replace("FORWARD", forward))
        assert cli("run", "--check", str(path)).status == 0
        path.write_text(text.replace("FORWARD", forward.replace("**2", "**3")))
        assert cli("run", "--check", str(path)).status == 1


@pytest.mark.parametrize("size", [10.0**power for power in range(-60, 61, 10)])
def test_differences_follow_the_scale(size):
    at = np.array([[1.5 * size]])
    found = along(lambda x: np.sin(x[0] / size) * size, at, np.ones((1, 1)))
    assert found.value[0] == pytest.approx(np.cos(1.5), rel=1e-9)
    assert not found.corner.any()
    assert along(lambda x: abs(x[0] - 1.5 * size), at, np.ones((1, 1))).corner.all()
