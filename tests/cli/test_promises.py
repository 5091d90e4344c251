"""The promises that shell scripts are written against, one by one: systems, values and cotangents."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.parametrize(("file", "text"), [("M.csv", "1,2\n3,4\n"), ("a b (1).csv", "1,2\n3,4\n")])
def test_a_declared_input_may_have_the_value_of_a_file(cli, own_folder, file, text):
    Path(file).write_text(text)
    system = f"input x = [1, 2]; input M = @{file}  # a matrix\ny = x @ M\n"
    found = cli.json("backward", "--v", "ones", stdin=system)
    assert (found["value"], found["grad"]) == ({"y": [7, 10]}, {"M": [[1, 1], [2, 2]], "x": [3, 7]})
    assert cli.json("backward", "--v", "ones", "--at", "M=[[0,0],[0,1]]", stdin=system)["value"] == {"y": [0, 2]}
    Path("points.csv").write_text("x[0],x[1]\n1,2\n")
    points = cli.done("backward", "--points", "points.csv", "--wrt", "x", "--v", "ones", stdin=system)
    assert points.out.splitlines()[1] == "3.0,7.0"


def test_a_file_that_a_declared_input_lacks_is_told_in_its_place(cli):
    told = cli.refused("backward", stdin="input x = @nosuch.npy\ny = sum(x)\n")
    assert "`nosuch.npy` cannot be read" in told
    assert "standard input, line 1" in told
    assert "a file's name is missing" in cli.refused("backward", stdin="input x = @\ny = sum(x)\n")


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
    assert "an error in today's PyTorch" in outcome.err
    assert "--strict" in outcome.err
