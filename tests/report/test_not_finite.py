"""What is said of numbers that are not finite: which, and in which operation they arose; and that no 0 hides them."""

from __future__ import annotations

import json

import pytest

VALUE = "whose value is not finite"
SLOPE = "whose local derivative is not finite here"

# a system, the options of `backward`, what is not finite, and the operation that is told for all of it
TOLD = [
    ("y=log(x)", "--at x=-1", ["y is nan"], f"it arises in `log` (log(x)), {VALUE}"),
    ("y=log(x)", "--at x=0", ["y is -inf", "x.grad is inf"], f"it arises in `log` (log(x)), {VALUE}"),
    ("y=log(x)*0", "--at x=1 --at x=0", ["y is nan", "x.grad is nan"], f"it arises in `log` (log(x)), {VALUE}"),
    ("y=sqrt(x)", "--at x=0", ["x.grad is inf"], f"it arises in `sqrt` (sqrt(x)), {SLOPE}"),
    (
        "y=where(x>0, sqrt(x), 0)",
        "--at x=0",
        ["x.grad is nan"],
        f"it arises in `sqrt` (sqrt(x)), {SLOPE}: 0·inf is nan",
    ),
    ("y=3*(2+log(x)); z=x", "--at x=-1", ["y is nan"], f"it arises in `log` (log(x)), {VALUE}"),
    ("y=where(log(x)<0, 1, x)", "--at x=0", [], ""),
    ("y=[x,2,1/x]*2", "--at x=0", ["y[2] is inf", "x.grad is -inf"], f"it arises in `div` (1/x), {VALUE}"),
    # A branch that is not chosen, and an input that is not read, have nothing to do with it.
    ("y=where(x>0, log(x), x/0)", "--at x=-1", ["y is -inf", "x.grad is inf"], f"it arises in `div` (x/0), {VALUE}"),
    ("y=1/b + sqrt(x)", "--at x=0,b=inf", ["x.grad is inf"], f"it arises in `sqrt` (sqrt(x)), {SLOPE}"),
    ("y=2*x*b", "--at x=1,b=inf", ["y is inf", "x.grad is inf"], "the input b itself is not finite"),
    ("y=x+inf", "--at x=1", ["y is inf"], f"it arises in `add` (x+inf), {VALUE}"),
    ("y=2*x", "--at x=1 --v inf", ["x.grad is inf"], "v itself is not finite"),
]


@pytest.mark.parametrize(("system", "options", "what", "where"), TOLD)
def test_the_operation_is_named(cli, system, options, what, where):
    v = [] if "--v" in options else ["--v", "ones"]
    outcome = cli.done("backward", system, *options.split(), *v)
    told = [line for line in outcome.err.splitlines() if not line.startswith("fix: ")]
    assert told == [f"warning: {number}: {where}" for number in what]


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
        assert (" = 0 = nan" if command == "jacobian" else " = nan") in shown
        assert "= 1·0 =" not in shown
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


@pytest.mark.parametrize("v", ["nan", "inf"])
def test_a_weight_that_is_not_finite_meets_no_entry_that_is_zero_everywhere(cli, v):
    # PyTorch's x.grad is tensor([2., nan]), or tensor([2., inf]): each element has its own product
    out = cli.done("backward", "y=2*x", "--at", "x=[1,2]", "--v", f"1,{v}", "--only", "grad").out
    assert out == f"x.grad = 2*v = [1·2, {v}·2] = [2, {v}]\n"


@pytest.mark.parametrize(
    ("system", "at", "told"),
    [
        ("y=-sum(p*log(p))", "p=[0,0.5]", "nan here is 0·inf: log(p) has the adjoint 0 and the derivative 1/p = inf."),
        ("y=x*log(x)", "x=0", "nan here is 0·inf: log(x) has the adjoint 0 and the derivative 1/x = inf."),
        ("y=1/x + log(x)", "x=0", "nan here is inf - inf: the adjoint of x adds up both."),
        ("y=x**2", "x=nan", ""),
        ("y=sqrt(x)*0", "x=0", ""),  # whose arithmetic is on the page: 1·0·inf
    ],
)
def test_a_page_says_why_a_gradient_is_nan_where_its_formula_is_not(cli, monkeypatch, system, at, told):
    monkeypatch.setenv("COLUMNS", "200")
    for style in ("table", "markdown"):
        out = cli("backward", system, "--at", at, "-f", style).out
        assert "nan" in out
        if style == "table":
            assert (told in out) if told else ("nan here" not in out)
        else:
            assert ("nan here" in out) == bool(told)


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
    ("system", "at", "says"),
    [
        ("y=x**p", "x=0,p=2", "x**p*log(x) as written is nan here: the rule takes 0, as PyTorch does."),
        ("y=x/x", "x=0", "x.grad is nan, because x/x is nan. Simplified, the derivative is 0, which cancels it."),
    ],
)
def test_a_formula_whose_value_is_another_says_why(cli, system, at, says):
    assert says in " ".join(cli.done("backward", system, "--at", at).out.split())


def test_a_slope_of_0_divided_by_0_that_the_rule_takes_for_0_has_no_arithmetic(cli):
    out = cli.done("backward", "y=std([u[0],u[0]])+u[0]+u[1]", "--at", "u=[0,0]").out
    assert "u.grad = [1, 1]" in out
    assert "nan" not in out


@pytest.mark.parametrize("system", ["y=where(x>0,x,0)", "y=relu(x)"])
def test_a_comparison_with_nan_is_not_called_nan(cli, system):
    assert "as written" not in cli.done("backward", system, "--at", "x=nan").out


@pytest.mark.parametrize(
    ("statement", "at", "typed"),
    [
        ("y=sqrt(x)", "x=0", "`sqrt(x + eps)`"),
        ("y=sum(where(x>0,sqrt(x),0))", "x=[0,1]", "`sqrt(where(x > 0, x, 1))`"),
        ("y=log(2*x)", "x=0", "`log(clamp(2*x, min=eps))`"),
        ("y=1/x", "x=0", "keep the divisor away from 0"),
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
