"""Names of linear algebra; where a constructor takes what users type, it is the function itself."""

from __future__ import annotations

from functools import partial

from gradcli.graph import construct, matrices
from gradcli.graph.calls import call_of
from gradcli.graph.einsum import einsum
from gradcli.graph.node import Node
from gradcli.vocabulary.register import add, named

add(construct.matmul, "matmul", "mm", "dot", "mv", "bmm")
add(construct.outer, "outer")
add(construct.trace, "trace")
add(matrices.det, "det")
add(matrices.cofactors, "cofactors", methods=())
add(matrices.inv, "inv", "inverse")
add(matrices.solve, "solve")
add(matrices.cross, "cross")
add(partial(matrices.triangle, "triu"), "triu")
add(partial(matrices.triangle, "tril"), "tril")
add(einsum, "einsum", methods=())


@named("kron")
def _kron(a: Node, b: Node) -> Node:
    return call_of("kron", (), a, b)


@named("diag")
def _diag(x: Node) -> Node:
    if len(x.shape) == 1:
        return construct.from_diagonal(x, x.shape * 2)
    construct.check_matrix("diag", x)
    return construct.diagonal(x)
