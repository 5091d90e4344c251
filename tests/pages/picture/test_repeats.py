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


def test_two_layers_are_no_repetition():
    lines, shapes = layers(2)
    assert found(lines, **shapes) == []


def test_a_layer_of_another_shape_ends_a_repetition():
    lines, shapes = layers(6)
    assert found(lines + "\ny = tanh(h6 @ V + c)", **shapes, V=(3, 2), c=(2,)) == [(0, 3, 6)]


def test_a_value_that_is_read_later_ends_a_repetition():
    chain = "\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, 40))])
    assert found(chain + "\ny = t20 + t40") == [(0, 1, 20), (20, 1, 20)]


def test_an_output_ends_a_repetition():
    graph = parse("\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, 40))]))
    nodes = [n for n in graph.nodes if n.op != "input"]
    both = type(graph).of(graph.inputs, {"a": nodes[19], "b": nodes[39]})
    assert repeated(both) == [(0, 1, 20), (20, 1, 20)]


def test_steps_that_read_the_same_leaf():
    text = "\n".join(f"t{k + 1} = t{k}*x + 1/(1 + t{k}**2)" for k in range(100))
    assert found(text) == [(0, 5, 100)]


def test_steps_that_read_different_numbers_are_different():
    assert found("\n".join(f"t{k + 1} = {k + 2}*t{k}" for k in range(20))) == []


def test_a_part_that_reads_two_steps_back():
    text = "\n".join(f"f{k + 2} = f{k} + f{k + 1}" for k in range(30))
    assert all(period * times <= 30 for _, period, times in found(text))
    assert sum(period * (times - 1) for _, period, times in found(text)) >= 20


@pytest.mark.parametrize("length", [9, 10])
def test_few_operations_are_shown(length):
    chain = "\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, length))])
    assert len(found(chain)) == (length >= 10)
