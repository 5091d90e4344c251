"""At a corner a note says that there is no derivative, and what PyTorch takes."""

from __future__ import annotations

import json
import re

import pytest
from conftest import each, long

from gradcli.graph.operations import OPERATIONS

# a system, a point on a corner, the place that is told, what is taken
CASES = [
    ("abs(x)", "x=0", "at x = 0, abs(x)", "0, the middle of -1 and 1"),
    ("relu(x - 1)", "x=1", "at x - 1 = 0, relu(x - 1)", "0, the slope on the left"),
    ("l1_loss(x, 3)", "x=3", "at x - 3 = 0, abs(x - 3)", "0, the middle of -1 and 1"),
    ("leaky_relu(x)", "x=0", "at x = 0, leaky_relu(x, 0.01)", "the slope on the left"),
    ("elu(x, 0.5)", "x=0", "at x = 0, elu(x, 0.5)", "the slope on the left"),
    ("selu(x)", "x=0", "at x = 0, selu(x)", "the slope on the left"),
    ("clamp(x, 0, 1)", "x=1", "at x = 1, clamp(x, 0, 1)", "1: the bound itself passes"),
    ("hardtanh(x)", "x=1", "at x = 1, hardtanh(x, -1, 1)", "0: the bound itself does not pass"),
    ("maximum(x, 3)", "x=3", "at x = 3, maximum(x, 3)", "1/2 for each: a tie is shared"),
    ("minimum(x, 3)", "x=3", "at x = 3, minimum(x, 3)", "1/2 for each: a tie is shared"),
    ("x**x", "x=0", "at x = 0, x**x", "0 by the exponent"),
    ("atan2(x, 0)", "x=0", "at x = 0, atan2(x, 0)", "0"),
    ("sign(x)", "x=0", "at x = 0, sign(x)", "0, as everywhere else"),
    ("heaviside(x, 1)", "x=0", "at x = 0, heaviside(x, 1)", "0, as everywhere else"),
    ("floor(x)", "x=2", "at x = 2, floor(x)", "0, as everywhere else"),
    ("ceil(x)", "x=2", "at x = 2, ceil(x)", "0, as everywhere else"),
    ("trunc(x)", "x=2", "at x = 2, trunc(x)", "0, as everywhere else"),
    ("round(x)", "x=2.5", "at x = 2.5, round(x)", "0, as everywhere else"),
    ("frac(x)", "x=2", "at x = 2, frac(x)", "1, as everywhere else"),
    ("x % 3", "x=6", "at x = 6, x % 3", "1, as everywhere else"),
    ("norm(x)", "x=[0,0]", "at x = [0, 0], norm(x)", "0, the smallest of all subgradients"),
    ("std(x)", "x=[2,2]", "at x = [2, 2], std(x)", "0, as for norm"),
    ("max(x)", "x=[1,3,3]", "at x[1] = 3 and x[2] = 3, max(x)", "an equal share for each of the largest"),
    ("min(x)", "x=[1,1,3]", "at x[0] = 1 and x[1] = 1, min(x)", "an equal share for each of the smallest"),
    ("maximum(3, x)", "x=3", "at x = 3, maximum(3, x)", "1/2 for each: a tie is shared"),
    ("fmod(x, 3)", "x=-6", "at x = -6, fmod(x, 3)", "1, as everywhere else"),
    ("floor_divide(x, 3)", "x=6", "at x = 6, floor_divide(x, 3)", "0, as everywhere else"),
    ("median(x)", "x=[1,2,2]", "at x[1] = 2 and x[2] = 2, median(x)", "an equal share for each of those in the middle"),
    (
        "median(x, axis=0)",
        "x=[1,2,2]",
        "at x[1] = 2 and x[2] = 2, median(x, axis=0)",
        "the first of those in the middle",
    ),
    (
        "[1,2,4] @ sort(x)",
        "x=[3,1,3]",
        "at x[0] = 3 and x[2] = 3, sort(x)",
        "the first of equal elements as the first of them in order",
    ),
    ("cummax(x)[2]", "x=[1,3,3]", "at x[2] = 3, cummax(x)", "the last of equal elements so far"),
    ("cummin(x) @ [0,0,1]", "x=[3,1,1]", "at x[2] = 1, cummin(x)", "the last of equal elements so far"),
    ("max(x, axis=0)", "x=[1,3,3]", "at x[1] = 3 and x[2] = 3, max(x, axis=0)", "the first of the largest"),
]


