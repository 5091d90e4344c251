"""A trace: the values of a forward pass by node, and of reverse passes by node and by edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node
from gradcli.graph.vjp import Pass, Sweep
from gradcli.notation.nodes import node_names
from gradcli.pages.backward.loss import any_loss, loss_name
from gradcli.pages.evaluation import Values, evaluated_runs, seeded
from gradcli.pages.formulas import weight
from gradcli.pages.results import UNMEASURED, Array, Hook, Measured, Named


@dataclass(frozen=True)
class Reverse:
    """The values of a reverse pass in one `backward` call.

    `seeds` are the cotangents of the outputs, `adjoints` those of all nodes that were reached, leaves included.
    `slopes` has the local derivatives, of elementwise nodes alone; `contributions` what each pass brought, and `totals`
    what had come together at its end by then; `hooks` what was passed on in the place of an adjoint.
    """

    seeds: Mapping[Node, Array]
    adjoints: Mapping[Node, Array]
    slopes: Mapping[Pass, Array]
    contributions: Mapping[Pass, Array]
    totals: Mapping[Pass, Array]
    hooks: Mapping[Node, Hook] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """A system's forward pass, and the reverse pass of each call, at a point or in formulas.

    The sweep has two passes for `x*x`.  `names` are those under which nodes are shown.  Without a point `values` is
    empty, and arrays hold formulas.
    """

    graph: Graph
    names: Mapping[Node, str]
    swept: Sweep
    values: Mapping[Node, Array]
    calls: tuple[Reverse, ...]

    def several(self, node: Node) -> bool:
        """Return whether an adjoint is a sum of several contributions, the cotangent v among them."""
        return len(self.swept.incoming.get(node, ())) + (node in self.calls[0].seeds) > 1

    @cached_property
    def adjoint_names(self) -> Mapping[Node, str]:
        """The name of each node's adjoint: t̄ of t, and v of the only output if no node reads that."""
        outputs = list(self.graph.outputs.values())
        v = {name: self.calls[0].seeds[y] for name, y in self.graph.outputs.items() if y in self.calls[0].seeds}
        loss = loss_name(self.graph, v) if len(v) == len(outputs) else any_loss(self.graph)
        result: dict[Node, str] = {n: adjoint_name(name, loss) for n, name in self.names.items()}
        if len(outputs) == 1 and "v" not in self.names.values() and outputs[0] not in self.swept.incoming:
            result[outputs[0]] = "v"
        return result


def numeric_trace(
    graph: Graph, swept: Sweep, at: Named, calls: Sequence[Named], measured: Measured = UNMEASURED
) -> Trace:
    """Return the trace of a sweep at a point, for the cotangents of each call; what was `measured` is not computed.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.graph.vjp import sweep
    >>> x = leaf()
    >>> graph = Graph.of({"x": x}, {"y": x * x})
    >>> trace = numeric_trace(graph, sweep(graph), {"x": np.array(3.0)}, [{"y": np.array(1.0)}])
    >>> [(p.position, float(total)) for p, total in trace.calls[0].totals.items()]
    [(0, 3.0), (1, 6.0)]
    """
    wanted, known = traced(graph, swept, measured), measured.values
    runs = [seeded("v", call) | measured.hooked for call in calls]
    (values,) = evaluated_runs(swept.graph.inputs, [at], [runs], wanted, known=known)
    return trace_of(graph, swept, values, measured)


def trace_of(graph: Graph, swept: Sweep, calls: Sequence[Values], measured: Measured = UNMEASURED) -> Trace:
    """Return the trace of a sweep, given the values of the nodes that are `traced` in each call."""
    reverse = tuple(_reverse(graph, swept, values.__getitem__, measured) for values in calls)
    return Trace(graph, node_names(graph), swept, {n: calls[0][n] for n in graph.nodes}, reverse)


def traced(graph: Graph, swept: Sweep, measured: Measured = UNMEASURED) -> list[Node]:
    """Return the nodes of a trace whose numbers are to be computed: those that were not measured."""
    result = [*graph.nodes, *swept.cotangents.values(), *(p.slope for p in swept.passes if p.slope is not None)]
    result += [p.contribution for p in swept.passes if (p.node, p.position) not in measured.contributions]
    return result + [adjoint for n, adjoint in swept.adjoints.items() if n not in measured.adjoints]


def symbolic_trace(graph: Graph, swept: Sweep, calls: Sequence[Named]) -> Trace:
    """Return the trace in formulas: primals stand under their names, adjoints are formulas in them."""
    from gradcli.algebra.display import READABLE
    from gradcli.algebra.formulas import Limits, formulas

    names = node_names(graph)
    loss = loss_name(graph, calls[0])
    bars = {p.adjoint: adjoint_name(names[p.node], loss) for p in swept.passes if p.node in names}
    limits = Limits(READABLE, READABLE, READABLE)
    reverse = []
    for call in calls:
        exprs = formulas(swept.traced(), known_formulas(swept, names, call), bars, limits, names.values()).exprs
        reverse.append(_reverse(graph, swept, exprs.__getitem__))
    return Trace(graph, names, swept, {}, tuple(reverse))


def known_formulas(swept: Sweep, names: Mapping[Node, str], call: Named) -> dict[Node, Array]:
    """Return the formulas of a sweep's known nodes: the names of primals, and the numbers of cotangents."""
    from gradcli.algebra.formulas import symbols

    result = {n: symbols(name, n.shape) for n, name in names.items()}
    for output, v in swept.cotangents.items():
        result[v] = np.empty(v.shape, dtype=object)
        for index in np.ndindex(*v.shape):
            result[v][index] = weight(call[output][index].item() if v.shape else call[output].item())
    return result


def plus(a: Array, b: Array) -> Array:
    """Return the sum as an array; NumPy unwraps a scalar expression."""
    return np.asarray(a + b, dtype=a.dtype)


def _reverse(graph: Graph, swept: Sweep, value: Callable[[Node], Any], measured: Measured = UNMEASURED) -> Reverse:
    """Return one reverse pass, its adjoints added up along the passes."""
    # An output that another one uses starts from its own v.
    seeds: dict[Node, Array] = {}
    for output, v in swept.cotangents.items():
        node = graph.outputs[output]
        seeds[node] = plus(seeds[node], value(v)) if node in seeds else value(v)
    adjoints, totals = dict(seeds), {}
    known = measured.contributions
    contributions = {
        p: known[p.node, p.position] if (p.node, p.position) in known else value(p.contribution) for p in swept.passes
    }
    slopes = {p: value(p.slope) for p in swept.passes if p.slope is not None}
    for p, contribution in contributions.items():
        before = adjoints.get(p.argument)
        totals[p] = adjoints[p.argument] = contribution if before is None else plus(before, contribution)
    totals |= {
        p: measured.adjoints[n] for n, p in {p.argument: p for p in swept.passes}.items() if n in measured.adjoints
    }
    exact = {
        n: measured.adjoints[n] if n in measured.adjoints else value(adjoint) for n, adjoint in swept.adjoints.items()
    }
    return Reverse(seeds, adjoints | exact, slopes, contributions, totals, measured.hooks)
