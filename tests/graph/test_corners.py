"""Where a function has a corner, a pole or a tie, the gradient is PyTorch's.

The expressions can be read by PyTorch too: value and gradients are what version 2.13.0 gives in float64 for
`out = …; out.sum().backward()`.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_allclose

from gradcli import evaluate, jvp, parse, vjp
from gradcli.errors import InputError

TEXT = Path(__file__).with_name("corners.txt").read_text("utf-8")
CORNERS, SECOND, MORE_EXACT = (
    [json.loads(line) for line in block.splitlines() if line[0] != "#"] for block in TEXT.split("\n\n")
)


def differentiate(expression, values, order=1):
    """Return the value of an expression and its gradients, of the given order, for ones as v."""
    point = {name: np.array(value, dtype=float)[..., None] for name, value in zip("xyz", values, strict=False)}
    graph = parse(f"out = {expression}", **{name: value.shape[:-1] for name, value in point.items()})
    (output,) = graph.outputs.values()
    (value,) = evaluate(graph, point).values()
    wrt = list(point)
    point["out.v"] = np.ones((*output.shape, 1))
    if order == 2:
        point["x.grad.v"] = np.arange(1.0, 1 + point["x"].size).reshape(point["x"].shape)
        graph = vjp(graph)
    grads = evaluate(vjp(graph, wrt), point)
    return value[..., 0], [grad[..., 0] for grad in grads.values()]


@each(("expression", "values", "value", "grads"), CORNERS)
def test_as_pytorch(expression, values, value, grads):
    found, found_grads = differentiate(expression, values)
    assert_allclose(found, value, rtol=1e-9)
    for grad, wanted in zip(found_grads, grads, strict=True):
        assert_allclose(grad, wanted, rtol=1e-9)


@each(("expression", "x", "wanted"), SECOND)
def test_second_derivative_as_pytorch(expression, x, wanted):
    _, (grad,) = differentiate(expression, [x], order=2)
    assert_allclose(grad, wanted, rtol=1e-9)


@pytest.mark.parametrize(("expression", "x", "value", "grad"), MORE_EXACT)
def test_more_exact_than_pytorch(expression, x, value, grad):
    found, (found_grad,) = differentiate(expression, [x])
    assert_allclose(found, value, rtol=1e-11)
    assert_allclose(found_grad, grad, rtol=1e-11)


@pytest.mark.parametrize("call", ["hardtanh(x, y, 2)", "hardtanh(x, -2, y)", "clamp(x, y, 2)", "clamp(x, -2, y)"])
def test_at_a_bound_the_gradient_is_given_once(call):
    """Where x and its bound move together, so does the result: their slopes add up to 1."""
    value, grads = differentiate(call, (1, 1))
    assert value == sum(grads) == 1


@pytest.mark.parametrize("derive", [vjp, jvp])
def test_a_derivative_that_has_no_formula_is_an_error(derive):
    """It is not 0: PyTorch raises an error, too, unless the other argument's is asked for alone."""
    graph = parse("y = zeta(x, q)")
    with pytest.raises(InputError, match="no derivative of `zeta` by this argument"):
        derive(graph)
    assert derive(graph, ["q"])
