"""Functions, losses and normalisations have PyTorch's values and gradients, at ordinary points and at corners."""

import json

import numpy as np
from conftest import each
from numpy.testing import assert_allclose
from pytorch_cases import CASES
from record_pytorch import RECORDED

from gradcli import evaluate, parse, vjp

ROWS = json.loads(RECORDED.read_text(encoding="utf-8"))
# PyTorch takes the 1e-12 below which nothing is divided as a float32; a normalisation's gradient is what sums leave.
TOLERANCES = {"binary_cross_entropy(": (1e-8, 0), "layer_norm(": (1e-12, 1e-12), "batch_norm(": (1e-12, 1e-12)}
TOLERANCES |= dict.fromkeys(("group_norm(", "instance_norm(", "rms_norm("), (1e-12, 1e-12))


def test_what_is_recorded_is_what_is_asked():
    asked = [json.loads(json.dumps(case)) for case in CASES]
    assert repr([[row["expression"], row["at"]] for row in ROWS]) == repr(asked)


@each("row", ROWS)
def test_values_and_gradients_are_pytorchs(row):
    point = {name: np.array(value, dtype=float) for name, value in row["at"].items()}
    graph = parse(f"y = {row['expression']}", **{name: value.shape for name, value in point.items()})
    y = graph.outputs["y"]
    point["y.v"] = (1 + np.arange(y.size) / 4).reshape(y.shape)
    inputs = {name: value[..., None] for name, value in point.items()}
    rtol, atol = next((t for name, t in TOLERANCES.items() if row["expression"].startswith(name)), (1e-12, 1e-15))
    assert_allclose(evaluate(graph, inputs)["y"][..., 0], np.array(row["value"]), rtol, atol)
    grads = evaluate(vjp(graph), inputs)
    for name, wanted in row["grad"].items():
        if f"{name}.grad" in grads:  # what the expression does not read is no leaf
            assert_allclose(grads[f"{name}.grad"][..., 0], np.array(wanted), rtol, atol, err_msg=name)
