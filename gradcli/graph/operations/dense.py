"""Dense layers: products with weights that all inputs share, rows of a table of weights, and dropout."""

from __future__ import annotations

import math
from decimal import Decimal

from gradcli.graph.construct import call, corner, equal, matmul, outer, reduce, reshape, sum_to, swap, where
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.einsum import einsum
from gradcli.graph.index_arrays import IndexArray, gather, index_add, known_integers, segment_sum
from gradcli.graph.node import Node, cast, const, is_const
from gradcli.graph.operation import Operation, defined


def _linear(x: Node, weight: Node, *, bias: Node | None = None) -> Node:
    y = matmul(x, swap(weight) if len(weight.shape) > 1 else weight)
    return y if bias is None else y + bias


def _linear_pullback(g: Node, y: Node, x: Node, weight: Node, **bias: Node) -> list[Node] | None:
    if len(weight.shape) == 1:  # of a single output, which has no axis
        return None
    of_weight = outer(g, x) if len(x.shape) == 1 else matmul(swap(_rows(g)), _rows(x))
    return [matmul(g, weight), of_weight, *(sum_to(g, b.shape) for b in bias.values())]


def _rows(x: Node) -> Node:
    """Return an array as a matrix of the vectors along its last axis."""
    return x if len(x.shape) == 2 else reshape(x, (x.size // max(1, x.shape[-1]), x.shape[-1]))


def _bilinear(first: Node, second: Node, weight: Node, *, bias: Node | None = None) -> Node:
    lead = first.shape[:-1]
    y = einsum("ni,oij,nj->no", _rows(first), weight, _rows(second))
    y = reshape(y, (*lead, weight.shape[0]))
    return y if bias is None else y + bias


def _embedding(padding: int | None, ids: Node, weight: Node) -> Node:
    rows = _rows_at(ids, weight)
    if padding is None or (ids.is_constant and padding not in ids.values):
        return rows
    return where(_each_row(equal(ids, padding)), call("detach", rows), rows)


def _rows_at(ids: Node, weight: Node) -> Node:
    """Return the rows of a table.  Integers of formulas are real numbers: what is no row is a row of nan."""
    if ids.is_constant or ids.dtype not in FLOATING:
        return gather(weight, 0, ids)
    count = weight.shape[0]
    mask = equal(reshape(ids, (*ids.shape, 1)), const(tuple(range(count)), (count,)))
    rows = reduce("sum", where(_each_row(mask), weight, 0), (len(ids.shape),))
    none = equal(reduce("sum", where(mask, 1, 0), (len(ids.shape),)), 0)
    return rows + _each_row(corner(none, const(math.nan), const(0, ids.shape)))


def _each_row(x: Node) -> Node:
    """Return numbers, one for each row, so that they broadcast with the rows."""
    return reshape(x, (*x.shape, 1))


def _embedding_pullback(g: Node, y: Node, padding: int | None, ids: Node, weight: Node) -> list[Node] | None:
    known, count = known_integers(ids), weight.shape[0]
    if known is None and ids.dtype in FLOATING:
        return None
    if padding is not None and (known is None or padding in known):
        g = where(_each_row(equal(ids, padding)), 0, g)
    if known is None:
        return [const(0, ids.shape), index_add(g, 0, ids, count)]
    return [
        const(0, ids.shape),
        segment_sum(reshape(g, (ids.size, *weight.shape[1:])), IndexArray.of(known.reshape(-1)), count),
    ]


def _dropout(x: Node, mask: Node, p: Node) -> Node:
    return x * (mask if is_const(p, 1) else cast(cast(mask, p.dtype) / (1 - p), x.dtype))


ROWS: dict[str, Operation] = {
    "linear": defined(_linear, "given", pullback=_linear_pullback, options={"bias": None}),
    "bilinear": defined(_bilinear, "given", options={"bias": None}),
    "embedding": defined(_embedding, "padding_idx", pullback=_embedding_pullback, indices=(0,)),
    # The mask is 1 for each element that is kept, and 0 for the others.
    "dropout": defined(_dropout, options={"p": Decimal("0.5")}),
}
