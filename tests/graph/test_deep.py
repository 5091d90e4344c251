"""A chain of 20,000 statements is an ordinary graph: nothing recurses, and costs grow with its length."""

import sys
import weakref

import numpy as np
import pytest
from conftest import long
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp
from gradcli.graph.construct import call
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.rewrite import optimise

DEEP = 20_000


def chain(step, length):
    """Return the graph of h1 = x*x and of `step`, which reads `h` and may read `x`, repeated."""
    lines = ["h1 = x*x"] + [f"h{k} = {step.replace('h', f'h{k - 1}')}" for k in range(2, length)]
    return parse("\n".join(lines))


@pytest.fixture(scope="module")
def deep():
    """x**20000, one factor a statement."""
    return chain("h*x", DEEP)


def test_chain_is_differentiated_and_evaluated(deep):
    assert len(deep.nodes) == DEEP > 15 * sys.getrecursionlimit()
    x = np.array([0.99999, 1.0, 1.00001])
    (y,) = evaluate(deep, {"x": x}).values()
    (grad,) = evaluate(vjp(deep), {"x": x, f"h{DEEP - 1}.v": np.ones(3)}).values()
    assert_allclose(y, x**DEEP, rtol=1e-9)
    assert_allclose(grad, DEEP * x ** (DEEP - 1), rtol=1e-9)


def test_chain_is_printed_and_optimised(deep):
    assert repr(deep.outputs[f"h{DEEP - 1}"]) == "mul(mul, input), shape ()"
    assert repr(deep) == f"Graph of {len(deep.nodes)} nodes, from x to h{DEEP - 1}"
    assert len(optimise(deep).nodes) == DEEP


@long
def test_chain_is_deleted():
    """Freeing the last node frees the one before it, and so on to the leaf, whose setting is watched."""
    setting = frozenset("x")
    first = weakref.ref(setting)
    x = node = Node("input", (), (), (setting,))
    for _ in range(3 * DEEP):  # where Python's own code in C recurses, it does not count
        node = call("sin", node)
    graph = vjp(Graph.of({"x": x}, {"y": node}))
    assert len(graph.nodes) > 6 * DEEP
    del setting, x, node, graph
    assert first() is None


@pytest.mark.parametrize("step", ["h/(1 + h)", "sin(h)*x", "h + x", "maximum(h, x)*h", "h**2 + h**3", "gelu(h)**x"])
@pytest.mark.parametrize("order", [1, 2])
def test_size_of_vjp_is_linear(step, order):
    sizes = []
    for length in (10, 40, 160):
        graph = chain(step, length)
        for _ in range(order):
            graph = vjp(graph)
        sizes.append(len(graph.nodes))
    assert sizes[2] - sizes[1] == 4 * (sizes[1] - sizes[0])
