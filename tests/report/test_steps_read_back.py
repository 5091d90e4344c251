"""The tables of steps can be read as they stand: what is written is worth, in Python, the number beside it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from operations import FUNCTIONS

from gradcli import evaluate, parse
from gradcli.graph.names import bar
from gradcli.notation.nodes import Notation

POINT = {
    "a": 0.7,
    "b": 1.6,
    "x": [0.4, 1.1, -0.8],
    "z": [1.5, 0.3, 0.6],
    "M": [[0.2, 0.8, 1.4], [1.1, 0.3, 0.5]],
    "N": [[0.3, -1.1], [0.6, 0.7]],
}
SHAPES = {name: np.shape(value) for name, value in POINT.items()}
SYSTEMS = [
    "y = a - (-3) + (-2 - b) - (a - (b - 1)); z = -3 - -a",
    "y = a - (-1/3) - (-b)/(-2) - a*(-1/3) + (-0.5)*b*(-0.25) - a/(-1/3)",
    "y = a/(b/2)/(-3) + 2/3*a + a/(2*b) - 1/a + a*(1/3) - a/(1/3)",
    "y = (a**2)**b + a**b**2 + (-a)**2 - a**-2 - (1/3)**a + (-2)**3*a + 0.5**-a + (2/3)**b*(-a)**3",
    "y = 1e300*a/1e300 + 10**200*b/10**200 + 2*10**20/3*a",
    "y = sin(a - 1)*cos(-b) + tan(a*b) - exp(-a**2/2)/log(1 + b) + sqrt(b)**3 + cbrt(a)",
    "y = asin(a/4)*acos(b/4)/atan2(a, -b) + hypot(a, b)*sinh(a)/cosh(b) - tanh(a)*sech(b) + atanh(a/2) - acosh(1 + b)",
    "y = erf(a)*erfc(b) + log2(a)*log10(b) - log1p(a)/expm1(b) + sec(a)*csc(b) - cot(a) + lgamma(a)*digamma(b)",
    "y = relu(a)*sigmoid(b) - softplus(a)*silu(b) + gelu(a)/leaky_relu(-b) + abs(-a)*sign(b) - a % b",
    "y = maximum(a, b)*minimum(a, 1) + clip(a, 0, b) - where(a > b, a, -b) + where((a <= 1) & (b != 2), a*b, 2)",
    "y = where((a > 0) & (b < 1) | ~(a <= b), a**b, b)*a + where(~((a > 0) | (b >= 1)) & (a*b == 1), a, b)",
    "y = a*(M @ x) - (M*2) @ z; u = (x - z) @ (x + z)",
    "y = x*z - (x - z)/(x*z) + (-x)*(-2)",
    "y = sum(M, axis=0)*mean(x) + prod(z)*M[1] - M[0, ::-1]; u = max(M, axis=1); v = norm(x)*std(z, correction=1)",
    "y = N.T @ N - (N - 1) @ (N/2).T; u = diag(N)*2; v = reshape(M, 3, 2) @ [a, b]",
    "y = softmax(x) + cumsum(z); u = concatenate([x, [a]])*2; w = a*(x @ z)",
]
CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not")
# Rules in words.
WORDS = re.compile(r" where \w+ is | times the product ")


def worth(text, values):
    """Return what an expression is worth in Python, with NumPy's arrays; no sign stands beside another."""
    assert not re.search(r"[-+*/·@] *-", text), text
    return eval(text.replace("·", "*"), FUNCTIONS | values)


@pytest.mark.parametrize("system", SYSTEMS)
def test_steps_are_worth_what_stands_beside_them(cli, system):
    names = list(parse(system, **SHAPES).inputs)
    at = ",".join(f"{name}={POINT[name]}" for name in names)
    steps = cli.json("backward", system, "--at", at, "--v", "ones", "--steps")["steps"]
    values = {row["node"]: np.array(row["value"]) for row in steps["forward"]}
    conditions = [row["node"] for row in steps["forward"] if row["operation"] in CONDITIONS]
    values |= {name: values[name] != 0 for name in conditions}
    for row in steps["forward"][len(names) :]:
        text = row["expression"]
        assert_allclose(worth(text, values), values[row["node"]], rtol=1e-12, err_msg=text)
    bars = "|".join(bar(name) for name in sorted(values, key=len, reverse=True))  # t̄10 before t̄1
    adjoints = re.compile(rf"{bars}|\bv\b|\bȳ\b|ū")
    read = 0
    for row in steps["reverse"]:
        if WORDS.search(row["rule"]):
            continue
        left, text = re.split(r" \+?= ", row["rule"], maxsplit=1)
        found = worth(adjoints.sub("adjoint", text), values | {"adjoint": np.array(row["adjoint"])})
        expected = np.array(row.get("local_derivative", row["contribution"]))
        if "[" in left:  # of a part of the argument; the others get nothing
            places = np.arange(expected.size).reshape(expected.shape)
            part = worth(f"places{left[left.index('[') :]}", {"places": places})
            assert not np.delete(expected, part).any()
            expected = expected.reshape(-1)[part]
        assert_allclose(np.broadcast_to(found, expected.shape), expected, rtol=1e-10, err_msg=row["rule"])
        read += 1
    assert read > len(names)


@pytest.mark.parametrize("system", [*SYSTEMS, "y = -(a + b)*(a - b); z = a*(-b) - (-(a*b)); u = a/(-b) + (a*b)/(b/a)"])
def test_a_whole_expression_is_worth_the_output(system):
    """In terms of the leaves alone, so that operations stand within each other."""
    graph = parse(system, **SHAPES)
    values = {name: np.array(POINT[name]) for name in graph.inputs}
    outputs = evaluate(graph, {name: value[..., None] for name, value in values.items()})
    notation = Notation({node: name for name, node in graph.inputs.items()})
    for name, y in graph.outputs.items():
        text = notation.expression(y)
        assert_allclose(worth(text, values), outputs[name][..., 0], rtol=1e-12, err_msg=text)
