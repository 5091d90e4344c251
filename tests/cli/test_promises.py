"""The promises that shell scripts are written against, one by one."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import HANG, environment, interruptible

TWO_TO_THREE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
AT = ("--at", "x0=1,x1=2")
VALUE = {"y0": 3, "y1": 17, "y2": 20}
FILE = """\
# two inputs, three outputs
input x0 = 1
input x1 = 2   # a comment
y0 = 3*x0**2
y1 = x0**2 + 2*x1**3

y2 = 10*x1
"""


# The system


@pytest.mark.parametrize(
    "system",
    [
        TWO_TO_THREE,
        (";".join(TWO_TO_THREE),),
        ("\n".join(TWO_TO_THREE),),
        (" ; ".join(TWO_TO_THREE) + ";",),
        ("y0 = 3*x0^2; y1 = (x0**2 +\n 2*x1**3)", "y2=10*x1  # ten"),
    ],
    ids=["one each", "semicolons", "newlines", "spaces", "mixed"],
)
def test_statements(cli, system):
    assert cli.json("jacobian", *system, *AT)["value"] == VALUE


@pytest.mark.parametrize(
    ("system", "rows"),
    [
        (("x**2",), ["y"]),
        (("x**2", "3*x"), ["y0", "y1"]),
        (("x**2; 3*x", "x"), ["y0", "y1", "y2"]),
        (("h=x**2", "3*h"), ["y"]),
        (("w=x**2", "3*x"), ["w", "y"]),
    ],
)
def test_bare_expressions_are_named(cli, system, rows):
    assert cli.json("jacobian", *system)["rows"] == rows


def test_a_file_has_comments_and_inputs_with_defaults(cli, tmp_path):
    path = tmp_path / "system.grad"
    path.write_text(FILE)
    assert cli.json("jacobian", "-F", str(path))["value"] == VALUE
    assert cli.json("jacobian", "--file", str(path))["at"] == {"x0": 1, "x1": 2}


@pytest.mark.parametrize("arguments", [(), ("-F", "-")], ids=["neither EXPR nor -F", "-F -"])
def test_standard_input_is_read(cli, arguments):
    assert cli.json("backward", *arguments, "--v", "1,10,100", stdin=FILE)["grad"] == {"x0": 26, "x1": 1240}


def test_standard_input_is_not_read_beside_an_expr(cli):
    assert cli.json("jacobian", "y=x", stdin="no system )")["rows"] == ["y"]


def test_a_file_and_expr_make_one_system(cli):
    found = cli.json("jacobian", "z=y0+y1", "-F", "-", stdin=FILE)
    assert found["rows"] == ["y2", "z"]
    assert found["value"] == {"y2": 20, "z": 20}


def test_a_point_overrides_the_defaults_that_it_names(cli):
    found = cli.json("jacobian", "-F", "-", "--at", "x1=3", stdin=FILE)
    assert found["at"] == {"x0": 1, "x1": 3}
    assert found["value"] == {"y0": 3, "y1": 55, "y2": 30}


def test_a_declared_input_has_its_shape(cli):
    found = cli.json("backward", "--v", "ones", stdin="input x = [1, 2]\ninput M = [[1,2],[3,4]]\ny = x @ M\n")
    assert found["value"] == {"y": [7, 10]}
    assert found["grad"] == {"M": [[1, 1], [2, 2]], "x": [3, 7]}


@pytest.mark.parametrize(
    ("system", "value"),
    [
        ("y[0]=x; y[1]=2*x", [3, 6]),
        ("y[1]=x; y[0]=2*x", [6, 3]),
        ("y[0]=x; y[1]=y[0]**2", [3, 9]),
        ("y[0,0]=x; y[0,1]=1; y[1,0]=2; y[1,1]=x**2", [[3, 1], [2, 9]]),
        ("h[0]=x; h[1]=2*x; y=h*h", [9, 36]),
    ],
)
def test_an_output_is_assembled_element_by_element(cli, system, value):
    assert cli.json("jacobian", system, "--at", "x=3")["value"] == {"y": value}


def test_inputs_are_never_assigned_and_outputs_never_used(cli):
    found = cli.json("jacobian", "h=a*b", "y=h+c", "z=2*a")
    assert found["columns"] == ["a", "b", "c"]
    assert found["rows"] == ["y", "z"]


def test_inputs_stand_in_natural_order(cli):
    assert cli.json("jacobian", "y=x10*x2*x1*b*a")["columns"] == ["a", "b", "x1", "x2", "x10"]


def test_wrt_chooses_and_orders_and_leaves_constants(cli):
    found = cli.json("backward", "y=a*b*c", "--at", "a=2,b=3,c=5", "--wrt", "c,a")
    assert list(found["grad"].items()) == [("c", 6), ("a", 15)]
    assert cli.json("jacobian", "y=a*b*c", "--wrt", "c,a")["columns"] == ["c", "a"]


def test_outputs_chooses_and_orders(cli):
    found = cli.json("jacobian", *TWO_TO_THREE, *AT, "--outputs", "y2,y0")
    assert found["rows"] == ["y2", "y0"]
    assert found["jacobian"] == [[0, 10], [6, 0]]
    intermediate = cli.json("jacobian", "h=x**2", "y=3*h", "--outputs", "h")
    assert intermediate["symbolic"] == [["2*x"]]


# Values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3", 1 / 3),
        ("pi/2", math.pi / 2),
        ("e", math.e),
        ("1e-3", 1e-3),
        ("-2.5", -2.5),
        ("2**10", 1024),
        ("2^10", 1024),
        ("sqrt(2)", math.sqrt(2)),
        ("[1,2]", [1, 2]),
        ("[1/3, -pi]", [1 / 3, -math.pi]),
        ("[[1,2],[3,4]]", [[1, 2], [3, 4]]),
        (" [ 1 , 2 ] ", [1, 2]),
    ],
)
def test_values(cli, text, value):
    assert cli.json("backward", "y=2*x", "--at", f"x={text}", "--v", "ones")["at"] == {"x": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [("5\n", 5), ("1,2,3\n", [1, 2, 3]), ("1\n2\n", [1, 2]), ("1,2.5\n3e-1,4\n", [[1, 2.5], [0.3, 4]])],
)
def test_a_value_in_a_csv_file(cli, tmp_path, text, value):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert cli.json("backward", "y=2*x", "--at", f"x=@{path}", "--v", "ones")["at"] == {"x": value}


@pytest.mark.parametrize("array", [np.float64(0.1), np.arange(3), np.array([[1, 2.5]]), np.ones((2, 2), order="F")])
def test_a_value_in_an_npy_file(cli, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    found = cli.json("backward", "y=2*x", "--at", f"x=@{tmp_path / 'x.npy'}", "--v", "ones")
    assert found["at"] == {"x": array.tolist()}


def test_each_at_is_one_point(cli):
    first, second = cli.done("jacobian", "y=a*b", "--at", "a=1,b=2", "--at", "b=4, a=3", "-f", "json").objects
    assert [first["jacobian"], second["jacobian"]] == [[[2, 1]], [[4, 3]]]


def test_shape_gives_shapes_where_there_is_no_point(cli):
    found = cli.json("jacobian", "y=x@M", "--shape", "x=3,M=3x2", "--wrt", "x")
    assert found["columns"] == ["x[0]", "x[1]", "x[2]"]
    assert found["symbolic"] == [["M[0,0]", "M[1,0]", "M[2,0]"], ["M[0,1]", "M[1,1]", "M[2,1]"]]


# The cotangent

VECTOR = ("y=3*x**2", "--at", "x=[1,2]")
MATRIX = ("y=x*x", "--at", "x=[[1,2],[3,4]]")
THREE = (*TWO_TO_THREE, *AT)


@pytest.mark.parametrize(
    ("system", "v", "expected"),
    [
        (THREE, "1,10,100", {"y0": 1, "y1": 10, "y2": 100}),
        (THREE, "[1,10,100]", {"y0": 1, "y1": 10, "y2": 100}),
        (THREE, "1/2, pi, -1e-3", {"y0": 0.5, "y1": math.pi, "y2": -1e-3}),
        (THREE, "y0=1,y2=100", {"y0": 1, "y1": 0, "y2": 100}),
        (THREE, "ones", {"y0": 1, "y1": 1, "y2": 1}),
        (THREE, "onehot:1", {"y0": 0, "y1": 1, "y2": 0}),
        (THREE, "onehot:y1", {"y0": 0, "y1": 1, "y2": 0}),
        (VECTOR, "1,10", {"y": [1, 10]}),
        (VECTOR, "[1,10]", {"y": [1, 10]}),
        (VECTOR, "y=[1,10]", {"y": [1, 10]}),
        (VECTOR, "onehot:y[1]", {"y": [0, 1]}),
        (MATRIX, "[[1,0],[0,1]]", {"y": [[1, 0], [0, 1]]}),
        (MATRIX, "ones", {"y": [[1, 1], [1, 1]]}),
        (MATRIX, "onehot:2", {"y": [[0, 0], [1, 0]]}),
        (MATRIX, "onehot:y[0,1]", {"y": [[0, 1], [0, 0]]}),
        (("y=x**2", "--at", "x=3"), "100", {"y": 100}),
        (("y=x**2", "--at", "x=3"), "-1e-3", {"y": -1e-3}),
        (("ones=x", "onehot=2*x", "--at", "x=3"), "ones=1,onehot=2", {"ones": 1, "onehot": 2}),
        (("onehot=2*x", "--at", "x=3"), "onehot=2", {"onehot": 2}),
    ],
)
def test_v(cli, system, v, expected):
    (call,) = cli.json("backward", *system, "--v", v)["calls"]
    assert call["v"] == expected


def test_v_in_a_file(cli, tmp_path):
    np.save(tmp_path / "v.npy", [1, 10])
    assert cli.json("backward", *VECTOR, "--v", f"@{tmp_path / 'v.npy'}")["grad"] == {"x": [6, 120]}


def test_v_from_another_backward_is_matched_by_name(cli):
    second = cli.done("backward", "y=a*b*c", "--at", "a=2,b=3,c=5", "-f", "json")
    found = cli.json("backward", "b=x**2", "a=2*x", "d=x", "--at", "x=1", "--v", "-", stdin=second.out)
    assert found["calls"][0]["v"] == {"b": 10, "a": 15, "d": 0}
    assert found["grad"] == {"x": 50}


def test_v_from_another_backward_goes_point_by_point(cli):
    second = cli.done("backward", "y=h**2", "--at", "h=1", "--at", "h=4", "-f", "json")
    first = cli.done("backward", "h=x**2", "--at", "x=1", "--at", "x=2", "--v", "-", "-f", "json", stdin=second.out)
    assert [line["grad"] for line in first.objects] == [{"x": 4}, {"x": 32}]


def test_v_that_is_not_finite_passes_a_pipe(cli):
    second = cli.done("backward", "y=log(h)", "--at", "h=0", "-f", "json")
    assert cli.json("backward", "h=x", "--at", "x=0", "--v", "-", stdin=second.out)["grad"] == {"x": "Infinity"}


def test_without_v_only_a_single_scalar_output_gets_one(cli):
    assert cli.json("backward", "y=x**2", "--at", "x=3")["calls"][0]["v"] == {"y": 1}
    for system in (VECTOR, THREE):
        assert "grad can be implicitly created only for scalar outputs" in cli.refused("backward", *system)


def test_a_repeated_v_accumulates(cli):
    found = cli.json("backward", *VECTOR, "--v", "1,10", "--v", "onehot:0", "--v", "ones")
    assert [call["grad"]["x"] for call in found["calls"]] == [[6, 120], [12, 120], [18, 132]]
    assert found["grad"] == {"x": [18, 132]}


def test_a_longer_v_is_broadcast_with_a_note(cli):
    outcome = cli.done("backward", "y=x**2", "--at", "x=1", "--v", "1,10,100,1000", "-f", "json")
    assert [call["grad"]["x"] for call in outcome.objects[0]["calls"]] == [2, 22, 222, 2222]
    assert outcome.err.startswith("note: ")
    assert "PyTorch refuses this" in outcome.err
    assert "--strict" in outcome.err


@pytest.mark.parametrize("strict", [(), ("--strict",)], ids=["lenient", "strict"])
@pytest.mark.parametrize(
    ("system", "v"), [(VECTOR, "1"), (VECTOR, "1,2,3"), (VECTOR, "[[1,2]]"), (MATRIX, "1,2"), (THREE, "1,2")]
)
def test_any_other_mismatch_is_always_refused(cli, system, v, strict):
    assert "of v against" in cli.refused("backward", *system, "--v", v, *strict)


# What is shown


def test_retain_shows_intermediates(cli):
    system = ("a=2*x", "b=a**2", "y=3*b", "--at", "x=1")
    assert "retained" not in cli.json("backward", *system)
    assert cli.json("backward", *system, "--retain", "b")["retained"] == {"b": 3}
    assert cli.json("backward", *system, "--retain", "b,a")["retained"] == {"a": 12, "b": 3}
    assert cli.json("backward", *system, "--retain", "all")["retained"] == {"a": 12, "b": 3, "y": 1}


def test_retain_accumulates_as_grad_does(cli):
    found = cli.json("backward", "a=2*x", "y=a**2", "--at", "x=1", "--v", "1,10", "--retain", "a")
    assert found["retained"] == {"a": 44}


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


def test_elements_are_called_by_their_indices(cli):
    found = cli.json("jacobian", "y=x@M", "--shape", "x=2,M=2x1")
    assert found["rows"] == ["y[0]"]
    assert found["columns"] == ["M[0,0]", "M[1,0]", "x[0]", "x[1]"]


def test_json_is_one_line_a_point_in_full_precision(cli):
    values = [0.1, 1 / 3, 2**0.5, 1.2345678901234567e-300, 1.7976931348623157e308]
    points = [option for value in values for option in ("--at", f"x={value!r}")]
    outcome = cli.done("backward", "y=x*1", *points, "-f", "json")
    assert [found["value"]["y"] for found in outcome.objects] == values


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


# What each format says of ∂y2/∂x1, or of x1.grad, with one blank for many; none of it stands in the system.
RESULTS = {
    ("jacobian", "numbers"): {
        "table": "y2 0 10",
        "json": "[2.0, 24.0], [0.0, 10.0]]",
        "csv": ",24.0,0.0,10.0",
        "latex": r"6 x_{1}^{2} = 24 \\ y_{2} & 0 & 10 \end",
        "markdown": r"6 x_{1}^{2} = 24 \\ y_{2} & 0 & 10 \end",
    },
    ("jacobian", "formulas"): {
        "table": "y2 0 10",
        "json": '"6*x1**2"], ["0", "10"]]',
        "csv": ",6*x1**2,0,10",
        "latex": r"6 x_{1}^{2} \\ y_{2} & 0 & 10 \end",
        "markdown": r"6 x_{1}^{2} \\ y_{2} & 0 & 10 \end",
    },
    ("backward", "numbers"): {
        "table": "x1.grad = 10·24 + 100·10 = 1240",
        "json": '"grad": {"x0": 26.0, "x1": 1240.0}}',
        "csv": ",26.0,1240.0",
        "latex": r"x_{1}\mathtt{.grad} &= 10 \cdot 24 + 100 \cdot 10 = 1240",
        "markdown": r"x_{1}\mathtt{.grad} &= 10 \cdot 24 + 100 \cdot 10 = 1240",
    },
    ("backward", "formulas"): {
        "table": "x1.grad = 10·(6*x1**2) + 100·10 = 60*x1**2 + 1000",
        "json": '"grad": {"x0": "26*x0", "x1": "60*x1**2 + 1000"}}',
        "csv": "26*x0,60*x1**2 + 1000",
        "latex": r"100 \cdot 10 = 60 x_{1}^{2} + 1000",
        "markdown": r"100 \cdot 10 = 60 x_{1}^{2} + 1000",
    },
}


@pytest.mark.parametrize("style", ["table", "json", "csv", "latex", "markdown"])
@pytest.mark.parametrize(("command", "form"), RESULTS)
def test_every_format_shows_the_result(cli, command, form, style):
    options = (*(AT if form == "numbers" else ()), *(("--v", "1,10,100") if command == "backward" else ()))
    outcome = cli.done(command, *TWO_TO_THREE, *options, "--format", style)
    assert outcome.err == ""
    assert RESULTS[command, form][style] in " ".join(outcome.out.split())


def test_table_is_the_default(cli):
    assert cli.done("jacobian", *TWO_TO_THREE).out == cli.done("jacobian", *TWO_TO_THREE, "-f", "table").out


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


@pytest.mark.parametrize("style", ["latex", "markdown"])
def test_numbers_are_not_cut_short_in_latex(cli, style):
    whole = ("-f", style, "--digits", "full")
    out = cli.done("backward", "y=x*1", "--at", f"x={NUMBERS}", "--v", "ones", *whole).out
    for number in NUMBERS:
        mantissa, exponent, power = repr(number).partition("e")
        assert (rf"{mantissa} \times 10^{{{int(power)}}}" if exponent else mantissa) in out


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


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_can_be_typed_back_in(cli, formula):
    found = cli.json("jacobian", f"y={formula}+0*x*z", *XZ)
    np.testing.assert_allclose(
        typed_back(cli, found, *found["symbolic"][0]), found["jacobian"][0], rtol=1e-11, atol=1e-14
    )
    grad = cli.json("backward", f"y={formula}+0*x*z", "--v", "0.1")
    (value,) = typed_back(cli, grad, grad["grad"]["x"])
    np.testing.assert_allclose(value, 0.1 * found["jacobian"][0][0], rtol=1e-11, atol=1e-14)


def deep(x: str) -> list[str]:
    """Return a system whose formulas are shown through named intermediates."""
    return [f"a0={x}*z", *(f"a{k + 1}=sin(a{k})*a{k}+{x}" for k in range(30)), "y=a30*z"]


def test_deep_formulas_can_be_typed_back_in(cli):
    found = cli.json("jacobian", *deep("x"), *XZ, "--outputs", "y")
    np.testing.assert_allclose(typed_back(cli, found, *found["symbolic"][0]), found["jacobian"][0], rtol=1e-9)


def test_names_that_formulas_make_up_are_not_the_users(cli):
    made_up = [name for name in cli.json("jacobian", *deep("x"))["where"] if not re.fullmatch(r"a\d+", name)]
    assert made_up
    for name in made_up[:3]:
        assert name not in cli.json("jacobian", *deep(name))["where"]


@pytest.mark.parametrize("formula", ["-sin(x)", "-x**2", "-2*x", "-(x + 1)"])
def test_a_formula_may_begin_with_a_sign(cli, formula):
    assert cli.json("jacobian", formula) == cli.json("jacobian", f"y={formula}")


# Where it goes, and how it ends


@pytest.mark.parametrize(
    ("expression", "x", "operation"),
    [
        ("sqrt(x)", 0, "`sqrt` (sqrt(x))"),
        ("log(x)", 0, "`log` (log(x))"),
        ("1/x", 0, "`div` (1/x)"),
        ("sin(x)+3*x**(-1/2)", 0, "`pow` (x**(-1/2))"),
        ("exp(exp(x))", 9, "`exp` (exp(exp(x)))"),
        ("asin(x)", 1, "`asin` (asin(x))"),
        ("sqrt(x)", -1, "`sqrt` (sqrt(x))"),
    ],
)
@pytest.mark.parametrize("command", ["backward", "jacobian"])
def test_a_gradient_that_is_not_finite_is_a_warning(cli, command, expression, x, operation):
    outcome = cli.done(command, f"y={expression}", "--at", f"x={x}", "-f", "csv")
    assert re.search("nan|inf", outcome.out)
    assert outcome.err.startswith("warning: ")
    assert operation in outcome.err


def test_notes_go_to_standard_error(cli):
    outcome = cli.done("backward", "h=2*x", "y=h**2", "--at", "x=1")
    assert outcome.err.startswith("note: h.grad: None in PyTorch")
    assert "--retain h" in outcome.err
    assert "note" not in outcome.out
    assert cli.done("backward", "h=2*x", "y=h**2", "--at", "x=1", "--retain", "h").err == ""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("backward", "y=x", "--at", "x=1", "-f", "json"), 0),
        (("--version",), 0),
        (("backward", "y=x)"), 2),
        (("nonsense",), 2),
    ],
)
def test_exit_status_of_a_process(process, arguments, status):
    outcome = process(*arguments)
    assert outcome.status == status
    assert bool(outcome.out) == (status == 0)
    assert bool(outcome.err) == (status != 0)


LEAVING = """
import atexit, sys, types
from gradcli.cli.status import leave
class Threads(types.ModuleType):
    def __del__(self):
        print("aborted")
