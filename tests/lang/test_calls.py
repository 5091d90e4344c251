"""Functions and methods under the names that PyTorch, NumPy and SymPy users type, and the same in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import each
from test_language import value

from gradcli import parse


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf, erfc, gamma, lgamma = map(np.vectorize, (math.erf, math.erfc, math.gamma, math.lgamma))

UNARY = [
    ("abs Abs absolute", np.abs, -1.3),
    ("sign sgn", np.sign, -1.3),
    ("sqrt", np.sqrt, 1.3),
    ("cbrt", np.cbrt, -1.3),
    ("exp", np.exp, 1.3),
    ("expm1", np.expm1, 1e-9),
    ("log ln", np.log, 1.3),
    ("log1p", np.log1p, 1e-9),
    ("log2", np.log2, 1.3),
    ("log10", np.log10, 1.3),
    ("sin", np.sin, 1.3),
    ("cos", np.cos, 1.3),
    ("tan", np.tan, 1.3),
    ("sec", lambda x: 1 / np.cos(x), 1.3),
    ("csc", lambda x: 1 / np.sin(x), 1.3),
    ("cot", lambda x: 1 / np.tan(x), 1.3),
    ("asin arcsin", np.arcsin, 0.3),
    ("acos arccos", np.arccos, 0.3),
    ("atan arctan", np.arctan, 1.3),
    ("sinh", np.sinh, 1.3),
    ("cosh", np.cosh, 1.3),
    ("tanh", np.tanh, 1.3),
    ("asinh arcsinh", np.arcsinh, 1.3),
    ("acosh arccosh", np.arccosh, 1.3),
    ("atanh arctanh", np.arctanh, 0.3),
    ("erf", erf, 0.3),
    ("erfc", erfc, 3.0),
    ("gamma", gamma, 4.5),
    ("lgamma loggamma", lgamma, 4.5),
    ("digamma", lambda x: (lgamma(x + 1e-6) - lgamma(x - 1e-6)) / 2e-6, 4.5),
    ("floor", np.floor, -1.3),
    ("ceil ceiling", np.ceil, -1.3),
    ("relu", lambda x: np.maximum(x, 0), -1.3),
    ("relu", lambda x: np.maximum(x, 0), 1.3),
    ("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), -1.3),
    ("sigmoid", sigmoid, 1.3),
    ("softplus", lambda x: np.log(1 + np.exp(x)), 1.3),
    ("silu", lambda x: x * sigmoid(x), 1.3),
    ("gelu", lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, 1.3),
    ("heaviside Heaviside", lambda x: np.heaviside(x, 0.5), 0.0),
    ("square", np.square, -1.3),
]


@each(("name", "numpy", "x"), [(name, numpy, x) for names, numpy, x in UNARY for name in names.split()])
def test_functions_of_one_number(name, numpy, x):
    expected = pytest.approx(float(numpy(x)), rel=1e-8 if name == "digamma" else 1e-14)
    assert value(f"y={name}(x)", x=x) == expected
    assert value(f"y=x.{name}()", x=x) == expected
    assert value(f"y=sum({name}(x))", x=[x, x]) / 2 == expected


BINARY = [
    ("atan2 arctan2", np.arctan2),
    ("mod Mod remainder", np.mod),
    ("maximum Max max", np.maximum),
    ("minimum Min min", np.minimum),
    ("hypot", np.hypot),
    ("pow Pow power", np.power),
    ("add", np.add),
    ("sub subtract", np.subtract),
    ("mul multiply", np.multiply),
    ("div divide", np.divide),
    ("heaviside", np.heaviside),
    ("leaky_relu", lambda x, slope: np.where(x > 0, x, slope * x)),
]


@pytest.mark.parametrize(("name", "numpy"), [(name, numpy) for names, numpy in BINARY for name in names.split()])
def test_functions_of_two_numbers(name, numpy):
    for a, b in [(1.3, 0.7), (0.4, 2.0)]:
        assert value(f"y={name}(a, b)", a=a, b=b) == pytest.approx(float(numpy(a, b)), rel=1e-14)


A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
STRUCTURAL = [
    ("norm(A[0], 1)", np.linalg.norm(A[0], 1)),
    ("norm(A[0], p=inf)", np.linalg.norm(A[0], np.inf)),
    ("var(A)", A.var(ddof=1)),  # as in PyTorch
    ("var(A, axis=0, correction=0)", A.var(axis=0)),
    ("std(A)", A.std(ddof=1)),
    ("std(A, unbiased=False)", A.std()),
    ("matmul(A, A.T)", A @ A.T),
    ("mm(A, A.T)", A @ A.T),
    ("reshape(A, (6,))", A.reshape(6)),
    ("cat([A, A])", np.concatenate([A, A])),
    ("clip(A, min=0)", A.clip(0, None)),
    ("clamp(A, max=0.5)", A.clip(None, 0.5)),
    ("maximum(A, 0, -A)", np.abs(A)),
    # Methods, as they are pasted from PyTorch
    ("A.sum(dim=0)", A.sum(axis=0)),
    ("A.sum(1, keepdim=True)", A.sum(axis=1, keepdims=True)),
    ("A.t()", A.T),
    ("A.transpose(0, 1)", A.T),
    ("A.pow(2)", A**2),
    ("A.max()", A.max()),
    ("A.min(dim=0)", A.min(axis=0)),
    ("A.view(3, 2)", A.reshape(3, 2)),
    ("A.reshape(-1)", A.reshape(-1)),
    ("A.flatten()", A.ravel()),
    ("A.clamp(min=0)", A.clip(0, None)),
    ("A.relu().sum()", A.clip(0, None).sum()),
    ("A.exp().log().abs()", np.abs(A)),
    ("(A*2).sum(dim=1)[0]", (A * 2).sum(axis=1)[0]),
]


@each(("text", "expected"), STRUCTURAL)
def test_functions_of_arrays(text, expected):
    found = value(f"y={text}", A=A)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x[1]", (2,)),
        ("x[0]*x[2] + x[1]", (3,)),
        ("x[1,0] + x[0,2]", (2, 3)),
        ("sin(x[0])[None] + x[1].exp()", (2,)),
        ("x", ()),
    ],
)
def test_an_input_that_is_read_by_element_is_as_small_as_they_allow(text, shape):
    assert [n.shape for n in parse(f"y={text}").inputs.values()] == [shape]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[x, 2*x]", [3, 6]),
        ("[[x, 1], [2, x**2]]", [[3, 1], [2, 9]]),
        ("[[x, 1], [2, 3]] @ [x, 1]", [10, 9]),
        ("[[1, x], [2, 3]][1, 0]", 2),
        ("sum([x, x, 1])", 7),
        ("max([x, 5, 1])", 5),
        ("[v, 2*v]", [[1, 2], [2, 4]]),
        ("[v[1], v[0]]", [2, 1]),
    ],
)
def test_lists_stack(text, expected):
    np.testing.assert_array_equal(value(f"y={text}+0*x*v[0]", x=3, v=[1, 2]), expected)


CONDITIONS = [
    "x > 1",
    "x >= 1",
    "x < 1",
    "x <= 1",
    "x == 1",
    "x != 1",
    "0 < x < 2",
    "0 < x <= 1 < 3 - x",
    "(x > 0) & (x < 1)",
    "(x < 0) | (x > 1)",
    "~(x > 1)",
    "x > 0 and x < 1",
    "x < 0 or x > 1",
    "not x > 1",
    "not (x > 0 and x < 1) or x == 0.5",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_choices(condition):
    for x in (-1.0, 0.0, 0.5, 1.0, 2.0):
        holds = eval(condition.replace("~", "not "), {"x": x})
        assert value(f"y=where({condition}, 10*x, -x) + 0*x", x=x) == (10 * x if holds else -x)
        assert value(f"y=Piecewise((10*x, {condition}), (-x, True)) + 0*x", x=x) == (10 * x if holds else -x)


def test_the_first_condition_of_a_piecewise_that_holds():
    text = "y=Piecewise((1+0*x, x<0), (x**2, x<1), (5, x<=1), (x, True))"
    assert [float(value(text, x=x)) for x in (-3, 0.5, 1, 4)] == [1, 0.25, 5, 4]
    assert math.isnan(value("y=Piecewise((x, x<0))", x=1))


def test_settings_are_computed_from_integers():
    y = value("sum(zeros((2*3, 5 - 1)) + x[3 - 1]) + sum(x, axis=2 % 2) + sum(x[2 - 1:2*2])", x=np.arange(4.0))
    assert y == 24 * 2 + 6 + 6
