"""The gradient of an extremum has the number of ties in its formula only where there are ties."""

from __future__ import annotations

import numpy as np


def test_the_formula_typed_back_has_the_numbers_of_the_gradient(cli):
    point = ("--at", "x=[1,3,2]")
    out = " ".join(cli.done("backward", "y=max(x)**2*min(x)", *point, "--only", "grad").out.split())
    formula = out.removeprefix("x.grad = ").rpartition(" = ")[0]
    value = cli.json("jacobian", f"g={formula}", *point)["value"]["g"]
    np.testing.assert_allclose(value, cli.json("backward", "y=max(x)**2*min(x)", *point)["grad"]["x"])
