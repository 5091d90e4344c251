"""Which elements of the outputs depend on which elements of the leaves: the sparsity of the Jacobian.

Each element of a node carries the set of columns that it depends on, as the bits of a whole number; an operation passes
on the union.  Source: Griewank and Walther, *Evaluating Derivatives* (SIAM, 2008), section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gradcli.graph.elementwise import CONDITIONS, ELEMENTWISE
from gradcli.graph.node import Graph, Node
from gradcli.graph.structural import STRUCTURAL

Array = np.ndarray[Any, Any]

MAX_COLUMNS = 5_000  # above, a leaf is one column: the sets would fill the memory


def widths(leaves: Sequence[Node]) -> list[int]:
    """Return how many columns each leaf has in the sets: its elements, or one where there are too many of them.

    >>> from gradcli.graph.node import leaf
    >>> widths([leaf("x", (2,)), leaf("w")]), widths([leaf("x", (6000,)), leaf("w")])
    ([2, 1], [1, 1])
    """
    many = sum(n.size for n in leaves) > MAX_COLUMNS
    return [1 if many else n.size for n in leaves]


def dependencies(graph: Graph, wrt: Iterable[str]) -> dict[Node, Array]:
    """Return for each output the sets of columns that its elements depend on, as an object array of its shape.

    Columns are those of the leaves `wrt`, in their order, of which each has as many as `widths` says.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf("x", (2,)), leaf("w")
    >>> y = (w * x).called("y")
    >>> [bin(columns) for columns in dependencies(Graph.of([x, w], [y]), ["x", "w"])[y]]
    ['0b101', '0b110']
    """
    named = {n.name: n for n in graph.inputs}
    leaves = [named[name] for name in wrt]
    found: dict[Node, Array] = {}
    start = 0
    for leaf, width in zip(leaves, widths(leaves), strict=True):
        found[leaf] = _array([1 << (start + min(i, width - 1)) for i in range(leaf.size)], leaf.shape)
        start += width
    last = {a: i for i, n in enumerate(graph.nodes) for a in n.args}
    outputs = set(graph.outputs)
    for i, node in enumerate(graph.nodes):
        if node not in found:
            found[node] = _passed_on(node, [found[a] for a in node.args])
        for a in set(node.args):
            if last[a] == i and a not in outputs:
                del found[a]
    return {y: found[y] for y in graph.outputs}


def _array(values: Sequence[int], shape: tuple[int, ...]) -> Array:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result.reshape(shape)


def _union(sets: Array, axes: Sequence[int]) -> Array:
    for axis in sorted(axes, reverse=True):
        sets = np.asarray(np.bitwise_or.reduce(sets, axis=axis, initial=0), dtype=object)
    return sets


def _passed_on(node: Node, args: list[Array]) -> Array:
    """Return the sets of a node's elements, from those of its arguments."""
    row = ELEMENTWISE.get(node.op)
    if not args or node.op in CONDITIONS or (node.op in STRUCTURAL and STRUCTURAL[node.op].pullback is None):
        return np.zeros(node.shape, dtype=object)
    if row and row.constant and all(map(_is_given, node.args)):  # the 0 that a step passes on meets nothing more
        return np.zeros(node.shape, dtype=object)
    if row:
        sets = reduce(np.bitwise_or, args[1:] if node.op == "where" else args)
        return np.asarray(np.broadcast_to(sets, node.shape), dtype=object)
    if node.op in _RULES:
        return _RULES[node.op](node, args)
    if node.op in _MOVED:
        forward = STRUCTURAL[node.op].forward
        assert forward is not None
        return forward(*node.params, *(a[..., None] for a in args))[..., 0]
    raise AssertionError(node.op)  # a test runs every operation of the tables


def _is_given(node: Node) -> bool:
    """Tell whether a node is a leaf or a constant, or only moves its elements."""
    while len(node.args) == 1 and node.op in _MOVED:
        node = node.args[0]
    return not node.args


def _along(node: Node, sets: Array) -> Array:
    """Return the union along an axis, or several, for each element of it."""
    axes = np.atleast_1d(node.params[0]).tolist()
    return np.broadcast_to(np.expand_dims(_union(sets, axes), axes), node.shape)


def _matmul(node: Node, args: list[Array]) -> Array:
    a, b = args
    rows, columns = _union(a, [a.ndim - 1]), _union(b, [max(0, b.ndim - 2)])
    if a.ndim > 1 and b.ndim > 1:
        rows, columns = rows[..., None], columns[..., None, :]
    return np.asarray(rows | columns, dtype=object)


def _scatter(node: Node, args: list[Array]) -> Array:
    index = STRUCTURAL["index"].forward
    assert index is not None
    result = np.zeros(node.shape, dtype=object)
    for key, part in zip(node.params[1], args, strict=True):
        target = index(key, result[..., None])
        target |= part[..., None]
    return result


# These only move elements.
_MOVED = frozenset(["transpose", "reshape", "broadcast", "index", "diagonal", "from_diagonal", "concatenate", "stack"])
_RULES: dict[str, Callable[[Node, list[Array]], Array]] = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "max", "min", "norm", "var", "std", "logsumexp"),
        lambda node, args: _union(args[0], node.params[0]),
    ),
    **dict.fromkeys(("softmax", "prod_others"), lambda node, args: _along(node, args[0])),
    "cumsum": lambda node, args: np.bitwise_or.accumulate(args[0], axis=node.params[0]),
    "matmul": _matmul,
    "outer": lambda node, args: np.bitwise_or.outer(*args),
    "trace": lambda node, args: _union(np.diagonal(args[0]), (0,)),
    "scatter": _scatter,
}
