"""The section `v`: the scalar whose gradient a cotangent gives."""

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.pages.backward.loss import loss
from gradcli.pages.sections import Value


def test_of_many_elements_only_those_are_made_that_are_shown(monkeypatch):
    x, z = leaf((1000, 1000)), leaf((2,))
    graph = Graph.of({"x": x, "z": z}, {"y": 2 * x, "h": 3 * z})
    made = []
    monkeypatch.setattr(Value, "of", lambda number: made.append(float(number)) or Value(np.asarray(number)))
    v = {"y": np.arange(10.0**6).reshape(1000, 1000), "h": np.array([0, 7.0])}
    terms = loss(graph, v, "L").sides[-1].terms
    assert [term.factors[1].name if term != "…" else "…" for term in terms] == [
        "y[0,1]", "y[0,2]", "y[0,3]", "y[0,4]", "y[0,5]", "y[0,6]", "…", "h[1]",
    ]  # fmt: skip
    assert made == [1, 2, 3, 4, 5, 6, 7, 8, 7]  # eight elements, and the last
