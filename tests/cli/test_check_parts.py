"""gradcli check: claims about elements, rows and the elements of a loop."""

import json
import re

import numpy as np
import pytest
from conftest import some

VECTOR = ("r = x**2*z", "x=3", lambda x, z: x**2 * z)
LINEAR = ("r = P@x", "x=3,P=2x3", lambda P, x: P @ x)
CUBE = ("f = sum(x**3)", "x=3", lambda x: np.sum(x**3))
PRODUCT = ("r[0] = x[0]; r[i] = r[i-1]*x[i] for i in 1..3", "x=4", np.cumprod)


def _flat(page):
    return " ".join(page.split())


RIGHT = [
    (VECTOR, "dr[0]/dx[0] = 2*x[0]*z"),
    (VECTOR, "dr[-1]/dx[-1] = 2*x[2]*z"),
    (VECTOR, "dr[0]/dx[1] = 0"),
    (VECTOR, "dr[1:]/dz = x[1:]**2"),
    (VECTOR, "dr[i]/dx[i] = 2*x[i]*z for i in 0..2"),
    (VECTOR, "dr[i]/dx[i] = 2*x[i]*z for i in 1..2"),
    (VECTOR, "dr[2-i]/dx[2-i] = 2*x[2-i]*z for i in 0..2"),
    (VECTOR, "dr[i]/dx[i-1] = 0 for i in 1..2"),
    (VECTOR, "dr[i]/dx[j] = 2*x[i]*z if i == j else 0 for i in 0..2 for j in 0..2"),
    (VECTOR, "dr[i]/dx[1] = 2*x[1]*z if i == 1 else 0 for i in 0..2"),
    (VECTOR, "dr[i]/dx = [2*x[0]*z, 0, 0] if i == 0 else [0, 2*x[1]*z, 0] for i in 0..1"),
    (VECTOR, "dr[i]/dz = x[i]**2 for i in 0..2"),
    (VECTOR, "d2r[i]/dx[i]2 = 2*z for i in 0..2"),
    (VECTOR, "d2r[i]/dx[i]/dz = 2*x[i] for i in 0..2"),
    (VECTOR, "d2r[i]/dz/dx[i] = 2*x[i] for i in 0..2"),
    (LINEAR, "dr/dP[0,:] = [x, 0*x]"),
    (LINEAR, "dr/dP[0] = [x, 0*x]"),
    (LINEAR, "dr[0]/dP[:, 1] = [x[1], 0]"),
    (LINEAR, "dr[1]/dP[..., 2] = [0, x[2]]"),
    (LINEAR, "dr[i]/dP[i,:] = x for i in 0..1"),
    (LINEAR, "dr[i]/dP[i,j] = x[j] for i in 0..1 for j in 0..2"),
    (LINEAR, "dr[i]/dP[1-i,:] = 0 for i in 0..1"),
    (LINEAR, "P.grad[i,:] = v[i]*x for i in 0..1"),
    (LINEAR, "P[i,:].grad = v[i]*x for i in 0..1"),
    (LINEAR, "x.grad[0] = v@P[:,0]"),
    (CUBE, "df/dx[i] = 3*x[i]**2 for i in 0..2"),
    (CUBE, "d2f/dx[i]/dx[j] = 6*x[i] if i == j else 0 for i in 0..2 for j in 0..2"),
    (CUBE, "d2f/dx[0]/dx = [6*x[0], 0, 0]"),
    (CUBE, "d3f/dx[i]3 = 6 for i in 0..2"),
    (CUBE, "x.grad[i] = 3*v*x[i]**2 for i in 0..2"),
    (CUBE, "x.grad[1:] = 3*v*x[1:]**2"),
    (PRODUCT, "dr[i]/dx[i] = r[i-1] for i in 1..3"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "claim"), some(RIGHT))
def test_a_right_part_is_proved_and_a_spoiled_one_is_wrong(cli, system, claim):
    statement, shapes, _ = system
    (found,) = cli("check", statement, claim, "--shape", shapes, "-f", "json").objects
    assert (found["verdict"], found["by"]) == ("right", "proof")
    assert f"{found['claim']} = {found['said']}" == claim.replace(", ", ",", claim.split("=")[0].count(", "))
    left, right = claim.split(" = ", 1)
    expression, loops, rounds = right.partition(" for ")
    if " else " in expression:
        expression = re.sub(r" if .* else .*", "", expression)
    spoiled = f"{left} = 1.5*({expression}) + 1{loops}{rounds}"
    (found,) = cli("check", statement, spoiled, "--shape", shapes, "-f", "json").objects
    assert found["verdict"] == "wrong"


WRONG = [
    (VECTOR, "dr[i]/dx[i] = 2*x[i] for i in 0..2", r"dr\[(\d)\]/dx\[\1\]"),
    (VECTOR, "dr[i]/dx[i] = 2*x[i]*z if i != 1 else 0 for i in 0..2", r"dr\[(1)\]/dx\[1\]"),
    (VECTOR, "dr[i]/dx[2] = 0 for i in 1..2", r"dr\[2\]/dx\[2\]"),
    (VECTOR, "dr[1:]/dx[1] = [2*x[1]*z, 1]", r"dr\[2\]/dx\[1\]"),
    (LINEAR, "dr/dP[1,:] = [x, x]", r"dr\[0\]/dP\[1,\d\]"),
    (LINEAR, "dr[i]/dP[i,:] = P[i,:] for i in 0..1", r"dr\[(\d)\]/dP\[\1,\d\]"),
    (PRODUCT, "dr[i]/dx[i-1] = r[i-2] if i > 1 else 1 for i in 1..3", r"dr\[(\d)\]/dx\[\d\]"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "claim", "entry"), WRONG)
