"""The reverse table adds up: an adjoint starts from its own v and grows by each contribution that reaches it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

SYSTEMS = {
    "output of an output": (("h=x**2", "y=sin(h)*3"), "x=2", "h,y", ["5,7"]),
    "output used twice": (("h=x**2", "y=h*h+x", "z=h/y"), "x=2", "z,h,y", ["5,7,-11", "1,1,1"]),
    "vectors": (("h=x*2", "y=sum(h**2)", "z=h@h"), "x=[1,2]", "h,z,y", ["h=[3,4],y=2,z=5", "onehot:0"]),
    "only an intermediate": (("h=x**2", "y=sin(h)*3"), "x=2", "h", ["5"]),
}


@pytest.mark.parametrize(("system", "at", "outputs", "v"), SYSTEMS.values(), ids=SYSTEMS)
def test_adjoints_add_up(cli, system, at, outputs, v):
    options = [option for text in v for option in ("--v", text)]
    found = cli.json("backward", *system, "--at", at, "--outputs", outputs, "--steps", *options)
    grad = np.zeros(np.shape(found["at"]["x"]))
    for k, call in enumerate(found["calls"]):
        totals = {name: np.array(value) for name, value in call["v"].items()}
        rows = [row for row in found["steps"]["reverse"] if row["call"] == k]
        assert rows
        for row in rows:
            assert_allclose(row["adjoint"], totals[row["node"]], rtol=1e-12)
            argument = row["passes_to"]
            totals[argument] = totals.get(argument, 0) + np.array(row["contribution"])
            assert_allclose(row["adjoint_so_far"], totals[argument], rtol=1e-12)
        grad = grad + totals["x"]
        assert_allclose(call["grad"]["x"], grad, rtol=1e-12)


def test_an_adjoint_in_formulas_starts_from_its_own_v(cli):
    found = cli.json("backward", "h=x**2", "y=sin(h)*3", "--outputs", "h,y", "--v", "5,7", "--steps")
    so_far = {row["passes_to"]: row["adjoint_so_far"] for row in found["steps"]["reverse"]}
    assert so_far == {"t1": "21", "h": "21*cos(h) + 5", "x": "2*x*(21*cos(h) + 5)"}
