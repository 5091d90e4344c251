"""The dtype of a result, and the numbers in it, are PyTorch's: recorded by `record_dtypes.py`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
from conftest import each
from numpy.testing import assert_allclose, assert_array_equal

from gradcli.engine.evaluate import evaluate
from gradcli.graph.construct import call, reduce
from gradcli.graph.dtypes import DTYPES, FLOATING
from gradcli.graph.graph import Graph
from gradcli.graph.node import cast, compare, const, leaf
from gradcli.graph.vjp import sweep, vjp

REDUCTIONS, VALUES = ("sum", "prod"), [[1, 2, 3], [2, 1, 3]]
RECORDED = json.loads((Path(__file__).parent / "dtypes.json").read_text())


def computed(text):
    op, first, *rest = text.split()
    leaves = {"a": leaf((3,), first)}
    point = {"a": np.array(VALUES[0]).astype(first)[:, None]}
    args = [leaves["a"]]
    for second in rest:
        if second in DTYPES:
            leaves["b"] = leaf((3,), second)
            point["b"] = np.array(VALUES[1]).astype(second)[:, None]
            args.append(leaves["b"])
        else:
            args.append(const(int(second) if second.isdigit() else Fraction(second)))
    make = {"lt": compare, "eq": compare}.get(op, call)
    y = reduce(op, args[0], (0,)) if op in REDUCTIONS else make(op, *args)
    return y.dtype, evaluate(Graph.of(leaves, {"y": y}), point)["y"][..., 0]


@each("text", RECORDED)
def test_a_result_has_pytorchs_dtype_and_numbers(text):
    dtype, numbers = RECORDED[text]
    node_dtype, found = computed(text)
    assert (node_dtype, str(found.dtype)) == (dtype, dtype)
    if dtype in FLOATING:
        assert_allclose(found.reshape(-1), np.array(numbers, dtype=dtype), rtol=4e-7 if dtype == "float32" else 1e-14)
    else:
        assert_array_equal(found.reshape(-1), numbers)


def test_gradients_of_float32_are_computed_in_float32():
    x = leaf((3,), "float32")
    y = reduce("max", x * x / 3 + call("sin", x), (0,), "even")
    graph = vjp(Graph.of({"x": x}, {"y": y}))
    assert {n.dtype for n in graph.nodes if n.op != "const" or n.shape} <= {"float32", "bool"}
    point = {"x": np.array([[0.1], [0.2], [0.3]], "float32"), "y.v": np.ones(1, "float32")}
    assert evaluate(graph, point)["x.grad"].dtype == np.float32


def test_a_cast_passes_on_what_it_casts_back_and_nothing_goes_through_whole_numbers():
    x = leaf((2,), "float32")
    graph = vjp(Graph.of({"x": x}, {"y": reduce("sum", cast(x, "float64") ** 3, (0,))}))
    found = evaluate(graph, {"x": np.array([[1.0], [2.0]]), "y.v": np.ones(1)})["x.grad"]
    assert (found[:, 0].tolist(), str(found.dtype)) == ([3, 12], "float32")
    through = sweep(Graph.of({"x": x}, {"y": cast(cast(x, "int64"), "float32") * 2}))
    assert not through.passes
    assert through.gradients["x"].value == 0


def test_constants_take_the_type_of_what_they_meet():
    n, x = leaf((), "int64"), leaf((), "float32")
    assert (n + 2).dtype == "int64"
    assert (n * Fraction(1, 2)).dtype == "float32"
    assert (x * const("pi")).dtype == "float32"
    assert [a.dtype for a in (x * const("pi")).args] == ["float32", "float32"]
    assert (leaf() * Fraction(1, 3)).dtype == "float64"
