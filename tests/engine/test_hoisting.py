"""What NumPy computes in quicker calls: the values of the interpreter."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.isomorphic import hoisted
from gradcli.engine.schedule import Schedule


@pytest.mark.parametrize("text", ["y = tanh(x)", "y = sech(x)*cosh(x)", "y = sech(x) + 2/cosh(z)", "y = x/cosh(z)"])
def test_slopes_of_tanh(text):
    graph = vjp(parse(text))
    points = {n: np.array([0.3, -2.0, 0.0, np.nan, 30.0, -1e3]) for n in graph.inputs}
    found, expected = Compiled(graph)(points), evaluate(graph, points)
    for name, value in expected.items():
        np.testing.assert_array_max_ulp(*np.broadcast_arrays(found[name], value), maxulp=4)


def test_what_is_equal_along_an_axis_is_computed_once():
    graph = vjp(parse("y = sum(100*(x - 2)**2)", x=(50,)))
    steps = hoisted(Schedule.of(graph, {})).steps
    assert sum(n.shape == (50,) and n.op == "mul" for n in steps) == 1
    points = {"x": np.array([[0.0], [-0.0], [np.nan], [np.inf], [1e300]] * 10), "y.v": np.array([-0.0])}
    found, expected = Compiled(graph)(points)["x.grad"], evaluate(graph, points)["x.grad"]
    assert_array_equal(found, expected)
    assert_array_equal(np.signbit(found[:1]), np.signbit(expected[:1]))


def test_what_is_the_same_at_all_points_is_repeated_already():
    graph = vjp(parse("y = sum(x*w)", x=(2,)))
    points = {"x": np.array([[1.0, 3.0], [2.0, -4.0]]), "w": np.array([0.5, -7.0])}
    found = Compiled(graph, {"y.v": np.array([2.0])})(points)
    assert_array_equal(found["x.grad"], [[1, -14], [1, -14]])
    assert_array_equal(found["w.grad"], [6, -2])


@pytest.mark.parametrize(
    "text", ["y = sum(x[1:]*x[:-1])", "y = x[2]*x[0]", "y = sum(x[::-1][1:]*x[1:])", "y = sum(x[3:])"]
)
def test_parts_that_are_added_to_zeros(text):
    graph = vjp(parse(text, x=(5,)))
    points = {"x": np.array([[0.0, -1.0], [-0.0, 2.0], [np.nan, 3.0], [-0.0, np.inf], [7.0, 0.0]]), "y.v": -np.ones(2)}
    found, expected = Compiled(graph)(points)["x.grad"], evaluate(graph, points)["x.grad"]
    assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
