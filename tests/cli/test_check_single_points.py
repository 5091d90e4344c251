"""A claim that is right but for single points is wrong there, and says where; none is refuted by an underflow."""

import pytest


def test_an_input_that_is_positive_leaves_the_point_out(cli):
    claim = ("y=x*exp(-x**2)", "dy/dx = y/x - 2*x*y")
    assert "`input x positive = 1` takes the point out" in cli("check", *claim, "-f", "json").objects[0]["why"]
    assert cli("check", "input x positive = 1", *claim, "--require-proof").status == 0
    vector = ("y=sum(x**2)", "dy/dx = 2*x**2/x", "--shape", "x=3")
    assert "`input x positive = …` takes these points out" in cli("check", *vector, "-f", "json").objects[0]["why"]
    assert cli("check", "input x positive = [1,2,3]", *vector[:2]).status == 0


def test_at_points_that_are_given_such_a_claim_is_not_proved(cli):
    (found,) = cli("check", "y=x**2", "dy/dx = where(x==0,7,2*x)", "--at", "x=1", "-f", "json").objects
    assert (found["verdict"], found["by"]) == ("right", "points")
    assert cli("check", "y=x**2", "dy/dx = where(x==0,7,2*x)", "--at", "x=1", "--require-proof").status == 1


@pytest.mark.parametrize("claim", ["where(x==x, 2*x + 1e-9, 2*x)", "where(maximum(x, z)==x, 2*x + 1e-9, 2*x)"])
def test_an_equality_of_more_than_single_points_is_no_border(cli, claim):
    (found,) = cli("check", "y = x**2 + 0*z", f"dy/dx = {claim}", "-f", "json").objects
    assert found["by"] == "points"


def test_a_reason_is_true_at_more_than_one_point(cli):
    (found,) = cli("check", "E=nu**2/2", "dE/dnu = 5", "--at", "nu=2", "-f", "json").objects
    assert "times the right value" not in found["why"]
    (found,) = cli("check", "y=x*exp(-x**2)", "dy/dx = y/x - 2*x*y", "--at", "x=0", "-f", "json").objects
    assert found["why"].startswith("right except at x = 0, where yours is nan and the derivative is 1")


@pytest.mark.parametrize(
    ("system", "claim", "declared"),
    [
        (("f=det(A)", "--shape", "A=2x2"), "df/dA = det(A)*inv(A).T", None),
        (("N=K/(1+A*exp(-r*t))",), "dN/dt = r*N*(1-N/K)", "input K positive = 1"),
        (("f=x**2*y",), "df/dx = 2*x*y**2/y", "input y positive = 1"),
    ],
)
def test_an_inverse_and_a_division_by_another_input_are_right_and_not_proved(cli, system, claim, declared):
    found = cli.json("check", *system, claim)
    assert (found["verdict"], found["by"]) == ("right", "points")
    assert cli("check", *system, claim, "--require-proof").status == 1
    if declared:
        assert cli("check", declared, *system, claim, "--require-proof").status == 0
