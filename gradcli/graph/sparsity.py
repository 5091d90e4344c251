"""Which elements of the outputs depend on which elements of the leaves: the sparsity of the Jacobian.

Each element of a node carries the set of columns that it depends on, and an operation passes on the union.  The sets
are the bits of integers where there are few columns.  Where there are many, they are hash sets, whose cost grows with
their members.  Source: Griewank and Walther, *Evaluating Derivatives* (SIAM, 2008), section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, groupby

import numpy as np

from gradcli.graph.array import Array, objects
from gradcli.graph.einsum import labels
from gradcli.graph.graph import Graph, computed_from, last_readers
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret
from gradcli.graph.shapes import size_of

MAX_COLUMNS = 5_000  # above, bits take more memory than hash sets
MAX_SETS = 2**19  # columns for which hash sets are built: above, a leaf is one column
_MAX_MEMBERS = 2**23  # of all hash sets that are built for one Jacobian: about a gigabyte

Runs = tuple[range, ...]  # of columns, in order


@dataclass(frozen=True)
class Pattern:
    """The columns that the elements of each output depend on.

    Columns are those of the leaves, in their order: `widths` says how many each has, its elements or a single one.
    """

    widths: list[int]
    rows: Mapping[Node, Sequence[Runs]]


def pattern(graph: Graph, leaves: Sequence[Node]) -> Pattern:
    """Return the pattern of the Jacobian with respect to some leaves.

    A leaf is a single column where the sets of its elements would be too large.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf((6000,)), leaf()
    >>> y = w * x
    >>> found = pattern(Graph.of({"x": x, "w": w}, {"y": y}), [x, w])
    >>> found.widths, found.rows[y][5]
    ([6000, 1], (range(5, 6), range(6000, 6001)))
    """
    widths = [leaf.size for leaf in leaves]
    few = sum(widths) <= MAX_COLUMNS
    try:
        sets = _sets(graph, leaves, widths, few) if few or sum(widths) <= MAX_SETS else None
    except _TooManyError:
        sets = None
    if sets is None:
        widths = [1] * len(leaves)
        sets = _sets(graph, leaves, widths, True)
    runs: dict[object, Runs] = {}  # a million elements may share a set
    for elements in sets.values():
        for columns in elements.flat:
            if columns not in runs:
                runs[columns] = tuple(_runs(columns))
    return Pattern(widths, {y: [runs[columns] for columns in elements.flat] for y, elements in sets.items()})


def dependencies(graph: Graph, leaves: Sequence[Node]) -> dict[Node, Array]:
    """Return for each output the sets of columns that its elements depend on, as an object array of its shape.

    Columns are the elements of the leaves, in their order, each a bit of an integer.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf((2,)), leaf()
    >>> y = w * x
    >>> [bin(columns) for columns in dependencies(Graph.of({"x": x, "w": w}, {"y": y}), [x, w])[y]]
    ['0b101', '0b110']
    """
    return _sets(graph, leaves, [leaf.size for leaf in leaves], True)


def _sets(graph: Graph, leaves: Sequence[Node], widths: Sequence[int], bits: bool) -> dict[Node, Array]:
    """Return the sets of each output, as bits or as hash sets; `widths` are the numbers of columns of the leaves.

    Errors: `_TooManyError` for hash sets of too many members.
    """
    result: dict[Node, Array] = {}
    single: Callable[[int], object] = (1).__lshift__ if bits else _Budget().single
    start = 0
    for leaf, width in zip(leaves, widths, strict=True):
        singles = [single(start + i) for i in range(width)]
        result[leaf] = objects(singles if width == leaf.size else singles * leaf.size, leaf.shape)
        start += width
    last = last_readers(graph.nodes, graph.outputs.values())
    for node in graph.nodes:
        if node not in result:
            result[node] = _sets_of(node, [result[a] for a in node.args])
        for done in last.get(node, ()):
            del result[done]
    return {y: result[y] for y in graph.outputs.values()}


class _TooManyError(Exception):
    """The hash sets have too many members."""


class _Budget:
    """The number of members that further hash sets may have."""

    def __init__(self) -> None:
        self.left = _MAX_MEMBERS

    def single(self, column: int) -> _Columns:
        """Return the set of one column."""
        return _Columns(frozenset((column,)), self)


class _Columns:
    """A hash set of columns, with the union of integers: 0 is the empty set."""

    __slots__ = ("budget", "members")

    def __init__(self, members: frozenset[int], budget: _Budget) -> None:
        self.members = members
        self.budget = budget

    def __or__(self, other: _Columns | int) -> _Columns:
        if not isinstance(other, _Columns) or other.members is self.members:
            return self
        # Counted before the union is made: one may be as large as both together.
        self.budget.left -= len(self.members) + len(other.members)
        if self.budget.left < 0:
            raise _TooManyError
        return _Columns(self.members | other.members, self.budget)

    __ror__ = __or__


def _runs(columns: _Columns | int) -> Iterator[range]:
    """Yield the columns of a set as runs of neighbours.

    >>> list(_runs(0b1100110))
    [range(1, 3), range(5, 7)]
    """
    if isinstance(columns, _Columns):
        numbers = count()
        for _, run in groupby(sorted(columns.members), lambda column: column - next(numbers)):
            first, *rest = run
            yield range(first, first + len(rest) + 1)
        return
    end = 0
    while columns:
        zeros = (columns & -columns).bit_length() - 1
        columns >>= zeros
        ones = (~columns & (columns + 1)).bit_length() - 1
        yield range(end + zeros, end + zeros + ones)
        columns >>= ones
        end += zeros + ones


def _union(sets: Array, axes: Sequence[int]) -> Array:
    """Return the unions over some axes, by halves: one element after the other, each union would be as large as all."""
    kept = [i for i in range(sets.ndim) if i not in axes]
    count = size_of(tuple(sets.shape[i] for i in axes))
    result = sets.transpose(*kept, *axes).reshape(*(sets.shape[i] for i in kept), count)
    if not result.shape[-1]:
        return np.zeros(result.shape[:-1], dtype=object)
    while (half := result.shape[-1] // 2) > 0:
        joined = result[..., :half] | result[..., half : 2 * half]
        result = np.concatenate([joined, result[..., 2 * half :]], axis=-1)
    return result[..., 0]


def _sets_of(node: Node, args: list[Array]) -> Array:
    """Return the sets of a node's elements, from those of its arguments."""
    row = OPERATIONS.get(node.op)
    if row is None or not row.passes_on or (row.kind == "step" and all(map(_is_leaf_or_moved, node.args))):
        return np.zeros(node.shape, dtype=object)  # a step's 0 is not multiplied by anything that may be infinite
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
    return interpret(computed_from(known, [node]), _sets_of, known)[node]


