"""The sizes of the terms whose sum a value is: they bound its rounding error where terms cancel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from gradcli.engine.evaluate import evaluator, number
from gradcli.graph.array import Array
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

UNIT = 4096 * np.finfo(float).eps  # of the terms that a number is the sum of: its rounding, with a margin
_CHANGE = 2.0**-26  # of each result: far above rounding, and far below what curves a function
_SAMPLES = 2


@np.errstate(all="ignore")
def term_sizes(graph: Graph, values: Mapping[str, Array], wanted: Iterable[Node]) -> list[Array]:
    """Return for each node about how large the terms are that its values are the sum of; layout as in `values_of`.

    The result of every operation that rounds is changed by a random relative amount, and the change of the value is
    divided by that amount: of `(a + b) - a` this is about the size of `a`, of a product the product itself.  So a value
    is rounded by about this size times the machine epsilon.
    Source: Parker, "Monte Carlo arithmetic" (UCLA, 1997).

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> [size] = term_sizes(Graph.of({"x": x}, {}), {"x": np.array([2.0])}, [(x * 1e10 + x) - x * 1e10])
    >>> bool(1e9 < size[0] < 1e11)
    True
    """
    wanted = list(wanted)
    evaluate = evaluator(graph, wanted)
    exact = evaluate(values)
    sizes = [np.zeros(np.shape(exact[n])) for n in wanted]
    for seed in range(_SAMPLES):
        changed = evaluate(values, partial(_change, np.random.default_rng(seed)))
        for k, node in enumerate(wanted):
            size = np.abs(changed[node].astype(float) - exact[node].astype(float)) / _CHANGE
            sizes[k] = np.maximum(sizes[k], np.nan_to_num(size, posinf=0))
    return sizes


def _change(random: np.random.Generator, node: Node, value: Array) -> Array:
    """Perturb a rounded result, each element by its own relative amount between half of `_CHANGE` and all."""
    if node.dtype not in FLOATING or not _is_rounded(node):
        return value
    amounts = random.uniform(0.5, 1, size=node.size) * random.choice((-1.0, 1.0), size=node.size)
    return np.asarray(value * (1 + _CHANGE * amounts.reshape(*node.shape, 1)))


def _is_rounded(node: Node) -> bool:
    """Return whether a node's values are rounded: constants are that are not integers."""
    if not node.is_constant:
        return OPERATIONS[node.op].rounds
    return any(not number(v).is_integer() for v in node.values)


def relative_errors(yours: Array, truth: Array, rounding: Array | float) -> Array:
    """Return how far numbers are off, relative to the larger of both; 0 where it is no more than their rounding.

    >>> relative_errors(np.array([2e-30, 1.0, 1e-20]), np.array([1e-30, 1.0, 0.0]), np.array([0, 0, 1e-16])).tolist()
    [0.5, 0.0, 0.0]
    """
    with np.errstate(all="ignore"):
        off = np.abs(yours - truth)
        error = off / np.maximum(np.abs(truth), np.abs(yours))
    same = (yours == truth) | (np.isnan(yours) & np.isnan(truth)) | (off <= rounding)
    return np.where(same, 0, np.nan_to_num(error, nan=np.inf))
