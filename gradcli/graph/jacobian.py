"""The Jacobian as a graph: its entries are nodes, and only those that are not zero everywhere.

Rows that share no column have one colour: one reverse sweep, with a cotangent of 1 for each of them, computes them all,
since each of its results belongs to a single row.  Where columns need fewer colours than rows, forward sweeps compute
columns.  Source: Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices" (IMA J. Appl. Math. 13,
1974).

Forward sweeps multiply in the opposite order.  This shows where a slope that selects meets an infinite one: of
`relu(log(x))` at 0 a reverse sweep has 0·inf, which is nan, and a forward sweep has 0.  Where that may be, rows are
swept, so that an entry has the value that `backward` leaves, unless they are too many.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import Index, concatenate, from_diagonal, index, reshape, scatter
from gradcli.graph.graph import Graph, computed_from, dimensions
from gradcli.graph.index_arrays import IndexArray, scatter_add, take
from gradcli.graph.jvp import Slopes, forward
from gradcli.graph.node import Exact, Node, const, is_const, leaf, operands
from gradcli.graph.operation import no_slope
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.sparsity import MAX_SETS, Pattern, Runs, pattern
from gradcli.graph.vjp import active_nodes, contributions_of, reverse, scale, slope


def order_matters(active: Iterable[Node]) -> bool:
    """Return whether among the slopes of these nodes are some that select, and some that may be infinite.

    Forward and reverse mode may give different entries of J where these meet.  A product of slopes is the same in any
    order, but 0 is selected whatever it replaces: of `where(x > 0, sqrt(x), 0)` at 0, reverse mode multiplies 0 by the
    infinite slope of the root, and forward mode selects 0 instead of that slope.

    >>> from gradcli.graph.construct import where
    >>> from gradcli.graph.node import elementwise
    >>> x = leaf()
    >>> root, chosen = elementwise("sqrt", x), where(elementwise("gt", x, leaf()), x, 1)
    >>> order_matters([root]), order_matters([root, chosen])
    (False, True)
    """
    known: dict[Hashable, tuple[bool, bool]] = {}
    selects = infinite = False
    for node in active:
        if not node.args or not OPERATIONS[node.op].passes_on:
            continue
        numbers = tuple(a.value if a.is_constant else None for a in node.args)
        key = (node.op, node.settings if OPERATIONS[node.op].broadcasts else None, numbers)
        if key not in known:
            known[key] = _kinds(node)
        selects, infinite = (a or b for a, b in zip((selects, infinite), known[key], strict=True))
        if selects and infinite:
            return True
    return False


def _kinds(node: Node) -> tuple[bool, bool]:
    """Return whether one of the slopes of a node selects, and whether one may be infinite."""
    row, g = OPERATIONS[node.op], leaf(node.shape)
    alone = node.with_args(tuple(a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args))
    if row.broadcasts:
        ends = [
            scale(g, slope(alone, i), alone, i)
            for i, a in enumerate(alone.args)
            if not a.is_constant and row.slopes[i] is not no_slope
        ]
    else:
        ends = [*contributions_of(alone, g)]
    parts = computed_from({g, alone, *alone.args}, ends)
    selects = any(is_const(n, 0) for n in ends) or any(n.args and OPERATIONS[n.op].selects for n in parts)
    return selects, any(map(_may_be_infinite, parts))


def _may_be_infinite(node: Node) -> bool:
    """Return whether an operation is infinite at some finite arguments."""
    if node.op not in ("div", "pow"):
        return bool(node.args) and OPERATIONS[node.op].poles
    second = node.args[1].value
    return not isinstance(second, Exact) or not (second > 0 if node.op == "pow" else second != 0)


MAX_SINGLE = 100_000  # entries that are outputs of their own
MAX_SPARSE = 10_000_000  # entries of a sparse matrix
_SWEPT = 100_000  # nodes of reverse sweeps that replace forward sweeps: a second


class _Line(NamedTuple):
    """A row or a column of J: its element of an output or of a leaf, and the indices of its entries that are not 0."""

    node: Node
    element: int
    nonzero: Runs

    @property
    def width(self) -> int:
        """The number of entries that are not 0 everywhere."""
        return sum(map(len, self.nonzero))


@dataclass(frozen=True)
class _Part:
    """The entries of one row or column in a block dy/dx: those in the range `nonzero`, from an adjoint or a tangent.

    `element` is the index of the row, or of the column, in the block.
    """

    is_row: bool
    element: int
    nonzero: range
    adjoint: Node

    @property
    def key(self) -> Index:
        """Its index in the block."""
        return (self.element, self.nonzero) if self.is_row else (self.nonzero, self.element)


def jacobian(graph: Graph, wrt: Iterable[str] | None = None) -> Graph:
    """Return the graph of the Jacobian with respect to the leaves `wrt` (all by default).

    Its outputs are `dy/dx`, of the shape of y followed by that of x, for each output and leaf between which there is
    any dependence.  Source of the values at corners: PyTorch, as for `vjp`.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf((2,)), leaf()
    >>> graph = jacobian(Graph.of({"x": x, "w": w}, {"y": w * x, "z": 3 * w}))
    >>> {name: n.shape for name, n in graph.outputs.items()}
    {'dy/dx': (2, 2), 'dy/dw': (2,), 'dz/dw': ()}
    """
    leaves = graph.leaves(wrt)
    nodes = list(leaves.values())
    blocks = _blocks(graph, nodes, _lines(graph, nodes, pattern(graph, nodes)))
    below = {x: name for name, x in leaves.items()}
    outputs = {
        f"d{above}/d{below[x]}": _block(y, x, parts)
        for above, y in graph.outputs.items()
        for x, parts in blocks.get(y, {}).items()
    }
    return Graph.of(graph.inputs, outputs, names=graph.names, spans=graph.spans)


def entries(graph: Graph, wrt: Iterable[str] | None = None) -> dict[tuple[int, int], Node]:
    """Return the entries of the Jacobian that are not zero everywhere, each a scalar node, by row and column.

    Rows are the elements of all outputs, columns those of the leaves `wrt`; entries come block by block.

    Errors: `InputError` for more than `MAX_SINGLE` entries.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf((2,)), leaf()
    >>> list(entries(Graph.of({"x": x, "w": w}, {"y": w * x, "z": 3 * w})))
    [(0, 0), (1, 1), (0, 2), (1, 2), (2, 2)]
    """
    result = {}
    for position, adjoint, k in _entries(graph, wrt, MAX_SINGLE):
        result[position] = index(reshape(adjoint, (adjoint.size,)), (k,)) if adjoint.shape else adjoint
    return result


@dataclass(frozen=True)
class Sparse:
    """A Jacobian by its entries that are not zero everywhere.

    Entry `values[k]` is at `rows[k], columns[k]` of a matrix of this shape.
    """

    shape: tuple[int, int]
    rows: Array
    columns: Array
    values: Node


def sparse(graph: Graph, wrt: Iterable[str] | None = None, by_blocks: bool = False) -> Sparse:
    """Return the Jacobian by its entries that are not zero everywhere, in one node: row after row, or block by block.

    Errors: `InputError` for more than `MAX_SPARSE` entries.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((3,))
    >>> found = sparse(Graph.of({"x": x}, {"y": x * index(x, (0,))}))
    >>> found.rows.tolist(), found.columns.tolist(), found.values.shape
    ([0, 1, 1, 2, 2], [0, 0, 1, 0, 2], (5,))
    """
    leaves = list(graph.leaves(wrt))
    sources: dict[Node, int] = {}  # the adjoints, with the index at which each begins when they are concatenated
    positions: list[tuple[int, int]] = []
    elements: list[int] = []
    end = 0
    for position, adjoint, k in _entries(graph, leaves, MAX_SPARSE):
        if adjoint not in sources:
            sources[adjoint] = end
            end += adjoint.size
        positions.append(position)
        elements.append(sources[adjoint] + k)
    rows, columns = np.array(positions, dtype=np.int64).reshape(-1, 2).T
    order = np.arange(len(rows)) if by_blocks else np.lexsort((columns, rows))
    chosen = np.array(elements, dtype=np.int64)[order]
    flat = [reshape(s, (s.size,)) for s in sources]
    joined = concatenate(flat, 0) if flat else const(0, (0,))
    in_order = np.array_equal(chosen, np.arange(joined.size))
    values = joined if in_order else take(joined, 0, IndexArray.of(chosen))
    return Sparse(dimensions(graph, leaves), rows[order], columns[order], values)


def _entries(graph: Graph, wrt: Iterable[str] | None, limit: int) -> Iterator[tuple[tuple[int, int], Node, int]]:
    """Yield row and column of each entry that is not zero everywhere, and of which adjoint it is which element.

    Errors: `InputError` for more than `limit` entries.
    """
    leaves = list(graph.leaves(wrt).values())
    sparsity = pattern(graph, leaves)
    if sparsity.widths != [x.size for x in leaves] and _elements_crossed(sparsity, leaves) > limit:
        rows, columns = dimensions(graph, graph.leaves(wrt))
        raise InputError(
            f"a Jacobian of {rows:,} rows and {columns:,} columns is too large to find the entries that are not zero",
            hint=f"at most {limit:,} entries and {MAX_SETS:,} columns are supported: choose some with --outputs and "
            "--wrt",
        )
    blocks = _blocks(graph, leaves, _lines(graph, leaves, sparsity))
    single = sum(len(p.nonzero) for of_leaves in blocks.values() for parts in of_leaves.values() for p in parts)
    if single > limit:
        raise InputError(
            f"{single:,} entries of the Jacobian are not zero everywhere",
            hint=f"at most {limit:,} are supported: choose some with --outputs and --wrt",
        )
    below = _starts(leaves)
    above = accumulate((y.size for y in graph.outputs.values()), initial=0)
    for first, y in zip(above, graph.outputs.values(), strict=False):
        for x, parts in blocks.get(y, {}).items():
            for p in sorted(parts, key=lambda p: p.element):
                for k in p.nonzero:
                    i, j = (p.element, k) if p.is_row else (k, p.element)
                    yield (first + i, below[x] + j), p.adjoint, k if p.adjoint.shape else 0


def numbered(nodes: Mapping[str, Node]) -> dict[str, range]:
    """Return which rows, or columns, of a Jacobian are the elements of each node.

    >>> from gradcli.graph.node import leaf
    >>> numbered({"x": leaf((2,)), "w": leaf()})
    {'x': range(0, 2), 'w': range(2, 3)}
    """
    stops = accumulate(n.size for n in nodes.values())
    return {name: range(stop - n.size, stop) for (name, n), stop in zip(nodes.items(), stops, strict=True)}


def _starts(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return for each node how many elements those before it have."""
    return dict(zip(nodes, accumulate((n.size for n in nodes), initial=0), strict=False))


