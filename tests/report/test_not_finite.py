"""What is said of numbers that are not finite: which, and in which operation they arose; and that no 0 hides them."""

from __future__ import annotations

import json

import pytest

# A formula that cancels to 0 is no structural zero: the number is nan.
CANCELLED = [
    ("y=exp(x)*x-x*exp(x)", "x=1000"),
    ("y=x/x", "x=0"),
    ("y=log(x)*0", "x=0"),
    ("y=floor(1/x)", "x=0"),
    ("y=0*sqrt(x)", "x=0"),
]


@pytest.mark.parametrize(("system", "at"), CANCELLED)
def test_a_cancelled_formula_hides_no_number(cli, system, at):
    found = cli.json("jacobian", system, "--at", at)
    assert (found["symbolic"], found["jacobian"]) == ([["0"]], [["NaN"]])
    assert cli.json("backward", system, "--at", at)["grad"] == {"x": "NaN"}
    for command in ("jacobian", "backward"):
        shown = cli.done(command, system, "--at", at).out
        assert " = nan" in shown
        assert "= 1·0 =" not in shown
        assert " = 0 = " not in shown
        assert r"\mathrm{nan}" in cli.done(command, system, "--at", at, "-f", "latex").out
    at_points = cli.done("jacobian", system, "--points", "-", stdin=f"x\n{at.removeprefix('x=')}\n").out
    assert at_points.splitlines() == ["dy/dx", "nan"]


@pytest.mark.parametrize("command", ["jacobian", "backward"])
def test_where_there_is_no_dependence_there_is_a_0(cli, command):
    """The sweep of y[1] passes 0·inf on to x[0], as PyTorch's does; dy[1]/dx[0] is 0 all the same."""
    system = ("y=log(x)", "--at", "x=[0,1]")
    found = cli.json("jacobian", *system)
    assert found["jacobian"] == [["Infinity", 0.0], [0.0, 1.0]]
    assert "y[1]   0" in cli.done(command, *system, *(["--v", "0,1"] if command == "backward" else [])).out
    assert json.loads(cli.done("backward", *system, "--v", "0,1", "-f", "json").out)["grad"]["x"] == ["NaN", 1.0]


@pytest.mark.parametrize(
    ("system", "why"),
    [
        ("z=detach(x)*y", "x is only used behind detach"),  # PyTorch 2.13: None, and 0 for floor(x)*y
        ("z=where(x>0, y, 2*y)", "x is only used in conditions"),
        ("z=3*y; w=x", "no output depends on x"),
        ("z=floor(x)*y", ""),
        ("z=detach(x)*y + 0*x", ""),
    ],
)
def test_a_page_says_which_gradient_is_none_in_pytorch(cli, system, why):
    command = ("backward", system, "--outputs", "z", "--at", "x=2.5,y=3")
    told = f" is None in PyTorch: {why}." if why else "is None in PyTorch"
    for style in ("table", "markdown", "json", "latex"):
        assert (told in " ".join(cli.done(*command, "-f", style).out.split())) == bool(why)
    assert ("x.grad is None" in cli.done("backward", system, "--outputs", "z").out) == bool(why)


@pytest.mark.parametrize(
    ("statement", "at", "typed"),
    [
        ("y=sqrt(x)", "x=0", "`sqrt(x + eps)`"),
        ("y=sum(where(x>0,sqrt(x),0))", "x=[0,1]", "`sqrt(where(x > 0, x, 1))`"),
        ("y=log(2*x)", "x=0", "`log(clamp(2*x, min=eps))`"),
        ("y=1/x", "x=0", "keep the divisor away from 0"),
        ("y=std(x)", "x=[2]", "give it more elements"),
    ],
)
def test_a_warning_has_its_fix_in_one_line(cli, statement, at, typed):
    """On a terminal and in documents; what it says to type is finite there."""
    outcome = cli.done("backward", statement, "--at", at)
    (line,) = [text for text in outcome.err.split("\n") if text.startswith("fix: ")]
    assert typed in " ".join(outcome.err.split())
    assert line.startswith("fix: ")
    document = cli.done("backward", statement, "--at", at, "-f", "markdown").out
    assert "fix: " in document
    if typed.startswith("`"):
        typed_instead = typed.strip("`").replace("eps", "1e-12")
        record = cli.done("backward", f"y=sum({typed_instead})", "--at", at, "-f", "json").out
        assert "Infinity" not in record
        assert "NaN" not in record
