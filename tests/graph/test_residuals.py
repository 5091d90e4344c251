"""Residuals: inner nodes that the forward pass of a call makes, and that its backward reads and computes no more."""

from collections import Counter

import pytest
from conftest import each
from test_operations import CALLS, SHAPES, built

from gradcli import parse, vjp
from gradcli.engine.lowering import lower
from gradcli.graph.graph import scheduled
from gradcli.graph.node import leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions
from gradcli.graph.vjp import contributions_of, residuals_of


def lowered(nodes):
    """Return how often each operation computes what these nodes need, leaves and constants aside."""
    nodes = list(nodes)
    simpler = lower(scheduled(nodes))
    same = common_subexpressions(scheduled([simpler[n] for n in nodes]))
    return Counter(n.op for n in scheduled([same[simpler[n]] for n in nodes]) if n.args)


def calls(graph):
    return [n for n in graph.nodes if n.args and OPERATIONS[n.op].kind == "call"]


@each("text", CALLS)
def test_the_forward_pass_makes_them(text):
    for call in calls(parse(text, **SHAPES) if isinstance(text, str) else built(text)):
        more = lowered([call, *residuals_of(call)]) - lowered([call])
        assert set(more) <= {"neg"}  # a sign that the forward pass has moved into a difference


@each("text", CALLS)
def test_the_backward_reads_them(text):
    for call in calls(parse(text, **SHAPES) if isinstance(text, str) else built(text)):
        residuals = residuals_of(call)
        contributions = contributions_of(call, leaf(call.shape))
        same = common_subexpressions(scheduled([*residuals, *contributions]))
        read = {a for n in scheduled([same[c] for c in contributions]) for a in n.args}
        assert {same[r] for r in residuals} <= read


# Of a loss or a layer: the operation that is dear, and how often value and gradient compute it together.
ONCE = {
    "cross_entropy(M, [2, 0])": {"log": 1, "max": 1},
    "cross_entropy(T, [[0, 1, 1], [1, 0, 1]], label_smoothing=0.1)": {"log": 1, "max": 1},
    "conv1d(T, U[:, :2], padding=1)": {"take": 1, "einsum": 3},
    "conv2d(I, K, padding=(1, 0), stride=(2, 1))": {"take": 1, "einsum": 3},
    "conv1d(M, T[:, :, :2], padding='same')": {"take": 1, "einsum": 3},
    "max_pool2d(I, 2)": {"take": 1},
    "layer_norm(M, 3, x, z)": {"sqrt": 1},
    "batch_norm(T, weight=x[:2], bias=z[1:])": {"sqrt": 1},
    "group_norm(I, 2)": {"sqrt": 1},
    "scaled_dot_product_attention(M, P, N)": {"exp": 1, "max": 1},
    # Of each step: three gates by softplus, and the tanh of g and of c.
    "lstm(T, x[None, :2, None], z[None, :2, None], N.T, N.T[:, :1], has_biases=False)": {"softplus": 6, "tanh": 4},
}


@pytest.mark.parametrize("text", ONCE)
def test_value_and_gradient_compute_them_once(text):
    graph = parse(f"y = {text}", **SHAPES)
    derived = vjp(graph)
    counts = lowered([*graph.outputs.values(), *derived.outputs.values()])
    assert {op: counts[op] for op in ONCE[text]} == ONCE[text]
