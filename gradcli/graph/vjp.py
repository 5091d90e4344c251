"""Reverse mode: the graph of a vector–Jacobian product, and the passes that make it up.

The sweep knows no operation by name: the tables do.  Source: Griewank and Walther, *Evaluating Derivatives*
(SIAM, 2008), section 3.2, with the adjoint t̄ = ∂L/∂t of L = Σ v_i·y_i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gradcli.graph.construct import selection, sum_to
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, is_const, leaf, lift
from gradcli.graph.operations import OPERATIONS


class Pass(NamedTuple):
    """One adjoint passed on along an edge: from a node to one of its arguments, the one at that `position`.

    `slope` is the local derivative of an elementwise node, and None for a structural one.
    `contribution` has the argument's shape.
    """

    node: Node
    position: int
    adjoint: Node
    slope: Node | None
    contribution: Node

    @property
    def argument(self) -> Node:
        """The argument that receives the adjoint."""
        return self.node.args[self.position]


@dataclass(frozen=True, repr=False)
class Sweep:
    """A reverse sweep: the graph from leaves and cotangents to gradients, its passes in order, and the adjoints.

    `cotangents` holds the cotangents by the names of their outputs, `gradients` the gradients by the names of what they
    are the gradients of, and `adjoints` the adjoint of each node that has one.
    """

    graph: Graph
    passes: tuple[Pass, ...]
    cotangents: Mapping[str, Node]
    gradients: Mapping[str, Node]
    adjoints: Mapping[Node, Node]

    def traced(self) -> tuple[Node, ...]:
        """Return the graph's nodes with every adjoint, slope and contribution among them, needed or not."""
        shown = (n for p in self.passes for n in (p.adjoint, p.slope, p.contribution) if n is not None)
        return scheduled([*shown, *self.graph.outputs.values()], self.graph.nodes)


def vjp(graph: Graph, wrt: Iterable[str] | None = None) -> Graph:
    """Return the graph of vᵀJ.

    Its inputs are the leaves of `graph`, then a cotangent `y.v` of each output's shape; its outputs are
    `x.grad`, of the shape of each leaf in `wrt` (all by default).  Source: what PyTorch's `backward` leaves in `.grad`.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = vjp(Graph.of({"x": x}, {"y": x * x}))
    >>> list(graph.inputs), list(graph.outputs)
    (['x', 'y.v'], ['x.grad'])
    """
    return sweep(graph, wrt).graph


def sweep(graph: Graph, wrt: Iterable[str] | None = None, retain: Iterable[str] = ()) -> Sweep:
    """Return the reverse sweep over `graph`: the gradients of the leaves `wrt` (all by default), then of `retain`.

    `retain` names computed nodes.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> swept = sweep(Graph.of({"x": x}, {"y": 3 * x}))
    >>> [(p.argument is x, p.slope.value) for p in swept.passes]
    [(True, 3)]
    """
    chosen = set(graph.inputs) if wrt is None else set(wrt)
    wanted = {name: n for name, n in graph.inputs.items() if name in chosen}
    wanted |= {name: graph.names[name] for name in retain}
    cotangents = {name: leaf(y.shape, y.dtype) for name, y in graph.outputs.items()}
    seeds = [(y, cotangents[name]) for name, y in graph.outputs.items()]
    passes, adjoints = reverse(graph, seeds, active_nodes(graph, wanted.values()))
    gradients = {name: adjoints.get(n) or const(0, n.shape) for name, n in wanted.items()}
    inputs = dict(graph.inputs) | {f"{name}.v": v for name, v in cotangents.items()}
    outputs = {f"{name}.grad": gradient for name, gradient in gradients.items()}
    nodes = scheduled(outputs.values(), (*inputs.values(), *graph.nodes))
    result = Graph(nodes, inputs, outputs, graph.names, graph.spans)
    return Sweep(result, tuple(passes), cotangents, gradients, adjoints)


def active_nodes(graph: Graph, wanted: Iterable[Node]) -> set[Node]:
    """Return the floating-point nodes that depend on a wanted one: no other node has an adjoint."""
    active = set(wanted)
    for node in graph.nodes:
        if not active.isdisjoint(node.args) and OPERATIONS[node.op].passes_on and node.dtype in FLOATING:
            active.add(node)
    return active


