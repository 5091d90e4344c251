"""The Hessian by one vector as a formula of matrices: it is written as in a textbook, and is worth H."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.graph.hessian import gradient
from gradcli.notation.nodes import Notation
from gradcli.pages.forms.hessian import hessian_form

SHAPES = {"x": (3,), "m": (3,), "t": (5,), "X": (5, 3), "A": (3, 3), "k": ()}
WRITTEN = {
    "x@A@x": "A + A.T",
    "sum((X@x - t)**2)": "2*X.T @ X",
    "mean((X@x - t)**2)/2 + k*x@x": "2*k*eye(3) + 1/5*X.T @ X",
    "-(x - m)@A@(x - m)/2": "-1/2*(A + A.T)",
    "x@inv(A)@x": "inv(A) + inv(A).T",
    "x@x": "2*eye(3)",
    "sum(exp(x))": "diag(exp(x))",
    "sum(m*x**3)": "6*diag(m*x)",
    "sum(exp(X@x))": "X.T @ diag(exp(X @ x)) @ X",
}


def system(text):
    return parse(f"y = {text}", **{name: shape for name, shape in SHAPES.items() if name in text.replace("exp", "")})


@pytest.mark.parametrize(("text", "expected"), WRITTEN.items())
def test_it_is_written_as_in_a_textbook(text, expected):
    matrix, names = hessian_form(system(text), ["x"])
    assert Notation(names, implicit=True).expression(matrix) == expected


@pytest.mark.parametrize("text", WRITTEN)
def test_it_is_worth_the_differences_of_gradients(text):
    graph = system(text)
    random = np.random.default_rng(1)
    at = {name: random.normal(size=x.shape) for name, x in graph.inputs.items()}
    matrix, _ = hessian_form(graph, ["x"])
    slopes = gradient(graph, ["x"])

    def slope(x):
        return at_point(slopes, at | {"x": x}, [slopes.outputs["x"]])[slopes.outputs["x"]]

    differences = [(slope(at["x"] + e) - slope(at["x"] - e)) / 2e-5 for e in 1e-5 * np.eye(3)]
    assert_allclose(at_point(graph, at, [matrix])[matrix], differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", ["prod(x)", "norm(x)", "logsumexp(x)", "x[0]*x[1]"])
def test_no_formula_where_none_is_short(text):
    assert hessian_form(system(text), ["x"]) is None


def test_a_long_chain_has_no_short_formula():
    chain = "; ".join(["a0 = x*m", *(f"a{k + 1} = a{k}*m + x" for k in range(60)), "y = a60@a60"])
    assert hessian_form(parse(chain, x=(3,), m=(3,)), ["x"]) is None
