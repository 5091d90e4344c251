"""gradcli check tries points on both sides of every condition, corner and threshold, and in narrow windows."""

import pytest
from conftest import some

SYSTEMS = [
    ("where(x > 100, x**2, x)", "1", "where(x > 100, 2*x, 1)"),
    ("where(abs(x - 5) < 0.01, x**2, x)", "1", "where(abs(x - 5) < 0.01, 2*x, 1)"),
    ("where((x - 50)**2 < 1e-4, x**2, x)", "1", "where((x - 50)**2 < 1e-4, 2*x, 1)"),
    ("where((x > 3) & (x < 3.0001), x**2, x)", "1", "where((x > 3) & (x < 3.0001), 2*x, 1)"),
    ("where((x > 1000) & (z < -3e4), x**2, x)", "1", "where((x > 1000) & (z < -3e4), 2*x, 1)"),
    ("where(x*z > 1e7, x**2, x)", "1", "where(x*z > 1e7, 2*x, 1)"),
    ("relu(x - 1e6)", "0", "where(x > 1e6, 1, 0)"),
    ("clamp(x, -1e3, 1e3)**2", "2*x", "where(abs(x) < 1e3, 2*x, 0)"),
    ("maximum(x, -z*1e8)", "where(z > 0, 1, 0)", "where(x > -z*1e8, 1, 0)"),
    ("abs(x - 300)", "sign(x - 3)", "sign(x - 300)"),
    ("x**2", "where(x > 1e5, 7, 2*x)", "2*x"),
    ("where(floor(x/100) == 3, 5*x, x)", "1", "where(floor(x/100) == 3, 5, 1)"),
    ("where(x < 2e-25, x**2*1e25, x)", "1", "where(x < 2e-25, 2e25*x, 1)"),
    ("exp(-x/1e-20) + 0*z", "-exp(-x/1e-20)/1e-19", "-exp(-x/1e-20)/1e-20"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "wrong", "right"), some(SYSTEMS))
def test_a_branch_is_tried_wherever_it_is(cli, system, wrong, right):
    for claim, verdict in ((wrong, "wrong"), (right, "right")):
        (found,) = cli("check", f"y = {system}", f"dy/dx = {claim}", "-f", "json").objects
        assert (found["verdict"], claim) == (verdict, claim)


def test_the_values_of_input_lines_tell_the_magnitude(cli):
    system = "input C = 4.7e-9\ninput U = 5\nQ = C*U + 0*exp(C*1e8)\n"
    (found,) = cli("check", system, "dQ/dC = 2*U", "-f", "json").objects
    assert found["verdict"] == "wrong"
