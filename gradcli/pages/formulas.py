"""Formulas of a Jacobian and of cotangents, and how many of them are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from gradcli.errors import InputError
from gradcli.graph.array import Named, objects
from gradcli.graph.einsum import products
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

Entries = Mapping[tuple[int, int], Node]

MAX_ENTRIES = 10**6  # of a Jacobian that is computed whole: 8 MB, and as JSON 20 MB
MAX_FORMULAS = 50_000  # elements whose formulas are computed: more would keep the reader waiting


def check_entries(graph: Graph, wrt: Sequence[str], hint: str = "", what: str = "Jacobian") -> None:
    """Check that a Jacobian, or a Hessian, has at most `MAX_ENTRIES` entries; `hint` replaces the usual hint."""
    rows, columns = dimensions(graph, wrt)
    if rows * columns > MAX_ENTRIES:
        raise InputError(
            f"the {what} would have {rows:,} × {columns:,} entries",
            hint=hint or "choose some with --outputs and --wrt; `gradcli backward` gives vᵀJ without it",
        )


def symbolic(
    graph: Graph, wrt: Sequence[str], steps: bool = False, derivatives: Callable[[], Entries] | None = None
) -> SymbolicJacobian:
    """Return the symbolic Jacobian, unless it would take minutes; `derivatives` returns its entries where it is given.

    With `steps`, its intermediates have other names than the nodes of the graph, which the page names, too; without,
    the parts of statements have the names that they have in the system.
    """
    from gradcli.algebra.symbolic_jacobian import symbolic_entries
    from gradcli.graph.jacobian import entries
    from gradcli.notation.nodes import node_names, readable_names

    derivatives = derivatives or (lambda: entries(graph, wrt))
    leaves = graph.leaves(wrt)

    if (count := formula_count(graph)) > MAX_FORMULAS:
        raise InputError(
            f"the formulas of {count:,} elements are too many to compute",
            hint="reduce the shapes, or compute numbers with `gradcli backward` and --at",
        )
    if steps:
        return symbolic_entries(graph, graph.outputs, leaves, derivatives, node_names(graph).values())
    parts = {name: n for n, name in readable_names(graph).items() if n not in graph.labels}
    named = replace(graph, names={**graph.names, **parts}) if parts else graph
    return symbolic_entries(named, graph.outputs, leaves, derivatives)


def formula_count(graph: Graph) -> int:
    """Return about how many formulas of elements a graph has; a reduction counts the elements of its argument."""
    total = 0
    for n in graph.nodes:
        kind = OPERATIONS[n.op].kind if n.args else ""
        if kind == "contraction":
            total += products(n)
        elif kind == "matrix":
            total += n.size * n.args[0].size
        elif kind in ("along", "mask", "index"):
            total += n.size * n.args[0].shape[n.settings[0]]
        elif n.args:
            row = OPERATIONS[n.op]
            one_by_one = row.broadcasts or row.move is not None
            total += n.size if one_by_one else max(n.size, *(a.size for a in n.args))
    return total


def letters(outputs: Mapping[str, Node]) -> Named:
    """Return cotangents as symbols: v of a single output, y.v of each of several, as in claims.

    >>> from gradcli.graph.node import leaf
    >>> letters({"y": leaf((2,))})["y"].tolist(), letters({"y": leaf(), "z": leaf()})["z"].item()
    ([v[0], v[1]], z.v)
    """
    from gradcli.algebra.formulas import symbols

    return {name: symbols("v" if len(outputs) == 1 else f"{name}.v", y.shape) for name, y in outputs.items()}


def weight(number: Any) -> Any:
    """Return an element of a cotangent as an exact SymPy number, or the symbol that it is."""
    from gradcli.algebra.functions import exact_number

    return exact_number(number) if isinstance(number, int | float) else number


def summed(terms: Mapping[int, Sequence[Any]], nodes: Mapping[str, Node]) -> Named:
    """Return sums of terms as arrays of formulas; the keys of `terms` count the elements of all `nodes`."""
    import sympy

    from gradcli.algebra.display import tidy

    result: Named = {}
    indices = count()
    for name, node in nodes.items():
        elements = [tidy(sympy.Add(*terms.get(index, ()))) for index in islice(indices, node.size)]
        result[name] = objects(elements, node.shape)
    return result
