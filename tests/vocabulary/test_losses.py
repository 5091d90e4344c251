"""Losses and normalisations: what they refuse, and what they say that PyTorch cannot be asked."""

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_allclose

from gradcli import InputError, evaluate, numeric_jacobian, parse, symbolic_jacobian, vjp
from gradcli.graph.sparsity import dependencies

SCORES = np.array([[1.0, -0.5, 2.0], [0.25, 3.0, -1.0]])

MISTAKES = {
    "mse_loss(x, z, reduction='some')": "'mean', 'sum' or 'none'",
    "mse_loss(x, z, reduction=sum)": "a word in quotes",
    "mse_loss(x)": "is missing an argument",
    "mse_loss(x > 0, z)": "a condition is not a number",
    "l1_loss(x, [1, 2, 3, 4])": "do not fit together",
    "huber_loss(x, z, delta=0)": "positive",
    "huber_loss(x, z, delta='1')": "text is not a number",
    "celu(x, 0)": "divisor",
    "round(x, 0.5)": "integer",
    "round(x, 999)": "at most 300",
    "cross_entropy(x[0], 0)": "no classes",
    "cross_entropy(x, 3)": "no class 3 among 3",
    "cross_entropy(x, 0.5)": "no class 0.5 among 3",
    "cross_entropy(x, [0, 1])": "targets of shape",
    "cross_entropy([x, x], [0, nan])": "no class nan",
    "cross_entropy([x, x], [0, 1, 2])": "do not fit scores",
    "cross_entropy(x, 0, weight=[1, 2])": "3 classes have as many weights",
    "cross_entropy(x, x[0], ignore_index=0)": "ignore_index",
    "cross_entropy(x, 0, label_smoothing=2)": "from 0 to 1",
    "linear(x, [[1, 2]])": "does not fit an input",
    "linear(x, [[1, 2, 3]], [1, 2])": "a number for each output",
    "bilinear(x, z, [[1, 2, 3]])": "first inputs, second inputs",
    "embedding([0, 3], [x, x, x])": "no row 3 among 3",
    "embedding([0, 0.5], [x, x])": "no row 0.5",
    "embedding(0, x)": "rows of a matrix",
    "dropout(x, 0.5)": "for each element that is kept",
    "dropout(x, z, 2)": "a probability",
    "scaled_dot_product_attention([x], [x], [x], dropout_p=0.5)": "without dropout",
    "scaled_dot_product_attention([x], [x], [z], [1], is_causal=True)": "not both",
    "scaled_dot_product_attention([x], [x], [z], is_causal=1)": "True or False",
    "layer_norm(x, 2)": "does not end in",
    "group_norm(x, 1)": "0 channels",
    "group_norm([x, z], 2)": "3 channels do not form 2 groups",
    "group_norm([x], 3)": "more than one value",
    "group_norm([x, z], 1, [1, 2])": "do not fit together",
    "instance_norm([x, z])": "samples, channels",
    "instance_norm([[x, z]], use_input_stats=False)": "those of its input",
    "batch_norm([x, x], running_mean=x)": "or neither",
}


@each("text", MISTAKES)
def test_a_mistake_is_told(text):
    with pytest.raises(InputError, match=MISTAKES[text]):
        parse(f"y = {text}", x=(3,), z=(3,))


def loss_of(text, **point):
    graph = parse(f"y = {text}", **{n: np.shape(v) for n, v in point.items()})
    inputs = {n: np.asarray(v, dtype=float)[..., None] for n, v in point.items()}
    value = evaluate(graph, inputs)["y"][..., 0]
    grads = evaluate(vjp(graph), inputs | {"y.v": np.ones((*graph.outputs["y"].shape, 1))})
    return value, {n: g[..., 0] for n, g in grads.items()}


def test_targets_may_vary_from_point_to_point():
    known, own = loss_of("cross_entropy(x, [2, 0])", x=SCORES)
    value, grads = loss_of("cross_entropy(x, t)", x=SCORES, t=[2, 0])
    assert value == known
    np.testing.assert_array_equal(grads["x.grad"], own["x.grad"])
    np.testing.assert_array_equal(grads["t.grad"], [0, 0])


