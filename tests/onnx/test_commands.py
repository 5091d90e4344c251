"""Models as systems of the commands: `-F model.onnx`."""

import json

import numpy as np
import pytest

from tests.onnx.builder import TensorProto, helper, info, model, node, onnx, saved, tensor
from tests.onnx.whole_models import cnn, mlp


@pytest.fixture
def net(tmp_path):
    return saved(mlp()[0], tmp_path)


@pytest.fixture
def digits(tmp_path):
    return saved(cnn()[0], tmp_path)


X = "x=[[1,2],[0.5,-1],[0,0.25],[3,1]]"


IMAGE = "x=[[[[1,2,3,4],[1,0,1,0],[1,1,1,1],[2,0,0,2]]]]"


def test_jvp_is_backward_from_the_other_side(cli, net):
    grad = cli.json("backward", "-F", net, "--at", X, "--v", "ones")["grad"]["x"]
    moved = cli.json("jvp", "-F", net, "--at", X, "--u", "x=[[1,2],[3,4],[5,6],[7,8]]")["jvp"]["y"]
    np.testing.assert_allclose(np.sum(moved), np.sum(np.array(grad) * np.arange(1, 9).reshape(4, 2)))


def test_a_weight_is_an_input_where_wrt_names_it(cli, digits):
    result = cli.json("backward", "-F", digits, "--at", IMAGE, "--v", "onehot:1", "--wrt", "fc.bias")
    assert [*result["grad"]] == ["fc_bias"]
    p = np.array(result["value"]["probs"][0])
    np.testing.assert_allclose(result["grad"]["fc_bias"], p[1] * (np.eye(3)[1] - p))


def test_statements_go_on_with_what_a_model_computes(cli, net):
    whole = cli.json("backward", "L = sum(y**2)", "-F", net, "--at", X)
    y = np.array(cli.json("jvp", "-F", net, "--at", X, "--u", "x=zeros(4, 2)")["value"]["y"])
    np.testing.assert_allclose(whole["value"]["L"], (y**2).sum())


def test_an_open_size_is_asked_for(cli, digits):
    error = cli.refused("backward", "-F", digits)
    assert "the shape of the input `x` is open: ?×1×4×4" in error
    assert "--shape x=1x1x4x4" in error


OWN = "onnx::Gemm_0", "input.1", "dense/out:0"  # as exporters of PyTorch and of TensorFlow write them


@pytest.fixture
def named(tmp_path):
    """A model whose names no formula can have; `input_1` would be the identifier of two of them."""
    nodes = [helper.make_node("Mul", [OWN[0], OWN[1]], ["a.b"]), helper.make_node("Mul", ["a.b", "input_1"], [OWN[2]])]
    inputs = [info(OWN[0], [2]), info(OWN[1], ["n"]), info("input_1", [2])]
    return saved(model(nodes, inputs, [info(OWN[2], [2])]), tmp_path)


AT = "onnx::Gemm_0=[2,3], input.1[0]=5,input.1[1]=7;input_1=[11,13]"
POINT = {"onnx::Gemm_0": [2, 3], "input.1": [5, 7], "input_1": [11, 13]}


