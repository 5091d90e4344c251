"""Two ways to ask one question give one answer: each way to a Jacobian's numbers leads to the same numbers.

Systems and points are random; the points have ties, zeros of both signs, what overflows, infinities and NaN.
"""

from __future__ import annotations

import csv
import math
import re

import numpy as np
import pytest
from conftest import examples
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

LEAVES = ["x", "z", "u[0]", "u[1]", "2", "0", "1", "1/3"]
TEMPLATES = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "{0}/{1}", "{0}**2", "{0}**3", "{0}**-1", "{0}**{1}", "-{0}",
    "sin({0})", "exp({0})", "log({0})", "sqrt({0})", "tanh({0})", "sigmoid({0})", "atan2({0}, {1})", "hypot({0}, {1})",
    "abs({0})", "relu({0})", "sign({0})", "floor({0})", "maximum({0}, {1})", "minimum({0}, {1})", "clamp({0}, 0, 1)",
    "where({0} > {1}, {0}, {1}**2)", "max([{0}, {1}])", "norm([{0}, {1}])", "prod([{0}, {1}, x])", "mod({0}, {1})",
    "softmax([{0}, {1}])[0]", "std([{0}, {1}])", "max([{0}, {1}], axis=0)", "logsumexp([{0}, {1}])",
]  # fmt: skip
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda parts: st.builds(lambda template, *p: f"({template.format(*p)})", st.sampled_from(TEMPLATES), parts, parts),
    max_leaves=5,
)
NUMBERS = st.sampled_from(["0", "-0.0", "1", "1", "-1", "2", "0.5", "-3", "1e200", "-1e200", "1e-300", "inf", "nan"])
POINTS = st.fixed_dictionaries({"x": NUMBERS, "z": NUMBERS, "u": st.tuples(NUMBERS, NUMBERS)})
COLUMNS = ("u[0]", "u[1]", "x", "z")
# All leaves are read, so that each has a column.
SYSTEMS = st.builds(
    lambda a, b: f"y0 = {a} + 0*(x + z + sum(u)); y1 = {b} + u[0] + u[1] + x + 0*z", EXPRESSIONS, EXPRESSIONS
)
PAGE = ("--digits", "full")  # at the width of WIDE, on which no line is broken
WIDE = "100000"
MODERATE = 10  # the largest value at which rounding in another order changes little


def law(count):
    return settings(max_examples=examples(count), deadline=None, suppress_health_check=list(HealthCheck))


def at(point):
    return f"x={point['x']},z={point['z']},u=[{','.join(point['u'])}]"


def points_file(point):
    return f"x,z,u[0],u[1]\n{point['x']},{point['z']},{','.join(point['u'])}\n"


def jacobian_of(cli, system, place):
    outcome = cli("jacobian", system, "--at", place, "-f", "json")
    assume("division by zero" not in outcome.err)  # of one number by another, which is refused
    (found,) = outcome.objects
    return found


def numbers(matrix):
    """Return JSON's numbers, in which what is not finite is a word."""
    return np.array([[float(e) for e in row] for row in matrix], dtype=float)


def from_csv(out):
    header, row = csv.reader(out.splitlines())
    values = dict(zip(header, map(float, row), strict=True))
    return np.array([[values[f"d{y}/d{x}"] for x in COLUMNS] for y in ("y0", "y1")])


def from_backward(cli, system, place):
    rows = []
    for y in ("y0", "y1"):
        grad = cli.json("backward", system, "--at", place, "--outputs", y)["grad"]
        rows.append([*grad["u"], grad["x"], grad["z"]])
    return numbers(rows)


def from_page(cli, system, place):
    """Return J as its matrix on a page has it: in an entry the number stands alone, or behind its formula."""
    out = cli.done("jacobian", system, "--at", place, *PAGE, "--only", "jacobian").out
    (_, *heads), *rows = (
        re.split(" {2,}", line.strip()) for line in re.findall("^  (?:J|y[01]) {2,}.*", out, re.MULTILINE)
    )
    found = {y: dict(zip(heads, entries, strict=True)) for y, *entries in rows}
    texts = [[found[y][f"∂/∂{x}"] for x in COLUMNS] for y in ("y0", "y1")]
    return numbers([text.rpartition(" = ")[2] for text in row] for row in texts)


def gradients_on_pages(cli, system, place):
    """Return J from the ends of the lines `x.grad = … = 3` of a page for each output alone."""
    rows = []
    for y in ("y0", "y1"):
        out = cli.done("backward", system, "--at", place, "--outputs", y, *PAGE, "--only", "grad").out
        grad = dict(re.findall(r"^([uxz])\.grad .*= (\S+|\[.*?\])$", out, re.MULTILINE))
        rows.append([*grad["u"].strip("[]").split(", "), grad["x"], grad["z"]])
    return numbers(rows)


