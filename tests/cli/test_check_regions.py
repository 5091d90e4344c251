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


def test_the_point_is_short(cli):
    (found,) = cli("check", "y=where(x > 100, x**2, x)", "dy/dx=1", "-f", "json").objects
    assert found["why"] == "in ∂y/∂x you took where(x > 100, x**2, x) for x: right only where x <= 100"
    assert len(f"{found['at']['x']:g}") <= 4


def test_the_values_of_input_lines_tell_the_magnitude(cli):
    system = "input C = 4.7e-9\ninput U = 5\nQ = C*U + 0*exp(C*1e8)\n"
    (found,) = cli("check", system, "dQ/dC = 2*U", "-f", "json").objects
    assert found["verdict"] == "wrong"


def test_a_proof_may_be_required(cli):
    system = ("f=x**2*abs(x)", "df/dx=3*sqrt(x**2)*x")
    assert cli("check", *system).status == 0
    outcome = cli("check", *system, "--require-proof")
    assert outcome.status == 1
    assert "undecided: not proved, but right at 20 points" in " ".join(outcome.out.split())
    (found,) = cli("check", *system, "--require-proof", "-f", "json").objects
    assert (found["verdict"], found["by"], found["points"], found["why"]) == ("undecided", "points", 20, "not proved")
    assert cli("check", "f=x**2", "df/dx=2*x", "--require-proof").status == 0
    assert cli("check", "f=x**2", "df/dx=x", "--require-proof", "-f", "json").objects[0]["verdict"] == "wrong"


@pytest.mark.parametrize("factor", ["1e-200*x*1e-200", "1e200*x*1e200", "1e-300*x"])
def test_constants_beyond_what_inputs_can_be(cli, factor):
    outcome = cli("check", f"y = exp({factor})", "dy/dx = 7")
    assert outcome.status == 1
    assert outcome.err == ""
