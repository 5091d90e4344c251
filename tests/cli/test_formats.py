"""What each format prints of a result, and formulas that can be typed back in."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import some
from test_promises import AT, THREE, TWO_TO_THREE, VALUE, VECTOR


def test_retain_shows_intermediates(cli):
    system = ("a=2*x", "b=a**2", "y=3*b", "--at", "x=1")
    assert "retained" not in cli.json("backward", *system)
    assert cli.json("backward", *system, "--retain", "b")["retained"] == {"b": 3}
    assert cli.json("backward", *system, "--retain", "b,a")["retained"] == {"a": 12, "b": 3}
    assert cli.json("backward", *system, "--retain", "all")["retained"] == {"a": 12, "b": 3, "y": 1}


def test_the_keys_of_the_jacobian(cli):
    assert list(cli.json("jacobian", *TWO_TO_THREE)) == ["rows", "columns", "symbolic"]
    assert cli.json("jacobian", *TWO_TO_THREE, *AT) == {
        "rows": ["y0", "y1", "y2"],
        "columns": ["x0", "x1"],
        "symbolic": [["6*x0", "0"], ["2*x0", "6*x1**2"], ["0", "10"]],
        "at": {"x0": 1, "x1": 2},
        "value": VALUE,
        "jacobian": [[6, 0], [2, 24], [0, 10]],
    }


def test_the_keys_of_backward(cli):
    found = cli.json("backward", *VECTOR, "--v", "1,10")
    assert found == {
        "at": {"x": [1, 2]},
        "value": {"y": [3, 12]},
        "calls": [{"v": {"y": [1, 10]}, "grad": {"x": [6, 120]}}],
        "grad": {"x": [6, 120]},
    }
    assert list(found) == ["at", "value", "calls", "grad"]


def test_without_a_point_gradients_are_formulas(cli):
    assert cli.json("backward", "y=3*x**2", "--shape", "x=2", "--v", "1,10") == {
        "calls": [{"v": {"y": [1, 10]}, "grad": {"x": ["6*x[0]", "60*x[1]"]}}],
        "grad": {"x": ["6*x[0]", "60*x[1]"]},
    }
    assert cli.json("backward", "h=x**2", "y=sin(h)", "--retain", "h")["retained"] == {"h": "cos(h)"}
    accumulated = cli.json("backward", "h=x**2", "y=3*h", "--v", "1,10", "--retain", "h")
    assert accumulated["grad"] == {"x": "66*x"}
    assert accumulated["retained"] == {"h": "33"}


@pytest.mark.parametrize("point", [AT, ()], ids=["numbers", "formulas"])
def test_the_keys_of_steps(cli, point):
    steps = cli.json("backward", *TWO_TO_THREE, *point, "--v", "1,10,100", "--steps")["steps"]
    assert list(steps) == ["forward", "reverse"]
    assert [row["node"] for row in steps["forward"]] == ["x0", "x1", "t1", "y0", "t2", "t3", "t4", "y1", "y2"]
    assert all(("value" in row) == bool(point) for row in steps["forward"])
    last = steps["reverse"][-1]
    assert (last["node"], last["passes_to"]) == ("t1", "x0")
    assert last["adjoint_so_far"] == (26 if point else "26*x0")


def test_json_writes_what_is_not_finite_as_strings(cli):
    found = cli.json("backward", "y=[log(x), -log(x), x/x]", "--at", "x=0", "--v", "y[0]=1")
    assert found["value"]["y"] == ["-Infinity", "Infinity", "NaN"]
    assert cli.json("jacobian", "y=-1/x", "--at", "x=0")["jacobian"] == [["Infinity"]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("backward", *THREE, "--v", "1,10,100"),
            "x0,x1,y0,y1,y2,x0.grad,x1.grad\n1.0,2.0,3.0,17.0,20.0,26.0,1240.0\n",
        ),
        (
            ("backward", "y=sum(x)", "--at", "x=[1,2]", "--at", "x=[3,4]"),
            "x[0],x[1],y,x[0].grad,x[1].grad\n1.0,2.0,3.0,1.0,1.0\n3.0,4.0,7.0,1.0,1.0\n",
        ),
        (("backward", "y=a**2*b"), "a.grad,b.grad\n2*a*b,a**2\n"),
        (("backward", "h=2*x", "y=h**2", "--at", "x=1", "--retain", "h"), "x,y,x.grad,h.grad\n1.0,4.0,8.0,4.0\n"),
        (("jacobian", "y=a*b", "--at", "a=0.1,b=1/3"), "a,b,y,dy/da,dy/db\n0.1,0.3333333333333333,"),
        (("jacobian", "y0=a*b", "y1=b"), "dy0/da,dy0/db,dy1/da,dy1/db\nb,a,0,1\n"),
    ],
)
def test_csv(cli, arguments, text):
    assert cli.done(*arguments, "-f", "csv").out.startswith(text)


NUMBERS = [1.2345678901234567e-300, 1.7976931348623157e308, 0.30000000000000004, 1234567890123456.8, 5e-324]


@pytest.mark.parametrize("columns", ["10", "80", "400"])
@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_numbers_are_never_cut_short(cli, monkeypatch, style, columns):
    monkeypatch.setenv("COLUMNS", columns)
    whole = ("-f", style, "--steps", "--digits", "full")
    out = cli.done("backward", "y=x*1", "--at", f"x={NUMBERS}", "--v", str(NUMBERS), *whole).out
    for number in NUMBERS:
        # In the point, in the value, and in the gradient.
        assert len(re.findall(rf"(?<![\d.]){re.escape(repr(number))}(?![\d.e])", out)) >= 3


# Formulas can be given back

FORMULAS = [
    "sin(x)*cos(z)+tan(x*z)",
    "x**z+2**x-x**(1/3)",
    "1/(x+z)/x-1/x**2",
    "exp(-x**2/2)/sqrt(2*pi)",
    "log(x)+log2(z)+log10(x)+log1p(z)+expm1(x)",
    "asin(x/4)+acos(z/4)+atan(x*z)+atan2(x,z)",
    "sinh(x)-cosh(z)*tanh(x)+asinh(z)+acosh(x+1)+atanh(z/4)",
    "sec(x)+csc(z)+cot(x)+cbrt(x)+hypot(x,z)",
    "abs(x-z)+max(x,z)*minimum(x,2)+sign(x)",
    "relu(x)*sigmoid(z)+softplus(x)+silu(z)+gelu(x)+leaky_relu(-x)",
    "erf(x)+erfc(z)+gamma(x)+lgamma(z)+digamma(x)",
    "where(x>z,x**2,z**2)+Piecewise((x,x<1),(z*x,True))",
    "where((x>0)&(z<1)|~(x<z),x*z,3)+clamp(x*z,0,1)",
    "where((1<2)&(x>z),x**2,z**2)+where((x>z)|(1>2),x*z,z)+where(~((1>2)&(x>z)),x**3,z)",
    "mod(x*z,0.75)+floor(x)*z+heaviside(x)*z",
    "0.1*x+x/3-1e-7*z+1e300*x*z",
    "e**x+pi**z",
    "sum([x,z,x*z])+prod([x,z,x])+mean([x,z])",
    "norm([x,z])+std([x,z,1])+var([x,2*z,3])",
    "logsumexp([x,z])+max([x,z,1])+min([x,z,x])",
    "softmax([x,z])[0]*cumsum([x,z])[1]",
]


def typed_back(cli, found, *formulas):
    """Return what printed formulas are worth, evaluated by gradcli; 0*… so that they have all inputs."""
    statements = [f"{name}={text}" for name, text in found.get("where", {}).items()]
    typed = f"typed_back=[{','.join(f'({formula})+0*x+0*z' for formula in formulas)}]"
    return cli.json("backward", *statements, typed, "--outputs", "typed_back", "--v", "ones", *XZ)["value"][
        "typed_back"
    ]


XZ = ("--at", "x=1.3,z=0.7")


@pytest.mark.parametrize("formula", some(FORMULAS))
def test_formulas_can_be_typed_back_in(cli, formula):
    found = cli.json("jacobian", f"y={formula}+0*x*z", *XZ)
    np.testing.assert_allclose(
        typed_back(cli, found, *found["symbolic"][0]), found["jacobian"][0], rtol=1e-11, atol=1e-14
    )
    grad = cli.json("backward", f"y={formula}+0*x*z", "--v", "0.1")
    (value,) = typed_back(cli, grad, grad["grad"]["x"])
    np.testing.assert_allclose(value, 0.1 * found["jacobian"][0][0], rtol=1e-11, atol=1e-14)
