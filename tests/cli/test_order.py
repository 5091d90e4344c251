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


def test_the_distance_from_the_point_is_defined_on_the_page(cli):
    """The polynomial about x = 3 is in h = x - 3; typed back at h = 0.1, it is near exp(3.1)."""
    out = cli.done("jacobian", "y=exp(x)", "--order", "4", "--at", "x=3").out
    assert "Taylor polynomial about x = 3, with h = x - 3" in out
    polynomial = " ".join(out.partition("with h = x - 3\n")[2].split())
    value = cli.json("jacobian", polynomial, "--at", "h=0.1")["value"]["y"]
    assert value == pytest.approx(math.exp(3.1), rel=1e-5)


@pytest.mark.parametrize(
    ("system", "at", "polynomial"),
    [
        ("y=sin(x)", "x=0", "h - h**3/6 + h**5/120"),
        ("y=-cos(x)", "x=0", "-1 + h**2/2 - h**4/24"),
        ("y=x**4", "x=2", "16 + 32*h + 24*h**2 + 8*h**3 + h**4"),
        ("y=x**2", "x=0.3", "0.09 + 0.6*h + h**2"),
        ("y=1/x", "x=3", "1/3 - h/9 + h**2/27 - h**3/81 + h**4/243 - h**5/729"),
        ("y=tanh(x)", "x=0", "h - h**3/3 + 2*h**5/15"),
        ("y=exp(x)", "x=1", "2.71828 + 2.71828*h + 1.35914*h**2 + 0.453047*h**3 + 0.113262*h**4 + 0.0226523*h**5"),
        ("y=x*h", "x=0,h=2", "2*δ"),
        ("y=0*x", "x=1", "0"),
    ],
)
def test_the_polynomial_is_exact_where_it_can_be(cli, system, at, polynomial):
    out = cli.done("jacobian", system, "--order", "5", "--wrt", "x", "--at", at).out
    assert " ".join(out.split()).endswith(f" y = {polynomial}")


def test_the_polynomial_can_be_typed_back(cli):
    out = cli.done("jacobian", "y=sin(x)*exp(x)", "--order", "6", "--at", "x=0", "--digits", "full").out
    polynomial = " ".join(out.rpartition("y = ")[2].split())
    found = cli.json("jacobian", f"y={polynomial}", "--order", "6", "--at", "h=0")
    assert found["taylor"] == cli.json("jacobian", "y=sin(x)*exp(x)", "--order", "6", "--at", "x=0")["taylor"]


def test_where_a_derivative_is_infinite_there_is_no_polynomial(cli):
    assert "no Taylor polynomial" in cli("jacobian", "y=sqrt(x)", "--order", "2", "--at", "x=0").out


def test_without_a_point_there_are_formulas_alone(cli):
    assert cli.json("jacobian", "y=a*x**2", "--order", "2", "--wrt", "x")["derivatives"]["d2y/dx2"] == "2*a"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["y=a*x", "--order", "2"], "--order is for a scalar of one scalar input"),
        (["y=x*2", "--order", "2", "--shape", "x=3"], "second derivatives need one scalar"),
        (["y=x", "--order", "11"], "11"),
        (["y=x", "--order", "0"], "0"),
    ],
)
def test_mistakes_are_told(cli, arguments, told):
    assert told in cli.refused("jacobian", *arguments)
