"""Whole models: their values are those of `onnx.reference`, and their gradients its central differences."""

import numpy as np
import pytest

from gradcli.engine.evaluate import evaluate
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import sweep
from tests.onnx.builder import central_difference, info, model, node, reference, weights

from gradcli.onnx.model import Model  # isort: skip  (behind what skips where onnx is not installed)


def cnn():
    nodes = [
        node("Conv", "x conv.weight conv.bias", "/conv/out", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "/conv/out", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("Gemm", "f fc.weight fc.bias", "g", transB=1),
        node("Softmax", "g", "probs"),
    ]
    own = weights(0, conv__weight=(2, 1, 3, 3), conv__bias=(2,), fc__weight=(3, 8), fc__bias=(3,))
    return model(nodes, [info("x", ["N", 1, 4, 4])], [info("probs", ["N", 3])], own), {"x": (2, 1, 4, 4)}


def mlp():
    nodes = [node("Gemm", "x w1 b1", "h"), node("Tanh", "h", "a"), node("Gemm", "a w2 b2", "y")]
    own = weights(1, w1=(2, 3), b1=(3,), w2=(3, 1), b2=(1,))
    return model(nodes, [info("x", [4, 2])], [info("y", [4, 1])], own), {"x": (4, 2)}


MODELS = {build.__name__: build for build in (cnn, mlp)}


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
        np.testing.assert_allclose(y[..., 0], wanted, rtol=1e-9, atol=1e-12)
    v = [rng.normal(size=y.shape) for y in expected]
    swept = sweep(graph)
    seeds = {f"{name}.v": w[..., None] for name, w in zip(read.outputs, v, strict=True)}
    grads = evaluate(Graph.of(swept.graph.inputs, dict(swept.gradients)), at | seeds)
    for name in shapes:
        numeric = central_difference(proto, values, name, v)
        np.testing.assert_allclose(grads[name][..., 0], numeric, rtol=1e-5, atol=1e-7)
