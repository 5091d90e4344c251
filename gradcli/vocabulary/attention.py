"""The name of attention, with PyTorch's signature."""

from __future__ import annotations

from gradcli.errors import InputError
from gradcli.graph.calls import call_with
from gradcli.graph.node import Node
from gradcli.graph.shapes import broadcast_shapes
from gradcli.vocabulary.register import flag, named


@named("scaled_dot_product_attention", methods=())
def _attention(
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Node | None = None,
    enable_gqa: bool = False,
) -> Node:
    if dropout_p:
        raise InputError("`scaled_dot_product_attention` is without dropout here", hint="`dropout(x, mask, p)` is one")
    rank = min(len(x.shape) for x in (query, key, value))
    grouped = flag("enable_gqa", enable_gqa)
    fits = rank >= 2 and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    if grouped:
        heads = [x.shape[-3] for x in (query, key, value)] if rank > 2 else [1, 0, 0]
        fits = fits and heads[1] == heads[2] and min(heads) > 0 and heads[0] % heads[1] == 0
    if not fits:
        raise InputError(
            f"queries, keys and values of shapes {query.shape}, {key.shape} and {value.shape} do not fit together",
            hint="queries are (…, queries, size), keys (…, keys, size), and values (…, keys, outputs)",
        )
    if flag("is_causal", is_causal) and attn_mask is not None:
        raise InputError("attention takes `is_causal` or a mask, not both")
    if attn_mask is not None:
        scores = (*query.shape[:-1], key.shape[-2])
        broadcast_shapes([attn_mask.shape, scores])
    return call_with(
        "scaled_dot_product_attention", (is_causal, grouped), (query, key, value), attn_mask=attn_mask, scale=scale
    )