@pytest.mark.parametrize("wrong", [3, -1, 0.5, -100, np.nan])
def test_a_target_that_is_no_class_makes_the_loss_nan(wrong):
    assert np.isnan(loss_of("cross_entropy(x, t)", x=SCORES, t=[2, wrong])[0])


def test_a_class_that_is_not_asked_for_may_be_impossible():
    """Its log-probability of -inf times 0 would be nan."""
    value, grads = loss_of("nll_loss(x, [1])", x=[[-np.inf, -0.5]])
    assert value == 0.5
    np.testing.assert_array_equal(grads["x.grad"], [[0, -1]])


def test_the_loss_of_a_sample_depends_on_its_own_scores():
    graph = parse("y = cross_entropy(x, [2, 0], reduction='none')", x=(2, 3))
    (sets,) = dependencies(graph, list(graph.inputs.values())).values()
    assert [bin(s) for s in sets] == ["0b111", "0b111000"]


def test_a_detached_value_is_a_constant():
    graph = parse("y = [x*detach(x), z*x.detach() + stop_gradient(3*z)]")
    (sets,) = dependencies(graph, list(graph.inputs.values())).values()
    assert list(sets) == [1, 2]
    assert {p: str(e) for p, e in symbolic_jacobian(graph).entries.items()} == {(0, 0): "x", (1, 1): "x"}
    at = {"x": np.array(3.0), "z": np.array(5.0)}
    assert_allclose(numeric_jacobian(graph, ["x", "z"], at), [[3, 0], [0, 3]])


def test_what_is_detached_meets_no_infinite_adjoint():
    """A 0 passed on to log would be nan: PyTorch passes nothing."""
    value, grads = loss_of("detach(log(x))*z", x=0.0, z=0.0)
    assert np.isnan(value)
    assert grads["x.grad"] == 0
    assert grads["z.grad"] == -np.inf


FORMULAS = {
    "elu(x)": "where(x < 0, exp(x), 1)",
    "selu(x)": "where(x <= 0, 1.7580993408473766*exp(x), 1.0507009873554805)",
    "celu(x, 2)": "where(x < 0, exp(x/2), 1)",
    "hardtanh(x)": "where((x <= -1) | (x >= 1), 0, 1)",
    "logsigmoid(x)": "sigmoid(-x)",
    "softsign(x)": "1/(abs(x) + 1)**2",
    "tanhshrink(x)": "tanh(x)**2",
    "logaddexp(x, 3)": "sigmoid(x - 3)",
    "log(x, 3)": "1/(x*log(3))",
    "log(x, 2)": "1/(x*log(2))",
    "ndtr(x)": "sqrt(2)*exp(-x**2/2)/(2*sqrt(pi))",
    "lerp(x, 2, 0.25)": "0.75",
    "fmod(x, 3)": "1",
    "frac(x)": "1",
    "huber_loss(x, 2, delta=3)": "where(abs(x - 2) >= 3, 3*sign(x - 2), x - 2)",
    "mse_loss(x, 2)": "2*(x - 2)",
    "l1_loss(x, 2)": "sign(x - 2)",
    "smooth_l1_loss(x, 2)": "where(abs(x - 2) >= 1, sign(x - 2), x - 2)",
    "binary_cross_entropy(x, 1)": "-1/x",
    "binary_cross_entropy_with_logits(x, 1)": "sigmoid(x) - 1",
    "cross_entropy([x, 0], 1)": "exp(x)/(exp(x) + 1)",
    "log_softmax([x, 0])[0]": "1/(exp(x) + 1)",
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_those_of_a_textbook(text, cli):
    """The slope as `gradcli jacobian` shows it, up to the order of factors and terms."""
    shown = cli.json("jacobian", f"y = {text}")["symbolic"][0][0]
    assert sorted(shown) == sorted(FORMULAS[text]), shown
