"""Attention: values weighted by the softmax of products of queries and keys.

Source: A. Vaswani and others, "Attention is all you need" (2017), section 3.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.graph.construct import call, corner, equal, matmul, reduce, reshape, softmax, sum_to, swap, where
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Operation, defined


def _attention(causal: bool, grouped: bool, q: Node, k: Node, v: Node, **known: Node) -> Node:
    k, v = (_of_heads(x, q) if grouped else x for x in (k, v))
    return matmul(_weights(known, causal, q, k), v)


def attention_with_dropout(
    given: Sequence[str], causal: bool, grouped: bool, q: Node, k: Node, v: Node, *rest: Node
) -> Node:
    """Return attention whose weights go through dropout, of its mask and p behind the other arguments."""
    *options, mask, p = rest
    k, v = (_of_heads(x, q) if grouped else x for x in (k, v))
    weights = _weights(dict(zip(given, options, strict=True)), causal, q, k)
    return matmul(Node("dropout", (weights, mask, p), weights.shape, (), weights.dtype), v)


def _of_heads(x: Node, q: Node) -> Node:
    """Return keys or values, each repeated for the queries of a group of heads."""
    axis, count = len(q.shape) - 3, x.shape[-3]
    return take(x, axis, IndexArray.of(np.repeat(np.arange(count), q.shape[axis] // count)))


def _weights(known: Mapping[str, Node], causal: bool, q: Node, k: Node) -> Node:
    """Return the softmax of the scores; 0 where a mask leaves no key, as in PyTorch."""
    scores = _scaled(matmul(q, swap(k)), known, q)
    if causal:
        rows, columns = scores.shape[-2:]
        kept = const(tuple(range(rows)), (rows, 1)) >= const(tuple(range(columns)), (columns,))
        scores = where(kept, scores, const(-math.inf, (), scores.dtype))
    axis = len(scores.shape) - 1
    if (mask := known.get("attn_mask")) is None:
        return softmax("softmax", scores, axis)
    scores = where(mask, scores, const(-math.inf, (), scores.dtype)) if mask.dtype == "bool" else scores + mask
    none = equal(reduce("max", scores, (axis,), "even"), const(-math.inf, (), scores.dtype))
    none = reshape(none, (*none.shape, 1))
    return corner(none, 0, softmax("softmax", corner(none, 0, scores), axis))


def _scaled(scores: Node, known: Mapping[str, Node], q: Node) -> Node:
    """Return the scores, times their scale: by default they are divided by the root of the size of a query."""
    if (scale := known.get("scale")) is not None:
        return scores * scale
    size = q.shape[-1]
    root = math.isqrt(size)
    return scores / (root if root * root == size else call("sqrt", const(size, (), scores.dtype)))


def _attention_pullback(
    g: Node, y: Node, causal: bool, grouped: bool, q: Node, k: Node, v: Node, **known: Node
) -> list[Node] | None:
    if grouped:
        return None
    weights = _weights(known, causal, q, k)
    of_weights = matmul(g, swap(v))
    total = reduce("sum", of_weights * weights, (len(weights.shape) - 1,))
    of_scores = weights * (of_weights - reshape(total, (*total.shape, 1)))
    scaled = _scaled(of_scores, known, q)
    parts = {"attn_mask": of_scores}
    if "scale" in known:
        parts["scale"] = of_scores * matmul(q, swap(k))
    return [
        sum_to(matmul(scaled, k), q.shape),
        sum_to(matmul(swap(scaled), q), k.shape),
        sum_to(matmul(swap(weights), g), v.shape),
        *(sum_to(parts[name], a.shape) if a.dtype != "bool" else const(0, a.shape) for name, a in known.items()),
    ]


def _residuals(causal: bool, grouped: bool, q: Node, k: Node, v: Node, **known: Node) -> list[Node]:
    return [_weights(known, causal, q, k)]


ROWS: dict[str, Operation] = {
    "scaled_dot_product_attention": defined(
        _attention,
        "given",
        "is_causal",
        "enable_gqa",
        pullback=_attention_pullback,
        residuals=_residuals,
        options={"attn_mask": None, "scale": None},
        conditions=(3,),
    )
}
