"""Sizes that a model leaves open stay open in the model of its gradients."""

import numpy as np
import pytest
from conftest import some

from tests.onnx.builder import helper, info, model, node, onnx, reference, tensor
from tests.onnx.whole_models import MODELS

OPEN = [
    "cnn", "mlp", "resnet_block", "unet_block", "transformer_encoder", "mobile_block", "temporal_convolutions",
    "volumes", "decoder", "group_normalised", "super_resolution", "attention_by_einsum", "rounds",
]  # fmt: skip


def with_open_batch(proto, size="N"):
    """Return a model whose inputs have that name for their first size."""
    for v in proto.graph.input:
        first = v.type.tensor_type.shape.dim[0]
        first.Clear()
        first.dim_param = size
    for v in proto.graph.output:
        v.type.tensor_type.ClearField("shape")
    return proto


def exported(cli, folder, proto, at, *more):
    """Return the model of values and gradients, and what is said of it."""
    onnx.save(proto, folder / "model.onnx")
    result = folder / "gradient.onnx"
    point = ",".join(f"{n}={x.tolist()}" for n, x in at.items())
    arguments = ("-F", str(folder / "model.onnx"), "--to", "onnx", "--what", "value,vjp", "--dtype", "float64")
    outcome = cli.done("export", *arguments, "--at", point, "--output", str(result), *more)
    return onnx.load(result), outcome.err


def dims(value):
    return [d.dim_param or d.dim_value or None for d in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("name", some(OPEN))
def test_the_batch_of_a_model_stays_open(cli, tmp_path, name):
    proto, shapes = MODELS[name]()
    rng = np.random.default_rng(5)
    at = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    whole, told = exported(cli, tmp_path, with_open_batch(proto), at)
    assert "fixed" not in told
    assert all(dims(v)[0] == "N" for v in whole.graph.input if not v.name.endswith(".v") or dims(v))
    # A batch of another size than any that was tried: the gradient of each row is that of the row alone.
    many = {n: rng.normal(size=(11, *shape[1:])) for n, shape in shapes.items()}
    names = [v.name for v in whole.graph.output]
    seeds = {v.name: v for v in whole.graph.input if v.name.endswith(".v")}
    plain = reference(proto, many)
    v = {f"{o.name}.v": np.ones(y.shape) for o, y in zip(proto.graph.output, plain, strict=True)}
    assert v.keys() == seeds.keys()
    found = dict(zip(names, reference(whole, many | v), strict=True))
    for o, y in zip(proto.graph.output, plain, strict=True):
        np.testing.assert_allclose(found[o.name], y, rtol=1e-4, atol=1e-6)
    if name in ("cnn", "mlp", "resnet_block"):
        one = {n: x[7:8] for n, x in many.items()}
        alone = dict(zip(names, reference(whole, one | {n: a[7:8] for n, a in v.items()}), strict=True))
        for n in shapes:
            np.testing.assert_allclose(found[f"{n}.grad"][7:8], alone[f"{n}.grad"], rtol=1e-6, atol=1e-9)


def mean_of_squares():
    """Two open sizes, a mean over both, and an output of one number."""
    nodes = [node("MatMul", "x w", "h"), node("Mul", "h h", "s"), node("ReduceMean", "s", "loss", keepdims=0)]
    return model(nodes, [info("x", ["N", "T", 2])], [info("loss", [])], [tensor("w", [[1.0, 2], [3, 4]])])


def test_two_sizes_and_a_mean_over_them(cli, tmp_path):
    whole, told = exported(cli, tmp_path, mean_of_squares(), {"x": np.ones((2, 3, 2))})
    assert "fixed" not in told
    assert dims(whole.graph.input[0]) == ["N", "T", 2]
    x = np.random.default_rng(0).normal(size=(7, 5, 2))
    w = np.array([[1.0, 2], [3, 4]])
    loss, grad = reference(whole, {"x": x, "loss.v": np.array(1.0)})
    np.testing.assert_allclose(loss, np.mean((x @ w) ** 2), rtol=1e-12)
    np.testing.assert_allclose(grad, 2 * x @ w @ w.T / (7 * 5 * 2), rtol=1e-12)


def test_a_shape_that_is_given_is_that_of_the_model(cli, tmp_path):
    whole, told = exported(cli, tmp_path, mean_of_squares(), {"x": np.ones((2, 3, 2))}, "--shape", "x=2x3x2")
    assert "fixed" not in told
    assert dims(whole.graph.input[0]) == [2, 3, 2]


def test_a_size_that_the_nodes_depend_on_is_fixed_and_a_note_says_so(cli, tmp_path):
    """The rounds of a recurrence are written one by one."""
    body = helper.make_graph(
        [node("Add", "h x_t", "g"), node("Tanh", "g", "out"), node("Identity", "out", "row")],
        "step",
        [info("h", [2]), info("x_t", [2])],
        [info("out", [2]), info("row", [2])],
    )
    scan = node("Scan", "start x", "end rows", body=body, num_scan_inputs=1)
    proto = model([scan], [info("x", ["T", 2])], [info("rows", ["T", 2])], [tensor("start", [0.0, 0])])
    whole, told = exported(cli, tmp_path, proto, {"x": np.ones((3, 2))})
    assert "the sizes that were open are fixed: T = 3 of `x`" in told
    assert dims(whole.graph.input[0]) == [3, 2]