sys.modules["threads"] = Threads("threads")
atexit.register(print, "and cleaned up")
print("printed")
leave(3)
"""


def test_at_the_end_nothing_is_taken_down():
    """What Python would do at its end to modules, C++ does to the threads of pyarrow, which abort the process then."""
    command = [sys.executable, "-c", LEAVING]
    done = subprocess.run(command, capture_output=True, timeout=HANG, check=False, text=True)
    assert done.returncode == 3
    assert done.stdout == "printed\nand cleaned up\n"
    assert not done.stderr


def test_the_process_prints_what_the_fixture_captures(process, cli):
    arguments = ("backward", "h=x**2", "y=sqrt(h)", "--at", "x=0")
    assert process(*arguments) == cli(*arguments)


def start(*command, **options) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(("style", "count"), [("table", 300), ("json", 1000)])
def test_a_closed_pipe_ends_quietly(forked, style, count):
    points = [option for k in range(count) for option in ("--at", f"x={k}")]  # more than a pipe holds
    with start(forked, "backward", "y=sin(x)+x**2", *points, "-f", style, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(HANG) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_an_interrupt_ends_with_130(tmp_path):
    path = tmp_path / "endless.grad"
    os.mkfifo(path)
    command = (sys.executable, "-m", "gradcli", "jacobian", "-F", path)
    with start(*command, stdout=subprocess.PIPE, preexec_fn=interruptible) as process:
        with open(path, "wb"):  # waits until gradcli reads
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANG)
        assert process.returncode == 130
        assert err.decode().split() == ["interrupted"]


@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [(("jacobian", "y=x"), ">&-"), (("jacobian", "-F", "-"), "<&-"), (("backward", "y=x", "--v", "-"), "<&-")],
    ids=["no stdout", "no stdin", "no stdin for v"],
)
def test_a_stream_that_is_closed_is_no_fault_of_ours(arguments, redirection):
    script = f'exec "$@" {redirection}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "gradcli", *arguments]
    done = subprocess.run(command, env=environment(), stderr=subprocess.PIPE, timeout=HANG, check=False)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    assert b"gradcli failed" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_a_full_disk_is_told(forked):
    with open("/dev/full", "wb") as full, start(forked, "jacobian", "y=x", stdout=full) as process:
        err = process.stderr.read().decode()
        assert process.wait(HANG) == 2
    assert err == "error: the result cannot be written: no space left on device\n"


@pytest.fixture
def terminal(forked):
    """Return what a command prints at a terminal."""

    def run(*arguments, **env):
        reader, writer = pty.openpty()
        streams = {"stdin": writer, "stdout": writer, "stderr": writer}
        with subprocess.Popen([forked, *arguments], env=environment(TERM="xterm", **env), **streams):
            os.close(writer)
            printed = b""
            try:
                while data := os.read(reader, 4096):
                    printed += data
            except OSError:  # Linux: the other side is closed
                pass
        os.close(reader)
        return printed.decode().replace("\r\n", "\n")

    return run


COLOUR = re.compile(r"\x1b\[[\d;]*(?:3|4|9|10)\d[\d;]*m")
STYLE = re.compile(r"\x1b\[[\d;]*m")


def test_a_terminal_gets_the_same_text_and_a_pipe_no_colour(cli, terminal, monkeypatch):
    arguments = ("backward", "y=x**2", "--at", "x=3")
    piped = cli(*arguments).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in piped + cli(*arguments).out
    shown = terminal(*arguments)
    assert STYLE.search(shown)
    assert [line.rstrip() for line in STYLE.sub("", shown).splitlines()] == piped.splitlines()


def test_no_color_is_honoured(terminal):
    shown = terminal("backward", "y=x**2", "--at", "x=3", NO_COLOR="1")
    assert " = 1·6 = 6" in shown
    assert not COLOUR.search(shown)


def test_a_terminal_is_not_read_for_a_system(terminal):
    assert "no system is given" in terminal("backward", "--at", "x=1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(process, shell):
    if shell == "bash" and not shutil.which("bash"):
        pytest.skip("needs bash")
    script = process(env={"_GRADCLI_COMPLETE": f"{shell}_source"})
    assert (script.status, script.err) == (0, "")
    assert f"_GRADCLI_COMPLETE={shell}_complete" in script.out


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("gradcli back", {"backward"}),
        ("gradcli backward --st", {"--strict", "--steps", "--standalone"}),
        ("gradcli jacobian -f j", {"json"}),
    ],
)
def test_shell_completion_knows_commands_options_and_formats(process, words, completions):
    env = {"_GRADCLI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert {line.split(",")[-1] for line in process(env=env).out.splitlines()} == completions


def test_version(cli):
    assert re.fullmatch(r"gradcli \d+\.\d+\.\d+\S*\n", cli.done("--version").out)


def test_every_line_of_json_stands_alone(cli):
    out = cli.done("jacobian", "y=x", "--at", "x=1", "--at", "x=2", "-f", "json").out
    assert [json.loads(line)["at"] for line in out.splitlines()] == [{"x": 1}, {"x": 2}]
