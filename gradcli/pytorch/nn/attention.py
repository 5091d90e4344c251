"""Attention: `scaled_dot_product_attention` and `MultiheadAttention`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of
from gradcli.graph.node import Node
from gradcli.graph.operations.attention import attention_with_dropout
from gradcli.pytorch.calls import number, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.names import function
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.layers import Linear, _Layer
from gradcli.pytorch.operations.creation import zeros, zeros_like
from gradcli.pytorch.operations.joining import cat
from gradcli.pytorch.operations.random import drawn_mask
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor

_MINUS_INFINITY = -math.inf


def _added(mask: Any, dtype: Any) -> Any:
    """Return a mask as numbers to add to scores: -inf where a boolean mask is true."""
    return mask if mask.is_floating_point() else zeros_like(mask, dtype=dtype).masked_fill(mask, _MINUS_INFINITY)


@function("scaled_dot_product_attention", module=NN)
def scaled_dot_product_attention(
    query: Tensor, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None,
    enable_gqa: bool,
) -> Any:  # fmt: skip
    """Return softmax(query @ key.mT · scale + mask) @ value."""
    inputs = query, key, value
    raise_if(min(x.dim() for x in inputs) < 2, "axes of attention", *(x.dim() for x in inputs))
    raise_if(len({x.dtype for x in inputs}) > 1, "dtypes of attention", *(x.dtype.in_c for x in inputs))
    raise_if(not query.is_floating_point(), "attention to integers", query.dtype.word)
    other = attn_mask is not None and attn_mask.dtype.name not in ("bool", "float32", query.dtype.name)
    raise_if(other, "dtype of an attention mask", *(x.dtype.in_c for x in (attn_mask, query) if other))
    is_fused = _is_fused(query, key, value, attn_mask, dropout_p, enable_gqa)
    raise_if(is_causal and attn_mask is not None and not is_fused, "causal beside a mask")
    if not enable_gqa and len({x.shape[:-2] for x in inputs}) > 1:
        stack = common_shape([x.shape[:-2] for x in inputs])
        query, key, value = (x.expand(*stack, *x.shape[-2:]) for x in inputs)
    if _fits(query, key, value, attn_mask, enable_gqa) and 0 <= dropout_p < 1:
        return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, is_fused)
    # Nothing, an error, or all that is left out: what a mask allows does not matter.
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if attn_mask is None else scores + attn_mask
    result = F.dropout(scores.softmax(-1), dropout_p) @ value
    return set_grad_fn_name(result, "ScaledDotProductFlashAttentionForCpuBackward0") if is_fused else result


def _fits(query: Any, key: Any, value: Any, mask: Any, is_grouped: bool) -> bool:
    """Return whether attention is one step: of stacks of one shape; others are nothing, or errors."""
    stacks = [[*x.shape[:-2]] for x in (query, key, value)]
    if is_grouped and all(stacks):
        heads = stacks[0][-1]
        for stack in stacks[1:]:
            stack[-1] = heads if stack[-1] and not heads % stack[-1] else -1
    lengths = query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    scores = (*stacks[0], query.shape[-2], key.shape[-2])
    ends = scores if mask is None else mask.shape
    fits = len(ends) <= len(scores) and all(n in (1, m) for n, m in zip(ends[::-1], scores[::-1], strict=False))
    return bool(fits and lengths and stacks[0] == stacks[1] == stacks[2] and query.numel() and key.numel())


def _attention(
    q: Any, k: Any, v: Any, mask: Any, p: float, is_causal: bool, scale: float | None, is_grouped: bool, is_fused: bool
) -> Any:  # fmt: skip
    """Return attention as one step, with PyTorch's functions of it."""
    masked = mask is not None or is_causal
    keys, product = "MulBackward1(Transpose(1))", "UnsafeView(Bmm(View(Expand({})),{}))" if q.dim() > 2 else "Mm({},{})"
    scores = product.format("MulBackward1(0)", f"ReshapeAlias(Expand({keys}))" if q.dim() > 2 else keys)
    scores = f"Add({scores},{'_' if mask is None else 3})" if masked else scores
    weights = f"Mul(SafeSoftmax({scores}),_)" if p else f"SafeSoftmax({scores})"
    name = product.format(weights, "View(Expand(2))" if q.dim() > 2 else "2")
    name = "ScaledDotProductFlashAttentionForCpuBackward0" if is_fused else name
    given = tuple(n for n, x in (("attn_mask", mask), ("scale", scale)) if x is not None)
    numbers = [] if scale is None else [number(scale, q.dtype)]
    settings = given, is_causal, is_grouped
    build = partial(call_of, "scaled_dot_product_attention", settings)
    operands = [x for x in (q, k, v, mask) if x is not None]
    if not p:
        return apply("scaled_dot_product_attention", build, operands, settings, name, numbers)
    operands.append(drawn_mask(q, p, (*q.shape[:-1], k.shape[-2])))
    count = len(operands)

    def build_with_dropout(*nodes: Node) -> Node:
        *rest, kept = nodes[:count]
        *scales, share = nodes[count:]
        return attention_with_dropout(*settings, *rest, *scales, kept, share)

    numbers.append(np.array([float(p)]))
    return apply("scaled_dot_product_attention", build_with_dropout, operands, (*settings, "dropout"), name, numbers)


