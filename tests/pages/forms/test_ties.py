"""The gradient of an extremum has the number of ties in its formula only where there are ties."""

from __future__ import annotations

import numpy as np
from conftest import each


@each(
    ("system", "at", "formula"),
    [
        ("y=max(x)", "x=[1,3,2]", "where(x == y, 1, 0)"),
        ("y=max(x)", "x=[1,3,3]", "where(x == y, 1, 0)/sum(where(x == y, 1, 0))"),
        ("y=min(x)", "x=[1,3,2]", "where(x == y, 1, 0)"),
        ("y=sum(amax(x,axis=1))", "x=[[1,3],[4,2]]", "where(x == amax(x, axis=1, keepdims=True), 1, 0)"),
    ],
)
def test_ties_are_counted_only_where_there_are_some(cli, system, at, formula):
    out = " ".join(cli.done("backward", system, "--at", at, "--only", "grad").out.split())
    assert f"x.grad = {formula} = " in out


def test_the_formula_typed_back_has_the_numbers_of_the_gradient(cli):
    point = ("--at", "x=[1,3,2]")
    out = " ".join(cli.done("backward", "y=max(x)**2*min(x)", *point, "--only", "grad").out.split())
    formula = out.removeprefix("x.grad = ").rpartition(" = ")[0]
    value = cli.json("jacobian", f"g={formula}", *point)["value"]["g"]
    np.testing.assert_allclose(value, cli.json("backward", "y=max(x)**2*min(x)", *point)["grad"]["x"])


def test_a_count_of_the_users_own_stays(cli):
    """One element is above 0: the mean of those divides by 1, which the formula shows all the same."""
    system = "y=sum(x**2)/sum(where(x>0,1,0))"
    out = " ".join(cli.done("backward", system, "--at", "x=[1,-3]", "--only", "grad").out.split())
    assert "sum(where(x > 0, 1, 0))" in out
