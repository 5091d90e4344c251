"""Numbers beyond float64, which stand in a graph exactly."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.evaluate import number

LARGE_AND_SMALL = [10**400, Fraction(10**400, 3), Fraction(1, 10**400), Fraction(10**400, 10**400 + 1)]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", LARGE_AND_SMALL, ids=["large", "large fraction", "small", "near 1"])
def test_a_number_too_large_or_too_small_keeps_its_sign(sign, value):
    expected = np.inf if value > 1 else 0.0 if value < Fraction(1, 2) else 1.0
    found = number(sign * value)
    assert found == sign * expected
    assert np.signbit(found) == (sign < 0)


@pytest.mark.parametrize(("divisor", "slope"), [("1e-320", np.inf), ("-1e-320", -np.inf), ("-4e-308", -2.5e307)])
def test_slope_of_a_division_keeps_its_sign(divisor, slope):
    graph = vjp(parse(f"y = x/{divisor}"))
    points = {"x": np.array([1.0, -1, 0]), "y.v": np.array([1.0, 1, -1])}
    expected = [slope, slope, -slope]
    assert_array_equal(np.broadcast_to(evaluate(graph, points)["x.grad"], 3), expected)
    assert_array_equal(Compiled(graph)(points)["x.grad"], expected)
