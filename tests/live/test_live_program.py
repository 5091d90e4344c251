"""The program of a live page, run by Node without a browser: values, adjoints, contributions and slopes are NumPy's."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest
from conftest import long
from numpy.testing import assert_allclose

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import sweep
from gradcli.pages.live import Kernels, live
from gradcli.pages.picture.boxes import View
from gradcli.pages.trace import numeric_trace
from gradcli.report.live.live_page import data, live_document, script
from tests.codegen.random_systems import system
from tests.vocabulary.structure_systems import SYSTEMS

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="needs node")

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1e308, -2.0]
# Functions of one number, at numbers that are corners of many, and that many are not defined at.
OF_VECTORS = [
    "max(x)", "min(x)", "norm(x)", "prod(x)", "softmax(x)", "logsumexp(x)", "std(x)", "sort(x)", "x[1]*x",
    "cumprod(x, 0)", "median(x)", "sum(x/x[::-1])", "x @ [1, 2, 3]", "argmax(x)*x", "where(x > 0, log(x), 0)",
]  # fmt: skip
_ONE = """
abs relu sign heaviside(x,0.5) floor ceil round trunc sqrt log exp sin tan asin acosh atanh cbrt sigmoid softplus silu
elu selu gelu erf lgamma log1p expm1 x**0 x**1 x**2 x**-1 x**0.5 0**x 1**x 2**x x/x 1/x clamp(x,-1,1) hardtanh(x)
maximum(x,0) minimum(x,-1) where(x>0,x,-x) leaky_relu(x) tanh arctan2(x,0) hypot(x,0) x%2 x*0 log2 log10"""
ONE = _ONE.split()
RUN = """
const { readFileSync } = require("node:fs");
const [program, pages] = JSON.parse(readFileSync(0, "utf8"));
const { Tape, KERNELS, numberOf, flat } = new Function(program + "; return { Tape, KERNELS, numberOf, flat };")();
const plain = (x) => (x === null || x === undefined ? null : Array.from(flat(x), String));
const results = pages.map(({ data, points }) => points.map(({ at, v }) => {
  const tape = new Tape(data, KERNELS);
  const numbers = (map) => new Map(map.map(([k, x]) => [k, Float64Array.from(x.map(numberOf))]));
  const values = tape.values(numbers(at));
  const seeds = new Map([...numbers(v)].map(([k, x]) => [k, tape.kept(tape.nodes[k], x)]));
  const back = tape.reverse(values, seeds, new Map(), new Map());
  const slopes = tape.passes.map((p) => tape.slope(p, values));
  const { adjoints, brought } = back;
  const all = Object.entries({ values, adjoints, brought, slopes });
  return Object.fromEntries(all.map(([name, x]) => [name, x.map(plain)]));
}));
console.log(JSON.stringify(results));
"""


def run(cases):
    """Return what the program computes for graphs, each at points with their cotangents: all graphs share functions."""
    kernels, pages = Kernels(), []
    for graph, points in cases:
        page = live(graph, View(list(graph.inputs), *points[0]), kernels)
        at = [
            {
                "at": [[k, packed(a[name])] for name, k in page.inputs.items()],
                "v": [[page.outputs[name], packed(x)] for name, x in v.items()],
            }
            for a, v in points
        ]
        pages.append({"data": data(page, "live"), "points": at})
    program = f"const WORDS = {{}};\n{kernels.program()}{script()}"
    done = subprocess.run(
        ["node", "-e", RUN], input=json.dumps([program, pages]), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def packed(array):
    return [
        x if np.isfinite(x) else {"nan": "NaN", "inf": "Infinity"}.get(str(x), "-Infinity")
        for x in np.asarray(array, float).reshape(-1).tolist()
    ]


def unpacked(texts):
    return np.array([float(t.replace("Infinity", "inf")) for t in texts])


@np.errstate(all="ignore")
def check(cases):
    for (graph, points), found in zip(cases, run(cases), strict=True):
        swept = sweep(graph, list(graph.inputs))
        for (at, v), own in zip(points, found, strict=True):
            trace = numeric_trace(graph, swept, at, [v])
            (reverse,) = trace.calls
            told = f"at {at}, v = {v}: {list(graph.names)}"
            compare(own["values"], [trace.values[n] for n in graph.nodes], told)
            compare(own["adjoints"], [reverse.adjoints.get(n) for n in graph.nodes], told)
            compare(own["brought"], [reverse.contributions[p] for p in trace.swept.passes], told)
            compare(own["slopes"], [reverse.slopes.get(p) for p in trace.swept.passes], told)


def compare(own, right, told):
    assert len(own) == len(right)
    for k, (texts, wanted) in enumerate(zip(own, right, strict=True)):
        if wanted is None or texts is None:
            assert (wanted is None) == (texts is None), (k, told)
            continue
        flat, numbers = np.ravel(wanted), unpacked(texts)
        if numbers.size == 1 < flat.size:  # a derivative that is the same for all elements
            numbers = np.broadcast_to(numbers, flat.shape)
        finite = np.abs(flat[np.isfinite(flat)]).max(initial=0)
        assert_allclose(numbers, np.broadcast_to(flat, numbers.shape), 1e-12, 1e-13 * finite, err_msg=f"{k}, {told}")


def case(text, shapes, seed=0, count=2):
    graph = parse(text, **shapes)
    chance = np.random.default_rng(seed)

    def draw(nodes):
        return {n: chance.uniform(0.3, 1.5, x.shape) * chance.choice([-1, 1], x.shape) for n, x in nodes.items()}

    return graph, [(draw(graph.inputs), draw(graph.outputs)) for _ in range(count)]


def test_random_systems():
    check([case(system(seed), {n: s for n, s in SHAPES.items() if n in system(seed)}, seed) for seed in range(40)])


@long
def test_each_structural_function():
    check([case(f"out = {text}", shapes, count=1) for text, shapes in SYSTEMS])


@long
def test_at_zeros_infinities_and_nan():
    cases = []
    for function in ONE:
        text = f"y = {function}" if "x" in function.replace("exp", "").replace("max", "") else f"y = {function}(x)"
        graph = parse(f"{text}\nz = y*w", w=())
        points = [
            ({"x": np.array(x), "w": np.array(w)}, {name: np.array(1.0) for name in graph.outputs})
            for x in SPECIAL
            for w in (0.0, 2.0, np.inf)
        ]
        cases.append((graph, points))
    check(cases)


def test_arrays_with_ties_zeros_and_nan():
    vectors = [[0.0, 0.0, 0.0], [1.0, 1.0, -np.inf], [np.nan, 0.0, 1.0], [np.inf, np.inf, 0.0], [2.0, -2.0, 2.0]]
    cases = []
    for text in OF_VECTORS:
        graph = parse(f"y = {text}", x=(3,))
        ones = {"y": np.ones(graph.outputs["y"].shape)}
        cases.append((graph, [({"x": np.array(x)}, ones) for x in vectors]))
    check(cases)


def test_float32_is_rounded_after_each_operation():
    x = leaf((2,), "float32")
    graph = Graph.of({"x": x}, {"y": x * x + x})
    at, v = {"x": np.float32([0.1, 1 / 3])}, {"y": np.ones(2)}
    ((found,),) = run([(graph, [(at, v)])])
    exact = at_point(graph, {"x": at["x"].astype(np.float32)}, [graph.outputs["y"]])[graph.outputs["y"]]
    assert [np.float32(t) for t in found["values"][-1]] == np.float32(exact).tolist()
    assert all(float(t) == float(np.float32(float(t))) for texts in found["adjoints"] for t in texts)


@pytest.mark.parametrize("text", ["y = x**2 + x", "y = softmax(x); z = sum(x**3)"])
def test_a_page_is_small_and_asks_for_nothing(text):
    graph = parse(text, x=(3,))
    kernels = Kernels()
    page = live_document(live(graph, View(["x"]), kernels), kernels.program())
    assert len(page.encode()) < 150_000
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert "unsafe-inline" not in page
    for word in (
        "http:",
        "https:",
        "import(",
        "fetch(",
        "XMLHttpRequest",
        "localStorage",
        "eval(",
        " style=",
        " onclick=",
    ):
        assert word not in page.replace("http://www.w3.org/2000/svg", ""), word
