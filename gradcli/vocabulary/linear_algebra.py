"""Names of products of matrices."""

from __future__ import annotations

from gradcli.graph import construct
from gradcli.graph.node import Node
from gradcli.vocabulary.register import named


@named("matmul", "mm", "dot", "mv", "bmm")
def _matmul(a: Node, b: Node) -> Node:
    return construct.matmul(a, b)


@named("outer")
def _outer(a: Node, b: Node) -> Node:
    return construct.outer(a, b)


@named("trace")
def _trace(x: Node) -> Node:
    return construct.trace(x)


@named("diag")
def _diag(x: Node) -> Node:
    return construct.from_diagonal(x, x.shape * 2) if len(x.shape) == 1 else construct.diagonal(x)
