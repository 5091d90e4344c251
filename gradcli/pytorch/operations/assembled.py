"""Tensors assembled of others' elements: blocks, and what is written at a mask or on a diagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.tensor import Tensor, as_sequence, of_array


@function("block_diag")
def block_diag(tensors: Any) -> Any:
    """Return matrices along the diagonal of one of zeros."""
    blocks = [x.reshape(1, -1) if x.dim() < 2 else x for x in tensors]
    widths = [b.shape[1] for b in blocks]
    ends = [(sum(widths[:i]), sum(widths[i + 1 :])) for i in range(len(blocks))]
    rows = [
        TORCH["cat"]([b.new_zeros(len(b), left), b, b.new_zeros(len(b), right)], 1)
        for b, (left, right) in zip(blocks, ends, strict=True)
    ]
    return set_grad_fn_name(TORCH["cat"](rows), "BlockDiagBackward0")


def _at_least(rank: int) -> Callable[..., Any]:
    """Return tensors with as many axes at least, as NumPy adds them."""

    def one(x: Any) -> Any:
        x = x.reshape(1) if not x.dim() else x
        x = x.unsqueeze(0) if rank > 1 and x.dim() == 1 else x
        return x.unsqueeze(-1) if rank > 2 and x.dim() == 2 else x

    def function(tensors: Any) -> Any:
        xs = as_sequence(tensors)
        return one(xs[0]) if len(tensors) == 1 and isinstance(tensors[0], Tensor) else tuple(map(one, xs))

    return function


for _rank in (1, 2, 3):
    function(f"atleast_{_rank}d")(_at_least(_rank))
function("positive")(lambda input: input)
function("conj", "resolve_conj", "resolve_neg")(lambda input: input)
function("is_nonzero")(lambda input: bool(input))


@function("masked_scatter")
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Return a tensor with the elements of another one, in their order, where a mask is true."""
    full = np.broadcast_to(mask._a[..., 0], np.broadcast_shapes(mask.shape, input.shape))
    count = int(full.sum())
    raise_if(count > source.numel(), "source of a masked_scatter")
    order = of_array(np.maximum(np.cumsum(full.reshape(-1)) - 1, 0).reshape(full.shape))
    values = source.reshape(-1)[order] if source.numel() else input
    return set_grad_fn_name(TORCH["where"](of_array(full.copy()), values, input), "MaskedScatterBackward0")


@function("fill_diagonal_")
def fill_diagonal_(self: Any, fill_value: float, wrap: bool) -> Any:
    """Fill the diagonal of a matrix in place."""
    missing_if(wrap or self.dim() != 2, "Tensor.fill_diagonal_(wrap=True), or of other than 2 axes")
    self.diagonal().fill_(fill_value)
    return self