class SweepPlan(NamedTuple):
    """The mode in which J is computed, forward by columns or reverse by rows, and the number of sweeps."""

    forward: bool
    forward_sweeps: int
    reverse_sweeps: int


def plan(graph: Graph, wrt: Iterable[str] | None = None) -> SweepPlan:
    """Return the mode that needs fewer sweeps for the Jacobian, and the numbers of sweeps of both modes.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> plan(Graph.of({"x": x}, {"y": 2 * x, "z": x**2, "w": x**3}))
    SweepPlan(forward=True, forward_sweeps=1, reverse_sweeps=3)
    """
    leaves = list(graph.leaves(wrt).values())
    result = _lines(graph, leaves, pattern(graph, leaves))
    columns = result.columns or _transposed(result.rows, result.leaves, result.outputs)
    return SweepPlan(result.forward, len(_colours(columns)), len(_colours(result.rows)))


@dataclass(frozen=True)
class _Lines:
    """The rows and the columns of J, and which of them are swept; `across` are the numbers of columns of the leaves."""

    leaves: Sequence[Node]
    outputs: Sequence[Node]
    across: Sequence[int]
    rows: Sequence[_Line]
    columns: Sequence[_Line]
    forward: bool


def _lines(graph: Graph, leaves: Sequence[Node], sparsity: Pattern) -> _Lines:
    outputs = list(dict.fromkeys(graph.outputs.values()))
    rows = [_Line(y, i, nonzero) for y in outputs for i, nonzero in enumerate(sparsity.rows[y]) if nonzero]
    columns = _transposed(rows, leaves, outputs) if sparsity.widths == [x.size for x in leaves] else []
    # As many rows cross the tallest column as there are colours of rows, at least; and the other way round.
    widest, tallest = (max((line.width for line in lines), default=0) for lines in (rows, columns))
    forward = tallest > widest
    if forward and len(rows) * len(graph.nodes) <= _SWEPT:
        forward = not order_matters(active_nodes(graph, leaves))
    return _Lines(leaves, outputs, sparsity.widths, rows, columns, forward)