def _is_leaf_or_moved(node: Node) -> bool:
    """Return whether a node is a leaf or a constant, or only moves its elements."""
    while len(node.args) == 1 and OPERATIONS[node.op].move is not None:
        node = node.args[0]
    return not node.args


def _scan(node: Node, args: list[Array]) -> Array:
    """Return the union of all sets so far; an argument that is shorter along the axis begins later."""
    (axis,) = node.settings
    result = np.zeros(node.shape, dtype=object)
    for sets in args:
        later = (slice(None),) * axis + (slice(node.shape[axis] - sets.shape[axis], None),)
        result[later] |= sets
    return np.asarray(np.bitwise_or.accumulate(result, axis=axis))


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
    aligned: list[Array] = []
    for sets, term in zip(args, factors, strict=True):
        left = [label for label in term if label in result]
        sets = _union(sets, [i for i, label in enumerate(term) if label not in result])
        sets = sets.transpose([left.index(label) for label in result if label in left])
        aligned.append(np.expand_dims(sets, tuple(i for i, label in enumerate(result) if label not in left)))
    return np.asarray(reduce(np.bitwise_or, aligned), dtype=object)


def _whole(node: Node, args: list[Array]) -> Array:
    """Return the union of all sets for each element."""
    joined = _union(np.concatenate([a.reshape(-1) for a in args]), [0])
    return np.full(node.shape, joined[()], dtype=object)


_RULES: dict[str, Callable[[Node, list[Array]], Array]] = {
    "reduction": lambda node, args: _union(args[0], node.settings[0]),
    "scan": _scan,
    "along": _along,
    "matrix": _matrix,
    "contraction": _contraction,
    "whole": _whole,
}
