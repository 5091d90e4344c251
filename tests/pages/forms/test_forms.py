"""Gradients as formulas of matrices: what is written is the derivative, and is written as a textbook would."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import each, examples, long
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gradcli import evaluate, parse
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep
from gradcli.notation.nodes import Notation
from gradcli.pages.forms.rules import ArrayForms

SHAPES = {
    "x": (3,), "w": (3,), "t": (5,), "a": (3,), "b": (3,), "z": (3,), "X": (5, 3), "A": (3, 3), "B": (3, 3), "k": (),
    "T": (1, 2, 3),
}  # fmt: skip

FORMS = Path(__file__).with_name("forms.txt").read_text("utf-8").split("\n\n")
WRITTEN, OTHERS = ([tuple(line.split(" | ")) for line in block.splitlines()[1:]] for block in FORMS)
SAME = [row[:2] for row in WRITTEN] + [(text, leaf) for text, leaves in OTHERS for leaf in leaves]


def gradient(text, leaf):
    """Return the graph, the gradient of a leaf where v is 1, and its form."""
    system = text if "y=" in text else f"y = {text}"
    used = set(re.findall(r"\b\w+\b(?!\()", system))
    graph = parse(system, **{name: shape for name, shape in SHAPES.items() if name in used})
    swept = sweep(graph)
    known = dict.fromkeys(swept.cotangents.values(), 1)
    return swept, swept.gradients[leaf], ArrayForms(graph.labels, known)(swept.gradients[leaf])


@each(("text", "leaf", "expected"), WRITTEN)
def test_it_is_written_as_in_a_textbook(text, leaf, expected):
    swept, _, form = gradient(text, leaf)
    assert Notation(swept.graph.labels, implicit=True).name(form) == expected


@long
@each(("text", "leaf"), SAME)
def test_it_is_worth_the_gradient(text, leaf):
    check_worth(*gradient(text, leaf))


def check_worth(swept, plain, form):
    random = np.random.default_rng(1)
    at = {name: random.uniform(0.5, 2, (*n.shape, 1)) for name, n in swept.graph.inputs.items()}
    at["y.v"] = np.ones(1)
    found = evaluate(Graph.of(swept.graph.inputs, {"plain": plain, "form": form}, swept.graph.nodes), at)
    assert_allclose(np.broadcast_to(found["form"], found["plain"].shape), found["plain"], rtol=1e-12, atol=1e-14)


def built(form, *parts):
    return st.builds(form.format, *parts)


VECTORS = st.deferred(
    lambda: (
        st.sampled_from(["x", "w", "A[1]", "A[:, 0]", "x[[0, 0, 2]]"])
        | built("({} {} {})", VECTORS, st.sampled_from("+-*/"), VECTORS)
        | built("({}*{})", SCALARS, VECTORS)
        | built("{}({})", st.sampled_from(["sin", "tanh", "relu", "softmax", "log_softmax"]), VECTORS)
        | built("{}({}, axis=0)", st.sampled_from(["sum", "mean"]), MATRICES)
        | built("({} @ {})", MATRICES, VECTORS)
        | built("diag({})", MATRICES)
    )
)
MATRICES = st.deferred(
    lambda: (
        st.sampled_from(["A", "B", "A.T"])
        | built("({} {} {})", MATRICES, st.sampled_from("+-*"), MATRICES | VECTORS)
        | built("({} @ {}.T)", MATRICES, MATRICES)
        | built("outer({}, {})", VECTORS, VECTORS)
        | built("softmax({}, axis=1)", MATRICES)
    )
)
SCALARS = st.deferred(
    lambda: (
        st.sampled_from(["k", "x[0]", "A[0, 1]"])
        | built("{}({})", st.sampled_from(["sum", "mean", "norm", "logsumexp"]), VECTORS | MATRICES)
        | built("({})[1]", VECTORS)
        | built("({} @ {})", VECTORS, VECTORS)
        | built("trace({})", MATRICES)
    )
)


@settings(max_examples=examples(40))
@given(SCALARS.filter(lambda text: len(text) < 200), st.data())
def test_that_of_any_system_is_worth_the_gradient(text, data):
    inputs = sorted(set(re.findall(r"\b[xwkAB]\b", text)))
    check_worth(*gradient(text, data.draw(st.sampled_from(inputs))))


@each(("text", "leaf"), SAME)
def test_what_is_written_is_worth_the_gradient_when_it_is_typed(text, leaf):
    swept, plain, form = gradient(text, leaf)
    written = Notation(swept.graph.labels, implicit=True).name(form)
    if (
        "cofactors" in written or "product_of_others" in written or " with " in written
    ):  # for which there are other words
        return
    inputs = {name: n for name, n in swept.graph.inputs.items() if name != "y.v"}
    system = text if "y=" in text else f"y = {text}"
    typed = parse(f"{system}\ntyped = {written}", **{name: n.shape for name, n in inputs.items()})
    random = np.random.default_rng(1)
    at = {name: random.uniform(0.5, 2, (*n.shape, 1)) for name, n in inputs.items()}
    expected = evaluate(Graph.of(swept.graph.inputs, {"plain": plain}), at | {"y.v": np.ones(1)})["plain"][..., 0]
    found = evaluate(typed, at)["typed"][..., 0]
    assert_allclose(np.broadcast_to(found, expected.shape), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("columns", [1, 3, 10])
@pytest.mark.parametrize(
    "system",
    ["L = sum((x@W + b - t)**2)", "y = x@W + b; L = sum(y*t*y)", "y = tanh(x@W + b); L = -sum(y - t) + sum(b*b)"],
)
def test_a_formula_has_the_shape_of_the_gradient_for_a_batch_of_one(cli, rows, columns, system):
    shapes = {"x": (rows, 4), "W": (4, columns), "b": (columns,), "t": (rows, columns)}
    given = ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items())
    out = cli.done("backward", system, "--shape", given, "--wrt", "W,b", "--only", "grad").out
    adjoints = "".join(f"; {line}" for line in re.findall(r"^\w\u0304 = .*$", out, re.MULTILINE)).replace(
        "\u0304", "_bar"
    )
    for name in "Wb":
        written = re.search(rf"^{name}\.grad = (.*)$", out, re.MULTILINE)[1].replace("\u0304", "_bar")
        found = parse(f"{system}{adjoints}; typed = {written}", **shapes).outputs["typed"]
        assert found.shape == shapes[name], written


def test_an_argument_that_fits_only_reshaped_is_written_reshaped(cli):
    at = ("--at", "x=[[1,2,3],[4,5,6]],b=[7,8]", "--v", "[[1,2,3,4,5,6],[1,0,0,0,0,2]]")
    out = cli.done("backward", "z=kron(x,b)", *at, "--only", "grad").out
    x, b, v = np.arange(1.0, 7).reshape(2, 3), np.array([7.0, 8]), np.array([[1.0, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 2]])
    written = dict(re.findall(r"(\w)\.grad = (.*?) = \[", " ".join(out.split())))
    numpy = {"sum": np.sum, "reshape": np.reshape, "x": x, "b": b, "v": v}
    parts = v.reshape(2, 3, 2)
    np.testing.assert_array_equal(eval(written["x"], numpy), parts @ b)
    np.testing.assert_array_equal(eval(written["b"], numpy), np.einsum("ij,ijk", x, parts))