def _elements_crossed(sparsity: Pattern, leaves: Sequence[Node]) -> int:
    """Return how many entries the rows have together where each leaf is one column."""
    counts = Counter(chain.from_iterable(sparsity.rows.values()))
    return sum(number * sum(leaves[j].size for run in nonzero for j in run) for nonzero, number in counts.items())


def _blocks(graph: Graph, leaves: Sequence[Node], result: _Lines) -> dict[Node, dict[Node, list[_Part]]]:
    """Return the blocks dy/dx with any dependence, by y and by x in the order of the leaves.

    They come from sweeps over as few rows or columns as their colours allow.
    """
    if result.forward:
        slopes: Slopes = {}
        sizes = {y: y.size for y in result.outputs}
        parts = _parts(result, sizes, lambda seeds: forward(graph.nodes, dict(seeds), slopes)[0])
    else:
        active = active_nodes(graph, leaves)
        crossing = dict(zip(leaves, result.across, strict=True))
        parts = _parts(result, crossing, lambda seeds: reverse(graph, seeds, active)[1])
    order = {x: k for k, x in enumerate(leaves)}
    blocks: dict[Node, dict[Node, list[_Part]]] = {}
    for y, x in sorted(parts, key=lambda block: order[block[1]]):
        blocks.setdefault(y, {})[x] = parts[y, x]
    return blocks


