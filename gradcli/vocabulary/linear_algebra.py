"""Names of linear algebra."""

from __future__ import annotations

from gradcli.graph import construct, matrices
from gradcli.graph.einsum import einsum
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
    if len(x.shape) == 1:
        return construct.from_diagonal(x, x.shape * 2)
    construct.check_matrix("diag", x)
    return construct.diagonal(x)


@named("det")
def _det(x: Node) -> Node:
    return matrices.det(x)


@named("inv", "inverse")
def _inv(x: Node) -> Node:
    return matrices.inv(x)


@named("solve")
def _solve(a: Node, b: Node) -> Node:
    return matrices.solve(a, b)


@named("cross")
def _cross(a: Node, b: Node, axis: int = -1) -> Node:
    return matrices.cross(a, b, axis)


@named("kron")
def _kron(a: Node, b: Node) -> Node:
    return matrices.kron(a, b)


@named("triu")
def _triu(x: Node, diagonal: int = 0) -> Node:
    return matrices.triangle("triu", x, diagonal)


@named("tril")
def _tril(x: Node, diagonal: int = 0) -> Node:
    return matrices.triangle("tril", x, diagonal)


@named("einsum", methods=())
def _einsum(subscripts: str, *operands: Node) -> Node:
    return einsum(subscripts, *operands)
