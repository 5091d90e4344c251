"""Constant indices: a setting of any size, and the nodes that take and put elements."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.graph.graph import Graph
from gradcli.graph.index_arrays import IndexArray, scatter_add, take
from gradcli.graph.node import leaf

# How x is shaped, and an index that NumPy has too, with the same meaning.
INDICES = [
    ((5,), "[[0, 4, 4, -1]]"),
    ((5,), "[[[0, 1], [3, 3]]]"),
    ((3, 4), "[[2, 0]]"),
    ((3, 4), "[:, [3, 0, 0]]"),
    ((3, 4), "[1:, [3, 0]]"),
    ((3, 4), "[[0, 1, 2], [1, 2, 3]]"),
    ((3, 4), "[[[0], [2]], [1, 3]]"),
    ((3, 4), "[::-1, [1]]"),
    ((3, 4), "[None, [1, 1]]"),
    ((3, 4), "[[1, 1], None]"),
    ((3, 4), "[..., [1, 2]]"),
    ((3, 4), "[[True, False, True]]"),
    ((3, 4), "[[True, False, True], ::2]"),
    ((3, 4), "[:, [True, False, True, True]]"),
    ((3, 4), "[[True, False, True], [1, 2]]"),
    ((2, 2), "[[[True, False], [True, True]]]"),
    ((2, 3, 4), "[[0, 1], :, [2, 3]]"),
    ((2, 3, 4), "[:, [0, 1], [2, 3]]"),
    ((2, 3, 4), "[:, 1, [2, 3]]"),
    ((2, 3, 4), "[[1], ..., 0]"),
    ((2, 3, 4), "[[[True, False, True], [False, True, True]], 1:3]"),
]


def numpy_index(text):
    """Return the index as NumPy takes it: lists are arrays."""
    key = eval(f"np.s_{text}")
    return tuple(np.array(k) if isinstance(k, list) else k for k in (key if isinstance(key, tuple) else (key,)))


@pytest.mark.parametrize(("shape", "text"), INDICES)
def test_an_index_takes_what_numpys_takes(shape, text):
    x = np.random.default_rng(0).normal(size=(*shape, 3))
    key = numpy_index(text)
    found = evaluate(parse(f"y = x{text}", x=shape), {"x": x})["y"]
    assert_array_equal(found, np.stack([x[..., p][key] for p in range(3)], axis=-1))
    g = np.random.default_rng(1).integers(-9, 9, found.shape).astype(float)
    expected = np.zeros_like(x)
    for p in range(3):
        np.add.at(expected[..., p], key, g[..., p])
    grads = evaluate(vjp(parse(f"y = x{text}", x=shape)), {"x": x, "y.v": g})
    assert_array_equal(grads["x.grad"], expected)


def test_what_is_put_goes_into_any_memory():
    x = leaf((2, 3))
    places = IndexArray.of([[1, 0], [1, 1]])
    graph = Graph.of({"x": x}, {"y": scatter_add(take(x, 1, places), 1, places, 3), "z": take(x, 1, places)})
    points = {"x": np.random.default_rng(0).normal(size=(2, 3, 50))}
    out = {"y": np.full((50, 3, 2), np.nan).T, "z": np.full((2, 2, 50, 2), np.nan).transpose(0, 1, 3, 2)}
    found = Compiled(graph)(points, out)
    for name, value in evaluate(graph, points).items():
        assert found[name] is out[name]
        assert_array_equal(found[name], value)