def _transposed(rows: Sequence[_Line], leaves: Sequence[Node], outputs: Sequence[Node]) -> list[_Line]:
    """Return the columns, with the rows that cross each."""
    starts = _starts(outputs)
    nonzero: defaultdict[int, list[range]] = defaultdict(list)
    for row in rows:
        number = starts[row.node] + row.element
        alone = range(number, number + 1)
        for run in row.nonzero:
            for j in run:
                nonzero[j].append(alone)
    elements = [(x, i) for x in leaves for i in range(x.size)]
    return [_Line(*elements[j], tuple(_joined(nonzero[j]))) for j in sorted(nonzero)]


def _joined(runs: Iterable[range]) -> Iterator[range]:
    """Yield runs in order, with those that touch as one.

    >>> list(_joined([range(0, 1), range(1, 2), range(4, 5)]))
    [range(0, 2), range(4, 5)]
    """
    whole = range(0)
    for run in runs:
        if whole and run.start == whole.stop:
            whole = range(whole.start, run.stop)
        else:
            if whole:
                yield whole
            whole = run
    if whole:
        yield whole


def _colours(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Return the rows (or columns) in groups that share no non-zero column (or row): a greedy colouring."""
    if all(line.nonzero == lines[0].nonzero for line in lines):
        return [[line] for line in lines]  # dense
    groups: defaultdict[int, list[_Line]] = defaultdict(list)
    taken: defaultdict[int, int] = defaultdict(int)  # by line: the groups with an entry there that is not 0, as bits
    for line in lines:
        bits = 0
        for run in line.nonzero:
            for j in run:
                bits |= taken[j]
        free = ~bits & (bits + 1)
        for run in line.nonzero:
            for j in run:
                taken[j] |= free
        groups[free].append(line)
    return [groups[free] for free in sorted(groups)]


def _parts(
    lines: _Lines, crossing: Mapping[Node, int], swept: Callable[[Iterable[tuple[Node, Node]]], Mapping[Node, Node]]
) -> dict[tuple[Node, Node], list[_Part]]:
    """Return for each block dy/dx its parts: the entries of the lines that are swept.

    `crossing` has for each other node the number of its columns or rows; `swept` gives the adjoints or tangents of all
    nodes for those of the lines.
    """
    others = list(crossing)
    starts = list(accumulate(crossing.values(), initial=0))
    parts: dict[tuple[Node, Node], list[_Part]] = {}
    for colour in _colours(lines.columns if lines.forward else lines.rows):
        results = swept(_seeds(colour))
        for line in colour:
            for other, elements in _elements(line.nonzero, others, starts):
                result = results.get(other)
                if result is not None and not is_const(result, 0):
                    block = (other, line.node) if lines.forward else (line.node, other)
                    parts.setdefault(block, []).append(_Part(not lines.forward, line.element, elements, result))
    return parts


def _elements(nonzero: Runs, nodes: Sequence[Node], starts: Sequence[int]) -> Iterator[tuple[Node, range]]:
    """Yield the nodes that have some of the lines, each with the range of its elements; `starts` are first lines."""
    for run in nonzero:
        k = bisect_right(starts, run.start) - 1
        while k < len(nodes) and starts[k] < run.stop:  # a run may go on into the next nodes
            low, high = max(run.start, starts[k]) - starts[k], min(run.stop, starts[k + 1]) - starts[k]
            alone = starts[k + 1] - starts[k] == nodes[k].size  # or one column represents all of it
            yield nodes[k], range(low, high if alone else nodes[k].size)
            k += 1


def _seeds(colour: Sequence[_Line]) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes with the cotangents, or tangents, that are 1 for each line of a colour."""
    elements: dict[Node, list[int]] = {}
    for line in colour:
        elements.setdefault(line.node, []).append(line.element)
    for node, entries in elements.items():
        stacked = operands(node, "stack")
        if stacked and node.shape == (len(stacked),):  # its elements are nodes
            yield from ((stacked[i], const(1)) for i in entries)
        elif len(entries) == node.size:
            yield node, const(1, node.shape)
        else:
            yield node, reshape(_one_hot(entries, node.size), node.shape)


def _one_hot(elements: Sequence[int], size: int) -> Node:
    """Return a vector that is 1 at some elements, in order, and 0 elsewhere: evenly spaced ones are a slice."""
    ones = const(1, (len(elements),))
    step = elements[1] - elements[0] if len(elements) > 1 else 1
    spaced = range(elements[0], elements[-1] + 1, step)
    if list(spaced) == elements:
        return scatter((size,), [((spaced,), ones)])
    return scatter_add(ones, 0, IndexArray.of(elements), size)


def _block(y: Node, x: Node, parts: Sequence[_Part]) -> Node:
    """Return dy/dx, assembled from the non-zero elements of its rows or columns."""
    shape, sizes = (*y.shape, *x.shape), (y.size, x.size)
    lines, size = sizes if parts[0].is_row else sizes[::-1]
    first = parts[0].adjoint
    if len(parts) == lines == 1 and parts[0].nonzero == range(size):
        return reshape(first, shape)
    alone = all(p.nonzero == range(p.element, p.element + 1) and p.adjoint is first for p in parts)
    if alone and len(parts) == lines == size:
        return reshape(from_diagonal(reshape(first, (size,)), sizes), shape)
    pieces = [(p.key, index(reshape(p.adjoint, (size,)), (p.nonzero,))) for p in parts]
    return reshape(scatter(sizes, pieces), shape)
