"""The columns of a result over many points: graphs of derivatives, and the names of their elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli.errors import InputError
from gradcli.explain.shared import check_entries
from gradcli.graph.construct import reshape, swap
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.jacobian import MAX_SINGLE, entries, jacobian, sparse
from gradcli.graph.matrices import triangle
from gradcli.graph.names import all_elements, element_names
from gradcli.graph.node import Node, const


class Columns(NamedTuple):
    """A graph whose outputs are written, and the names of the elements of those that have names of their own."""

    graph: Graph
    names: Mapping[str, Sequence[str]] = {}


def jacobian_columns(graph: Graph, wrt: Sequence[str]) -> Columns:
    """Return J, a block for each output and leaf, those that are zero everywhere among them.

    Errors: `InputError` for more rows than are swept one by one.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> jacobian_columns(Graph.of({"x": x}, {"y": 3 * x}), ["x"]).names
    {'dy/dx': ['dy[0]/dx[0]', 'dy[0]/dx[1]', 'dy[1]/dx[0]', 'dy[1]/dx[1]']}
    """
    check_rows(graph)
    leaves = {name: graph.inputs[name] for name in wrt}
    return _blocks(jacobian(graph, wrt), graph.outputs, leaves, "d{}/d{}")


def sparse_columns(graph: Graph, wrt: Sequence[str], alone: bool = False) -> Columns:
    """Return the entries of J that are not zero everywhere: in one array, or each `alone`.

    Errors: `InputError` where there are none, and for too many of them.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> sparse_columns(Graph.of({"x": x}, {"y": x**2}), ["x"]).names
    {'J': ['dy[0]/dx[0]', 'dy[1]/dx[1]']}
    """
    rows, across = all_elements(graph.outputs), all_elements({n: graph.inputs[n] for n in wrt})
    if alone:
        result = {f"d{rows[i]}/d{across[j]}": node for (i, j), node in entries(graph, wrt).items()}
        columns = Columns(Graph.of(graph.inputs, result), {name: [name] for name in result})
    else:
        matrix = sparse(graph, wrt, by_blocks=True)
        indices = zip(matrix.rows.tolist(), matrix.columns.tolist(), strict=True)
        names = [f"d{rows[i]}/d{across[j]}" for i, j in indices]
        columns = Columns(Graph.of(graph.inputs, {"J": matrix.values} if names else {}), {"J": names})
    if not columns.graph.outputs:
        raise InputError("all entries of the Jacobian are zero", hint="leave out --sparse to see them")
    return columns


def hessian_columns(output: str, slopes: Graph, wrt: Sequence[str]) -> Columns:
    """Return H, a block for each pair of leaves: the Jacobian of `slopes`, the graph of the output's gradient.

    Its lower half is computed, and stands above the diagonal once more.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf(), leaf()
    >>> slopes = Graph.of({"x": x, "w": w}, {"x": 2 * x * w, "w": x**2})
    >>> list(hessian_columns("y", slopes, ["x", "w"]).graph.outputs)
    ['d2y/dx/dx', 'd2y/dx/dw', 'd2y/dw/dx', 'd2y/dw/dw']
    """
    leaves = {name: slopes.inputs[name] for name in wrt}
    result = jacobian(slopes, wrt)
    blocks: dict[str, Node] = {}
    for (i, (above, y)), (j, (below, x)) in itertools.product(enumerate(leaves.items()), repeat=2):
        if i >= j and (block := result.outputs.get(f"d{above}/d{below}")) is not None:
            flat = reshape(block, (y.size, x.size))
            whole = flat if i > j or y.size == 1 else _mirrored(flat)
            blocks[f"d{above}/d{below}"] = reshape(whole, (*y.shape, *x.shape))
            if i > j:
                blocks[f"d{below}/d{above}"] = reshape(swap(flat), (*x.shape, *y.shape))
    return _blocks(Graph.of(result.inputs, blocks), leaves, leaves, f"d2{output}/d{{}}/d{{}}")


def _mirrored(square: Node) -> Node:
    """Return the matrix that has the lower half of a square one on both sides."""
    return triangle("tril", square, 0) + swap(triangle("tril", square, -1))


def _blocks(derivatives: Graph, rows: Mapping[str, Node], across: Mapping[str, Node], label: str) -> Columns:
    """Return the blocks of a Jacobian, and the labels of their entries."""
    blocks: dict[str, Node] = {}
    names = {}
    for (above, y), (below, x) in itertools.product(rows.items(), across.items()):
        name = label.format(above, below)
        blocks[name] = derivatives.outputs.get(f"d{above}/d{below}") or const(0, (*y.shape, *x.shape))
        indices = itertools.product(element_names(above, y.shape), element_names(below, x.shape))
        names[name] = [label.format(*index) for index in indices]
    return Columns(Graph.of(derivatives.inputs, blocks), names)


def check_whole(graph: Graph, wrt: Sequence[str]) -> None:
    """Check that all entries of the Jacobian can be columns of a file.

    Errors: `InputError` for more than a million entries, and for too many rows.
    """
    check_rows(graph)
    check_entries(graph, wrt, "--sparse writes only those that are not zero everywhere")


def check_rows(graph: Graph) -> None:
    """Check that a Jacobian has few enough rows to be swept one by one."""
    if (rows := dimensions(graph)[0]) > MAX_SINGLE:
        raise InputError(f"the Jacobian would have {rows:,} rows", hint="choose some outputs with --outputs")