def test_own_names_stand_wherever_a_name_does(cli, named, tmp_path):
    (tmp_path / "at.json").write_text(json.dumps(POINT))
    at = AT.replace(";", ",")
    for given in (at, f"@{tmp_path / 'at.json'}", json.dumps(POINT)):
        stdin, given = (given, "@-") if given[0] == "{" else ("", given)
        found = cli.json("backward", "-F", named, "--at", given, "--v", "ones", stdin=stdin)
        grad = {"onnx__Gemm_0": [55, 91], "input_1": [10, 21], "input_1_2": [22, 39]}
        assert found["grad"] == grad
    assert cli.json("backward", "-F", named, "--at", json_of(found["at"], tmp_path), "--v", "ones")["grad"] == grad
    one = cli.json("backward", "-F", named, "--at", at, "--v", "onehot:dense/out:0[1]", "--wrt", "input.1,onnx::Gemm_0")
    assert one["grad"] == {"input_1_2": [0, 39], "onnx__Gemm_0": [0, 91]}
    kept = cli.json("backward", "-F", named, "--at", at, "--v", "dense/out:0=[1,2]", "--retain", "a.b")
    assert kept["retained"] == {"a_b": [11, 26]}
    moved = cli.json("jvp", "-F", named, "--at", at, "--u", "input.1=[1,0],input_1=[0,0],onnx::Gemm_0=[0,0]")
    assert moved["jvp"] == {"dense_out_0": [22, 0]}
    shaped = ("jacobian", "-F", named, "--shape", "input.1=2", "--outputs", "a.b")
    assert [*cli.json(*shaped)["rows"]] == ["a_b[0]", "a_b[1]"]


def json_of(point, folder):
    (folder / "again.json").write_text(json.dumps(point))
    return f"@{folder / 'again.json'}"


def test_own_names_are_forgotten_when_another_command_begins(cli, named):
    assert cli("backward", "-F", named, "--at", AT.replace(";", ","), "--v", "ones").status == 0
    assert "`input.1` is not a name" in cli.refused("backward", "y = x**2", "--at", "input.1=3")


def test_a_page_shows_constants_that_the_model_computes_by_their_names(cli, tmp_path):
    nodes = [node("Exp", "w", "e"), node("Transpose", "e", "t", perm=[1, 0]), node("MatMul", "x t", "y")]
    path = saved(model(nodes, [info("x", [1, 5])], [info("y", [1, 5])], [tensor("w", np.eye(5))]), tmp_path)
    page = cli.done("backward", "-F", path, "--at", "x=[[1,2,3,4,5]]", "--v", "ones").out
    assert "t = constant, 5×5" in page
    assert "y = x @ t" in page


def test_a_model_of_integers_alone_is_differentiated_by_its_weights(cli, tmp_path):
    nodes = [node("Gather", "w ids", "y", axis=0)]
    ids = info("ids", [2], TensorProto.INT64)
    path = saved(model(nodes, [ids], [info("y", [2])], [tensor("w", [1.0, 2, 3])]), tmp_path)
    error = cli.refused("backward", "-F", path, "--at", "ids=[2,0]", "--v", "ones")
    assert "`ids` holds integers, which have no derivative: --wrt NAME" in error
    grad = cli.json("backward", "-F", path, "--at", "ids=[2,0]", "--v", "1,10", "--wrt", "w")["grad"]
    assert grad == {"w": [10, 0, 1]}


def test_a_name_of_a_layer_is_answered_with_its_weights(cli, digits):
    command = "backward", "-F", digits, "--at", IMAGE, "--v", "onehot:1", "--wrt"
    assert "the weights of fc are fc.weight, fc.bias\n" in cli.refused(*command, "fc")
    assert "the inputs and weights are x, " in cli.refused(*command, "qqq")


def test_a_result_that_nothing_uses_is_no_part_of_the_system(cli, tmp_path):
    """ONNX's `LayerNormalization` also gives the mean and the deviation, which most models leave out."""
    nodes = [node("LayerNormalization", "x s", "y", axis=-1)]
    onnx.save(
        model(nodes, [info("x", (2, 3))], [info("y", (2, 3))], [tensor("s", [1.0, 1.0, 1.0])]), tmp_path / "n.onnx"
    )
    at, v = np.array([[1.0, 2.0, 4.0], [0.1, -3.0, 2.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    found = cli.json("backward", "-F", str(tmp_path / "n.onnx"), "--at", f"x={at.tolist()}", "--v", str(v.tolist()))

    def loss(x):
        return np.sum(v * (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5))

    steps = 1e-6 * np.eye(6).reshape(6, 2, 3)
    slopes = [(loss(at + s) - loss(at - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(np.ravel(found["grad"]["x"]), slopes, atol=1e-6)
