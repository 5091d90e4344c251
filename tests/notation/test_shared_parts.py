"""Text and LaTeX grow with the nodes of a system, not with its paths: parts that are shared have names."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conftest import examples

from gradcli import parse
from gradcli.engine.evaluate import evaluate
from gradcli.graph.graph import Graph
from gradcli.graph.node import elementwise, leaf
from gradcli.notation.latex import LatexNotation
from gradcli.notation.nodes import ENDLESS, Notation, readable_names, short_text, written_size

LENGTH = 400  # characters of a definition, a node on average


def random_graph(seed: int, size: int, shape: tuple[int, ...]) -> Graph:
    """Return a graph of operations on earlier nodes, mostly the last ones, so that paths double with each few nodes."""
    draw = random.Random(seed)
    x = leaf(shape)
    nodes = [x]
    for _ in range(size):
        a, b = (nodes[-1 - min(int(draw.expovariate(0.7)), len(nodes) - 1)] for _ in range(2))
        op = draw.choice(["add", "mul", "sub", "sin", "tanh", "sigmoid", "div"])
        nodes.append(elementwise(op, a, b) if op in ("add", "mul", "sub", "div") else elementwise(op, a))
    return Graph.of({"x": x}, {"y": nodes[-1]})


@pytest.mark.parametrize("shape", [(), (2,)])
def test_texts_grow_with_the_nodes(shape):
    for seed in range(examples(20)):
        for size in (20, 60, 180):
            graph = random_graph(seed, size, shape)
            names = readable_names(graph)
            defined = [n for n in graph.nodes if n in names and n.args]
            for writer in (Notation(names), LatexNotation(names)):
                assert sum(len(writer.expression(n)) for n in defined) <= LENGTH * len(graph.nodes)


def test_named_parts_are_the_system():
    """The definitions, typed, are the same numbers."""
    for seed in range(examples(20)):
        graph = random_graph(seed, 60, ())
        names = readable_names(graph)
        writer = Notation(names)
        text = "\n".join(f"{names[n]} = {writer.expression(n)}" for n in graph.nodes if n in names and n.args)
        at = {"x": np.array([0.7, -0.3])}
        expected = evaluate(graph, at)["y"]
        np.testing.assert_allclose(evaluate(parse(f"{text}\n{'' if 'y = ' in text else 'y = x'}"), at)["y"], expected)


def test_short_expressions_keep_no_names():
    graph = parse("y = (x*sigmoid(x))*sigmoid(x*sigmoid(x))")
    assert set(readable_names(graph).values()) == {"x", "y"}


def test_sizes_of_what_has_endless_paths_end():
    x = y = leaf()
    for _ in range(1_000):
        y = elementwise("mul", y, y)
    assert written_size(y, {x: "x"}) == ENDLESS
    assert short_text(y, {x: "x"}, 100) == ""
