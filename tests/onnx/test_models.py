"""Whole models: their values are those of `onnx.reference`, and their gradients the central differences of the values.

The reference itself cannot be differenced: it rounds what is inside of a normalization to float32.
"""

import numpy as np
import pytest

from gradcli.engine.evaluate import evaluate
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import sweep
from tests.onnx.builder import reference
from tests.onnx.whole_models import MODELS

from gradcli.onnx.model import Model  # isort: skip  (behind what skips where onnx is not installed)

STEP = 1e-5


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_values_and_gradients(build):
    proto, shapes = build()
    rng = np.random.default_rng(7)
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    read = Model(proto, "model.onnx")
    leaves = {name: leaf(shape) for name, shape in shapes.items()}
    nodes = read.build(leaves, {})
    graph = Graph.of(leaves, {name: nodes[name] for name in read.outputs})
    at = {name: value[..., None] for name, value in values.items()}
    expected = reference(proto, values)
    got = evaluate(graph, at)
    for y, wanted in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(y[..., 0], wanted, rtol=1e-6, atol=1e-9)
    v = [rng.normal(size=y.shape) for y in expected]
    swept = sweep(graph)
    seeds = {f"{name}.v": w[..., None] for name, w in zip(read.outputs, v, strict=True)}
    grads = evaluate(Graph.of(swept.graph.inputs, dict(swept.gradients)), at | seeds)
    for name, value in values.items():
        moved = value[..., None] + STEP * np.eye(value.size).reshape(*value.shape, -1)
        back = value[..., None] - STEP * np.eye(value.size).reshape(*value.shape, -1)
        ends = [evaluate(graph, at | {name: x}) for x in (moved, back)]
        slopes = [(a - b) / (2 * STEP) for a, b in zip(*(e.values() for e in ends), strict=True)]
        numeric = sum((w[..., None] * s).reshape(-1, value.size).sum(axis=0) for w, s in zip(v, slopes, strict=True))
        np.testing.assert_allclose(grads[name].reshape(-1), numeric, rtol=1e-5, atol=1e-7)
