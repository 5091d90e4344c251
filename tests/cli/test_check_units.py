"""Verdicts of gradcli check do not depend on units: tiny and huge derivatives are judged as those near 1 are."""

import numpy as np
import pytest

from gradcli.engine.differences import along

CLAIMS = [
    (("F = 6.674e-11*m1*m2/r**2",), "dF/dr = -2*6.674e-11*m1*m2/r**3", "dF/dr = 2*6.674e-11*m1*m2/r**3"),
    (("y = 1e-12*x**2",), "dy/dx = 2e-12*x", "dy/dx = 1e-12*x"),
    (("y = 1e12*x**2",), "dy/dx = 2e12*x", "dy/dx = 3e12*x"),
    (("E = 0.5*C*U**2", "--at", "C=4.7e-9,U=12e-3"), "dE/dU = C*U", "dE/dU = 2*C*U"),
    (("y = abs(1e-30*x)*x",), "dy/dx = 2*abs(1e-30*x)", "dy/dx = abs(1e-30*x)"),
    (("p = 1e-25*[a*b, b**2]",), "dp/da = 1e-25*[b, 0]", "dp/da = 1e-25*[b, 1e-9]"),
    (("f = 1e-20*x**3",), "d2f/dx2 = 6e-20*x", "d2f/dx2 = 3e-20*x"),
    (("y = 1e-22*x*z",), "x.grad = 1e-22*v*z", "x.grad = 1e-22*v"),
    (("y = (1e8*x + x**2) - 1e8*x",), "dy/dx = (1e8 + 2*x) - 1e8", "dy/dx = 3*x"),
    (("y = x - 1e-30*z",), "dy/dz = -1e-30", "dy/dz = 0"),
]


@pytest.mark.parametrize(("system", "right", "wrong"), CLAIMS)
def test_right_is_right_and_wrong_is_wrong(cli, system, right, wrong):
    outcome = cli("check", *system, right, wrong, "-f", "json")
    assert outcome.status == 1
    assert [o["verdict"] for o in outcome.objects] == ["right", "wrong"]
    told = outcome.objects[1]
    assert abs(told["difference"] - told["is"]) <= 1e-6 * max(abs(told["is"]), abs(told["yours"]))


def test_nanofarads_in_a_file_of_points(cli):
    points = "C,U\n1e-9,2e-3\n4.7e-9,3e-3\n"
    outcome = cli("check", "E=C*U**2/2", "dE/dC=U**2/2", "dE/dU=2*C*U", "--points", "-", "-f", "json", stdin=points)
    assert [(o["verdict"], o.get("wrong")) for o in outcome.objects] == [("right", None), ("wrong", 2)]


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
