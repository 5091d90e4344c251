"""The functions that are exported, as graphs: values, products with the Jacobian, and whole matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from gradcli.errors import InputError
from gradcli.graph.construct import reshape, scatter
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.hessian import gradient, hvp, scalar_output
from gradcli.graph.jacobian import Sparse, jacobian, numbered
from gradcli.graph.jacobian import sparse as sparse_jacobian
from gradcli.graph.jvp import jvp
from gradcli.graph.node import const
from gradcli.graph.sparsity import pattern as pattern_of
from gradcli.graph.vjp import vjp

MAX_ENTRIES = 10**6  # of a matrix that a function returns
MANY = 100  # entries, among which one may look for zeros


@dataclass(frozen=True)
class Kind:
    """A kind of function: what its docstring says of the result, its graph, and the name of the matrix."""

    about: str
    graph: Callable[[Graph, Sequence[str]], Graph]
    matrix: str = ""


KINDS: dict[str, Kind] = {
    "value": Kind("the outputs", lambda graph, wrt: graph),
    "vjp": Kind("the gradients: the cotangents times the Jacobian", vjp),
    "jacobian": Kind("the Jacobian", lambda graph, wrt: graph, "J"),
    "jvp": Kind("the Jacobian times the tangents", jvp),
    "hessian": Kind("the Hessian", gradient, "H"),
    "hvp": Kind("the Hessian times the tangents", hvp),
}


def check(graph: Graph, what: Sequence[str]) -> None:
    """Check that second derivatives are those of one scalar.

    Errors: `InputError`.
    """
    if {"hessian", "hvp"} & set(what):
        scalar_output(graph)


def matrix(name: str, graph: Graph, wrt: Sequence[str]) -> Graph:
    """Return the graph of a matrix: a row for each element of the outputs, a column for each element of the inputs.

    Errors: `InputError` for one of more than a million entries.
    """
    shape = dimensions(graph, wrt)
    if shape[0] * shape[1] > MAX_ENTRIES:
        raise InputError(
            f"{name} would have {shape[0]:,} × {shape[1]:,} entries",
            hint="--sparse writes those that are not zero; or choose with --outputs and --wrt, or --what vjp",
        )
    blocks = jacobian(graph, wrt)
    parts = []
    for (y, rows), (x, columns) in product(numbered(graph.outputs).items(), numbered(graph.leaves(wrt)).items()):
        result = blocks.outputs.get(f"d{y}/d{x}")
        if result is not None:
            parts.append(((rows, columns), reshape(result, (len(rows), len(columns)))))
    whole = scatter(shape, parts) if parts else const(0, shape)
    return Graph.of(blocks.inputs, {name: whole}, names=blocks.names, spans=blocks.spans)


def sparse(name: str, graph: Graph, wrt: Sequence[str]) -> tuple[Graph, Sparse]:
    """Return the graph of a matrix's entries that are not zero everywhere, with their rows and columns.

    Errors: `InputError` when there are none.
    """
    result = sparse_jacobian(graph, wrt)
    if not result.rows.size:
        raise InputError(f"all entries of {name} are zero", hint="leave out --sparse to see them")
    return Graph.of(graph.inputs, {name: result.values}, names=graph.names, spans=graph.spans), result


def sparsity_note(kind: str, graph: Graph, wrt: Sequence[str]) -> str | None:
    """Return the note on a large dense matrix most of whose entries are always zero."""
    result = KINDS[kind].graph(graph, wrt)
    rows = pattern_of(result, [result.inputs[x] for x in wrt]).rows
    some = sum(len(run) for y in result.outputs.values() for runs in rows[y] for run in runs)
    size = prod(dimensions(result, wrt))
    if size < MANY or some > size / 4:
        return None
    return f"{some:,} of the {size:,} entries of the matrix are not zero: --sparse writes only these"
