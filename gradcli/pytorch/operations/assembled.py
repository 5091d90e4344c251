"""Tensors assembled of others' elements: products of sets, blocks, and what is written at a mask or at indices."""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement
from itertools import combinations as _combinations
from typing import Any

import numpy as np

from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.tensor import of_array


@function("cartesian_prod")
def cartesian_prod(tensors: Any) -> Any:
    """Return the rows of all combinations of the elements of vectors."""
    if len(tensors) == 1:
        return tensors[0]
    return TORCH["stack"]([x.reshape(-1) for x in TORCH["meshgrid"](*tensors, indexing="ij")], -1)


@function("combinations")
def combinations(input: Any, r: int, with_replacement: bool) -> Any:
    """Return the rows of all choices of r elements of a vector."""
    choose = combinations_with_replacement if with_replacement else _combinations
    indices = np.array([*choose(range(len(input)), r)], np.int64).reshape(-1, r)
    return set_grad_fn_name(input[of_array(indices)], "StackBackward0")


@function("block_diag")
def block_diag(tensors: Any) -> Any:
    """Return matrices along the diagonal of one of zeros."""
    blocks = [x.reshape(1, -1) if x.dim() < 2 else x for x in tensors]
    ends = [*accumulate((b.shape[1] for b in blocks), initial=0)]
    pairs = zip(blocks, ends[:-1], strict=True)
    rows = [call_function("pad", b, (left, ends[-1] - left - b.shape[1]), "constant", 0) for b, left in pairs]
    return set_grad_fn_name(TORCH["cat"](rows), "BlockDiagBackward0")


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


@function("scatter_reduce")
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Return sums, means or extremes of a source's elements at indices; ties share a gradient."""
    is_own = (input.detach().new_zeros(input.shape).scatter(dim, index, 1.0) == 0) | include_self
    own = TORCH["where"](is_own, input, 0)
    if reduce in ("amax", "amin"):
        result = _scattered_extremes(own, is_own, dim, index, src, reduce)
        is_extreme = src == result.gather(dim, index)
        counts = (input == result).to(input.dtype).scatter_add(dim, index, is_extreme.to(input.dtype))
        total = TORCH["where"](input == result, own, 0).scatter_add(dim, index, is_extreme * src)
        # An own element that is not included counts among the ties in PyTorch, too.
        total = result + (total - total.detach()) / counts
    elif reduce == "prod":
        total = TORCH["where"](is_own, input, 1) * _scattered_products(input, dim, index, src)
    else:
        total = own.scatter_add(dim, index, src)
        if reduce == "mean":
            total = total / is_own.to(input.dtype).scatter_add(dim, index, TORCH["ones_like"](src)).detach()
    return set_grad_fn_name(total, "ScatterReduceBackward0")


def _scattered_products(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return the products of a source's elements at indices, and 1 where there is none."""
    at, size = dim % input.dim(), input.shape[dim]
    part = src[tuple(map(slice, index.shape))]
    targets = TORCH["arange"](size).view([-1 if i == at else 1 for i in range(input.dim() + 1)])
    products = TORCH["where"](index.unsqueeze(at) == targets, part.unsqueeze(at), 1).prod(at + 1)
    ends = [n - m for n, m in zip(input.shape, products.shape, strict=True)]
    around = [n for end in ends[::-1] for n in (0, end)]
    return call_function("pad", products, around, "constant", 1) if any(ends) else products


def _scattered_extremes(input: Any, is_own: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    """Return the extremes of a source's elements at indices, and of those of a tensor that are its own."""
    best = np.where(is_own._a, input._a, -np.inf if reduce == "amax" else np.inf)[..., 0]
    indices = np.indices(index.shape)
    indices[dim] = index._a[..., 0]
    extreme = np.maximum if reduce == "amax" else np.minimum
    extreme.at(best, tuple(indices), src._a[tuple(map(slice, index.shape))][..., 0])
    return of_array(best.astype(input._a.dtype))


@function("fill_diagonal_")
def fill_diagonal_(self: Any, fill_value: float, wrap: bool) -> Any:
    """Fill the diagonal of a matrix in place."""
    missing_if(wrap or self.dim() != 2, "Tensor.fill_diagonal_(wrap=True), or of other than 2 axes")
    self.diagonal().fill_(fill_value)
    return self
