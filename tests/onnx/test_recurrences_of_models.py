"""Loops of models on a page: `Loop`, `Scan`, and the rounds that an exporter wrote one by one, are recurrences."""

import re

import numpy as np
import pytest

from tests.onnx.builder import TensorProto, helper, info, model, node, onnx, reference, saved, tensor

ROUNDS = 30
RNG = np.random.default_rng(5)
W, U = 0.4 * RNG.normal(size=(3, 3)), 0.4 * RNG.normal(size=(2, 3))
X = RNG.normal(size=(ROUNDS, 1, 2)).round(2)
WEIGHTS = [tensor("W", W), tensor("U", U), tensor("h0", np.zeros((1, 3)))]
STEP = [node("MatMul", "h W", "hw"), node("MatMul", "xk U", "xu"), node("Add", "hw xu", "z"), node("Tanh", "z", "out")]


def at_x(proto, folder):
    """Return the arguments that read a model at x."""
    np.save(folder / "x.npy", X)
    return "-F", saved(proto, folder), "--at", f"x=@{folder / 'x.npy'}"


def whole(nodes, initializers):
    return model(nodes, [info("x", X.shape)], [info("y", ())], initializers)


def written_out():
    """Return the model as PyTorch exports a Python loop: /Tanh_output_0, /Tanh_1_output_0, …."""
    nodes, weights, h = [], [*WEIGHTS], "h0"
    for k in range(ROUNDS):
        names = {op: f"/{op}{f'_{k}' * (k > 0)}_output_0" for op in ("Constant", "Gather", "H", "X", "Add", "Tanh")}
        weights.append(tensor(names["Constant"], k, np.int64))
        nodes += [
            node("Gather", f"x {names['Constant']}", names["Gather"], axis=0),
            node("MatMul", f"{h} W", names["H"]),
            node("MatMul", f"{names['Gather']} U", names["X"]),
            node("Add", f"{names['H']} {names['X']}", names["Add"]),
            node("Tanh", names["Add"], names["Tanh"]),
        ]
        h = names["Tanh"]
    return whole([*nodes, node("ReduceSum", h, "y", keepdims=0)], weights)


def loop():
    body = helper.make_graph(
        [node("Gather", "x k", "xk", axis=0), *STEP, node("Identity", "go", "goes")],
        "round",
        [info("k", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("h", (1, 3))],
        [info("goes", (), TensorProto.BOOL), info("out", (1, 3))],
    )
    counts = [tensor("n", ROUNDS, np.int64), tensor("yes", True, np.bool_)]
    nodes = [node("Loop", "n yes h0", "end", body=body), node("ReduceSum", "end", "y", keepdims=0)]
    return whole(nodes, [*WEIGHTS, *counts])


def scan():
    body = helper.make_graph(
        [*STEP, node("Identity", "out", "row")],
        "step",
        [info("h", (1, 3)), info("xk", (1, 2))],
        [info("out", (1, 3)), info("row", (1, 3))],
    )
    nodes = [node("Scan", "h0 x", "end rows", body=body, num_scan_inputs=1)]
    return whole([*nodes, node("ReduceSum", "rows", "y", keepdims=0)], WEIGHTS)


STATEMENTS = {
    written_out: ("Gather[t-1] = x[t]", "H[t] = Tanh[t-1] @ W", "Add[t] = H[t] + X[t-1]", "Tanh[t] = tanh(Add[t])"),
    loop: ("xk[t-1] = x[t]", "xu[t-1] = xk[t-1] @ U", "z[t] = hw[t] + xu[t-1]", "out[t] = tanh(z[t])"),
    scan: ("xu[t-1] = x[t] @ U", "hw[t] = out[t-1] @ W", "z[t] = hw[t] + xu[t-1]", "out[t] = tanh(z[t])"),
}


@pytest.mark.parametrize("made", STATEMENTS)
def test_a_loop_of_a_model_is_a_recurrence_with_the_numbers_of_the_model(cli, tmp_path, made):
    proto = made()
    read = at_x(proto, tmp_path)
    out = cli.done("backward", *read).out
    text = " ".join(out.split())
    for statement in STATEMENTS[made]:
        assert f"{statement} for t in 1..{ROUNDS - 1}" in text
    (y,) = reference(proto, {"x": X})
    assert re.search(rf"^y +=.*= {y:.6g}$", out, re.MULTILINE)
    assert "h̄N" not in out
    assert not re.search(r"_\d+_output", out)


def test_statements_about_a_model_are_no_rounds_of_it(cli, tmp_path):
    read = at_x(loop(), tmp_path)
    more = [f"z{k} = {'y' if k == 1 else f'z{k - 1}'}**2" for k in range(1, 6)]
    out = cli.done("backward", *more, *read, "--only", "system").out
    assert [f"z{k}" in out for k in range(1, 6)] == [True] * 5
    assert "out[t]" in out


def test_unrolled_each_round_of_a_model_is_written(cli, tmp_path):
    read = at_x(loop(), tmp_path)
    out = cli.done("backward", *read, "--only", "system", "--unroll").out
    assert " for t in " not in out
    assert [f"x[{k}] @" in " ".join(out.split()) for k in range(ROUNDS)] == [True] * ROUNDS


def test_an_entry_that_would_be_a_number_alone_is_left_out(cli, tmp_path):
    nodes, last = [], "x"
    for k in range(0, 250, 2):
        nodes += [node("Mul", f"{last} w", f"t{k}"), node("Sin", f"t{k}", f"t{k + 1}")]
        last = f"t{k + 1}"
    inputs = [info("x", (3,)), info("w", (3,))]
    onnx.save(model([*nodes, node("Identity", last, "y")], inputs, [info("y", (3,))]), tmp_path / "m.onnx")
    asked = ("backward", "-F", str(tmp_path / "m.onnx"), "L = sum(y**2)", "--at", "x=[1,2,3],w=[1,1,1]")
    assert "x.grad[" not in cli.done(*asked, "--only", "grad").out


@pytest.mark.parametrize("made", STATEMENTS)
def test_a_picture_has_the_loop_of_a_model_as_one_box(cli, tmp_path, made):
    read = at_x(made(), tmp_path)
    out = cli.done("graph", *read).out
    assert "↻ loop" in out
    assert f"{STATEMENTS[made][-1]} for t in 1..{ROUNDS - 1}" in " ".join(out.split())