@long
@each(("expression", "at", "where", "taken"), CASES)
@each("command", ["backward", "jacobian"])
def test_a_corner_is_noted(cli, command, expression, at, where, taken):
    told = [line for line in cli.done(command, f"y={expression}", "--at", at).err.splitlines() if "note" in line]
    assert told == [f"note: {where} has no derivative: PyTorch takes {taken}"]
    assert "note" not in cli.done(command, f"y={expression}", "--at", at, "-f", "json").err


SAID = re.compile(r"(1/2|0|1)(?![/\d])")


def left_slope(cli, expression, at):
    """Return the slope just below the point: what a rule takes that takes the one on the left."""
    name, value = at.split("=")
    below = f"{name}={float(value) - 1e-9!r}"
    return json.loads(cli.done("backward", f"y={expression}", "--at", below, "-f", "json").out)["grad"]["x"]


@each(("expression", "at", "where", "taken"), CASES)
def test_what_is_said_to_be_taken_is_taken(cli, expression, at, where, taken):
    grad = json.loads(cli.done("backward", f"y={expression}", "--at", at, "-f", "json").out)["grad"]["x"]
    elements = grad if isinstance(grad, list) else [grad]
    if said := SAID.match(taken):
        assert set(elements) == {{"1/2": 0.5, "0": 0, "1": 1}[said.group()]}
    elif taken == "the slope on the left":
        assert grad == pytest.approx(left_slope(cli, expression, at))
    elif taken.startswith("an equal share"):
        assert sorted(elements) == [0, 0.5, 0.5]
    elif "in order" in taken:
        assert elements == [2, 1, 4]  # which smaller numbers in order have: x[1], x[0], x[2]
    elif taken.startswith("the last of"):
        assert elements == [0, 0, 1]
    else:
        assert taken.startswith("the first of")
        assert elements == [0, 1, 0]


@pytest.mark.parametrize(
    ("expression", "at"), [(c[0], re.sub(r"-?\d+(\.\d)?(?=[,\]]|$)", "0.7", c[1], count=1)) for c in CASES]
)
def test_beside_a_corner_nothing_is_noted(cli, expression, at):
    at = (
        at.replace("x=[0.7,3,3]", "x=[7,3,3]")
        .replace("x=[0.7,2,2]", "x=[1,2,2.5]")
        .replace("x=[0.7,1,1]", "x=[3,1,0.7]")
    )
    assert "no derivative" not in cli.done("backward", f"y={expression}", "--at", at).err


def test_every_corner_is_tested():
    written = " ".join(c[0].replace("%", "mod").replace("**", " pow ") for c in CASES)
    assert {op for op, row in OPERATIONS.items() if row.corner} <= set(re.findall(r"\w+", written))


@pytest.mark.parametrize(
    "line",
    [
        ("backward", "y=abs(x)", "--at", "x=0"),
        ("jacobian", "y=abs(x)", "--at", "x=0"),
        ("jacobian", "y=abs(x)", "--at", "x=0", "--order", "2"),
        ("hessian", "y=abs(x)", "--at", "x=0"),
        ("hessian", "y=abs(x)", "--at", "x=0", "--u", "x=1"),
        ("jvp", "y=abs(x)", "--at", "x=0", "--u", "x=1"),
    ],
    ids=" ".join,
)
def test_the_note_stands_in_documents_and_in_data(cli, line):
    note = "abs(x) has no derivative: PyTorch takes 0, the middle of -1 and 1"
    assert cli.json(*line)["notes"] == [f"at x = 0, {note}"]
    assert note in cli.done(*line, "-f", "markdown").out
    assert note in cli.done(*line, "-f", "latex").out
    assert "abs(x) has no derivative" in cli.done(*line).err
    away = [word.replace("x=0", "x=2") for word in line]
    assert "notes" not in cli.json(*away)
    assert "otes" not in cli.done(*away, "-f", "markdown").out
