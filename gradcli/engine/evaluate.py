"""Run a graph in NumPy, in float64, at many points at once.

The batch axis is last: a scalar at N points is `(N,)`, a vector `(n, N)`.  NumPy aligns shapes from the right, so its
broadcasting keeps its meaning, and each quantity lies contiguous in memory across the points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from gradcli.engine import functions
from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Constant, Graph, Node
from gradcli.graph.structural import STRUCTURAL

Array = np.ndarray[Any, Any]

_NAMED = {"pi": math.pi, "e": math.e}


def evaluate(graph: Graph, values: Mapping[str, Array], keep: Iterable[Node] | None = None) -> dict[Node, Array]:
    """Return the values of the outputs, or of the nodes `keep`, at all points.

    `values` holds for each input an array of its shape with the points as an added last axis, of length N or 1.
    Results have the same layout.  Nothing is raised for 1/0 or log(0): the result is inf or nan.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf("x")
    >>> graph = Graph.of([x], [(3 * x**2).called("y")])
    >>> evaluate(graph, {"x": np.array([1.0, 2.0])})[graph.outputs[0]]
    array([ 3., 12.])
    """
    wanted = graph.outputs if keep is None else tuple(keep)
    last = _last_readers(graph, wanted)
    results: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for i, node in enumerate(graph.nodes):
            if node.op == "input":
                results[node] = np.asarray(values[node.name or ""], dtype=float)
            elif node.op == "const":
                results[node] = np.full((*node.shape, 1), number(node.params[0]))
            else:
                results[node] = forward(node.op)(*node.params, *(results[a] for a in node.args))
            for done in last.get(i, ()):
                del results[done]
    return {n: results[n] for n in wanted}


def _last_readers(graph: Graph, wanted: Iterable[Node]) -> dict[int, list[Node]]:
    """Return, for each place in the list, the nodes whose values nobody reads after it."""
    last = {node: i for i, node in enumerate(graph.nodes)}
    for i, node in enumerate(graph.nodes):
        last.update(dict.fromkeys(node.args, i))
    kept = set(wanted)
    places: dict[int, list[Node]] = {}
    for node, i in last.items():
        if node not in kept:
            places.setdefault(i, []).append(node)
    return places


@cache
def forward(op: str) -> Callable[..., Array]:
    """Return the NumPy function of an operation; it takes the node's params, then the arrays."""
    if op in STRUCTURAL:
        return STRUCTURAL[op].forward
    name = ELEMENTWISE[op].numpy or op
    function: Callable[..., Array] = getattr(functions, name, None) or getattr(np, name)
    return function


def number(value: Constant) -> float:
    """Return a constant as float64."""
    if isinstance(value, str):
        return _NAMED[value]
    try:
        return float(value)
    except OverflowError:  # a slope such as 1/1e-320
        return math.inf if value > 0 else -math.inf
