"""Damaged and hostile files: a clear error at once, bounded memory, and nothing outside of the model's folder."""

import numpy as np
import pytest
from conftest import long

from tests.onnx.builder import TensorProto, helper, info, node, tensor
from tests.onnx.whole_models import mlp


def unchecked(nodes, inputs, outputs, initializers=()):
    """Return a model that nobody has checked."""
    graph = helper.make_graph(nodes, "model", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def saved(proto, folder):
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def refused(cli, proto, folder):
    """Return the error for a model that `backward` reads."""
    return cli.refused("backward", "-F", saved(proto, folder), "--at", "x=[1,2]", "--v", "ones")


X, Y = info("x", [2]), info("y", [2])


def external(location, shape=(2,), **facts):
    """Return a model with a tensor whose numbers are in another file."""
    outside = TensorProto(name="w", data_type=TensorProto.DOUBLE, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **facts}.items():
        outside.external_data.add(key=key, value=str(value))
    return unchecked([node("Mul", "x w", "y")], [X], [Y], [outside])


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../secret", "..\\secret", "", "nul\0"])
def test_external_data_are_read_from_the_folder_alone(cli, tmp_path, location):
    (tmp_path / "models").mkdir()
    np.array([3.0, 4.0]).tofile(tmp_path / "secret")
    error = cli.refused(
        "backward", "-F", saved(external(location), tmp_path / "models"), "--at", "x=[1,2]", "--v", "ones"
    )
    assert "`w`" in error
    assert "folder" in error


def test_a_link_out_of_the_folder_is_not_followed(cli, tmp_path):
    (tmp_path / "models").mkdir()
    np.array([3.0, 4.0]).tofile(tmp_path / "secret")
    try:
        (tmp_path / "models" / "w").symlink_to(tmp_path / "secret")
    except OSError:
        pytest.skip("links need a permission here")
    error = refused(cli, external("w"), tmp_path / "models")
    assert "folder" in error


def test_external_data_are_mapped_from_their_offset(cli, tmp_path):
    np.array([9.0, 3.0, 4.0]).tofile(tmp_path / "w")
    path = saved(external("w", offset=8, length=16), tmp_path)
    assert cli.json("backward", "-F", path, "--at", "x=[1,2]", "--v", "ones")["grad"] == {"x": [3, 4]}


@pytest.mark.parametrize(
    ("shape", "facts"), [((2,), {"offset": 16}), ((2,), {"offset": -8}), ((2**31, 2**20), {}), ((2,), {"offset": "x"})]
)
def test_external_data_that_are_not_there(cli, tmp_path, shape, facts):
    np.array([9.0, 3.0, 4.0]).tofile(tmp_path / "w")
    error = cli.refused(
        "backward", "-F", saved(external("w", shape, **facts), tmp_path), "--at", "x=[1,2]", "--v", "ones"
    )
    assert "`w`" in error


@pytest.mark.parametrize("cut", [1, 20, 100, -10])
def test_a_file_that_is_cut_off(cli, tmp_path, cut):
    path = tmp_path / "model.onnx"
    path.write_bytes(mlp()[0].SerializeToString()[:cut])
    error = cli.refused("backward", "-F", str(path))
    assert "is not an ONNX model, or it is cut off" in error or "never computed" in error


def test_random_bytes_are_no_model(cli, tmp_path):
    rng = np.random.default_rng(0)
    whole = mlp()[0].SerializeToString()
    for _ in range(40):
        damaged = bytearray(whole)
        for k in rng.integers(0, len(whole), 4):
            damaged[k] = rng.integers(0, 256)
        path = tmp_path / "model.onnx"
        path.write_bytes(damaged)
        outcome = cli("backward", "-F", str(path), "--shape", "x=4x2", "-f", "json")
        assert outcome.status in (0, 2)
        assert "a fault of gradcli" not in outcome.err


def test_a_cycle_names_the_node(cli, tmp_path):
    path = saved(
        unchecked([node("Add", "x b", "a"), node("Neg", "a", "b"), node("Add", "a b", "y")], [X], [Y]), tmp_path
    )
    error = cli.refused("backward", "-F", path, "--v", "ones")
    assert "Add, node (1 of" in error
    assert "its input `b` is not computed before it" in error


def test_shapes_that_do_not_fit_name_the_node(cli, tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/fc/MatMul")]
    proto = unchecked(nodes, [X], [Y], [tensor("w", np.ones((3, 2)))])
    error = refused(cli, proto, tmp_path)
    assert "MatMul, node `/fc/MatMul` (1 of" in error


def test_an_array_of_gigabytes_is_not_made(cli, tmp_path):
    size = helper.make_tensor("n", TensorProto.INT64, [2], [2**20, 2**20])
    nodes = [node("Expand", "one n", "big"), node("Add", "x big", "y")]
    proto = unchecked(nodes, [X], [Y], [size, tensor("one", 1.0)])
    assert "Expand" in refused(cli, proto, tmp_path)


@long
def test_a_loop_without_an_end_is_an_error(cli, tmp_path):
    body = helper.make_graph(
        [node("Identity", "go", "goes"), node("Neg", "h", "next")],
        "round",
        [info("i", [], 7), info("go", [], 9), info("h", [2])],
        [info("goes", [], 9), info("next", [2])],
    )
    rounds = helper.make_tensor("n", TensorProto.INT64, [], [2**62])
    true = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    proto = unchecked([node("Loop", "n yes x", "y", body=body)], [X], [Y], [rounds, true])
    assert "a loop of more than 10,000 rounds" in refused(cli, proto, tmp_path)


@pytest.mark.parametrize(
    ("op", "names"),
    [("QuantizeLinear", "x s z"), ("RandomNormalLike", "x"), ("SequenceConstruct", "x"), ("Nothing", "x")],
)
def test_what_is_not_supported_names_operator_and_node(cli, tmp_path, op, names):
    nodes = [helper.make_node(op, names.split(), ["h"], name="/layer/it"), node("Add", "x h", "y")]
    own = [tensor("s", 1.0), tensor("z", 0.0)]
    error = refused(cli, unchecked(nodes, [X], [Y], own), tmp_path)
    assert f"{op}, node `/layer/it` (1 of" in error
    assert "\n" in error.strip()  # what to do
