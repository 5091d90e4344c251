"""The promises that shell scripts are written against, one by one: systems, values and cotangents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


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


VECTOR = ("y=3*x**2", "--at", "x=[1,2]")


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
