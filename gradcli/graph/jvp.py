"""Forward mode: the graph of a Jacobian–vector product, one tangent ṫ = Σ ∂t/∂x·u for each node that depends on x.

Forward mode uses the rules of reverse mode.  The local derivative of an elementwise operation, its slope, serves both.
An operation that moves elements moves tangents as it moves primals, and a contraction is linear in each of its factors:
the kind in the operation's row is one of these.  For any other structural operation the pullback g ↦ Jᵀg is linear in
g, and its transpose, the pullback of the pullback, is u ↦ Ju.
Sources: Griewank and Walther, *Evaluating Derivatives* (SIAM, 2008), section 3.1; Radul and others, "You only linearize
once: tangents transpose to gradients" (POPL 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gradcli.graph.calls import definition_alone
from gradcli.graph.construct import Index, broadcast, index, scatter
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.node import Node, const, leaf, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import active_nodes, contributions_of, reverse, scale, slope


@dataclass(frozen=True, repr=False)
class Push:
    """A forward sweep: the graph from leaves and their tangents to the outputs' tangents, and the tangent of each node.

    `seeds` holds the tangents of the leaves by name, `tangents` the tangent of each node that has one, and `slopes`
    the local derivatives of the elementwise nodes by node and position of the argument.
    """

    graph: Graph
    seeds: Mapping[str, Node]
    tangents: Mapping[Node, Node]
    slopes: Mapping[tuple[Node, int], Node]


def jvp(graph: Graph, wrt: Iterable[str] | None = None) -> Graph:
    """Return the graph of J·u.

    Its inputs are the leaves of `graph`, then a tangent `x.u` of the shape of each leaf in `wrt` (all by default); its
    outputs are `y.jvp`, of each output's shape.  Source: PyTorch's forward-mode AD; see `test_forward_mode`.

    >>> x = leaf()
    >>> graph = jvp(Graph.of({"x": x}, {"y": x * x}))
    >>> list(graph.inputs), list(graph.outputs)
    (['x', 'x.u'], ['y.jvp'])
    """
    return push(graph, wrt).graph


def push(graph: Graph, wrt: Iterable[str] | None = None) -> Push:
    """Return the forward sweep over `graph`, from the tangents of the leaves `wrt` (all by default).

    >>> x = leaf((2,))
    >>> pushed = push(Graph.of({"x": x}, {"y": 3 * x}))
    >>> pushed.tangents[x] is pushed.seeds["x"], pushed.graph.outputs["y.jvp"].shape
    (True, (2,))
    """
    chosen = set(graph.inputs) if wrt is None else set(wrt)
    seeds = {name: leaf(x.shape) for name, x in graph.inputs.items() if name in chosen}
    tangents, slopes = forward(graph.nodes, {graph.inputs[name]: u for name, u in seeds.items()})
    inputs = dict(graph.inputs) | {f"{name}.u": u for name, u in seeds.items()}
    outputs = {f"{name}.jvp": tangents.get(y) or const(0, y.shape) for name, y in graph.outputs.items()}
    result = Graph.of(inputs, outputs, graph.nodes, graph.names, graph.spans)
    return Push(result, seeds, tangents, slopes)


Slopes = dict[tuple[Node, int], Node]


def forward(
    nodes: Iterable[Node], seeds: Mapping[Node, Node], slopes: Slopes | None = None
) -> tuple[dict[Node, Node], Slopes]:
    """Return the tangents of the nodes that depend on a seeded one, and the slopes that they were multiplied by.

    `nodes` are in the order of computation; `slopes` holds those of an earlier sweep, and new ones are added to it.
    Where a tangent is seeded in one part only, only that part is multiplied, so that no 0 meets an infinite slope: of
    `M @ (1/x)` at x[0] = 0 the column of x[1] is finite, as it is in reverse mode.
    """
    tangents = dict(seeds)
    slopes = {} if slopes is None else slopes
    for node in nodes:
        known = {i: tangents[a] for i, a in enumerate(node.args) if a in tangents}
        if not known or node in tangents or not (row := OPERATIONS[node.op]).passes_on:
            continue
        if row.broadcasts:
            slopes |= {(node, i): slope(node, i) for i in known if (node, i) not in slopes}
            key = _one_part(node, known.values())
            if key is not None:
                tangents[node] = _of_part(node, known, key)
            else:
                total = _sum(scale(u, slopes[node, i], node, i) for i, u in known.items())
                tangents[node] = broadcast(total, node.shape)
        else:
            tangents[node] = structural(node, known)
    return tangents, slopes


def _sum(terms: Iterable[Node]) -> Node:
    first, *others = terms
    return sum(others, first)


def _one_part(node: Node, tangents: Iterable[Node]) -> Index | None:
    """Return the index of the one part in which all tangents are, of the node's shape, if there is one."""
    indices = {u.settings if u.op == "scatter" else () for u in tangents}
    shape, keys = indices.pop() or ((), ())
    return keys[0] if not indices and shape == node.shape and len(keys) == 1 else None


def _of_part(node: Node, known: Mapping[int, Node], key: Index) -> Node:
    """Return Σ slope·tangent where the tangents are, among zeros."""
    args = tuple(index(broadcast(a, node.shape), key) if a.shape else a for a in node.args)
    y = index(node, key)
    slopes = OPERATIONS[node.op].slopes
    part = replace(node, args=args, shape=y.shape)
    total = _sum(scale(u.args[0], lift(slopes[i](y, *args)), part, i) for i, u in known.items())
    return scatter(node.shape, [(key, broadcast(total, y.shape))])


def structural(node: Node, known: Mapping[int, Node]) -> Node:
    """Return the tangent of a structural node, from those of its arguments by their positions."""
    row = OPERATIONS[node.op]
    if row.move is not None:  # it is linear in all its arguments together, but for indices
        moved = [known.get(i) or (const(0, a.shape) if row.is_linear_in(i) else a) for i, a in enumerate(node.args)]
        return node.with_args(tuple(moved))
    if row.kind == "contraction":
        terms = [node.with_args((*node.args[:i], u, *node.args[i + 1 :])) for i, u in known.items()]
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
    return through_definition(node, known) if row.kind == "call" else transposed(node, known)


def through_definition(node: Node, known: Mapping[int, Node]) -> Node:
    """Return the tangent of a call by a forward sweep through its definition."""
    alone, result = definition_alone(node)
    seeds = {alone[i]: u for i, u in known.items()}
    tangents, _ = forward(computed_from(alone, [result]), seeds)
    meant = {result: node, **dict(zip(alone, node.args, strict=True))}
    return substituted([tangents.get(result) or const(0, node.shape)], meant, known.values())[0]


def transposed(node: Node, known: Mapping[int, Node]) -> Node:
    """Return the tangent of a structural node by the transpose of its pullback.

    The rule is applied to leaves in place of the node and its arguments, and the result is substituted.
    """
    arguments = [a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args]
    moved = node.with_args(tuple(arguments))
    g = leaf(node.shape)
    contributions = contributions_of(moved, g)
    ends = scheduled([g, moved, *arguments])
    small = Graph(scheduled([contributions[i] for i in known], ends), {"g": g}, {})
    active = active_nodes(small, [g])
    seeds = [(contributions[i], u) for i, u in known.items() if contributions[i] in active]
    result = reverse(small, seeds, active)[1].get(g)
    if result is None:
        return const(0, node.shape)
    meant = {moved: node, **dict(zip(arguments, node.args, strict=True))}
    return substituted([result], meant, known.values())[0]
