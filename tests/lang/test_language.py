"""The language: its operators, exact numbers and names."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gradcli import evaluate, parse


def value(text: str, **point):
    """Return what the last statement of a system is worth at a point."""
    arrays = {name: np.asarray(v, dtype=float) for name, v in point.items()}
    graph = parse(text, **{name: a.shape for name, a in arrays.items()})
    (found,) = evaluate(graph, {name: a[..., None] for name, a in arrays.items()}).values()
    return found[..., 0]


# Operators

VARIABLES = {"a": 0.75, "b": -1.5, "c": 2.25, "d": 0.3}
OPERATORS = ["+", "-", "*", "/", "**", "^", " - ", " * "]


def grown(parts):
    """Return larger expressions; a number never meets another, as gradcli works those out exactly."""
    operators = st.sampled_from(OPERATORS)
    number = st.sampled_from(["1", "2", "3", "0.5"])
    return st.one_of(
        st.tuples(parts, operators, parts).map("".join),
        st.tuples(number, operators, parts).map("".join),
        st.tuples(parts, operators, number).map("".join),
        parts.map("({})".format),
        parts.map("-{}".format),
        parts.map("+{}".format),
    )


EXPRESSIONS = st.recursive(st.sampled_from(sorted(VARIABLES)), grown, max_leaves=8)


def python_value(text: str) -> float:
    """Return what Python's float arithmetic makes of an expression of this file's own."""
    for number in ("1", "2", "3"):
        text = text.replace(number, f"{number}.0")
    try:
        found = eval(text.replace("0.5.0", "0.5").replace("^", "**"), {"__builtins__": {}}, dict(VARIABLES))
    except ArithmeticError:
        return math.nan
    return found if isinstance(found, float) else math.nan


@settings(max_examples=examples(250), deadline=None)
@given(text=EXPRESSIONS)
@example(text="-a**2")
@example(text="c**-a**2")
@example(text="c**a**d")
@example(text="2^c^2/3")
@example(text="a-b-c")
@example(text="a/b/c*d")
@example(text="a - -b**2*-c")
def test_operators_bind_as_in_python(text):
    expected = python_value(text)
    assume(abs(expected) < 1e100)
    assert value(f"y={text}", **VARIABLES) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_condition_is_a_mask_of_what_it_is_multiplied_by():
    x = np.array([-1.0, 0.0, 2.0, 5.0])
    np.testing.assert_array_equal(value("(x >= 0)*x**2*(x < 3)", x=x), (x >= 0) * x**2 * (x < 3))


# Numbers are exact


ZEROS = ["0.0", "-0.0", "-0.", "-0e3", "-0", "--0.0", "+(-0.0)", "-(1 - 1)", "-(0.5 - 0.5)", "0.0 - 0", "-0.0 - 0"]
ZEROS += ["-0.0 + 0.0", "-0.0 + -0.0", "-0.0 - 0.0", "-0.0 - -0.0", "0.0*-3", "-0.0*-3", "-0.0/2", "0.0/-2"]
ZEROS += ["(-0.0)**3", "(-0.0)**2", "-0.0**2", "-1e-400"]


@pytest.mark.parametrize("zero", ZEROS)
def test_a_zero_has_the_sign_that_it_has_in_python(cli, tmp_path, zero):
    """PyTorch's zeros have it, too: it decides what a division by it gives."""
    point = tmp_path / "points.csv"
    point.write_text("b\n1\n")
    expected = "Infinity" if math.copysign(1, eval(zero)) > 0 else "-Infinity"
    assert cli.json("backward", "y=b/a", "--at", f"a={zero},b=1")["value"] == {"y": expected}
    assert cli.json("backward", "y=b/a[1]", "--at", f"a=[0,{zero}],b=1")["value"] == {"y": expected}
    assert cli.json("backward", "--at", "b=1", stdin=f"input a = {zero}\ny=b/a")["value"] == {"y": expected}
    assert cli.json("backward", f"y=b/({zero})", "--at", "b=1")["value"] == {"y": expected}
    assert str(cli.json("backward", "y=b", "--at", "b=1", f"--v={zero}")["grad"]["b"]) == str(float(eval(zero)))
    grad = cli.done("backward", "y=b/a", "--at", f"a={zero}", "--points", str(point)).out
    assert grad == f"a.grad,b.grad\n-inf,{expected[:-5].lower()}\n"


# Names


@pytest.mark.parametrize("name", ["gamma", "E", "lambda_", "sin", "zeta", "Symbol", "_", "input", "in_"])
def test_names_that_are_functions_elsewhere_are_variables(cli, name):
    assert cli.json("backward", f"y={name}**2", "--at", f"{name}=3", "--v", "10")["grad"] == {name: 60}
    assert cli.json("jacobian", f"y={name}**2")["symbolic"] == [[f"2*{name}"]]


def test_a_name_is_a_function_only_where_it_is_called():
    assert value("y=gamma(gamma)*sin(sin)", gamma=4, sin=1) == pytest.approx(6 * math.sin(1))
    assert value("sum=2*x; y=sum(sum)", x=[1, 2]) == 6


def test_pi_and_e_are_constants_until_they_are_assigned_or_supplied(cli):
    assert value("y=pi*x+e", x=1) == pytest.approx(math.pi + math.e)
    assert cli.json("jacobian", "y=pi*e*x")["columns"] == ["x"]
    assert value("pi=3*x; y=pi*x", x=2) == 12
    found = cli.json("backward", "y=pi*x**2+exp(e)", "--at", "x=2,pi=3,e=0")
    assert found["grad"] == {"e": 1, "pi": 4, "x": 12}
    assert cli.json("jacobian", stdin="input e = 2\ny = e**2\n")["jacobian"] == [[4]]


def test_the_constants_of_formulas_are_not_taken_for_variables(cli):
    """Where `e` and `pi` are variables, a formula that needs the constants writes them in another way."""
    found = cli.json("jacobian", "y=e*acos(-1)*x+pi*exp(1)", "--at", "e=2,pi=5,x=1")
    by_e, by_pi, by_x = found["symbolic"][0]
    for formula, expected in ((by_e, math.pi), (by_pi, math.e), (by_x, 2 * math.pi)):
        again = cli.json("jacobian", f"f={formula}+0*e*pi*x", "--at", "e=2,pi=5,x=1")
        assert again["value"]["f"] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("text", ["x^2", "x**2", "x·x", "x *\tx", "x.pow(2)", "pow(x, 2)", "square(x)"])
def test_ways_to_write_a_square(text):
    assert value(f"y={text}", x=3) == 9


def test_another_name_is_the_same_node():
    graph = parse("h=2*x; k=h; y=x; z=k+y; w=k")
    x, h = graph.inputs["x"], graph.names["h"]
    assert list(graph.names) == ["h", "k", "y", "z", "w"]
    assert graph.names["k"] is graph.outputs["w"] is h
    assert graph.names["y"] is x
    assert [graph.labels[n] for n in (x, h, graph.outputs["z"])] == ["x", "h", "z"]
    assert [n.op for n in graph.nodes] == ["input", "const", "mul", "add"]
