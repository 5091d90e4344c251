"""The operations that pages write, as functions of NumPy's arrays, for tests that read pages back."""

from __future__ import annotations

import numpy as np

from gradcli import evaluate
from gradcli.graph.graph import Graph
from gradcli.graph.node import compare, elementwise, leaf
from gradcli.graph.operations import OPERATIONS


def function_of(op):
    """Return an operation of the table as a function of arrays."""
    node_of = compare if OPERATIONS[op].kind == "condition" else elementwise

    def call(*args):
        arrays = {f"a{k}": np.asarray(a, dtype=float) for k, a in enumerate(args)}
        leaves = {name: leaf(a.shape) for name, a in arrays.items()}
        graph = Graph.of(leaves, {"y": node_of(op, *leaves.values())})
        return evaluate(graph, {name: a[..., None] for name, a in arrays.items()})["y"][..., 0]

    return call


FUNCTIONS = {op: function_of(op) for op, row in OPERATIONS.items() if row.broadcasts} | {
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
