"""Helpers of several commands: the limit of a Jacobian, its formulas, and the style of formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError
from gradcli.explain.results import Array, Named
from gradcli.explain.style import Style
from gradcli.graph.array import objects
from gradcli.graph.einsum import products
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

MAX_ENTRIES = 10**6  # of a Jacobian that is computed whole: 8 MB, and as JSON 20 MB
_CALLS, _WEIGHTS = 100, 1_000  # that are searched for a decimal: nearly every system has one kind of number
MAX_FORMULAS = 50_000  # elements whose formulas are computed: more would keep the reader waiting


def check_entries(graph: Graph, wrt: Sequence[str], hint: str = "", what: str = "Jacobian") -> None:
    """Check that a Jacobian, or a Hessian, has at most `MAX_ENTRIES` entries; `hint` replaces the usual hint."""
    rows, columns = dimensions(graph, wrt)
    if rows * columns > MAX_ENTRIES:
        raise InputError(
            f"the {what} would have {rows:,} × {columns:,} entries",
            hint=hint or "choose some with --outputs and --wrt; `gradcli backward` gives vᵀJ without it",
        )


def symbolic(graph: Graph, wrt: Sequence[str], steps: bool = False) -> SymbolicJacobian:
    """Return the symbolic Jacobian, unless it would take minutes.

    With `steps`, its intermediates have other names than the nodes of the graph, which the page names, too.
    """
    from gradcli.algebra.symbolic_jacobian import unwritten_jacobian

    if (count := formulas_of(graph)) > MAX_FORMULAS:
        raise InputError(
            f"the formulas of {count:,} elements are too many to compute",
            hint="reduce the shapes, or compute numbers with `gradcli backward` and --at",
        )
    if not steps:
        return unwritten_jacobian(graph, wrt)
    from gradcli.notation.nodes import node_names

    return unwritten_jacobian(graph, wrt, node_names(graph).values())


def formulas_of(graph: Graph) -> int:
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


def sweep_inputs(at: Named, calls: Sequence[Named]) -> Named:
    """Return the inputs of a reverse sweep at a point: the leaves, and the cotangents of calls along the last axis."""
    return {name: value[..., None] for name, value in at.items()} | cotangents(calls)


def cotangents(calls: Sequence[Named]) -> Named:
    """Return the cotangents of calls as inputs of a sweep, along the last axis."""
    return {f"{name}.v": np.stack([call[name] for call in calls], axis=-1) for name in calls[0]}


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


def style_of(graph: Graph, calls: Sequence[Named] = ()) -> Style:
    """Return how formulas are written, by the numbers of the system and of the calls."""
    decimals = any(isinstance(n.value, Decimal) for n in graph.nodes)
    numbers = (v for call in calls[:_CALLS] for v in call.values() if v.dtype != object)
    weights = (float(e) for v in numbers for e in v.reshape(-1)[:_WEIGHTS])
    decimals = decimals or any(w != round(w, 0) for w in weights if np.isfinite(w))
    return Style(decimals, frozenset(graph.labels.values()), _single(graph))


def _single(graph: Graph) -> tuple[str, str] | None:
    """Return the output and the input of a system with one of each, both scalar."""
    if len(graph.outputs) != 1 or len(graph.inputs) != 1:
        return None
    (y_name, y), (x_name, x) = *graph.outputs.items(), *graph.inputs.items()
    return None if y.shape or x.shape else (y_name, x_name)


def outputs_at(graph: Graph, at: Mapping[str, Array]) -> Named:
    """Return the values of the outputs at one point, in their own shapes."""
    result = at_point(graph, at, graph.outputs.values())
    return {name: result[y] for name, y in graph.outputs.items()}
