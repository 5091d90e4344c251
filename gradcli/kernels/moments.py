"""Means and variances in PyTorch's order of addition.

Source: PyTorch's numbers on a processor with AVX2; Welford's and Chan's algorithms as "Algorithms for computing the
sample variance" (1983) has them.
"""

from __future__ import annotations

import numpy as np

from gradcli.kernels.rounding import Array, fused
from gradcli.kernels.sums import LANES, in_order, products_in_order, sums

Moments = tuple[int, Array, Array]  # of how many numbers, their mean, the sum of the squares of what differs from it

_STEP = 16


def moments(x: Array) -> tuple[Array, Array]:
    """Return the means of the rows of a matrix, and of the squares of what differs from them."""
    lanes, (rows, count) = LANES[x.dtype], x.shape
    whole = count // lanes
    vectors = x[:, : whole * lanes].reshape(rows, -1, lanes).swapaxes(0, 1)
    parts = [_welford(vectors[i : i + _STEP], True) for i in range(0, whole, _STEP)]
    while len(parts) > 1:
        pairs = [_together(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(pairs) * 2 :]
    found = _welford(x[:, whole * lanes :].T)
    for number, mean, squares in parts:
        for i in range(lanes):
            found = _together(found, (number, mean[:, i], squares[:, i]))
    return found[1], found[2] / x.dtype.type(count)


def _welford(rows: Array, is_fused: bool = False) -> Moments:
    """Return the moments along the first axis, one number after the other; vectors are not divided by k, but fused."""
    kind = rows.dtype.type
    mean = squares = np.zeros(rows.shape[1:], rows.dtype)
    for k, row in enumerate(rows, 1):
        far = row - mean
        mean = fused(far, kind(1) / kind(k), mean) if is_fused else mean + far / kind(k)
        squares = fused(far, row - mean, squares) if is_fused else squares + far * (row - mean)
    return len(rows), mean, squares


def _together(a: Moments, b: Moments) -> Moments:
    """Return the moments of two sets of numbers together."""
    count = a[0] + b[0]
    if not count:
        return a
    kind = a[1].dtype.type
    share, far = kind(b[0]) / kind(count), b[1] - a[1]
    return count, fused(far, share, a[1]), a[2] + fused(far * far * share, kind(a[0]), b[2])


def of_channels(x: Array) -> tuple[Array, Array]:
    """Return the mean of each channel of a batch, and the sum of the squares of what differs from it.

    Of a batch of vectors the sums go down the rows one by one; of images they are sums of float64.
    """
    if x.ndim == 2:
        mean = in_order(x) / x.dtype.type(len(x))
        return mean, products_in_order(x - mean, x - mean)
    rows = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    mean = (in_order(rows.astype(np.float64)) / len(rows)).astype(x.dtype)
    return mean, in_order(((rows - mean) ** 2).astype(np.float64)).astype(x.dtype)


def variance(axes: tuple[int, ...], less: int, x: Array) -> Array:
    """Return variances in float64: of all elements from their mean on, else as Welford does."""
    count, wider = x.size, x.astype(np.float64)
    if len(axes) == x.ndim - 1:
        squares = in_order((wider - float(sums(axes, x)[0] / x.dtype.type(count))).reshape(-1, 1) ** 2)
    else:
        rows = np.moveaxis(wider, axes, range(len(axes)))
        rows = rows.reshape(-1, *rows.shape[len(axes) :])
        count = len(rows)
        squares = _welford(rows)[2] if x.itemsize == 8 else ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return squares / (count - less)
