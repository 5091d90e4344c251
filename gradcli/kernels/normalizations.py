"""Batch and layer normalization, and what they pass on, with the roundings of PyTorch's kernels.

Source: the numbers of PyTorch on a processor with AVX2, in one thread.  Operands that are not there are 1 and 0, which
change no digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.kernels.moments import moments, of_channels
from gradcli.kernels.rounding import Array, fused
from gradcli.kernels.sums import LANES, in_order, products_in_order, sum_along


class Batch:
    """A call of batch normalization: at which place which operand is, and what it is told."""

    def __init__(self, given: dict[str, Any], shapes: Any) -> None:
        *self.places, self.training, self.eps = given.values()
        self.reads, self.passes = (0, *self.places[:3]), (0, *self.places[2:])

    def _operands(self, arrays: Sequence[Array]) -> list[Any]:
        """Return the mean, the variance, the weight and the bias, as far as they are there and are read."""
        own = [None if i is None else arrays[i] for i in self.places]
        return [arrays[0].dtype.type(k in (1, 2)) if a is None else a[:, 0] for k, a in enumerate(own)]

    def _statistics(self, x: Array, mean: Array, variance: Any) -> tuple[Array, Array]:
        """Return each channel's mean, and 1 over the root of its variance."""
        if self.training:
            mean, squares = of_channels(x)
            variance = squares / x.dtype.type(x.size // x.shape[1])
        return mean, (1 / np.sqrt(variance.astype(np.float64) + self.eps)).astype(x.dtype)

    def forward(self, *arrays: Array) -> Array:
        """Return x·α + β, with one rounding."""
        x, (mean, variance, weight, bias) = arrays[0][..., 0], self._operands(arrays)
        if self.training:
            mean, inverse = self._statistics(x, mean, variance)
        else:
            inverse = 1 / np.sqrt(variance + x.dtype.type(self.eps))
        scale = inverse * weight
        shift = fused(-mean, scale, bias)
        return fused(x, _channels(scale, x), _channels(shift, x))[..., None]

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to each operand, given the operands, the result and its gradient."""
        x, g, (mean, variance, weight, _) = arrays[0][..., 0], arrays[-1][..., 0], self._operands(arrays)
        mean, inverse = self._statistics(x, mean, variance)
        far = x - _channels(mean, x)
        total, products = _of_channels(g), _of_channels(far, g)
        found = self._centred(x, g, far, total, products, inverse) if self.training else g
        found = found * _channels(inverse, x) * _channels(np.broadcast_to(weight, mean.shape), x)
        passed = zip(self.passes, (found, products * inverse, total), strict=True)
        return {i: a.astype(x.dtype)[..., None] for i, a in passed if i is not None}

    @staticmethod
    def _centred(x: Array, g: Array, far: Array, total: Array, products: Array, inverse: Array) -> Array:
        """Return a gradient without its mean, and without its share along what differs from the mean."""
        count = x.dtype.type(x.size // x.shape[1])
        slope = _channels(products.astype(x.dtype) * inverse * inverse / count, x)
        rest = g - _channels((total / count).astype(x.dtype), x)
        found = fused(-far, slope, rest)
        if x.ndim == 2 and (left := x.shape[1] % LANES[x.dtype]):  # columns that fill no vector
            found[:, -left:] = (rest - far * slope)[:, -left:]
        return found


def _channels(a: Array, x: Array) -> Array:
    """Return an array of channels in the shape that goes with a batch."""
    return a.reshape(-1, *(1,) * (x.ndim - 2))


def _of_channels(a: Array, b: Array | None = None) -> Array:
    """Return the sums over all but the channels, of an array or of products."""
    if a.ndim > 2:
        parts = (a if b is None else a * b).reshape(*a.shape[:2], -1, 1)
        return in_order(sum_along(2, parts)[..., 0, 0].astype(np.float64))
    return in_order(a) if b is None else products_in_order(a, b)


class Layer:
    """A call of layer normalization: over axes of this shape, and at which place which operand is."""

    def __init__(self, given: dict[str, Any], shapes: Any) -> None:
        self.shape, self.weight, self.bias, self.eps = given.values()
        self.reads, self.passes = (0, self.weight), (0, self.weight, self.bias)

    def _statistics(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the rows, with the axis of points, their means, and 1 over the roots of their variances."""
        rows = x.reshape(-1, math.prod(self.shape), 1)
        mean, variance = (a[:, None, None] for a in moments(rows[..., 0]))
        return rows, mean, 1 / np.sqrt(variance + x.dtype.type(self.eps))

    def forward(self, *arrays: Array) -> Array:
        """Return what differs from the mean over the root of the variance, scaled and shifted with one rounding."""
        rows, mean, inverse = self._statistics(arrays[0])
        own = ((1, self.weight), (0, self.bias))
        scale, shift = (rows.dtype.type(n) if i is None else arrays[i].reshape(-1, 1) for n, i in own)
        return fused((rows - mean) * inverse, scale, shift).reshape(arrays[0].shape)

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to each operand, given the operands, the result and its gradient."""
        rows, mean, inverse = self._statistics(arrays[0])
        g, kind = arrays[-1].reshape(rows.shape), rows.dtype.type
        weight = None if self.weight is None else np.broadcast_to(arrays[self.weight].reshape(-1, 1), rows.shape)
        products = sum_along(1, g, by=rows) if weight is None else sum_along(1, g * rows, by=weight)
        total, share = sum_along(1, g, by=weight), kind(1) / kind(rows.shape[1])
        slope = fused(total, mean, -products) * inverse * inverse * inverse * share
        constant = fused(-slope, mean, -(total * inverse * share))
        steep = inverse * g if weight is None else inverse * g * weight
        passed = {0: (fused(slope, rows, steep) + constant).reshape(arrays[0].shape)}
        if self.weight is not None:
            passed[self.weight] = products_in_order(g, fused(inverse, rows, -mean * inverse)).reshape(*self.shape, 1)
        if self.bias is not None:
            passed[self.bias] = in_order(g).reshape(*self.shape, 1)
        return passed
