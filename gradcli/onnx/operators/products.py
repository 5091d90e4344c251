"""Products of matrices, and sums of products."""

from __future__ import annotations

from gradcli.graph.calls import call_with
from gradcli.graph.construct import matmul, swap
from gradcli.graph.einsum import einsum
from gradcli.graph.matrices import det
from gradcli.graph.node import Node
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import number


@operator("Gemm")
def _gemm(
    a: Node,
    b: Node,
    c: Node | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Node:
    biases = c is None or (c.shape == b.shape[:1] and beta == 1)
    rows = len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[-1]
    if transB and rows and biases and not transA and alpha == 1:
        return call_with("linear", (), (a, b), bias=c)
    product = matmul(swap(a) if transA else a, swap(b) if transB else b)
    product = product if alpha == 1 else number(alpha) * product
    return product if c is None else product + (c if beta == 1 else number(beta) * c)


add(matmul, "MatMul")


add(lambda *x, equation: einsum(equation, *x), "Einsum")
add(det, "Det")
