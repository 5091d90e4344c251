"""Channels that are shuffled, dropped, normalised over their neighbours, or multiplied by one another."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from gradcli.pytorch.calls import called
from gradcli.pytorch.names import calling
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.operations.products import einsum
from gradcli.pytorch.operations.random import dropped


@partial(calling, name="channel_shuffle")
def channel_shuffle(input: Any, groups: int) -> Any:
    """Return channels taken from each group in turn."""
    count, channels, *rest = input.shape
    result = input.view(count, groups, channels // groups, *rest).transpose(1, 2).reshape(input.shape)
    return called(result, "ChannelShuffleBackward0")


@partial(calling, name="pixel_unshuffle")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Return the elements of blocks as channels: the inverse of `pixel_shuffle`."""
    *outer, channels, rows, columns = input.shape
    k, first = downscale_factor, len(outer)
    parts = input.view(*outer, channels, rows // k, k, columns // k, k)
    order = (*range(first + 1), first + 2, first + 4, first + 1, first + 3)
    result = parts.permute(*order).reshape(*outer, channels * k * k, rows // k, columns // k)
    return called(result, "PixelUnshuffleBackward0")


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Leave out whole channels of sequences."""
    return _of_channels(1, input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Leave out whole channels of volumes."""
    return _of_channels(3, input, p, training, inplace)


def _of_channels(axes: int, input: Any, p: float, training: bool, inplace: bool) -> Any:
    batch = input if input.dim() == axes + 2 else input.unsqueeze(0)
    result: Any = F.drop(batch, p, training, inplace, (*batch.shape[:2], *(1,) * axes))
    return result if batch is input else result.squeeze(0)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Replace numbers so that mean and variance stay: Klambauer et al., "Self-normalizing neural networks" (2017)."""
    if not training or not p:
        return input
    lowest = 1.7580993408473766
    scale = 1 / math.sqrt((lowest**2 * p + 1) * (1 - p))
    kept = dropped(input.new_ones(input.shape), p) * (1 - p)
    return input * (kept * scale) + ((kept - 1) * (lowest * scale) + lowest * scale * p)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Return numbers over a power of the mean square of the channels around."""
    squares = input.pow(2).unsqueeze(1)
    ends = (0, 0) * (input.dim() - 2) + (size // 2, (size - 1) // 2)
    rows = F.pad(squares.flatten(3) if input.dim() > 3 else squares, (0, 0, *ends[-2:]))
    means = F.avg_pool2d(rows, (size, 1), stride=1).squeeze(1).view(input.shape)
    return input / (means * alpha + k).pow(beta)


@partial(calling, name="bilinear")
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Return the products x₁ᵀ W x₂ for each matrix W of the weights."""
    result = called(einsum("...i,oij,...j->...o", input1, weight, input2), "ViewBackward0")
    return result if bias is None else result + bias


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """Sample by Gumbel's trick: Jang et al., "Categorical reparameterization with Gumbel-softmax" (2017)."""
    noise = -logits.detach().clone().exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return logits.detach().new_zeros(logits.shape).scatter(dim, index, 1.0) - soft.detach() + soft
