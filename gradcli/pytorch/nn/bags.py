"""Bags of vectors of a table, each summed up, averaged, or of which the largest numbers are taken: `embedding_bag`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.names import calling
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import Embedding
from gradcli.pytorch.nn.module import Parameter
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.tensor import Tensor, of_array


@partial(calling, name="embedding_bag")
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    if not weight.is_floating_point() and input.is_floating_point():
        warn("old order of embedding_bag")
        input, weight = weight, input
    _check(input, weight, offsets, mode, per_sample_weights)
    ends = _ends(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    numbers, bags = flat._a[..., 0], np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    kept = np.flatnonzero(numbers[: len(bags)] != (-1 if padding_idx is None else padding_idx % len(weight)))
    rows, bags = F.embedding(flat[of_array(kept)], weight, None, max_norm, norm_type), bags[kept]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1)[of_array(kept)].unsqueeze(-1)
    empty = zeros(len(ends) - 1, weight.shape[1], dtype=weight.dtype)
    if mode == "max":
        each = [rows[of_array(np.flatnonzero(bags == k))] for k in range(len(empty))]
        result = stack([x.max(0).values if len(x) else x.sum(0) for x in each]) if each else empty
    else:
        result = empty.index_add(0, of_array(bags), rows)
    if mode == "mean":
        counts = np.maximum(np.bincount(bags, minlength=len(empty)), 1)
        result = result / of_array(counts[:, None].astype(weight._a.dtype))
    return called(result, "EmbeddingBagBackward0")


def _check(input: Any, weight: Any, offsets: Any, mode: str, factors: Any) -> None:
    if factors is not None:
        raise_if(factors.shape != input.shape, "shape of weights in bags", factors.shape, input.shape)
    rank = input.dim()
    raise_if(rank == 2 and offsets is not None, "offsets beside rows", type(offsets))
    raise_if(rank == 1 and not isinstance(offsets, Tensor), "no offsets", type(offsets).__name__.removesuffix("Type"))
    raise_if(rank == 1 and offsets.dim() != 1, "axes of offsets")
    raise_if(factors is not None and mode != "sum", "weights of bags that are not summed up", mode)
    ids = input._a.reshape(-1)
    raise_if(ids.dtype.kind != "i", "dtype of indices in bags", input.type())
    bad = np.flatnonzero((ids < 0) | (ids >= len(weight)))[:1]
    raise_if(bad.size, "index in a bag", *bad, *ids[bad], len(weight))
    other = factors is not None and factors.dtype is not weight.dtype
    raise_if(other, "dtype of weights in bags", weight.type(), other and factors.type())


def _ends(input: Any, offsets: Any, with_last: bool) -> list[int]:
    """Return where each bag begins, and where the last one ends."""
    if input.dim() == 2:
        rows, columns = input.shape
        return [k * columns for k in range(rows + 1)]
    ends: list[int] = offsets._a[..., 0].tolist()
    count = input.numel()
    raise_if(ends and ends[0], "first offset", *ends[:1])
    raise_if(ends and ends[-1] > count, "last offset", count, *ends[-1:])
    missing_if(sorted(ends) != ends, "torch.nn.functional.embedding_bag with offsets that decrease")
    return ends if with_last else [*ends, count]


class EmbeddingBag(Embedding):
    """A table of vectors, of which bags are summed up, averaged, or reduced to the largest numbers."""

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        settings = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        rest = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return embedding_bag(input, self.weight, offsets, *settings, *rest)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, *args: Any, **kwargs: Any) -> Any:
        result = cls(*embeddings.shape, *args, **kwargs)
        result.weight = Parameter(embeddings, requires_grad=not freeze)
        return result