def _is_fused(query: Any, key: Any, value: Any, mask: Any, dropout: float, grouped: bool) -> bool:
    """Return whether PyTorch computes attention in one operation."""
    if query.dim() != 4 or dropout or (mask is not None and mask.requires_grad):
        return False
    same = [0, 3] if grouped else [0, 1, 3]
    return all(query.shape[i] == x.shape[i] for x in (key, value) for i in same)


class NonDynamicallyQuantizableLinear(Linear):
    """The last linear layer of attention, under PyTorch's name."""


class MultiheadAttention(_Layer):
    """Attention in several heads between linear maps of queries, keys and values, and of the result."""

    kdim: Any
    vdim: Any

    def _build(self) -> None:
        size, heads = self.embed_dim, self.num_heads
        raise_if(size <= 0 or heads <= 0, "sizes of attention", size, heads)
        self.kdim, self.vdim = (size if n is None else n for n in (self.kdim, self.vdim))
        self.head_dim = size // heads
        raise_if(size % heads, "heads of attention", about=(size, heads))
        self._qkv_same_embed_dim = self.kdim == size == self.vdim
        separate = {"q_proj_weight": size, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, inputs in separate.items():
            self.register_parameter(name, None if self._qkv_same_embed_dim else self._empty(size, inputs))
        self.register_parameter("in_proj_weight", self._empty(3 * size, size) if self._qkv_same_embed_dim else None)
        self.register_parameter("in_proj_bias", self._empty(3 * size) if self.bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(size, size, self.bias, dtype=self._kind)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, self._empty(1, 1, size) if self.add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        self._check_masks(key_padding_mask, attn_mask)
        is_batched, masks = query.dim() == 3, (key_padding_mask, attn_mask)
        query, key, value = (x.transpose(0, 1) if self.batch_first and is_batched else x for x in (query, key, value))
        _check_ranks(query, key, value, *masks, self.num_heads)
        if not is_batched:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        self._check_sizes(query, key, value)
        raise_if(is_causal and attn_mask is None, "causal without a mask")
        q, k, v = self._heads(*self._projected(query, key, value))
        is_causal = is_causal and key_padding_mask is None and not need_weights  # then the mask is not read
        mask = None if is_causal else self._mask(*masks, query, key, k.shape[1])
        if need_weights:
            output, weights = self._weighted(q, k, v, mask)
        else:
            output, weights = self._without_weights(q, k, v, mask, is_causal), None
        length, batch, size = query.shape
        output = F.linear(output.reshape(length * batch, size), self.out_proj.weight, self.out_proj.bias)
        output = output.view(length, batch, size)
        if weights is not None:
            weights = weights.view(batch, self.num_heads, length, -1)
            weights = weights.mean(1) if average_attn_weights else weights
        if not is_batched:
            return output.squeeze(1), weights if weights is None else weights.squeeze(0)
        return output.transpose(1, 0) if self.batch_first else output, weights

    def _check_masks(self, padding: Any, mask: Any) -> None:
        for name, each in (("key_padding_mask", padding), ("attn_mask", mask)):
            other = each is not None and each.dtype.name != "bool" and not each.is_floating_point()
            raise_if(other, "dtype of a mask of attention", name)
        if padding is not None and mask is not None and padding.dtype != mask.dtype:
            warn("masks of attention of two dtypes")

    def _check_sizes(self, query: Any, key: Any, value: Any) -> None:
        raise_if(query.shape[-1] != self.embed_dim, "size of attention", self.embed_dim, query.shape[-1])
        axes = 3 if self._qkv_same_embed_dim else 2
        raise_if(key.shape[:axes] != value.shape[:axes], "sizes of keys and values", key.shape, value.shape)

    def _projected(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the linear maps of queries, keys and values."""
        weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = map(F.linear, inputs, weights, biases)
        if self.bias_k is not None:
            k, v = (cat([x, b.repeat(1, x.shape[1], 1)]) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        return q, k, v

    def _heads(self, *inputs: Any) -> tuple[Any, ...]:
        """Return tensors (length, batch, size) as (batch · heads, length, size of a head)."""
        q, k, v = (
            x.contiguous().view(len(x), x.shape[1] * self.num_heads, self.head_dim).transpose(0, 1) for x in inputs
        )
        if self.add_zero_attn:
            k, v = (cat([x, zeros(len(x), 1, self.head_dim, dtype=x.dtype)], 1) for x in (k, v))
        return q, k, v

    def _mask(self, padding: Any, mask: Any, query: Any, key: Any, length: int) -> Any:
        """Return both masks as one that is added to the scores of all heads; what is beside the keys is not masked."""
        batch = query.shape[1]
        if mask is not None:
            expected = (len(query), len(key)) if mask.dim() == 2 else (batch * self.num_heads, len(query), len(key))
            raise_if(mask.shape != expected, "shape of an attention mask", mask.dim(), mask.shape, expected)
            mask = _added(mask, query.dtype)
            mask = F.pad(mask, (0, length - len(key))) if length > len(key) else mask
            mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
        if padding is None:
            return mask
        padding = _added(padding if padding.dim() == 2 else padding.unsqueeze(0), query.dtype)
        padding = F.pad(padding, (0, length - len(key))) if length > len(key) else padding
        for axis, size in enumerate((batch, length)):
            raise_if(padding.shape[axis] != size, "shape of a padding mask", axis, size, padding.shape[axis])
        padding = padding.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        padding = padding.reshape(batch * self.num_heads, 1, length)
        return padding if mask is None else mask + padding

    def _weighted(self, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
        """Return the values weighted by attention, and the weights."""
        scores = (q * math.sqrt(1.0 / self.head_dim)).bmm(k.transpose(-2, -1))
        weights = (scores if mask is None else mask + scores).softmax(-1)
        weights = F.dropout(weights, self.dropout, self.training)
        return weights.bmm(v).transpose(0, 1), weights

    def _without_weights(self, q: Any, k: Any, v: Any, mask: Any, is_causal: bool) -> Any:
        """Return the weighted values alone, by `scaled_dot_product_attention`: of (length, batch, heads, head size)."""
        q, k, v = (x.contiguous().view(-1, self.num_heads, *x.shape[1:]) for x in (q, k, v))
        if mask is not None:
            mask = mask.unsqueeze(0) if len(mask) == 1 else mask.view(-1, self.num_heads, *mask.shape[1:])
        output = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0, is_causal)
        return output.permute(2, 0, 1, 3)


def _check_ranks(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> None:
    rank = query.dim()
    ranks = rank, key.dim(), value.dim()
    raise_if(rank not in (2, 3) or {*ranks} != {rank}, "ranks of queries, keys and values", *ranks)
    raise_if(padding is not None and padding.dim() != rank - 1, "rank of a padding mask", rank - 1)
    shape = None if mask is None else tuple(mask.shape)
    of_heads = shape is not None and rank == 2 and len(shape) == 3 and shape != (heads, len(query), len(key))
    raise_if(of_heads or (shape and len(shape) not in (2, 3)), "rank of an attention mask", shape)
