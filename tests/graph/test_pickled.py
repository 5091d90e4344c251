"""A graph that went to another process computes what it did here."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled


@pytest.mark.parametrize(
    "text", ["relu(x)", "max(x, axis=0)", "where(x > 0, x, x**2)", "max_pool1d([x], 2)", "sort(x)"]
)
def test_conditions_stay_conditions(text):
    graph = vjp(parse(f"y = {text}", x=(4,)))
    points = {name: np.random.default_rng(0).normal(size=(*n.shape, 20)) for name, n in graph.inputs.items()}
    there = pickle.loads(pickle.dumps(graph))
    assert [n.dtype for n in there.nodes] == [n.dtype for n in graph.nodes]
    assert_array_equal(Compiled(there)(points)["x.grad"], evaluate(graph, points)["x.grad"])
