"""gradcli check: claims about elements, rows and the elements of a loop."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import some

VECTOR = ("r = x**2*z", "x=3", lambda x, z: x**2 * z)
LINEAR = ("r = P@x", "x=3,P=2x3", lambda P, x: P @ x)
PRODUCT = ("r[0] = x[0]; r[i] = r[i-1]*x[i] for i in 1..3", "x=4", np.cumprod)


def _flat(page):
    return " ".join(page.split())


BLOCKS = Path(__file__).with_name("parts.txt").read_text("utf-8").strip().split("\n\n")[1:]
RIGHT = [(*head.split(" | "), claim) for head, *claims in map(str.splitlines, BLOCKS) for claim in claims]


@pytest.mark.parametrize(("statement", "shapes", "claim"), some(RIGHT))
def test_a_right_part_is_proved_and_a_spoiled_one_is_wrong(cli, statement, shapes, claim):
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
