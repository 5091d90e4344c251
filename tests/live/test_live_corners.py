"""The conditions of corners as nodes hold where those of the notes hold, which are told of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.explain.corners import CORNERS
from gradcli.explain.live.corners import condition
from gradcli.graph.operations import OPERATIONS

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
FUNCTIONS = [
    "abs(x)", "relu(x)", "leaky_relu(x)", "elu(x)", "selu(x)", "clamp(x, -1, 1)", "hardtanh(x)", "maximum(x, z)",
    "minimum(x, z)", "x**z", "atan2(x, z)", "sign(x)", "heaviside(x, 0.5)", "floor(x)", "ceil(x)", "trunc(x)",
    "round(x)", "frac(x)", "x % z", "norm(x)", "norm(M, axis=1)", "std(x)", "max(x)", "min(M, axis=0)",
    "amax(M, axis=1)", "max(M, dim=1)",
]  # fmt: skip
NUMBERS = ([0, 0, 0], [1, 1, -1], [0.5, 2, 2], [0, 1, 2], [-1, np.inf, 0])


def test_each_corner_has_a_function_here():
    graphs = [parse(f"y = {text}", **SHAPES) for text in FUNCTIONS]
    assert {n.op for graph in graphs for n in graph.nodes} >= set(CORNERS)


@pytest.mark.parametrize("text", FUNCTIONS)
@np.errstate(all="ignore")
def test_conditions_agree(text):
    graph = parse(f"y = {text}", **SHAPES)
    (node,) = [n for n in graph.nodes if n.op in CORNERS]
    found = condition(node)
    for numbers in NUMBERS:
        at = {name: np.resize(np.array(numbers, float), x.shape) for name, x in graph.inputs.items()}
        values = at_point(graph, at, [*node.args, found.node])
        axes = node.settings[:1] if OPERATIONS[node.op].kind == "reduction" else ()
        right = np.asarray(CORNERS[node.op][0](*(values[a] for a in node.args), *axes))
        assert np.array_equal(*np.broadcast_arrays(values[found.node].astype(bool), right)), numbers
