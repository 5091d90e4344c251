"""A trace adds up: each adjoint is the derivative that finite differences give, each edge its own part of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli import evaluate, parse
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import sweep
from gradcli.pages.trace import numeric_trace, symbolic_trace

SYSTEMS = {
    "y = x*x + x": {"x": 3.0},
    "h = x**2; y = sin(h)*h": {"x": 0.7},
    "h = sin(x); z = h*b; y = exp(z) + h": {"x": 0.4, "b": 1.3},
    "y = sum((A@x - b)**2)": {"A": [[1.0, 2.0], [3.0, -1.0]], "x": [0.5, 0.25], "b": [1.0, 2.0]},
}


def traced(text, at, v=1.0, calls=1):
    values = {name: np.array(value) for name, value in at.items()}
    graph = parse(text, **{name: value.shape for name, value in values.items()})
    return graph, numeric_trace(graph, sweep(graph), values, [{"y": np.array(v)}] * calls)


@pytest.mark.parametrize(("text", "at"), SYSTEMS.items())
def test_adjoints_are_derivatives(text, at):
    """Each node is made an input of what comes after it, and moved a little."""
    graph, trace = traced(text, at)
    (call,) = trace.calls
    for node, adjoint in call.adjoints.items():
        value = trace.values[node]
        free = leaf(node.shape)
        rest = _replaced(graph, node, free)

        def loss(moved, rest=rest):
            inputs = {name: np.array(a)[..., None] for name, a in at.items()} | {"free": moved[..., None]}
            return evaluate(rest, inputs)["y"][0]

        for place in np.ndindex(*node.shape):
            step = np.zeros(node.shape)
            step[place] = 1e-6
            difference = (loss(value + step) - loss(value - step)) / 2e-6
            assert_allclose(adjoint[place], difference, rtol=1e-6, atol=1e-8)


def _replaced(graph, node, other):
    """Return the graph in which `other` stands for a node."""
    new = {node: other}
    for n in graph.nodes:
        if n not in new:
            new[n] = type(n)(n.op, tuple(new[a] for a in n.args), n.shape, n.settings) if n.args else n
    inputs = {name: new[n] for name, n in graph.inputs.items() if n is not node} | {"free": other}
    return Graph.of(inputs, {name: new[n] for name, n in graph.outputs.items()})


@pytest.mark.parametrize(("text", "at"), SYSTEMS.items())
def test_contributions_add_up_to_adjoints(text, at):
    _, trace = traced(text, at, v=2.5)
    (call,) = trace.calls
    for node, edges in trace.swept.incoming.items():
        parts = [call.contributions[edge] for edge in edges] + [seed for n, seed in call.seeds.items() if n is node]
        assert_allclose(sum(parts), call.adjoints[node], rtol=1e-12)
        assert_allclose(call.totals[edges[-1]], call.adjoints[node], rtol=1e-12)


def test_in_formulas_values_are_missing_and_adjoints_are_expressions():
    graph = parse("h = x**2; y = 3*h")
    trace = symbolic_trace(graph, sweep(graph), [{"y": np.array(1.0)}])
    assert trace.values == {}
    assert str(trace.calls[0].adjoints[graph.inputs["x"]][()]) == "6*x"
