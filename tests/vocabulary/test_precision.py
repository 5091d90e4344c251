"""Numbers of full relative precision, far from 0 too: against 700 digits."""

import mpmath
import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp

FAR = [-700.0, -300.0, -40.0, -20.0, -5.0, -1.0, -0.125, 0.125, 1.0, 5.0, 20.0, 40.0, 300.0, 700.0]
X = sympy.Symbol("x", real=True)
SOFTPLUS = sympy.log(1 + sympy.exp(X))

# Of each function the definition, the points, and the relative error of its value; None where it is poor, as PyTorch's.
EXACT = {
    "elu(x)": (sympy.exp(X) - 1, [x for x in FAR if x < 0], 4e-15),
    "celu(x, 2)": (2 * (sympy.exp(X / 2) - 1), [x for x in FAR if x < 0], 4e-15),
    "mish(x)": (X * sympy.tanh(SOFTPLUS), FAR, 4e-15),
    "logsigmoid(x)": (-sympy.log(1 + sympy.exp(-X)), FAR, 4e-15),
    "softsign(x)": (X / (1 + abs(X)), FAR, 4e-15),
    "tanhshrink(x)": (X - sympy.tanh(X), [x for x in FAR if abs(x) < 300], None),
    "ndtr(x)": (sympy.erfc(-X / sympy.sqrt(2)) / 2, [x for x in FAR if -35 < x < 30], 4e-14),
    "gelu(x)": (X * sympy.erfc(-X / sympy.sqrt(2)) / 2, [x for x in FAR if -35 < x < 30], 4e-14),
    "logaddexp(x, 0)": (SOFTPLUS, FAR, 4e-15),
    "logaddexp(1000, 1000 + x)": (1000 + SOFTPLUS, FAR, 4e-15),
    "log_softmax([x, 0])[0]": (X - SOFTPLUS, [x for x in FAR if x <= 1], 4e-15),
    "log_softmax([x + 1000, 1000])[1]": (-SOFTPLUS, [5.0, 20.0, 300.0], 4e-15),
    "cross_entropy([x, 0], 0)": (sympy.log(1 + sympy.exp(-X)), [x for x in FAR if x <= 1], 4e-15),
    "binary_cross_entropy_with_logits(x, 1)": (sympy.log(1 + sympy.exp(-X)), [x for x in FAR if x <= 1], 4e-15),
    "binary_cross_entropy_with_logits(x, 0)": (SOFTPLUS, FAR, 4e-15),
    "binary_cross_entropy_with_logits(x, 1, pos_weight=1)": (sympy.log(1 + sympy.exp(-X)), FAR, 4e-15),
    "binary_cross_entropy(x, 0)": (-sympy.log(1 - X), [1e-10, 1e-5, 0.25, 0.75], 4e-15),
    "huber(x)": (abs(X) - sympy.Rational(1, 2), [x for x in FAR if abs(x) > 1], 4e-15),
    "log(x, 2)": (sympy.log(X, 2), [2.0**-600, 2.0**50, 0.3], 4e-15),
}


@pytest.mark.parametrize("text", EXACT)
def test_values_and_slopes_are_precise(text):
    formula, points, rtol = EXACT[text]
    at = np.array(points)
    graph = parse(f"y = {text}")
    if rtol is not None:
        assert_allclose(evaluate(graph, {"x": at})["y"], numbers(formula, points), rtol)
    (grad,) = evaluate(vjp(graph), {"x": at, "y.v": np.ones(1)}).values()
    assert_allclose(np.broadcast_to(grad, at.shape), numbers(sympy.diff(formula, X), points), 4e-14)


def numbers(formula, points):
    exact = sympy.lambdify(X, formula, "mpmath")
    with mpmath.workdps(700):
        return [float(exact(mpmath.mpf(p))) for p in points]


def test_nothing_overflows_on_the_way():
    far = np.array([-1e308, -1e5, -800.0, 800.0, 1e5, 1e308])
    for text in (
        "mish(x)",
        "logsigmoid(x)",
        "logaddexp(x, -x/2)",
        "elu(x)",
        "celu(x)",
        "selu(x)",
        "log_softmax([x, 0])[0]",
    ):
        graph = parse(f"y = {text}")
        grads = evaluate(vjp(graph), {"x": far, "y.v": np.ones(1)})
        assert np.isfinite(evaluate(graph, {"x": far})["y"]).all(), text
        assert np.isfinite(grads["x.grad"]).all(), text
