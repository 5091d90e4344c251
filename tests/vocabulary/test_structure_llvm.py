"""The LLVM kernels of structural operations: compiled, in small tiles, and what is left to the NumPy engine."""

import re

import numpy as np
import pytest
from conftest import some
from llvm_source import in_tiles
from numpy.testing import assert_allclose
from structure_systems import SYSTEMS as COMMON

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.llvm.code import NotCompiledError, check
from gradcli.engine.schedule import Schedule
from gradcli.errors import Notes

SYSTEMS = [
    *((text, shapes) for text, shapes in COMMON if not re.match("det|inv|solve|sort|argsort|topk|median", text)),
    ('einsum("bij,bj->b", x, y)', {"x": (2, 2, 3), "y": (2, 3)}),
    ("x.T[:, [1, 0, 1]]**2", {"x": (2, 3)}),
    ("cofactors", {"x": (3, 3)}),
    ('einsum("ij->ji", x) @ y[[1, 0]]', {"x": (2, 2), "y": (2,)}),
    ('einsum("iij->ij", x)**2', {"x": (2, 2, 3)}),
]


def graph_of(expression, shapes):
    if expression == "cofactors":  # of a determinant, whose own value is in no kernel
        return vjp(parse("out = det(x)", **shapes))
    return vjp(parse(f"out = {expression}", **shapes))


def points_of(graph, count):
    rng = np.random.default_rng(0)
    return {name: rng.uniform(-2, 2, (*n.shape, count)) for name, n in graph.inputs.items()}


@pytest.mark.parametrize(("expression", "shapes"), SYSTEMS, ids=str)
def test_kernels_compute_what_numpy_does(expression, shapes):
    graph = graph_of(expression, shapes)
    points = points_of(graph, 12)
    found = in_tiles(graph, {}, points, 12, 4)
    for name, value in evaluate(graph, points).items():
        assert_allclose(found[name], value * np.ones(12), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("expression", "shapes"), some(SYSTEMS), ids=str)
def test_kernels_with_an_input_that_is_the_same_at_all_points(expression, shapes):
    graph = graph_of(expression, shapes)
    points = points_of(graph, 7)
    same = {"x": points.pop("x")[..., :1]}
    found = in_tiles(graph, same, points, 7, 4)
    for name, value in evaluate(graph, points | same).items():
        assert_allclose(found[name], value * np.ones(7), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "graph",
    [
        parse('out = einsum("ij,j->i", x[[1, 0]], y) + argmax(y); pool = max_pool1d(x, 2)', x=(2, 3), y=(3,)),
        vjp(parse("out = cumprod(y)[[2, 0]]", y=(3,))),
    ],
    ids=["values", "gradient"],
)
def test_compiled_kernels(graph):
    pytest.importorskip("llvmlite")
    notes = Notes()
    points = points_of(graph, 3000)
    found = Compiled(graph, engine="llvm", notes=notes)(points)
    assert not notes.lines
    for name, value in evaluate(graph, points).items():
        assert_allclose(found[name], value, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("expression", "op", "shape"),
    [
        ("det(x)", "det", (2, 2)), ("inv(x)", "inv", (3, 3)), ("solve(x, x)", "solve", (2, 2)),
        ("sort(x)", "sort", (3,)), ("argsort(x)*x", "argsort", (3,)), ("median(x)", "median", (3,)),
    ],
)  # fmt: skip
def test_operations_without_a_rule(expression, op, shape):
    graph = parse(f"out = {expression}", x=shape)
    with pytest.raises(NotCompiledError, match=f"^the LLVM engine does not compile `{op}`$"):
        check(Schedule.of(graph, {}))
    pytest.importorskip("llvmlite")
    notes = Notes()
    points = points_of(graph, 20)
    found = Compiled(graph, engine="llvm", notes=notes)(points)
    assert notes.lines == [f"note: the LLVM engine does not compile `{op}`: the NumPy engine computes these points"]
    assert_allclose(found["out"], evaluate(graph, points)["out"], rtol=1e-12)
