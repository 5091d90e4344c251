"""Elements that are taken, or put, at indices along an axis that the model computes, as routing does."""

import numpy as np
import pytest

from tests.onnx.builder import central_difference, info, model, node, reference, saved, tensor

X = np.random.default_rng(0).normal(size=(3, 4, 2))

TOP = node("TopK", "x two", "w i", axis=1)
NODES = {
    "gather along 1": [TOP, node("Mul", "x x", "s"), node("GatherElements", "s i", "y", axis=1)],
    "gather of fewer rows": [
        node("ArgMax", "x", "i", axis=0, keepdims=1),
        node("Mul", "x x", "s"),
        node("GatherElements", "s i", "y", axis=0),
    ],
    "gather from the end": [
        TOP,
        node("Sub", "i four", "j"),
        node("Exp", "x", "s"),
        node("GatherElements", "s j", "y", axis=-2),
    ],
    "scatter": [
        TOP,
        node("Softmax", "w", "p", axis=1),
        node("Mul", "x x", "s"),
        node("ScatterElements", "s i p", "y", axis=1),
    ],
    "scatter that adds": [TOP, node("Exp", "w", "p"), node("ScatterElements", "x i p", "y", axis=1, reduction="add")],
}


@pytest.mark.parametrize("nodes", NODES.values(), ids=NODES)
def test_computed_indices(nodes, cli, tmp_path):
    numbers = [tensor("two", [2], np.int64), tensor("four", 4, np.int64)]
    proto = model(nodes, [info("x", X.shape)], [info("y", [None] * 3)], numbers)
    (values,) = reference(proto, {"x": X})
    v = np.cos(np.arange(values.size)).reshape(values.shape)
    result = cli.json(
        "backward", "-F", saved(proto, tmp_path), "--at", f"x={X.tolist()}", "--v", f"y={v.tolist()}"
    )  # fmt: skip
    np.testing.assert_allclose(result["value"]["y"], values, rtol=1e-9)
    np.testing.assert_allclose(result["grad"]["x"], central_difference(proto, {"x": X}, "x", [v]), rtol=1e-6, atol=1e-8)


def test_an_infinite_element_is_not_taken_along(cli, tmp_path):
    nodes = [node("ArgMin", "x", "i", axis=1, keepdims=1), node("GatherElements", "x i", "y", axis=1)]
    proto = model(nodes, [info("x", [1, 2])], [info("y", [1, 1])])
    result = cli.json("backward", "-F", saved(proto, tmp_path), "--at", "x=[[inf,2]]")
    assert (result["value"]["y"], result["grad"]["x"]) == ([[2]], [[0, 1]])