def same(found, expected, way):
    assert_allclose(found, expected, rtol=1e-12, err_msg=way)


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", WIDE)


@law(25)
@given(system=SYSTEMS, point=POINTS)
@example(system="y0 = exp(x)*x - x*exp(x) + 0*z; y1 = u[0]+u[1]", point={"x": "1000", "z": "1", "u": ("1", "1")})
@example(system="y0 = ((x)-(x))**-1 + 0*z; y1 = x/x + u[0]+u[1]", point={"x": "0", "z": "1", "u": ("1", "1")})
@example(system="y0 = x**z; y1 = max([x, u[0], u[1]])", point={"x": "0", "z": "2", "u": ("nan", "0")})
@example(
    system="y0 = x + z; y1 = where(2 > 2, 2, 4) + u[0] + u[1] + x + 0*z", point={"x": "0", "z": "0", "u": ("0", "0")}
)
@example(system="y0 = log(clamp(x, 0, 1)) + 0*z; y1 = u[0]+u[1]", point={"x": "-0.0", "z": "1", "u": ("1", "1")})
def test_each_way_gives_the_same_numbers(cli, wide, system, point):
    place, file = at(point), points_file(point)
    whole = jacobian_of(cli, system, place)
    assert (whole["rows"], whole["columns"]) == (["y0", "y1"], list(COLUMNS))
    expected = numbers(whole["jacobian"])
    same(from_csv(cli.done("jacobian", system, "--at", place, "-f", "csv").out), expected, "csv")
    same(from_csv(cli.done("jacobian", system, "--points", "-", "-f", "csv", stdin=file).out), expected, "points, csv")
    (many,) = cli.done("jacobian", system, "--points", "-", "-f", "json", stdin=file).objects
    same(numbers(many["jacobian"]), expected, "points, json")
    same(from_backward(cli, system, place), expected, "backward")
    same(from_page(cli, system, place), expected, "page of jacobian")
    same(gradients_on_pages(cli, system, place), expected, "pages of backward")


def typed_back(cli, found, place):
    """Return the numbers of a Jacobian's formulas, given back as expressions."""
    named = {name: re.sub(r"\W+", "_", name).strip("_") + "_" for name in found.get("where", {}) if "[" in name}
    entries = {f"entry_{i}_{j}": e for i, row in enumerate(found["symbolic"]) for j, e in enumerate(row)}
    lines = [f"{name} = {formula}" for name, formula in (found.get("where", {}) | entries).items()]
    text = "\n".join(lines)
    for name, plain in named.items():
        text = text.replace(name, plain)
    text += "\nall_leaves = x + z + sum(u)"
    wanted = ",".join([*entries, "all_leaves"])
    value = cli.json("backward", text, "--at", place, "--outputs", wanted, "--v", "ones")["value"]
    return np.array([[float(value[f"entry_{i}_{j}"]) for j in range(4)] for i in range(2)])


# Where no guard of a corner is met, which formulas leave out.
ORDINARY = st.permutations(["0.7", "-1.3", "1.9", "0.45"]).map(lambda v: {"x": v[0], "z": v[1], "u": (v[2], v[3])})


@law(40)
@given(system=SYSTEMS, point=ORDINARY)
@example(system="y0 = max([x, 2]) + z; y1 = min([1, x]) + sum(u)", point={"x": "2", "z": "1", "u": ("1", "1")})
@example(system="y0 = x/0 + z; y1 = z*pow(0, -1) + sum(u)", point={"x": "2", "z": "1", "u": ("1", "1")})
def test_formulas_typed_back_give_the_same_numbers(cli, system, point):
    place = at(point)
    found = jacobian_of(cli, system, place)
    expected = numbers(found["jacobian"])
    if not all(math.isfinite(float(v)) and abs(float(v)) <= MODERATE for v in (point["x"], point["z"], *point["u"])):
        return
    again = typed_back(cli, found, place)
    both = np.isfinite(expected) & np.isfinite(again)
    assert_allclose(again[both], expected[both], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("way", [["-f", "csv"], ["-f", "json"]])
def test_points_that_are_unlike_have_numbers_of_their_own(cli, way):
    system, file = "y0 = x/z; y1 = norm(u)*x", "x,z,u[0],u[1]\n0,0,0,0\n1,2,3,4\ninf,1,nan,0\n"
    many = cli.done("jacobian", system, "--points", "-", *way, stdin=file).out.splitlines()[-3:]
    ones = [
        cli.done("jacobian", system, "--points", "-", *way, stdin=f"x,z,u[0],u[1]\n{row}\n").out.splitlines()[-1]
        for row in file.splitlines()[1:]
    ]
    assert many == ones
