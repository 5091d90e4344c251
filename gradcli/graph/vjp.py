"""Reverse mode: the graph of a vector–Jacobian product, and the passes that make it up.

The sweep knows no operation by name: the tables do.  Source: Griewank and Walther, *Evaluating Derivatives*
(SIAM, 2008), section 3.2, with the adjoint t̄ = ∂L/∂t of L = Σ v_i·y_i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from gradcli.graph.calls import definition_alone
from gradcli.graph.construct import selection, sum_to
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, is_const, leaf, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted

NO_HOOKS: Mapping[str, Node] = MappingProxyType({})


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


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """A reverse sweep: the graph from leaves and cotangents to gradients, its passes in order, and the adjoints.

    `cotangents` holds the cotangents by the names of their outputs, `gradients` the gradients by the names of what they
    are the gradients of, and `adjoints` the adjoint of each node that has one.  `hooks` are the inputs that are passed
    on in the place of the adjoints of some nodes.
    """

    graph: Graph
    passes: tuple[Pass, ...]
    cotangents: Mapping[str, Node]
    gradients: Mapping[str, Node]
    adjoints: Mapping[Node, Node]
    hooks: Mapping[Node, Node] = field(default_factory=dict)

    @cached_property
    def incoming(self) -> Mapping[Node, Sequence[Pass]]:
        """The passes from which each node gets its adjoint, in their order."""
        result: dict[Node, list[Pass]] = {}
        for p in self.passes:
            result.setdefault(p.argument, []).append(p)
        return result

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


def sweep(
    graph: Graph, wrt: Iterable[str] | None = None, retain: Iterable[str] = (), hooked: Mapping[str, Node] = NO_HOOKS
) -> Sweep:
    """Return the reverse sweep over `graph`: the gradients of the leaves `wrt` (all by default), then of `retain`.

    `retain` names computed nodes.  What is passed on from a `hooked` node is an input of that name, as a hook may have
    replaced its adjoint by any numbers.

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
    hooks = {n: leaf(n.shape, n.dtype) for n in hooked.values()}
    passes, adjoints = reverse(graph, seeds, active_nodes(graph, wanted.values()), hooks)
    gradients = {name: hooks.get(n) or adjoints.get(n) or const(0, n.shape) for name, n in wanted.items()}
    inputs = dict(graph.inputs) | {f"{name}.v": v for name, v in cotangents.items()}
    inputs |= {name: hooks[n] for name, n in hooked.items()}
    outputs = {f"{name}.grad": gradient for name, gradient in gradients.items()}
    nodes = scheduled(outputs.values(), (*inputs.values(), *graph.nodes))
    result = Graph(nodes, inputs, outputs, graph.names, graph.spans)
    return Sweep(result, tuple(passes), cotangents, gradients, adjoints, hooks)


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


def reverse(
    graph: Graph,
    seeds: Iterable[tuple[Node, Node]],
    active: set[Node],
    hooks: Mapping[Node, Node] = MappingProxyType({}),
) -> tuple[list[Pass], dict[Node, Node]]:
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
        for step in _pull(node, hooks.get(node, adjoint), active):
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
    else:
        positions = [i for i, a in enumerate(node.args) if a in active]
        contributions = contributions_of(node, adjoint, positions)
        steps += [Pass(node, i, adjoint, None, contributions[i]) for i in positions]
    return steps


def contributions_of(node: Node, adjoint: Node, wanted: Iterable[int] | None = None) -> Sequence[Node]:
    """Return the adjoints of the arguments of a node that is not elementwise, from its own: those of all positions.

    A call without a pullback of its own has that of its definition.  Then those at other positions than the `wanted`
    ones (all by default) may be 0.

    >>> from gradcli.graph.construct import reduce
    >>> contributions_of(reduce("sum", leaf((3,)), (0,)), leaf())[0].shape
    (3,)
    """
    pullback = OPERATIONS[node.op].pullback
    own = None if pullback is None else pullback(adjoint, node, *node.settings, *node.args)
    if own is not None:
        return own
    alone, result = definition_alone(node)
    chosen = [a for i, a in enumerate(alone) if not a.is_constant and (wanted is None or i in wanted)]
    inner = Graph(scheduled([result], alone), {}, {})
    adjoints = reverse(inner, [(result, adjoint)], active_nodes(inner, chosen))[1]
    gradients = [adjoints.get(a) or const(0, a.shape) for a in alone]
    meant = {result: node, **dict(zip(alone, node.args, strict=True))}
    return substituted(gradients, meant, [adjoint])


def residuals_of(node: Node) -> Sequence[Node]:
    """Return the inner nodes of a call that its pullback reads: those of its row, or those of its definition.

    They are equal in structure to those that `contributions_of` makes.

    >>> from gradcli.graph.calls import call_with
    >>> x, t = leaf((2, 3)), const((0, 2), (2,))
    >>> loss = call_with("cross_entropy", (-100, "mean"), (x, t), label_smoothing=const(0))
    >>> [n.op for n in residuals_of(loss)]
    ['eq', 'log_softmax']
    """
    row = OPERATIONS[node.op]
    if row.pullback is not None:
        has_own = row.pullback(leaf(node.shape, node.dtype), node, *node.settings, *node.args) is not None
        if has_own:
            return row.residuals(*node.settings, *node.args) if row.residuals is not None else ()
    alone, result = definition_alone(node)
    inner = Graph(scheduled([result], alone), {}, {})
    g = leaf(node.shape, node.dtype)
    adjoints = reverse(inner, [(result, g)], active_nodes(inner, [a for a in alone if not a.is_constant]))[1]
    made = {n for n in inner.nodes if n.args and n is not result}
    backward = scheduled([adjoints[a] for a in alone if a in adjoints], inner.nodes)
    read = dict.fromkeys(a for n in backward if n not in made and n is not result for a in n.args if a in made)
    return substituted(read, dict(zip(alone, node.args, strict=True)))


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
