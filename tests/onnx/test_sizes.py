"""Sizes that a model computes from shapes are numbers while it is read, whatever operators compute them."""

import numpy as np
from conftest import each

from tests.onnx.builder import TensorProto, helper, info, model, node, reference, saved

X = np.arange(1.0, 13).reshape(2, 6)

# What computes `k`, a size that the array of 12 numbers gets, from `n`, the scalar 6 that `Gather` takes of its shape.
COMPUTED = {
    "Div": ("n two", 3), "Mul": ("n two", 12), "Sub": ("n two", 4), "Mod": ("n four", 2), "Min": ("n four", 4),
    "Max": ("two four", 4), "Add": ("two four", 6), "Sum": ("two two", 4), "Identity": ("n", 6), "Pow": ("two two", 4),
    "Where": ("yes n four", 6), "Abs": ("n", 6), "Clip": ("n two four", 4),
}  # fmt: skip
ROUNDED = {"Floor": 1, "Ceil": 2, "Round": 2, "Identity": 1}  # of 6/4, before the cast to an integer

COUNTED = [node("NonZero", "g", "at"), node("Size", "at", "k")]


def constants():
    whole = {"one": 1, "two": 2, "four": 4, "zero": 0}
    numbers = [helper.make_tensor(name, TensorProto.INT64, [], [value]) for name, value in whole.items()]
    return [
        *numbers,
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
        helper.make_tensor("float4", TensorProto.FLOAT, [], [4.0]),
        helper.make_tensor("rest", TensorProto.INT64, [1], [-1]),
        helper.make_tensor("front", TensorProto.INT64, [1], [0]),
    ]


def reshaped(nodes):
    """Return a model that gives `x` the shape (k, -1), where nodes compute `k`."""
    begin = [node("Shape", "x", "s"), node("Gather", "s one", "n", axis=0)]
    end = [
        node("Unsqueeze", "k front", "ks"),
        node("Concat", "ks rest", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    return model([*begin, *nodes, *end], [info("x", ["rows", "columns"])], [info("y", ["k", "m"])], constants(), 18)


def gradient(cli, folder, proto):
    """Return the shape of the value and the gradient of the sum."""
    found = cli.json("backward", "-F", saved(proto, folder), "--at", f"x={X.tolist()}", "--v", "ones")
    return np.shape(found["value"]["y"]), found["grad"]["x"]


def checked(cli, folder, nodes, size):
    proto = reshaped(nodes)
    (wanted,) = reference(proto, {"x": X})
    assert wanted.shape == (size, 12 // size)
    assert gradient(cli, folder, proto) == (wanted.shape, np.ones(X.shape).tolist())


@each(("op", "names", "size"), [(op, names, size) for op, (names, size) in COMPUTED.items()])
def test_integers_computed_from_a_shape(cli, tmp_path, op, names, size):
    checked(cli, tmp_path, [node(op, names, "k")], size)


@each(("op", "size"), ROUNDED.items())
def test_real_numbers_computed_from_a_shape(cli, tmp_path, op, size):
    nodes = [
        node("Cast", "n", "f", to=TensorProto.FLOAT),
        node("Div", "f float4", "q"),
        node(op, "q", "r"),
        node("Cast", "r", "k", to=TensorProto.INT64),
    ]
    checked(cli, tmp_path, nodes, size)


@each(
    ("nodes", "size"),
    [
        ([node("ReduceProd", "s", "k", keepdims=0)], 12),
        ([node("ReduceMin", "s", "k", keepdims=0)], 2),
        ([node("CumSum", "s zero", "c"), node("Gather", "c zero", "k", axis=0)], 2),
        ([node("Size", "x", "e"), node("Div", "e four", "k")], 3),
        ([node("Equal", "n two", "same"), node("Where", "same one four", "k")], 4),
        ([node("Range", "zero n two", "r"), node("Size", "r", "k")], 3),
        ([node("Cast", "n", "f", to=1), node("Sqrt", "f", "r"), node("Cast", "r", "k", to=7)], 2),
        ([node("Range", "zero n one", "r"), node("Greater", "r two", "g"), *COUNTED], 3),
    ],
)  # fmt: skip
def test_arrays_computed_from_a_shape(cli, tmp_path, nodes, size):
    checked(cli, tmp_path, nodes, size)


def test_what_depends_on_an_input_is_no_size(cli, tmp_path):
    nodes = [node("ReduceSum", "x", "t", keepdims=0), node("Cast", "t", "k", to=TensorProto.INT64)]
    error = cli.refused("backward", "-F", saved(reshaped(nodes), tmp_path), "--at", f"x={X.tolist()}", "--v", "ones")
    assert "its input `shape` depends on values of the model's inputs" in error