def test_the_entry_that_is_shown_is_the_derivative_by_finite_differences(cli, system, claim, entry):
    statement, shapes, function = system
    (found,) = cli("check", statement, claim, "--shape", shapes, "-f", "json").objects
    assert re.fullmatch(entry, found["entry"])
    row, name, column = re.fullmatch(r"dr\[([\d]+)\]/d(\w)\[([\d,]+)\]", found["entry"]).groups()
    at = {n: np.array(value) for n, value in found["at"].items()}
    step = np.zeros(at[name].shape)
    step[tuple(map(int, column.split(",")))] = 1e-6
    sides = [function(*(at | {name: at[name] + sign * step}).values())[int(row)] for sign in (1, -1)]
    assert found["is"] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)
    assert found["yours"] != pytest.approx(found["is"])
    page = _flat(cli("check", statement, claim, "--shape", shapes).out)
    assert f"{found['entry']} is {found['formula']} at " in page


def test_one_wrong_round_of_a_loop_is_named(cli):
    claim = "dr[i]/dx[i] = 2*x[i] if i != 1 else 0 for i in 0..2"
    assert "right except for dr[1]/dx[1]: yours is 0" in _flat(cli("check", "r=x**2", claim, "--shape", "x=3").out)


RECURRENT = "W = [[1, 2], [3, 4]]; h[0] = x; h[t] = tanh(W@h[t-1]) for t in 1..3; L = sum(h[3]**2)"


def test_an_element_that_later_ones_are_computed_from(cli):
    claims = ["dh[t]/dh[t-1] = outer(1 - h[t]**2, [1, 1])*W for t in 1..3", "dL/dh[3] = 2*h[3]",
              "dL/dh[2] = W.T@(2*h[3]*(1 - h[3]**2))", "dL/dh[2,1] = 0"]  # fmt: skip
    outcome = cli("check", RECURRENT, *claims, "--shape", "x=2", "-f", "json")
    assert [(o["claim"], o["said"][-5:], o["verdict"]) for o in outcome.objects] == [
        ("dh[t]/dh[t-1]", "t = 1", "right"),
        ("dh[t]/dh[t-1]", "t = 2", "right"),
        ("dh[t]/dh[t-1]", "t = 3", "right"),
        ("dL/dh[3]", "*h[3]", "right"),
        ("dL/dh[2]", "**2))", "right"),
        ("dL/dh[2,1]", "0", "wrong"),
    ]


def test_many_elements_are_compared_with_finite_differences_by_some_variables(cli):
    outcome = cli("check", "r=x**2*mean(x)", "dr[i]/dx[i] = 2*x[i]*mean(x) + x[i]**2/300 for i in 0..299",
                  "--shape", "x=300", "--trials", "4", "-f", "json")  # fmt: skip
    assert json.loads(outcome.out)["verdict"] == "right"


MISTAKES = {
    "beyond the last": ("dr[i]/dx[i] = 2*x[i] for i in 0..3", "there is no element 3 among 3", "i"),
    "before the first": ("dr[i]/dx[i-1] = 0 for i in 0..2", "there is no element -1", "i-1"),
    "no such element": ("dr[0]/dx[5] = 0", "there is no element 5 among 3", "x[5]"),
    "too many indices": ("dr[0,1]/dx[0] = 0", "`r` is an array of 1 dimension", "r[0,1]"),
    "no loop": ("dr[i]/dx[i] = 2*x[i]", "`i` is not an integer", "i"),
    "not on the left": ("dr[0]/dx[0] = x[i] for i in 0..2", "has no index `i`", "dr[0]/dx[0]"),
    "twice": ("dr[i//2]/dx[0] = 1 for i in 0..2", "claimed more than once", "dr[i//2]/dx[0]"),
    "an array for an element": ("dr[i]/dx[i] = 2*x for i in 0..2", "is a scalar, and your formula is", "2*x"),
    "a vector for an element": ("dr[0]/dx[0] = 2*x", "is a scalar, and your formula is of shape (3,)", "2*x"),
    "an element for a row": ("dr[i]/dx = x[i] for i in 0..2", "is of shape (3,), and your", "x[i]"),
    "an empty range": ("dr[i]/dx[i] = x[i] for i in 2..0", "this range is empty: 2..0", "2..0"),
    "an empty slice": ("dr[3:]/dx[0] = 0", "this slice is empty", "r[3:]"),
    "an input as a bound": ("dr[i]/dx[i] = 0 for i in 0..z", "the input `z` cannot be a bound", "z"),
    "not an index": ("dr[x]/dx[0] = 0", "`x` is not an integer", "x"),
    "no formula": ("dr[i]/dx[i] = for i in 0..2", "the claim is missing before `for`", "dr[i]/dx[i]"),
    "no index": ("dr[]/dx[0] = 0", "an index is missing", "[]"),
    "two indices": ("x[0].grad[0] = 0", "has two indices", "x[0].grad[0]"),
    "an index of a power": ("d2r/dx2[0,1] = 0", "of order 2, and by x2", "d2r/dx2[0,1]"),
    "range of Python's": ("dr[i]/dx[i] = 0 for i in range(3)", "two dots", "range(3)"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_a_caret(cli, mistake):
    claim, told, at = MISTAKES[mistake]
    err = cli.refused("check", "r = x**2*z", claim, "--shape", "x=3")
    assert told in err
    line, carets = err.splitlines()[1:3]
    start = carets.index("^")
    assert (line.strip(), line[start : start + carets.count("^")]) == (claim, at)


def test_a_scalar_has_no_elements(cli):
    assert "--shape x=3" in cli.refused("check", "r = x**2", "dr[i]/dx[i] = 2*x[i] for i in 0..2")
