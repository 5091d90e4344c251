"""What each format prints of a result, and formulas that can be typed back in."""

from __future__ import annotations

import re

import pytest
from test_promises import AT, TWO_TO_THREE, VALUE, VECTOR


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
