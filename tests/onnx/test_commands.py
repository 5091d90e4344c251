"""Models as systems of the commands: `-F model.onnx`."""

import numpy as np
import pytest

from tests.onnx.builder import onnx
from tests.onnx.whole_models import cnn, mlp


@pytest.fixture
def net(tmp_path):
    onnx.save(mlp()[0], tmp_path / "mlp.onnx")
    return str(tmp_path / "mlp.onnx")


@pytest.fixture
def digits(tmp_path):
    onnx.save(cnn()[0], tmp_path / "cnn.onnx")
    return str(tmp_path / "cnn.onnx")


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


def test_a_claim_about_a_model_is_checked(cli, net):
    assert cli("check", "L = sum(y)", "x.grad = v*x", "-F", net, "--shape", "x=4x2").status == 1


def test_an_open_size_is_asked_for(cli, digits):
    error = cli.refused("backward", "-F", digits)
    assert "the shape of the input `x` is open: ?×1×4×4" in error
    assert "--shape x=1x1x4x4" in error


def test_pages_show_weights_by_their_shapes(cli, digits):
    page = cli.done("backward", "-F", digits, "--at", IMAGE, "--v", "onehot:1").out
    assert "fc_weight   = constant, 3×8" in page
