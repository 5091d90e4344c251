"""Batch and layer normalization, and what they pass on, in the order of PyTorch's kernels.

Source: the numbers of PyTorch on a processor with AVX2, in one thread.  Of a batch of vectors the sums go down the rows
one by one; of images they are double sums of each channel.  Layer normalization has the moments of `moments`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.kernels.rounding import fused
from gradcli.kernels.sums import LANES, in_lanes, moments

Array = np.ndarray[Any, Any]


def _decoded(settings: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return how a call of the vocabulary is made of its operands, and of Python numbers."""
    return [*settings[0]], dict(settings[1])


@dataclass(frozen=True)
class Batch:
    """A call of batch normalization: at which place which operand is, and what it is told."""

    mean: int | None
    spread: int | None
    weight: int | None
    bias: int | None
    training: bool
    eps: float

    @classmethod
    def of(cls, settings: Any) -> Batch | None:
        """Return the call of a recipe; None for a node of a gradient, whose settings are others."""
        if len(settings) != 2:
            return None
        given, named = _decoded(settings)
        mean, spread, weight, bias = (value if kind == "operand" else None for kind, value in given[1:5])
        return cls(mean, spread, weight, bias, given[5][1], named["eps"][3])

    def forward(self, *arrays: Array) -> Array:
        """Return x·α + β, with one rounding."""
        x = arrays[0][..., 0]
        if self.training:
            mean, inverse = self._inverse(x)
        else:
            assert self.mean is not None
            assert self.spread is not None
            mean, spread = arrays[self.mean][:, 0], arrays[self.spread][:, 0]
            inverse = 1 / np.sqrt(spread + x.dtype.type(self.eps))
        scale = inverse if self.weight is None else inverse * arrays[self.weight][:, 0]
        shift = fused(-mean, scale, 0 if self.bias is None else arrays[self.bias][:, 0])
        return fused(x, _channels(scale, x), _channels(shift, x))[..., None]

    def _inverse(self, x: Array) -> tuple[Array, Array]:
        """Return each channel's mean, and 1 over the root of its variance."""
        mean, squares = statistics(x)
        variance = (squares / x.dtype.type(x.size // x.shape[1])).astype(np.float64)
        return mean, (1 / np.sqrt(variance + self.eps)).astype(x.dtype)

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to each operand, given the operands, the result and its gradient."""
        x, g = arrays[0][..., 0], arrays[-1][..., 0]
        if self.training:
            mean, inverse = self._inverse(x)
        else:
            assert self.mean is not None
            assert self.spread is not None
            mean = arrays[self.mean][:, 0]
            inverse = (1 / np.sqrt(arrays[self.spread][:, 0].astype(np.float64) + self.eps)).astype(x.dtype)
        far = x - _channels(mean, x)
        total, products = _of_channels(g), _of_channels(far, g)
        found = g
        if self.training:
            count, kind = x.size // x.shape[1], x.dtype.type
            share = products.astype(x.dtype) * inverse * inverse / kind(count)
            even = (total / count).astype(x.dtype)
            slope, rest = _channels(share, x), g - _channels(even, x)
            found = fused(-far, slope, rest)
            if x.ndim == 2 and (left := x.shape[1] % LANES[x.dtype]):  # columns that fill no vector
                found[:, -left:] = (rest - far * slope)[:, -left:]
        found = found * _channels(inverse, x)
        if self.weight is not None:
            found = found * _channels(arrays[self.weight][:, 0], x)
        passed = {0: found[..., None]}
        if self.weight is not None:
            passed[self.weight] = (products * inverse).astype(x.dtype)[:, None]
        if self.bias is not None:
            passed[self.bias] = total.astype(x.dtype)[:, None]
        return passed


def statistics(x: Array) -> tuple[Array, Array]:
    """Return the mean of each channel of a batch, and the sum of the squares of what differs from it."""
    if x.ndim > 2:
        rows = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
        mean = (_down(rows.astype(np.float64)) / len(rows)).astype(x.dtype)
        return mean, _down(((rows - mean) ** 2).astype(np.float64)).astype(x.dtype)
    mean = _down(x) / x.dtype.type(len(x))
    return mean, _products_down(x - mean, x - mean)


def _channels(a: Array, x: Array) -> Array:
    """Return an array of channels in the shape that goes with a batch."""
    return a.reshape(-1, *(1,) * (x.ndim - 2))


def _down(rows: Array) -> Array:
    """Return the sum of rows, one after the other."""
    return np.add.accumulate(rows, axis=0)[-1]  # type: ignore[no-any-return]


def _products_down(a: Array, b: Array) -> Array:
    """Return the sum of products of rows, each added with one rounding."""
    found = np.zeros(a.shape[1], a.dtype)
    for row, other in zip(a, b, strict=True):
        found = fused(row, other, found)
    return found


def _of_channels(a: Array, b: Array | None = None) -> Array:
    """Return the sums over all but the channels, of an array or of products."""
    if a.ndim > 2:
        parts = (a if b is None else a * b).reshape(*a.shape[:2], -1, 1)
        return _down(in_lanes(2, parts)[..., 0, 0].astype(np.float64))
    return _down(a) if b is None else _products_down(a, b)


@dataclass(frozen=True)
class Layer:
    """A call of layer normalization: over how many axes, and at which place which operand is."""

    axes: int
    weight: int | None
    bias: int | None
    eps: float

    @classmethod
    def of(cls, settings: Any, shape: Sequence[int]) -> Layer | None:
        """Return the call of a recipe; None where it is another one."""
        if len(settings) != 2 or not math.prod(shape):
            return None
        given, _ = _decoded(settings)
        weight, bias = (value if kind == "operand" else None for kind, value in given[2:4])
        return cls(len(given[1][1]), weight, bias, given[4][3])

    def forward(self, *arrays: Array) -> Array:
        """Return what differs from the mean over the root of the variance, scaled and shifted with one rounding."""
        x = arrays[0]
        _, _, inverse, far = self._statistics(x)
        found = far * inverse
        scale = None if self.weight is None else arrays[self.weight].reshape(-1)
        if self.bias is not None:
            found = fused(found, found.dtype.type(1) if scale is None else scale, arrays[self.bias].reshape(-1))
        elif scale is not None:
            found = found * scale
        return found.reshape(x.shape)

    def _statistics(self, x: Array) -> tuple[Array, Array, Array, Array]:
        rows = x.reshape(math.prod(x.shape[: x.ndim - 1 - self.axes]), -1)
        mean, variance = moments(rows)
        inverse = 1 / np.sqrt(variance + x.dtype.type(self.eps))
        return rows, mean[:, None], inverse[:, None], rows - mean[:, None]

    @staticmethod
    def _along(a: Array, b: Array | None) -> Array:
        """Return the sum of each row, or of its products with another."""
        return in_lanes(1, a[..., None], by=None if b is None else b[..., None])[..., 0]

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to each operand, given the operands, the result and its gradient."""
        x = arrays[0]
        rows, mean, inverse, _ = self._statistics(x)
        g, kind = arrays[-1].reshape(rows.shape), x.dtype.type
        weight = None if self.weight is None else np.broadcast_to(arrays[self.weight].reshape(-1), rows.shape)
        share = kind(1) / kind(rows.shape[1])
        total, products = self._along(g, weight), self._along(*((g, rows) if weight is None else (g * rows, weight)))
        slope = fused(total, mean, -products) * inverse * inverse * inverse * share
        constant = fused(-slope, mean, -(total * inverse * share))
        steep = inverse * g if weight is None else inverse * g * weight
        passed = {0: (fused(slope, rows, steep) + constant).reshape(x.shape)}
        if self.weight is not None:
            passed[self.weight] = _products_down(g, fused(inverse, rows, -mean * inverse)).reshape(
                x.shape[x.ndim - 1 - self.axes :]
            )
        if self.bias is not None:
            passed[self.bias] = _down(g).reshape(x.shape[x.ndim - 1 - self.axes :])
        return passed
