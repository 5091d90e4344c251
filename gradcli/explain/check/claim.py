"""A claim as nodes: the derivative that it is about, and what it says that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.engine.rounding import term_sizes
from gradcli.explain.results import Array, Named
from gradcli.graph.einsum import products
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import jacobian
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted


@dataclass(frozen=True)
class Case:
    """A claim as nodes: `yours` against `truth`, the derivative of `base` by `by`, of its entries at `key` alone.

    `text` is the claim's left side and `said` its right side.  `graph` has the leaves as its inputs, and the cotangents
    of a pullback, whose names are the `cotangents`; `by` is one of them, or an intermediate.  `kinds` are those of
    inputs that are declared to be symmetric, positive or orthogonal.
    """

    text: str
    said: str
    graph: Graph
    base: Node
    by: Node
    key: tuple[int | slice, ...]
    truth: Node
    yours: Node
    cotangents: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of pickling: the graphs as one flat list, as `Graph` does."""
        nodes = {f"\0{part}": getattr(self, part) for part in _NODES}
        graph = self.graph
        whole = Graph.of(graph.inputs, {**graph.outputs, **nodes}, graph.names.values(), graph.names)
        return _unpickled, (whole, self.text, self.said, self.key, self.cotangents, self.kinds)

    @cached_property
    def cut(self) -> tuple[Node, Node]:
        """The base as a function of `by`, and the leaf that replaces `by` in it."""
        return cut(self.base, self.by)

    @cached_property
    def columns(self) -> Array:
        """The indices into `by`, flattened, of the variables that the claim has entries for."""
        whole = np.arange(self.by.size).reshape(self.by.shape)
        return np.asarray(whole[self.key[len(self.base.shape) :]]).reshape(-1)

    @cached_property
    def work(self) -> int:
        """About how much a point takes, as `operations_of` counts."""
        return operations_of([self.truth, self.yours, self.base])

    @property
    def width(self) -> int:
        """The number of variables in the claim: entry k is that of element k // width by variable k % width."""
        return len(self.columns)


def operations_of(nodes: Sequence[Node]) -> int:
    """Return an estimate of the work of the nodes at a point: one unit an element, or a product of a contraction.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> operations_of([matmul(leaf((3, 4)), leaf((4, 5)))])
    92
    """
    return sum(products(n) if _is_contraction(n) else max(n.size, _of_matrices(n)) for n in scheduled(nodes))


def _of_matrices(node: Node) -> int:
    """Return about how much the elimination, or the singular values, of a node's matrices takes.

    A multiplication there is quick: a sixteenth of what a number takes, and singular values take eight times as many.
    """
    if node.op not in OPERATIONS or OPERATIONS[node.op].kind != "matrix":
        return 0
    return max(a.size for a in node.args) * node.args[0].shape[-1] // (2 if node.op == "cofactors" else 16)


def _is_contraction(node: Node) -> bool:
    return node.op in OPERATIONS and OPERATIONS[node.op].kind == "contraction"


_NODES = ("base", "by", "truth", "yours")


def _unpickled(
    whole: Graph,
    text: str,
    said: str,
    key: tuple[int | slice, ...],
    cotangents: tuple[str, ...],
    kinds: Mapping[str, str],
) -> Case:
    outputs = {**whole.outputs}
    base, by, truth, yours = (outputs.pop(f"\0{part}") for part in _NODES)
    return Case(text, said, replace(whole, outputs=outputs), base, by, key, truth, yours, cotangents, kinds)


def cut(base: Node, by: Node) -> tuple[Node, Node]:
    """Return `base` with a leaf in the place of `by`, and that leaf."""
    if by.is_leaf:
        return base, by
    stand_in = leaf(by.shape)
    return substituted([base], {by: stand_in})[0], stand_in


def derivative(graph: Graph, base: Node, by: Node) -> Node:
    """Return ∂base/∂by, of the shape of base followed by that of by, which is a leaf or an intermediate.

    >>> x = leaf()
    >>> h = 2 * x
    >>> derivative(Graph.of({"x": x}, {}), h**2, h)
    mul(const, mul), shape ()
    """
    y, x = cut(base, by)
    inputs = {**graph.inputs, "\0by": x}
    result = jacobian(Graph.of(inputs, {"": y}), ["\0by"]).outputs
    node = next(iter(result.values()), None) or const(0, (*base.shape, *by.shape))
    return node if x is by else substituted([node], {x: by})[0]


def numbers(graph: Graph, points: Named, nodes: Sequence[Node]) -> list[Array]:
    """Return the values of nodes at points as arrays of shape (elements, points)."""
    count = next(iter(points.values())).shape[-1]
    result = values_of(graph, points, nodes)
    return [np.broadcast_to(result[n], (*n.shape, count)).reshape(n.size, count).astype(float) for n in nodes]


def term_numbers(graph: Graph, points: Named, nodes: Sequence[Node]) -> list[Array]:
    """Return the sums of the absolute terms of the nodes' values, as arrays of shape (elements, points)."""
    count = next(iter(points.values())).shape[-1]
    sizes = term_sizes(graph, points, nodes)
    return [np.broadcast_to(s, (*n.shape, count)).reshape(n.size, count) for n, s in zip(nodes, sizes, strict=True)]
