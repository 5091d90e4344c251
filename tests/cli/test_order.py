"""gradcli jacobian --order: derivatives up to an order, and the Taylor polynomial at a point."""

import math

import pytest
import sympy


def test_formulas_and_numbers(cli):
    found = cli.json("jacobian", "f=x**4", "--order", "5", "--at", "x=2")
    assert found["derivatives"] == {
        "df/dx": "4*x**3", "d2f/dx2": "12*x**2", "d3f/dx3": "24*x", "d4f/dx4": "24", "d5f/dx5": "0",
    }  # fmt: skip
    assert list(found["values"].values()) == [32, 48, 48, 24, 0]
    assert found["taylor"] == [16, 32, 24, 8, 1, 0]


@pytest.mark.parametrize("f", ["exp(-x)*sin(x)", "log(1 + x**2)", "atan(x)", "sqrt(1 + x)", "cosh(x)/(2 + x)"])
def test_numbers_are_those_of_sympy(cli, f):
    x = sympy.Symbol("x")
    found = cli.json("jacobian", f"f={f}", "--order", "5", "--at", "x=0.3")
    expr = sympy.sympify(f)
    for k, value in enumerate(found["values"].values(), 1):
        assert value == pytest.approx(float(sympy.diff(expr, x, k).subs(x, 0.3)), rel=1e-9)


def test_the_taylor_polynomial_is_near_the_function(cli):
    found = cli.json("jacobian", "f=exp(x)", "--order", "8", "--at", "x=1")
    near = sum(c * 0.5**k for k, c in enumerate(found["taylor"]))
    assert near == pytest.approx(math.exp(1.5), rel=1e-6)


def test_the_page(cli):
    out = cli.done("jacobian", "y=exp(x)", "--order", "2", "--at", "x=0").out
    assert "d2y/dx2 = exp(x) = 1" in " ".join(out.split())
    assert "y = 1 + 1·h + 0.5·h**2" in out


def test_without_a_point_there_are_formulas_alone(cli):
    assert cli.json("jacobian", "y=a*x**2", "--order", "2", "--wrt", "x")["derivatives"]["d2y/dx2"] == "2*a"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["y=a*x", "--order", "2"], "--order is for a scalar of one scalar input"),
        (["y=x*2", "--order", "2", "--shape", "x=3"], "second derivatives are those of one scalar"),
        (["y=x", "--order", "11"], "11"),
        (["y=x", "--order", "0"], "0"),
    ],
)
def test_mistakes_are_told(cli, arguments, told):
    assert told in cli.refused("jacobian", *arguments)
