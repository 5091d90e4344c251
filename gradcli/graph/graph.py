"""A graph: nodes in the order in which they are computed, and what they are called.

It is a Wengert list (R. E. Wengert, "A simple automatic derivative evaluation program", CACM 7(8), 1964).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradcli.errors import Span
from gradcli.graph.node import Node


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes in the order in which they are computed, with the inputs (leaves) and the outputs by name.

    `names` has what the user called computed nodes, in the order of the text, outputs included; a node may have
    several names.  `spans` has the position of a node in the user's text.  `parts` has the part of a model that a node
    belongs to, a path such as `/encoder/layer.0/Conv`.  `variables` has, of a node that a function or a model computes,
    the variable that it is a value of: one name in all rounds of a loop.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = Graph.of({"x": x}, {"y": 2 * x})
    >>> [n.op for n in graph.nodes], graph.labels[x]
    (['input', 'const', 'mul'], 'x')
    >>> graph
    Graph of 3 nodes, from x to y
    """

    nodes: tuple[Node, ...]
    inputs: Mapping[str, Node]
    outputs: Mapping[str, Node]
    names: Mapping[str, Node] = field(default_factory=dict)
    spans: Mapping[Node, Span] = field(default_factory=dict)
    parts: Mapping[Node, str] = field(default_factory=dict)
    variables: Mapping[Node, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        inputs: Mapping[str, Node],
        outputs: Mapping[str, Node],
        first: Iterable[Node] = (),
        names: Mapping[str, Node] | None = None,
        spans: Mapping[Node, Span] | None = None,
    ) -> Graph:
        """Return the graph that computes `outputs`, and before them the nodes `first`, in their order."""
        nodes = scheduled([*first, *outputs.values()], inputs.values())
        return cls(nodes, inputs, outputs, outputs if names is None else names, spans or {})

    def __repr__(self) -> str:
        shown = ["; ".join(list(d)[:4]) + "; …" * (len(d) > 4) for d in (self.inputs, self.outputs)]
        return f"Graph of {len(self.nodes)} nodes, from {shown[0]} to {shown[1]}"

    def order(self, wanted: Sequence[Node]) -> tuple[Node, ...]:
        """Return the nodes that the wanted ones need, themselves included, in an order in which they are computed."""
        needed = needed_for(wanted, self.nodes)
        nodes = tuple([n for n in self.nodes if n in needed])
        return nodes if len(nodes) == len(needed) else scheduled(wanted)

    def leaves(self, wrt: Iterable[str] | None = None) -> dict[str, Node]:
        """Return the leaves of these names, or all."""
        return {name: self.inputs[name] for name in (self.inputs if wrt is None else wrt)}

    @cached_property
    def labels(self) -> dict[Node, str]:
        """The name of each node that has one, the first where it has several."""
        result = {node: name for name, node in self.inputs.items()}
        for name, node in self.names.items():
            result.setdefault(node, name)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a flat list that pickles without recursion, and the function that rebuilds the graph from it."""
        position = {n: i for i, n in enumerate(self.nodes)}
        rows = [(n.op, [position[a] for a in n.args], n.shape, n.settings, n.dtype) for n in self.nodes]
        named = [{name: position[n] for name, n in d.items()} for d in (self.inputs, self.outputs, self.names)]
        return _unpickled, (rows, *named)


def _unpickled(rows: Iterable[Any], *named: Mapping[str, int]) -> Graph:
    nodes: list[Node] = []
    for op, args, *rest in rows:
        nodes.append(Node(op, tuple(nodes[i] for i in args), *rest))
    inputs, outputs, names = ({name: nodes[i] for name, i in d.items()} for d in named)
    return Graph(tuple(nodes), inputs, outputs, names)


def scheduled(wanted: Iterable[Node], first: Iterable[Node] = ()) -> tuple[Node, ...]:
    """Return the nodes `first`, then what the wanted ones need, arguments before the nodes that use them."""
    done = dict.fromkeys(first)
    return (*done, *computed_from(done, wanted))


def computed_from(known: Container[Node], wanted: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes that are computed from the known ones for the wanted ones, arguments before what uses them.

    Depth first with an explicit stack: a chain of 100,000 nodes is an ordinary graph.  The work grows with the nodes
    that are returned, not with the known ones.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = 2 * x
    >>> len(computed_from({y: "y"}, [y**2]))
    2
    """
    done: dict[Node, None] = {}
    for output in wanted:
        stack = [] if output in known else [output]
        while stack:
            node = stack[-1]
            if node not in done:
                for a in reversed(node.args):
                    if a not in done and a not in known:
                        stack.append(a)
            if stack[-1] is node:
                done[stack.pop()] = None
    return tuple(done)


def is_larger(size: int, known: Container[Node], wanted: Node) -> bool:
    """Return whether more than `size` nodes are computed from the known ones for the wanted one.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = 2 * x
    >>> is_larger(1, {y}, y**2), is_larger(2, {y}, y**2)
    (True, False)
    """
    seen, pending = {wanted}, [wanted]
    while pending and len(seen) <= size:
        new = {a for a in pending.pop().args if a not in seen and a not in known}
        seen |= new
        pending += new
    return len(seen) > size


def needed_for(wanted: Iterable[Node], nodes: Sequence[Node]) -> set[Node]:
    """Return the nodes that the wanted ones need, themselves included, among `nodes` in the order of computation.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf(), leaf()
    >>> nodes = scheduled([(y := 2 * x) * w])
    >>> len(nodes), len(needed_for([y], nodes))
    (5, 3)
    """
    needed = set(wanted)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.args)
    return needed


def depending(nodes: Iterable[Node], on: Iterable[Node]) -> set[Node]:
    """Return the nodes `on`, and those that depend on them, of `nodes` in the order of computation.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf(), leaf()
    >>> nodes = scheduled([(2 * x) * w])
    >>> len(nodes), len(depending(nodes, [w]))
    (5, 2)
    """
    result = set(on)
    for node in nodes:
        if not result.isdisjoint(node.args):
            result.add(node)
    return result


def last_readers(nodes: Sequence[Node], kept: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for each node the arguments whose last use it is (liveness); `kept` nodes are used at the end."""
    read = set(kept)
    last: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        for a in node.args:
            if a not in read:
                read.add(a)
                last.setdefault(node, []).append(a)
    return last


def appearance(graph: Graph) -> list[str]:
    """Return the names of the inputs in the order in which the outputs read them.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf(), leaf()
    >>> appearance(Graph.of({"w": w, "x": x}, {"y": x * w}))
    ['x', 'w']
    """
    names = {n: name for name, n in graph.inputs.items()}
    read = [n for n in scheduled(graph.names.values()) if n in names]
    return [names[n] for n in dict.fromkeys([*read, *names])]


def dimensions(graph: Graph, wrt: Iterable[str] | None = None) -> tuple[int, int]:
    """Return the numbers of rows and columns of the Jacobian: of elements of the outputs, and of the leaves `wrt`.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> dimensions(Graph.of({"x": x}, {"y": 2 * x, "z": x**2}))
    (4, 2)
    """
    leaves = graph.leaves(wrt).values()
    return sum([y.size for y in graph.outputs.values()]), sum([x.size for x in leaves])
