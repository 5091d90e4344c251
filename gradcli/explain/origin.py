"""Where a number arose that is not finite."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import Span
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, sweep
from gradcli.report.numbers import number_text


def origin(swept: Sweep, inputs: Named) -> str:
    """Return where in a sweep the first number arose that is not finite, in words."""
    nodes = swept.traced()
    values = values_of(swept.graph, inputs, nodes)

    def bad(node: Node) -> bool:
        return not np.isfinite(values[node]).all()

    vectors = set(swept.cotangents.values())
    for name, node in swept.graph.inputs.items():
        if bad(node):
            return f"{'v' if node in vectors else f'the input {name}'} itself is not finite"
    spans = swept.graph.spans
    passes = {p.node for p in swept.passes}
    for node in nodes:
        if bad(node) and node in passes:
            return f"it arises in {_words(node, spans)}, whose value is not finite"
    for p in swept.passes:
        if bad(p.contribution):
            return f"it arises in {_words(p.node, spans)}, whose local derivative is not finite here"
    return "it arises where contributions are added"


def _words(node: Node, spans: Mapping[Node, Span]) -> str:
    """Return an operation with the place where the user wrote it."""
    return f"`{node.op}` ({' '.join(spans[node].text.split())[:60]})" if node in spans else f"`{node.op}`"


def not_finite(swept: Sweep, inputs: Named, grads: Named) -> list[str]:
    """Return what to tell of gradients that are not finite, with the operation where the first such number arose."""
    where = origin(swept, inputs)
    found = []
    for name, grad in grads.items():
        if not np.isfinite(grad).all():
            found.append(f"{_first_bad(f'{name}.grad', grad)}: {where}")
    return found


def not_finite_entry(graph: Graph, wrt: Sequence[str], at: Named, matrix: Array) -> str:
    """Return what to tell of the first entry of J that is not finite, with the operation where it arose."""
    i, j = (int(k[0]) for k in np.nonzero(~np.isfinite(matrix)))
    places = ((name, y, k) for name, y in graph.outputs.items() for k in range(y.size))
    name, y, k = next(itertools.islice(places, i, None))
    column = next(itertools.islice((e for n in wrt for e in element_names(n, graph.inputs[n].shape)), j, None))
    v = np.zeros(y.size)
    v[k] = 1
    alone = sweep(Graph.of(graph.inputs, {name: y}, names=graph.names, spans=graph.spans), wrt)
    inputs = {n: a[..., None] for n, a in at.items()} | {f"{name}.v": v.reshape(*y.shape, 1)}
    row = element_names(name, y.shape)[k]
    return f"d{row}/d{column} is {number_text(matrix[i, j])}: {origin(alone, inputs)}"


def not_finite_values(graph: Graph, at: Named, values: Named) -> list[str]:
    """Return what to tell of outputs that are not finite, with the operation where the first such number arose."""
    return [
        f"{_first_bad(name, value)}: {_value_origin(graph, at)}"
        for name, value in values.items()
        if not np.isfinite(value).all()
    ]


def _first_bad(name: str, value: Array) -> str:
    """Return the first element that is not finite, with its value."""
    flat = value.reshape(-1)
    k = int(np.argmax(~np.isfinite(flat)))
    return f"{element_names(name, value.shape)[k]} is {number_text(flat[k])}"


def _value_origin(graph: Graph, at: Named) -> str:
    """Return where in the forward pass the first number arose that is not finite, in words."""
    values = values_of(graph, {n: a[..., None] for n, a in at.items()}, graph.nodes)
    for name, node in graph.inputs.items():
        if not np.isfinite(values[node]).all():
            return f"the input {name} itself is not finite"
    node = next(n for n in graph.nodes if not np.isfinite(values[n]).all())
    return f"it arises in {_words(node, graph.spans)}"
