"""The names of the scalar L and of the cotangent v, unless the user has these names."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Exact


def loss_name(graph: Graph, v: Named) -> str:
    """Return the name of the scalar that a call differentiates: the output, or a new name for Σ v_i·y_i."""
    (name, y), *others = graph.outputs.items()
    return name if not others and not y.shape and v[name] == 1 else any_loss(graph)


def any_loss(graph: Graph) -> str:
    """Return a name for Σ v_i·y_i: L, or `loss` where the user has an L."""
    return "loss" if _has(graph, "L") else "L"


def cotangent(graph: Graph, loss: str = "") -> str:
    """Return the name of the cotangent: v, or the adjoint of the only output where the user has a v.

    Several outputs have no such name: "".  `loss` is what adjoints are derivatives of; `any_loss`, if it is not named.

    >>> from gradcli.graph.node import leaf
    >>> v = leaf()
    >>> cotangent(Graph.of({"v": v}, {"E": v * v})) == adjoint_name("E", "L")
    True
    >>> cotangent(Graph.of({"v": v}, {"energy": v * v}))
    '∂L/∂energy'
    """
    if not _has(graph, "v"):
        return "v"
    return adjoint_name(next(iter(graph.outputs)), loss or any_loss(graph)) if len(graph.outputs) == 1 else ""


def _has(graph: Graph, name: str) -> bool:
    return any(name in names for names in (graph.inputs, graph.names, graph.outputs))


def uniform(v: Array) -> Exact | None:
    """Return the one number that all elements of a cotangent are; None where they differ, and for 0.

    >>> uniform(np.ones(3)), uniform(np.array([1.0, 2.0]))
    (1, None)
    """
    if v.dtype == object or not v.size or not np.isfinite(v).all() or (v != v.reshape(-1)[0]).any() or not v.any():
        return None
    number = float(v.reshape(-1)[0])
    return int(number) if number.is_integer() else Decimal(repr(number))
