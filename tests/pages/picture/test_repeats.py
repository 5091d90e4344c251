"""Repeated parts: what is alike is found, and nothing is folded away that something else reads."""

from __future__ import annotations

import pytest

from gradcli import parse
from gradcli.pages.picture.folding import folds


def repeated(graph):
    """Return the start, the period and the number of rounds of each repetition."""
    nodes = [n for n in graph.nodes if n.op not in ("input", "const")]
    return [(nodes.index(f.nodes[0]), f.period, f.times) for f in folds(graph, nodes) if f.times > 1]


def found(text, **shapes):
    return repeated(parse(text, **shapes))


def layers(count):
    lines = "\n".join(f"h{k + 1} = tanh(h{k} @ W{k} + b{k})" for k in range(count))
    shapes = {f"W{k}": (3, 3) for k in range(count)} | {f"b{k}": (3,) for k in range(count)}
    return lines, {"h0": (3,)} | shapes


def test_layers_with_weights_of_their_own():
    lines, shapes = layers(6)
    assert found(lines + "\nL = sum(h6)", **shapes) == [(0, 3, 6)]


def test_a_value_that_is_read_later_ends_a_repetition():
    chain = "\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, 40))])
    assert found(chain + "\ny = t20 + t40") == [(0, 1, 20), (20, 1, 20)]


def test_steps_that_read_the_same_leaf():
    text = "\n".join(f"t{k + 1} = t{k}*x + 1/(1 + t{k}**2)" for k in range(100))
    assert found(text) == [(0, 5, 100)]


@pytest.mark.parametrize("length", [9, 10])
def test_few_operations_are_shown(length):
    chain = "\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, length))])
    assert len(found(chain)) == (length >= 10)
