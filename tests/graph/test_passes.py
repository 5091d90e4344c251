"""Passes keep values and find repetitions: what is written twice is computed once."""

from decimal import Decimal

import numpy as np
import pytest

from gradcli import evaluate, parse
from gradcli.engine.lowering import lower
from gradcli.graph.graph import Graph
from gradcli.graph.node import const, leaf
from gradcli.graph.rewrite import optimise


def operations(graph):
    """Return the operations that are left when a graph is lowered and optimised, leaves and constants aside."""
    simpler = lower(graph.nodes)
    nodes = optimise(Graph.of(graph.inputs, {name: simpler[y] for name, y in graph.outputs.items()})).nodes
    return [n.op for n in nodes if n.op not in ("input", "const")]


# text, the operations that are left: what is written twice is computed once
REPEATED = [
    ("sin(a*b) + cos(b*a)", ["mul", "sin", "cos", "add"]),
    ("sin(a + b)*cos(b + a)", ["add", "sin", "cos", "mul"]),
    ("sin(a - b)*cos(b - a)", ["sub", "sin", "sub", "cos", "mul"]),
    ("sin(a/b)*cos(b/a)", ["div", "sin", "div", "cos", "mul"]),
    ("sin(a**b)*cos(b**a)", ["pow", "sin", "pow", "cos", "mul"]),
    ("(a*b + b*a)*(b*a + a*b)", ["mul", "add", "mul"]),
    ("a**3", ["mul", "mul"]),
    ("a**2 + a*a", ["mul", "add"]),
    ("a**2*b + a**3", ["mul", "mul", "mul", "add"]),
    ("a**-2 + 1/(a*a)", ["mul", "div", "add"]),
    ("a**-1 - 1/a", ["div", "sub"]),
    ("a**4", ["pow"]),
    ("sigmoid(a) + silu(a)", ["neg", "softplus", "neg", "exp", "mul", "add"]),
    ("a*b - -(b*a)", ["mul", "add"]),
    ("max(x) - max(x, dim=0)", ["max", "max", "sub"]),
    ("sum(x*z) + sum(z*x)", ["mul", "sum", "add"]),
    ("x[0] + x[-2]", ["index", "add"]),
    ("x[0] + x[1]", ["index", "index", "add"]),
]


@pytest.mark.parametrize(("text", "left"), REPEATED)
def test_repetitions_are_found(text, left):
    assert operations(parse(f"y = {text}", x=(2,), z=(2,))) == left


def test_arrays_of_constants_are_one_only_where_their_types_agree():
    tenths = (Decimal("0.1"), Decimal("0.2"))
    x, w = leaf((2,), "float32"), leaf((2,))
    graph = Graph.of({"x": x, "w": w}, {"a": x * const(tenths, (2,), "float32"), "b": w * const(tenths, (2,))})
    point = {"x": np.ones((2, 1), "float32"), "w": np.ones((2, 1))}
    assert evaluate(optimise(graph), point)["b"].tolist() == [[0.1], [0.2]]


def test_outputs_keep_their_names_and_inputs_stay():
    graph = parse("y = sin(x); z = sin(x); unread = cos(q)")
    chosen = {name: graph.outputs[name] for name in ("y", "z")}
    shorter = optimise(Graph(graph.nodes, graph.inputs, chosen))
    assert list(shorter.outputs) == ["y", "z"]
    assert shorter.outputs["y"] is shorter.outputs["z"]
    assert list(shorter.inputs.items()) == list(graph.inputs.items())
    assert [n.op for n in shorter.nodes] == ["input", "input", "sin"]
