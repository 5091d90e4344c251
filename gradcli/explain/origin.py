"""The operation at which a number that is not finite arose."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import at_point, values_of
from gradcli.errors import Notes
from gradcli.explain.results import Array, Named
from gradcli.explain.safer import safer
from gradcli.explain.shared import sweep_inputs
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Sweep, sweep
from gradcli.notation.numbers import number_text

_SHORT = 30  # characters of an input in a sentence: with the operation it fits on a line
_LINE = 60  # characters of a statement in a warning, which is two lines then


def origin(swept: Sweep, inputs: Named) -> str:
    """Return where in a sweep the first number arose that is not finite, in words."""
    values = values_of(swept.graph, inputs, swept.traced())

    def bad(node: Node) -> bool:
        return not node.is_constant and not np.isfinite(values[node]).all()

    if any(map(bad, swept.cotangents.values())):
        return "v itself is not finite"
    for p in swept.passes:
        if bad(p.contribution):
            if (known := next(filter(bad, (p.node, *p.node.args)), None)) is not None:
                return _value_origin(swept.graph, known, values)
            hidden = (values[p.adjoint] == 0).any() and np.isnan(values[p.contribution]).any()
            texts = f"it arises in {_words(p.node, swept.graph)}, whose local derivative is not finite here"
            return texts + ": 0·inf is nan" * bool(hidden)
    return "it arises where contributions are summed"


def _value_origin(graph: Graph, y: Node, values: Mapping[Node, Array]) -> str:
    """Return where a node's first number arose that is not finite, in words; `values` has all that it depends on."""
    node = y
    while (reads := _not_finite_argument(node, values)) is not None:
        node = reads
    if node.is_leaf:
        return f"the input {graph.labels[node]} itself is not finite"
    return f"it arises in {_words(node, graph)}, whose value is not finite"


def _not_finite_argument(node: Node, values: Mapping[Node, Array]) -> Node | None:
    """Return an argument that is not finite where the node reads it."""
    for k, argument in enumerate(node.args):
        bad = ~np.isfinite(values[argument])
        if OPERATIONS[node.op].selects and k > 0:
            bad = bad & (values[node.args[0]].astype(bool) == (k == 1))
        if bad.any() and not argument.is_constant:
            return argument
    return None


def fix(swept: Sweep, inputs: Named) -> str:
    """Return a fix for the operation where a sweep has its first number that is not finite; "" for none.

    The operation is one of the system, and its input is written as the user named it, or as a short formula.
    """
    values = values_of(swept.graph, inputs, swept.traced())
    first = next((p for p in swept.passes if not np.isfinite(values[p.contribution]).all()), None)
    if first is None or not all(np.isfinite(values[v]).all() for v in swept.cotangents.values()):
        return ""
    node = first.node
    known = next((n for n in (node, *node.args) if not n.is_constant and not np.isfinite(values[n]).all()), None)
    if known is not None:
        while (reads := _not_finite_argument(known, values)) is not None:
            known = reads
        node = known
    if not node.args:
        return ""
    labels = swept.graph.labels
    from gradcli.notation.nodes import Notation  # where all is finite, nothing is written

    name = Notation(labels, implicit=True).expression(node.args[0]) if node.args[0] not in labels else ""
    name = name if 0 < len(name) <= _SHORT else labels.get(node.args[0], "x")
    behind: set[Node] = {node}
    chosen = False
    for n in swept.graph.nodes:
        if not behind.isdisjoint(n.args):
            behind.add(n)
            chosen = chosen or OPERATIONS[n.op].selects
    return safer(node.op, name, chosen and bool(np.isnan(values[first.contribution]).any()))


def _words(node: Node, graph: Graph) -> str:
    """Return an operation with the place where the user wrote it."""
    written = f" ({graph.spans[node].line[:_LINE]})" if node in graph.spans else ""
    return f"`{node.op}`{written}"


def not_finite(swept: Sweep, inputs: Named, grads: Named) -> list[str]:
    """Return a warning for each gradient that is not finite, with the operation where the first such number arose."""
    texts = [_first_not_finite(f"{name}.grad", grad) for name, grad in grads.items()]
    where = origin(swept, inputs) if any(texts) else ""
    return [f"{what}: {where}" for what in texts if what]


def not_finite_values(graph: Graph, at: Named, same: Collection[str] = ()) -> list[str]:
    """Return a warning for each output that is not finite at a point, with the operation where that arose.

    `same` as for `at_points`.
    """
    values = at_point(graph, at, graph.nodes, same)
    texts = [(_first_not_finite(name, values[y]), y) for name, y in graph.outputs.items()]
    return [f"{what}: {_value_origin(graph, y, values)}" for what, y in texts if what]


def warn_of_values(graph: Graph, at: Named, values: Named, notes: Notes) -> None:
    """Add warnings of the outputs that are not finite."""
    if not all(np.isfinite(value).all() for value in values.values()):
        for text in not_finite_values(graph, at):
            notes.add("warning", text)


def _first_not_finite(name: str, array: Array) -> str:
    """Return the first element that is not finite, with its number; nothing where there is none."""
    bad = np.flatnonzero(~np.isfinite(array))
    if not len(bad):
        return ""
    return f"{element_names(name, array.shape)[bad[0]]} is {number_text(array.reshape(-1)[bad[0]])}"


def not_finite_entry(graph: Graph, wrt: Sequence[str], at: Named, matrix: Array, of: str = "") -> str:
    """Return a warning for the first entry of J that is not finite, with the operation where it arose.

    `of` is what J's rows are derivatives of, where they are.
    """
    i, j = (int(k[0]) for k in np.nonzero(~np.isfinite(matrix)))
    return entry_not_finite(graph, wrt, at, (i, j), float(matrix[i, j]), of)


def entry_not_finite(
    graph: Graph, wrt: Sequence[str], at: Named, entry: tuple[int, int], value: float, of: str = ""
) -> str:
    """Return the warning for the entry of J at that row and column, which has this value."""
    i, j = entry
    indices = ((name, y, k) for name, y in graph.outputs.items() for k in range(y.size))
    name, y, k = next(itertools.islice(indices, i, None))
    row = element_names(name, y.shape)[k]
    column = next(itertools.islice((e for n in wrt for e in element_names(n, graph.inputs[n].shape)), j, None))
    v = np.zeros(y.size)
    v[k] = 1
    alone = sweep(Graph.of(graph.inputs, {name: y}, names=graph.names, spans=graph.spans), wrt)
    rows = f"d2{of}/d{row}" if of else f"d{row}"
    result = origin(alone, sweep_inputs(at, [{name: v.reshape(y.shape)}]))
    return f"{rows}/d{column} is {number_text(value)}: {result}"