def differentiated(graph: Graph, wrt: Iterable[str]) -> set[Node]:
    """Return the nodes that a gradient arrives at, be it 0: those between an output and one of the leaves `wrt`.

    Source: PyTorch, whose `retain_grad` keeps None, and whose hooks are not called, at all other nodes.

    >>> from gradcli.graph.construct import call
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> u = x * x
    >>> [u in differentiated(Graph.of({"x": x}, {"z": v * x}), "x") for v in (u, call("detach", u))]
    [True, False]
    """
    active = active_nodes(graph, [graph.inputs[name] for name in wrt])
    reached = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        if node.args and node in reached and OPERATIONS[node.op].passes_on:
            reached.update(node.args)
    return active & reached


def reverse(graph: Graph, seeds: Iterable[tuple[Node, Node]], active: set[Node]) -> tuple[list[Pass], dict[Node, Node]]:
    """Return the passes of a reverse sweep and the adjoints, from nodes with their cotangents to the `active` nodes.

    A 0 is passed on like any other number: what comes before may turn it into nan, as it does in PyTorch.
    """
    pending: dict[Node, list[Node]] = {}
    for output, v in seeds:
        pending.setdefault(output, []).append(v)
    passes: list[Pass] = []
    adjoints: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        if node not in pending or node not in active:
            continue
        adjoints[node] = adjoint = _total(pending.pop(node))
        for step in _pull(node, adjoint, active):
            passes.append(step)
            pending.setdefault(step.argument, []).append(step.contribution)
    return passes, adjoints


def _total(terms: list[Node]) -> Node:
    """Return the sum of the contributions; those to single elements are gathered into one array."""
    kinds: dict[str, list[Node]] = {}
    for term in terms if len(terms) > 1 else ():
        kinds.setdefault(term.op, []).append(term)
    for op, several in kinds.items():
        if len(several) > 1 and (merged := OPERATIONS[op].merged if several[0].args else None) is not None:
            terms = [t for t in terms if t.op != op] + [merged(several)]
    return sum(terms[1:], terms[0])


def _pull(node: Node, adjoint: Node, active: set[Node]) -> list[Pass]:
    """Return the passes from one node to its active arguments."""
    steps: list[Pass] = []
    if not node.args or not (row := OPERATIONS[node.op]).passes_on:  # it is wanted itself
        return steps
    if row.broadcasts:
        for i, argument in enumerate(node.args):
            if argument in active:
                local = slope(node, i)
                contribution = sum_to(scale(adjoint, local, node, i), argument.shape)
                steps.append(Pass(node, i, adjoint, local, contribution))
    elif row.pullback is not None:
        contributions = row.pullback(adjoint, node, *node.settings, *node.args)
        for i, contribution in enumerate(contributions):
            if node.args[i] in active:
                steps.append(Pass(node, i, adjoint, None, contribution))
    return steps


def slope(node: Node, i: int) -> Node:
    """Return ∂node/∂(i-th argument) for an elementwise node, as a node of a shape that broadcasts to its own.

    Source: the table; a test compares it with SymPy's `diff`, at corners with PyTorch 2.13.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> slope(elementwise("sin", leaf()), 0)
    cos(input), shape ()
    """
    return lift(OPERATIONS[node.op].slopes[i](node, *node.args))


def textbook_slope(node: Node, i: int) -> Node:
    """Return the textbook form of `slope` for pages: -a/b² for a quotient's, where -y/b is computed.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> quotient = elementwise("div", leaf(), leaf())
    >>> slope(quotient, 1), textbook_slope(quotient, 1)
    (neg(div), shape (), neg(div), shape ())
    """
    row = OPERATIONS[node.op]
    return lift((row.textbook.get(i) or row.slopes[i])(node, *node.args))


def scale(adjoint: Node, local: Node, node: Node, position: int) -> Node:
    """Return adjoint·slope, for the slope of a node with respect to the argument at that position.

    A slope that selects (`relu`, `maximum`, `where`) selects the adjoint, so that the branch not taken stays 0
    even when the adjoint is infinite, as in PyTorch: the gradient of `log(relu(x))` at -1 is 0, not nan.
    So does a slope that is 0 by its nature (`floor`, `x**0`).  A 0 that is an argument is a factor: in `log(0*x)`
    it meets an infinite adjoint, and the gradient is nan.  So is a slope that the row says multiplies.
    """
    if position in OPERATIONS[node.op].multiplies:
        return adjoint * local
    if local.args and OPERATIONS[local.op].selects:
        condition, *branches = local.args
        a, b = (scale(adjoint, branch, node, position) for branch in branches)
        return selection(local.op, condition, a, b)
    if is_const(local, 0) and local not in node.args:
        return const(0, adjoint.shape)
    return adjoint * local
