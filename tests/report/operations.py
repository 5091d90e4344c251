"""The operations that pages write, as functions of NumPy's arrays, for tests that read pages back."""

from __future__ import annotations

import numpy as np

from gradcli import evaluate
from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Graph, elementwise, leaf


def function_of(op):
    """Return an operation of the table as a function of arrays."""

    def call(*args):
        arrays = [np.asarray(a, dtype=float) for a in args]
        leaves = [leaf(f"a{k}", a.shape) for k, a in enumerate(arrays)]
        node = elementwise(op, *leaves).called("y")
        values = evaluate(Graph.of(leaves, [node]), {n.name: a[..., None] for n, a in zip(leaves, arrays, strict=True)})
        return values[node][..., 0]

    return call


FUNCTIONS = {op: function_of(op) for op in ELEMENTWISE} | {
    "where": np.where,
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "norm": np.linalg.norm,
    "std": lambda x: np.std(x, ddof=1),
    "cumsum": np.cumsum,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "reshape": np.reshape,
    "broadcast": np.broadcast_to,
    "concatenate": np.concatenate,
    "diag": np.diag,
    "outer": np.outer,
    "pi": np.pi,
}
