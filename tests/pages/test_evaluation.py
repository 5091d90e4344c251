"""One evaluation: a page computes its system once, and a number is the same to the last bit wherever it is shown."""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest
from conftest import each

from gradcli.engine import evaluate
from gradcli.graph.names import element_names

pytestmark = pytest.mark.usefixtures("own_folder")

SHAPES = {"a": (), "b": (), "x": (9,), "M": (3, 9)}  # sums of more than eight terms, which NumPy may add in pairs
VECTORS = ["x", "x*a", "sin(x)", "exp(-x)*b", "softmax(x)", "M.T@[1, 2, b]", "x/norm(x)", "cumsum(x)", "M[1]*x"]
SCALARS = ["a", "b", "sum({0})", "mean({0})", "std({0})", "norm({0}+{1})", "prod({0})", "logsumexp({0})", "{0}@{1}",
           "sum(M@{0})", "max({0})", "var({0}*{1})", "sum((M@x)**2)", "a**2/b", "median({0})"]  # fmt: skip
COUNT = 3


def system_of(rng):
    scalar = lambda: rng.choice(SCALARS).format(rng.choice(VECTORS), rng.choice(VECTORS))  # noqa: E731
    return f"y = {scalar()} + {scalar()}*{scalar()} + 0*(a + b + sum(x) + sum(M))"


def points_of(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.1, 2, (COUNT, *shape)) for name, shape in SHAPES.items()}


def at(points, k):
    return ",".join(f"{name}={points[name][k].tolist()}" for name in SHAPES)


def write_csv(points):
    names = [e for name, shape in SHAPES.items() for e in element_names(name, shape)]
    rows = np.concatenate([points[name].reshape(COUNT, -1) for name in SHAPES], axis=1).tolist()
    with open("p.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def columns(out):
    """Return the results in CSV, without the columns of the points and of the output."""
    header, *rows = csv.reader(io.StringIO(out))
    kept = [k for k, name in enumerate(header) if name[0] == "d" or "." in name]
    return [[float(row[k]) for k in kept] for row in rows]


def numbers(value):
    """Return all numbers in a value of JSON, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [n for part in value for n in numbers(part)] if isinstance(value, list) else [float(value)]


RESULTS = {
    ("backward",): "grad",
    ("backward", "--v", "0.3", "--v", "1.7", "--v", "0.1"): "grad",
    ("jacobian", "--wrt", "a,b,x"): "jacobian",
    ("hessian", "--wrt", "a,b"): "hessian",
    ("hessian", "--u", "a=1,b=0.3,x[0]=0.7"): "hvp",
    ("jvp", "--u", "a=1,b=0.3,x[2]=0.7"): "jvp",
}


@each("seed", range(2))
@each("command", RESULTS)
def test_a_number_is_the_same_to_the_last_bit_in_every_format(cli, command, seed):
    system, points = system_of(random.Random(seed)), points_of(seed)
    name, *options = command
    question = (name, system, *options)
    write_csv(points)
    np.savez("p.npz", **points)

    alone = [cli.json(*question, "--at", at(points, k)) for k in range(COUNT)]
    expected = [numbers(line[RESULTS[command]]) for line in alone]

    def same(found):
        assert np.array_equal(np.array(found), np.array(expected), equal_nan=True), system

    together = cli.done(*question, *(o for k in range(COUNT) for o in ("--at", at(points, k))), "-f", "json")
    assert together.objects == alone
    from_file = cli.done(*question, "--points", "p.npz", "-f", "json").objects
    same([numbers(line[RESULTS[command]]) for line in from_file])
    assert [line["value"] for line in from_file] == [line["value"] for line in alone]
    same(columns(cli.done(*question, "--points", "p.csv").out))
    one = cli.done(*question, "--at", at(points, 1), "-f", "csv").out
    assert columns(one) == [expected[1]]
    cli.done(*question, "--points", "p.npz", "--output", "r.npz")
    with np.load("r.npz") as arrays:
        same(np.concatenate([arrays[name].reshape(COUNT, -1) for name in arrays.files], axis=1))


@pytest.mark.parametrize(
    "arguments",
    [
        ("backward", "h=x*z", "y=abs(h)+sum([x,z])", "--at", "x=3,z=2", "--steps", "--retain", "h"),
        ("backward", "y=abs(x)*z", "--at", "x=0,z=2", "--at", "x=3,z=1", "--v", "1", "--v", "10", "--jacobian"),
        ("jacobian", "y=abs(x)*z", "w=z**2", "--at", "x=0,z=2", "--steps"),
        ("hessian", "y=abs(x)*z**2", "--at", "x=0,z=2"),
        ("hessian", "y=abs(x)*z**2", "--at", "x=0,z=2", "--u", "x=1"),
        ("jvp", "y=abs(x)*z**2", "--at", "x=0,z=2", "--u", "x=1", "--v", "3", "--steps"),
        ("jacobian", "y=abs(x)**3", "--order", "3", "--at", "x=2"),
        ("graph", "y=abs(x)*z", "--at", "x=0,z=2"),
    ],
    ids=" ".join,
)
def test_a_page_computes_its_system_once(cli, monkeypatch, arguments):
    called = []

    def counted(graph, values, *rest, evaluated=evaluate.values_of):
        if values:  # constants alone, such as exponents, are no system
            called.append(graph)
        return evaluated(graph, values, *rest)

    monkeypatch.setattr(evaluate, "values_of", counted)
    cli.done(*arguments)
    assert len(called) == 1
