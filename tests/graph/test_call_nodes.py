"""Calls: one node each, whose definition may return an argument itself, or one of several results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli import evaluate, vjp
from gradcli.engine import lowering
from gradcli.engine.lowering import lower
from gradcli.graph import calls
from gradcli.graph.calls import call_of, definition_of, opened
from gradcli.graph.graph import Graph
from gradcli.graph.jvp import jvp
from gradcli.graph.node import Node, leaf
from gradcli.graph.operation import defined
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.recurrent import recurrent
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.sparsity import dependencies


@pytest.fixture
def echo(monkeypatch):
    """Return the call of x whose definition is x itself."""
    monkeypatch.setitem(OPERATIONS, "echo", defined(lambda x: x))
    monkeypatch.setitem(calls._DEFINITIONS, "echo", definition_of)
    monkeypatch.setitem(lowering.DEFINITIONS, "echo", definition_of)
    return lambda x: Node("echo", (x,), x.shape)


def test_an_argument_that_a_definition_returns_stays_itself(echo):
    x = leaf((3,))
    graph = Graph.of({"x": x}, {"y": echo(x), "z": echo(-x)})
    assert opened(graph).outputs["y"] is x
    assert lower(graph.nodes)[graph.outputs["y"]] is x
    (negative,) = graph.outputs["z"].args
    assert Rewriter(definitions={"echo": definition_of}).rewritten(graph.nodes)[graph.outputs["z"]] is negative
    assert [bin(n) for n in dependencies(graph, [x])[graph.outputs["y"]]] == ["0b1", "0b10", "0b100"]
    at = {"x": np.array([[1.0], [2.0], [3.0]]), "y.v": np.array([[1.0], [1.0], [5.0]]), "z.v": np.ones((3, 1))}
    assert_allclose(evaluate(vjp(graph), at)["x.grad"][:, 0], [0, 0, 4])
    assert_allclose(evaluate(jvp(graph), at | {"x.u": at["y.v"]})["y.jvp"][:, 0], [1, 1, 5])


def lstm():
    """Return a graph of all results of an LSTM in two directions, and a point."""
    shapes = {"x": (3, 2, 2), "h": (2, 2, 1), "c": (2, 2, 1), "w": (4, 2), "u": (4, 1), "b": (4,)}
    inputs = {name: leaf(shape) for name, shape in shapes.items()}
    x, h, c, w, u, b = inputs.values()
    results = recurrent("lstm", (1, True, True, False, False), x, h, c, w, u, b, b, w, u, b, b)
    graph = Graph.of(inputs, dict(zip("yst", results, strict=True)))
    rng = np.random.default_rng(0)
    return graph, {name: rng.normal(size=(*shape, 1)) for name, shape in shapes.items()}


def test_results_are_nodes_of_equal_arguments_and_their_definitions_share_nodes():
    graph, point = lstm()
    y, s, t = graph.outputs.values()
    assert y.args == s.args == t.args
    assert [n.settings for n in (y, s, t)] == [(*y.settings[:-1], k) for k in range(3)]
    alone = {name: opened(Graph.of(graph.inputs, {name: n})) for name, n in graph.outputs.items()}
    together = opened(graph)
    last = [n for n in together.nodes if n.op == "stack"]
    assert len(together.nodes) == len(alone["y"].nodes) + len(last) - 2  # the states are stacked, nothing else is more
    values = evaluate(graph, point)
    for name in graph.outputs:
        assert_allclose(values[name], evaluate(alone[name], point)[name], rtol=1e-14)
    assert_allclose(values["s"][0], values["y"][-1, :, :1], rtol=1e-14)  # the last h of the first direction
    assert_allclose(values["s"][1], values["y"][0, :, 1:], rtol=1e-14)


def test_one_of_the_results_opens_them_all_and_other_calls_stay():
    graph, _ = lstm()
    y, s, t = graph.outputs.values()
    linear = call_of("linear", ((),), y, graph.inputs["w"])
    whole = Graph.of(graph.inputs, {"y": y, "s": s, "t": t, "z": linear})
    assert not {"lstm", "linear"} & {n.op for n in opened(whole).nodes}
    ops = [n.op for n in opened(whole, {s}).nodes]
    assert (ops.count("lstm"), ops.count("linear")) == (0, 1)
    ops = [n.op for n in opened(whole, {linear}).nodes]
    assert (ops.count("lstm"), ops.count("linear")) == (3, 0)


def test_adjoints_of_all_results_add_up():
    graph, point = lstm()
    cotangents = {f"{name}.v": np.random.default_rng(1).normal(size=(*n.shape, 1)) for name, n in graph.outputs.items()}
    grads = evaluate(vjp(graph), point | cotangents)
    h = 1e-6
    for name, x in point.items():
        direction = np.random.default_rng(2).normal(size=x.shape)
        up, down = (evaluate(graph, point | {name: x + s * direction}) for s in (h, -h))
        slope = sum(((up[k] - down[k]) * cotangents[f"{k}.v"]).sum() for k in up) / (2 * h)
        assert_allclose((grads[f"{name}.grad"] * direction).sum(), slope, rtol=1e-7)
