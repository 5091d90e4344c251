"""Damaged and hostile files: a clear error at once, bounded memory, and nothing outside of the model's folder."""

import numpy as np
import pytest
from conftest import long

from tests.onnx.builder import TensorProto, helper, info, node, saved, tensor
from tests.onnx.whole_models import mlp


def unchecked(nodes, inputs, outputs, initializers=()):
    """Return a model that nobody has checked."""
    graph = helper.make_graph(nodes, "model", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


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


def in_opset(opset, nodes, initializers=()):
    graph = helper.make_graph(nodes, "model", [info("x", [2, 2, 1], 1)], [info("y", None, 1)], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def test_an_operator_that_an_old_opset_has_in_another_form_is_named_with_the_opset(cli, tmp_path):
    proto = in_opset(4, [node("Reshape", "x", "y", shape=[4])])
    error = cli.refused("backward", "-F", saved(proto, tmp_path), "--at", "x=[[[1],[2]],[[3],[4]]]", "--v", "ones")
    assert "Reshape, node (1 of `model.onnx`): this operator is not supported in opset 4" in error
    assert "`onnx.version_converter.convert_version(model, 13)` converts most models" in error
    from onnx import version_converter

    proto.graph.output[0].type.tensor_type.shape.dim.add(dim_value=4)
    path = saved(version_converter.convert_version(proto, 13), tmp_path)
    assert cli.json("backward", "-F", path, "--at", "x=[[[1],[2]],[[3],[4]]]", "--v", "onehot:1")["grad"]["x"][0][
        1
    ] == [1]


def test_the_second_array_of_an_old_opset_begins_at_an_axis(cli, tmp_path):
    """The axes of b are those of a from `axis` on, and not the last, as they are since opset 7."""
    numbers = [tensor("b", [10, 20], np.float32)]
    path = saved(in_opset(6, [node("Mul", "x b", "y", broadcast=1, axis=1)], numbers), tmp_path)
    found = cli.json("backward", "-F", path, "--at", "x=[[[1],[2]],[[3],[4]]]", "--v", "ones")
    assert found["value"]["y"] == [[[10], [40]], [[30], [80]]]
    assert found["grad"]["x"] == [[[10], [20]], [[10], [20]]]


@pytest.mark.parametrize(
    ("domain", "way_out"), [("com.microsoft", "as it was exported"), ("org.own", "explain models")]
)
def test_an_unknown_operator_is_named_with_its_domain(cli, tmp_path, domain, way_out):
    nodes = [helper.make_node("Conv", ["x"], ["y"], domain=domain)]
    graph = helper.make_graph(nodes, "model", [X], [Y])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    error = refused(cli, helper.make_model(graph, opset_imports=opsets), tmp_path)
    assert f"`{domain}` is not supported" in error
    assert way_out in error


def test_a_negative_size_of_an_input_is_open(cli, tmp_path):
    path = saved(unchecked([node("Exp", "x", "y")], [info("x", [-1])], [info("y", [-1])]), tmp_path)
    assert "the shape of the input `x` is open" in cli.refused("backward", "-F", path)
    assert cli.json("backward", "-F", path, "--at", "x=[0,0]", "--v", "ones")["grad"] == {"x": [1, 1]}


def test_an_input_of_integers_has_integers(cli, tmp_path):
    proto = unchecked([node("Gather", "x z", "y", axis=0)], [X, info("z", [], TensorProto.INT64)], [Y])
    path = saved(proto, tmp_path)
    for value in ("1e300", "0.5", "nan"):
        error = cli.refused("backward", "-F", path, "--at", f"x=[1,2],z={value}", "--v", "ones")
        assert "the input `z` is of int64, and its value is not" in error
    assert cli.json("backward", "-F", path, "--at", "x=[1,2],z=1", "--v", "ones")["grad"] == {"x": [0, 1]}


def axes(*numbers):
    return helper.make_tensor("axes", TensorProto.INT64, [len(numbers)], numbers)


WRONG = {
    "an axis is added twice: (0, 0)": (node("Unsqueeze", "x axes", "y"), [axes(0, 0)]),
    "cannot be split into blocks of 0×0": (node("DepthToSpace", "x", "y", blocksize=0), []),
    "pixels cannot be split into blocks of 0×0": (node("SpaceToDepth", "x", "y", blocksize=0), []),
    "is not split into -1 parts, of which 1 have names": (node("Split", "x", "y", num_outputs=-1), []),
    "its attribute `blocksize` is missing": (node("DepthToSpace", "x", "y"), []),
    "there is no window of 0 channels": (node("LRN", "x", "y", size=0), []),
    "negative pads are not supported": (node("MaxPool", "x", "y", kernel_shape=[1, 1], pads=[-1, 0, 0, 0]), []),
    "updates of shape (1, 4, 2, 2) do not fit": (node("ScatterND", "x axes x", "y"), [axes(0)]),
    "its attribute `block` is not supported": (node("Relu", "x", "y", block=1), []),
}


@pytest.mark.parametrize("message", WRONG)
def test_attributes_that_no_operator_can_have(cli, tmp_path, message):
    wrong, initializers = WRONG[message]
    path = saved(unchecked([wrong], [info("x", [1, 4, 2, 2])], [info("y", None)], initializers), tmp_path)
    assert message in cli.refused("backward", "-F", path, "--shape", "x=1x4x2x2", "--v", "ones")


def loop(body, count="n"):
    """Return a loop that only runs its body."""
    graph = helper.make_graph(
        [*body, node("Identity", "go", "goes"), node("Identity", "h", "next")],
        "round",
        [info("i", [], 7), info("go", [], 9), info("h", [2])],
        [info("goes", [], 9), info("next", [2])],
    )
    return node("Loop", f"{count} yes x", "y", body=graph)


def test_all_constants_together_are_bounded(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("gradcli.onnx.translate.MAX_BYTES", 2**20)
    size = helper.make_tensor("n", TensorProto.INT64, [1], [2**15])
    one = helper.make_tensor("one", TensorProto.INT64, [1], [0])
    many = [node("ConstantOfShape", "n", f"c{k}") for k in range(8)] + [node("Exp", f"c{k}", f"e{k}") for k in range(8)]
    ends = [node("Slice", f"e{k} one last", f"s{k}") for k in range(8)]
    total = node("Sum", "x " + " ".join(f"s{k}" for k in range(8)), "y")
    last = helper.make_tensor("last", TensorProto.INT64, [1], [2])
    error = refused(cli, unchecked([*many, *ends, total], [X], [Y], [size, one, last]), tmp_path)
    assert "the constants that the model computes have more than 1 MiB" in error
