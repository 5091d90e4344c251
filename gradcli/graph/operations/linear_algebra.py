"""Products of matrices."""

from __future__ import annotations

from gradcli.graph.construct import broadcast, diagonal, from_diagonal, matmul, outer, reduce, reshape, sum_to, swap
from gradcli.graph.node import Node
from gradcli.graph.operation import Operation


def _matmul_pullback(g: Node, y: Node, a: Node, b: Node) -> list[Node]:
    if len(a.shape) == len(b.shape) == 1:
        return [g * b, g * a]
    if len(a.shape) == 2 and len(b.shape) == 1:
        return [outer(g, b), matmul(swap(a), g)]
    if len(a.shape) == 1 and len(b.shape) == 2:
        return [matmul(b, g), outer(a, g)]
    return _stacked_matmul_pullback(g, a, b)


def _stacked_matmul_pullback(g: Node, a: Node, b: Node) -> list[Node]:
    if len(b.shape) == 1:
        column = reshape(g, (*g.shape, 1))
        return [column * b, sum_to(reduce("sum", column * a, (len(a.shape) - 2,)), b.shape)]
    if len(a.shape) == 1:
        row = reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        inner = matmul(row, swap(b))
        whole = reshape(a, (*a.shape, 1)) * row
        return [sum_to(reshape(inner, (*inner.shape[:-2], inner.shape[-1])), a.shape), sum_to(whole, b.shape)]
    return [sum_to(matmul(g, swap(b)), a.shape), sum_to(matmul(swap(a), g), b.shape)]


ROWS: dict[str, Operation] = {
    "matmul": Operation("contraction", 2, pullback=_matmul_pullback),
    "outer": Operation(
        "contraction",
        2,
        pullback=lambda g, y, a, b: [matmul(g, b), matmul(a, g)],
        definition=lambda a, b: reshape(a, (*a.shape, 1)) * b,
    ),
    "trace": Operation(
        "whole",
        pullback=lambda g, y, x: [from_diagonal(broadcast(g, (min(x.shape),)), x.shape)],
        definition=lambda x: reduce("sum", diagonal(x), (0,)),
    ),
}
