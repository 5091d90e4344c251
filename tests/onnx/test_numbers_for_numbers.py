"""`LabelEncoder` of numbers, and `Imputer` behind powers that are nan where another branch is meant."""

import numpy as np
import pytest

from tests.onnx.builder import central_difference, info, model, node, onnx, reference, saved, tensor

ML = "ai.onnx.ml"


@pytest.mark.parametrize(
    "attributes",
    [
        {"keys_int64s": [2, 5, 7], "values_floats": [0.5, -3.0, 8.0]},
        {"keys_floats": [2.0, 5.0, 7.0], "values_floats": [0.5, -3.0, 8.0], "default_float": 4.0},
        {"keys_int64s": [2, 5, 7], "values_int64s": [10, 20, 30]},
    ],
    ids=["default 0", "default 4", "integers: default -1"],
)
def test_a_table_of_numbers(attributes, cli, tmp_path):
    """scikit-learn's isolation forest looks up the depth of a leaf so."""
    key = onnx.TensorProto.INT64 if "keys_int64s" in attributes else onnx.TensorProto.FLOAT
    nodes = [
        node("Cast", "x", "k", to=key),
        node("LabelEncoder", "k", "t", domain=ML, **attributes),
        node("Cast", "t", "f", to=onnx.TensorProto.DOUBLE),
        node("Mul", "f x", "y"),
    ]
    proto = model(nodes, [info("x", [2, 2])], [info("y", [2, 2])], domains=[(ML, 2)])
    x = np.array([[2.0, 7.0], [5.0, 3.0]])
    result = cli.json("backward", "-F", saved(proto, tmp_path), "--at", f"x={x.tolist()}", "--v", "ones")
    (values,) = reference(proto, {"x": x})
    np.testing.assert_array_equal(result["value"]["y"], values)
    np.testing.assert_array_equal(result["grad"]["x"], values / x)  # the table itself is constant between its keys


def test_a_table_of_text_is_refused(cli, tmp_path):
    nodes = [
        node("Cast", "x", "k", to=onnx.TensorProto.INT64),
        node("LabelEncoder", "k", "t", domain=ML, keys_int64s=[1], values_strings=["a"]),
        node("LabelEncoder", "t", "y", domain=ML, keys_strings=["a"], values_floats=[2.0]),
    ]
    proto = model(nodes, [info("x", [2])], [info("y", [2], onnx.TensorProto.FLOAT)], domains=[(ML, 2)])
    assert "it computes with text" in cli.refused("backward", "-F", saved(proto, tmp_path), "--at", "x=[1,2]")


def test_what_is_filled_in_has_the_slope_0(cli, tmp_path):
    """Both branches are computed everywhere: sqrt(x) and log(1-x)**1.5 are nan where the other one is meant."""
    fill = {"domain": ML, "imputed_value_floats": [0.0], "replaced_value_float": float("nan")}
    nodes = [
        node("Neg", "x", "m"), node("Sqrt", "x", "s"), node("Add", "one m", "o"), node("Log", "o", "l"),
        node("Pow", "l p", "w"), node("Imputer", "s", "s2", **fill), node("Imputer", "w", "w2", **fill),
        node("Mul", "s2 x", "sx"), node("Add", "sx w2", "y"), node("Log", "y", "z0"),
        node("Imputer", "z0", "z", **fill),
    ]  # fmt: skip
    numbers = [tensor("one", 1.0), tensor("p", 1.5)]
    proto = model(nodes, [info("x", [1, 4])], [info("z", [1, 4])], numbers, domains=[(ML, 3)])
    x = np.array([[0.5, -2.0, -0.25, 3.0]])
    result = cli.json("backward", "-F", saved(proto, tmp_path), "--at", f"x={x.tolist()}", "--v", "ones")
    with np.errstate(invalid="ignore"):
        (values,) = reference(proto, {"x": x})
        expected = central_difference(proto, {"x": x}, "x", [np.ones((1, 4))])
    np.testing.assert_allclose(result["value"]["z"], values, rtol=1e-6)
    np.testing.assert_allclose(result["grad"]["x"], expected, rtol=1e-6)
