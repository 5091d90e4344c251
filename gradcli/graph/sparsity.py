"""Which elements of the outputs depend on which elements of the leaves: the sparsity of the Jacobian.

Each element of a node carries the set of columns that it depends on, as the bits of a whole number; an operation passes
on the union.  Source: Griewank and Walther, *Evaluating Derivatives* (SIAM, 2008), section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

import numpy as np

from gradcli.graph.array import Array, objects
from gradcli.graph.einsum import labels
from gradcli.graph.graph import Graph, last_readers, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

MAX_COLUMNS = 5_000  # above, a leaf is one column: the sets would fill the memory


def widths(leaves: Sequence[Node]) -> list[int]:
    """Return how many columns each leaf has in the sets: its elements, or one where there are too many of them.

    >>> from gradcli.graph.node import leaf
    >>> widths([leaf((2,)), leaf()]), widths([leaf((6000,)), leaf()])
    ([2, 1], [1, 1])
    """
    many = sum(n.size for n in leaves) > MAX_COLUMNS
    return [1 if many else n.size for n in leaves]


def dependencies(graph: Graph, leaves: Sequence[Node]) -> dict[Node, Array]:
    """Return for each output the sets of columns that its elements depend on, as an object array of its shape.

    Columns are those of the leaves, in their order, of which each has as many as `widths` says.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf((2,)), leaf()
    >>> y = w * x
    >>> [bin(columns) for columns in dependencies(Graph.of({"x": x, "w": w}, {"y": y}), [x, w])[y]]
    ['0b101', '0b110']
    """
    found: dict[Node, Array] = {}
    start = 0
    for leaf, width in zip(leaves, widths(leaves), strict=True):
        found[leaf] = objects([1 << (start + min(i, width - 1)) for i in range(leaf.size)], leaf.shape)
        start += width
    last = last_readers(graph.nodes, graph.outputs.values())
    for node in graph.nodes:
        if node not in found:
            found[node] = _passed_on(node, [found[a] for a in node.args])
        for done in last.get(node, ()):
            del found[done]
    return {y: found[y] for y in graph.outputs.values()}


def _union(sets: Array, axes: Sequence[int]) -> Array:
    return np.asarray(np.bitwise_or.reduce(sets, axis=tuple(axes), initial=0), dtype=object)


def _passed_on(node: Node, args: list[Array]) -> Array:
    """Return the sets of a node's elements, from those of its arguments."""
    row = OPERATIONS.get(node.op)
    if row is None or not row.passes_on or (row.kind == "step" and all(map(_is_given, node.args))):
        return np.zeros(node.shape, dtype=object)  # the 0 that a step passes on meets nothing more
    if row.broadcasts:
        numbers = [sets for sets, a in zip(args, node.args, strict=True) if a.dtype != "bool"]
        union = np.asarray(reduce(np.bitwise_or, numbers), dtype=object)
        return union if union.shape == node.shape else np.broadcast_to(union, node.shape)
    if row.for_formulas is not None and (simpler := row.for_formulas(*node.settings, *node.args)) is not None:
        return _through(simpler, dict(zip(node.args, args, strict=True)))
    if row.move is not None:
        return row.moved(node.settings, *args, join=np.bitwise_or)
    return _RULES[row.kind](node, args)


def _through(node: Node, known: dict[Node, Array]) -> Array:
    """Return the sets of a definition in terms of arguments whose sets are known."""
    for inner in scheduled([node], known):
        if inner not in known:
            known[inner] = _passed_on(inner, [known[a] for a in inner.args])
    return known[node]


def _is_given(node: Node) -> bool:
    """Tell whether a node is a leaf or a constant, or only moves its elements."""
    while len(node.args) == 1 and OPERATIONS[node.op].move is not None:
        node = node.args[0]
    return not node.args


def _scan(node: Node, args: list[Array]) -> Array:
    """Return the union of all sets so far; an argument that is shorter along the axis begins later."""
    (axis,) = node.settings
    own = np.zeros(node.shape, dtype=object)
    for sets in args:
        later = (slice(None),) * axis + (slice(node.shape[axis] - sets.shape[axis], None),)
        own[later] |= sets
    return np.asarray(np.bitwise_or.accumulate(own, axis=axis))


def _along(node: Node, args: list[Array]) -> Array:
    """Return for each element the union of all sets along the axis."""
    axis = node.settings[0]
    return _everywhere(node, [_union(sets, [axis]) for sets in args], (axis,))


def _matrix(node: Node, args: list[Array]) -> Array:
    """Return for each element the union of all sets of its matrix."""
    sets = [_union(a, [a.ndim - 2, a.ndim - 1]) for a in args]
    rank = sets[0].ndim
    return _everywhere(node, sets, tuple(range(rank, len(node.shape))))


def _everywhere(node: Node, sets: list[Array], axes: tuple[int, ...]) -> Array:
    """Return the union of the sets, spread over the axes that were reduced."""
    joined = np.expand_dims(np.asarray(reduce(np.bitwise_or, sets), dtype=object), axes)
    return np.asarray(np.broadcast_to(joined, node.shape), dtype=object)


def _contraction(node: Node, args: list[Array]) -> Array:
    *factors, result = labels(node)
    found: list[Array] = []
    for sets, own in zip(args, factors, strict=True):
        left = [label for label in own if label in result]
        sets = _union(sets, [i for i, label in enumerate(own) if label not in result])
        sets = sets.transpose([left.index(label) for label in result if label in left])
        found.append(np.expand_dims(sets, tuple(i for i, label in enumerate(result) if label not in left)))
    return np.asarray(reduce(np.bitwise_or, found), dtype=object)


def _whole(node: Node, args: list[Array]) -> Array:
    """Return the union of all sets for each element."""
    return np.full(node.shape, reduce(or_, (s for a in args for s in a.flat), 0), dtype=object)


_RULES: dict[str, Callable[[Node, list[Array]], Array]] = {
    "reduction": lambda node, args: _union(args[0], node.settings[0]),
    "scan": _scan,
    "along": _along,
    "matrix": _matrix,
    "contraction": _contraction,
    "whole": _whole,
}
