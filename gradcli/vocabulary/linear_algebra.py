"""Names of linear algebra; where a constructor takes what users type, it is the function itself."""

from __future__ import annotations

from gradcli.graph import construct, matrices
from gradcli.graph.einsum import einsum
from gradcli.graph.node import Node
from gradcli.vocabulary.register import add, named

add(construct.matmul, "matmul", "mm", "dot", "mv", "bmm")
add(construct.outer, "outer")
add(construct.trace, "trace")
add(matrices.det, "det")
add(matrices.inv, "inv", "inverse")
add(matrices.solve, "solve")
add(matrices.kron, "kron")
add(einsum, "einsum", methods=())


@named("diag")
def _diag(x: Node) -> Node:
    if len(x.shape) == 1:
        return construct.from_diagonal(x, x.shape * 2)
    construct.check_matrix("diag", x)
    return construct.diagonal(x)


@named("cross")
def _cross(a: Node, b: Node, axis: int = -1) -> Node:
    return matrices.cross(a, b, axis)


@named("triu")
def _triu(x: Node, diagonal: int = 0) -> Node:
    return matrices.triangle("triu", x, diagonal)


@named("tril")
def _tril(x: Node, diagonal: int = 0) -> Node:
    return matrices.triangle("tril", x, diagonal)
