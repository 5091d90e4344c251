"""The passes of a reverse sweep: from which operation to which argument an adjoint goes, and where it goes nowhere."""

import numpy as np
import pytest

from gradcli import evaluate, parse
from gradcli.engine.evaluate import values_of
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep

# A system, the leaves wanted, and the passes: the operation and what it passes to (its name, or its operation).
PASSES = [
    ("y = x*x + 3*x", "x", ["add mul", "add mul", "mul x", "mul x", "mul x"]),
    ("y = x*z", "x", ["mul x"]),
    ("y = x*z", "z", ["mul z"]),
    ("h = 2*z; y = x*h", "x", ["mul x"]),
    # A condition passes nothing on.
    ("y = where((x > 0) & (x < 2), x*x, x)", "x", ["where mul", "where x", "mul x", "mul x"]),
    ("y = where(~(x >= 0) | (x == 1), 1, x)", "x", ["where x"]),
    ("y = where(x != z, 2, 3)", "x", []),
    # A step passes on a 0.
    ("y = floor(x**2)", "x", ["floor pow", "pow x"]),
    ("y = sign(x)*x", "x", ["mul sign", "mul x", "sign x"]),
    ("y = x % z", "z", ["mod z"]),
    ("y = x**0", "x", ["pow x"]),
    # Structural operations.
    ("y = sum(v**2)", "v", ["sum pow", "pow v"]),
    ("y = max(v, dim=0)*v[1]", "v", ["mul max", "mul index", "index v", "max v"]),
    ("y = stack([v[0], x])", "x", ["stack x"]),
    ("y = M @ v", "v", ["matmul v"]),
    ("y = M @ v", "M", ["matmul M"]),
]
SHAPES = {"v": (3,), "M": (2, 3)}


def written(graph, node):
    """Return the name of a leaf, or what a node does."""
    return next((name for name, x in graph.inputs.items() if x is node), node.op)


@pytest.mark.parametrize(("system", "wrt", "passes"), PASSES)
def test_an_adjoint_goes_where_a_wanted_leaf_is(system, wrt, passes):
    graph = parse(system, **SHAPES)
    swept = sweep(graph, [wrt])
    assert [f"{p.node.op} {written(graph, p.argument)}" for p in swept.passes] == passes
    assert all(p.contribution.shape == p.argument.shape for p in swept.passes)


@pytest.mark.parametrize(("system", "wrt", "passes"), PASSES)
def test_adjoints_are_the_sums_of_contributions(system, wrt, passes):
    graph = parse(system, **SHAPES)
    swept = sweep(graph, [wrt])
    point = {name: np.random.default_rng(0).uniform(0.5, 1.5, (*x.shape, 2)) for name, x in swept.graph.inputs.items()}
    into = [p.contribution for p in swept.passes if p.argument is graph.inputs[wrt]]
    (gradient,) = swept.graph.outputs.values()
    found = values_of(Graph.of(swept.graph.inputs, swept.graph.outputs, swept.traced()), point, [*into, gradient])
    total = np.zeros((*graph.inputs[wrt].shape, 2))
    for contribution in into:
        total += found[contribution]
    np.testing.assert_allclose(np.broadcast_to(found[gradient], total.shape), total, rtol=1e-12)


def test_what_is_retained_is_wanted():
    graph = parse("h = x**2; k = sin(h); y = k*z")
    swept = sweep(graph, ["z"], ["h"])
    assert list(swept.graph.outputs) == ["z.grad", "h.grad"]
    labels = graph.labels
    assert [f"{p.node.op} {labels[p.argument]}" for p in swept.passes] == ["mul k", "mul z", "sin h"]


def test_what_passes_nothing_on_may_be_retained():
    graph = parse("h = detach(x**2); y = h*x")
    swept = sweep(graph, ["x"], ["h", "y"])
    labels = graph.labels
    assert [f"{p.node.op} {labels[p.argument]}" for p in swept.passes] == ["mul h", "mul x"]
    found = evaluate(swept.graph, {"x": np.full(1, 3.0), "y.v": np.ones(1)})
    assert [float(g[0]) for g in found.values()] == [9, 3, 1]


def test_a_leaf_that_nothing_reads_has_the_gradient_0():
    swept = sweep(parse("y = where(x > 0, 1, 2)*z"), ["x", "z"])
    grads = evaluate(swept.graph, {"x": np.ones(1), "z": np.ones(1), "y.v": np.full(1, 5.0)})
    assert [float(g[0]) for g in grads.values()] == [0, 5]
