"""Products of large arrays that both vary from point to point: BLAS for each point alone, with one point's numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import parse
from gradcli.engine.compiled import Compiled
from gradcli.engine.evaluate import at_points
from gradcli.graph.vjp import vjp

SHAPES = {"a": (40, 30), "b": (30, 40)}
TEXTS = {"a @ b": lambda a, b: a @ b, 'einsum("ij,jk->ki", a, b)': lambda a, b: (a @ b).T}


@pytest.mark.parametrize("text", TEXTS)
def test_a_point_has_its_numbers_among_others(text):
    random = np.random.default_rng(1)
    points = [{n: random.normal(size=s) for n, s in SHAPES.items()} for _ in range(3)]
    system = parse(f"Y = {text}", **SHAPES)
    graph = vjp(system)
    points = [p | {"Y.v": random.normal(size=(40, 40))} for p in points]
    outputs = list(graph.outputs.values())
    many = list(at_points(graph, points, outputs))
    alone = [next(at_points(graph, [p], outputs)) for p in points]
    stacked = {n: np.stack([p[n] for p in points], axis=-1) for n in points[0]}
    compiled = Compiled(graph)(stacked)
    for k, point in enumerate(points):
        for name, node in graph.outputs.items():
            assert_array_equal(many[k][node], alone[k][node])
            assert_array_equal(compiled[name][..., k], alone[k][node])
        v = point["Y.v"] if text == "a @ b" else point["Y.v"].T
        assert_allclose(alone[k][graph.outputs["a.grad"]], v @ point["b"].T, rtol=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_matrices(text):
    random = np.random.default_rng(2)
    point = {n: random.normal(size=s) for n, s in SHAPES.items()}
    graph = parse(f"Y = {text}", **SHAPES)
    value = next(at_points(graph, [point], [graph.outputs["Y"]]))[graph.outputs["Y"]]
    assert_allclose(value, TEXTS[text](**point), rtol=1e-12)
