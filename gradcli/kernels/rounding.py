"""Where PyTorch's kernels round: products that are added with one rounding, and functions that are rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def fused(a: Any, b: Any, c: Any) -> Array:
    """Return a*b + c, of float32 or else of float64, rounded once.

    In float32 by way of float64, which has room for the product.  In float64 with the errors of the product and of the
    sum, as Dekker's and Knuth's exact transformations give them: "A floating-point technique for extending the
    available precision" (1971).

    >>> x = np.float64(1 + 2**-30)
    >>> fused(x, x, -x * x) == 2**-60, x * x - x * x
    (np.True_, np.float64(0.0))
    """
    kind = np.result_type(a, b)
    if kind.itemsize < 8:
        return (np.asarray(a, np.float64) * b + c).astype(kind)  # type: ignore[no-any-return]
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    from_c = total - product
    lost = lost + ((product - (total - from_c)) + (c - from_c))
    return np.where(np.isfinite(lost), total + lost, total)  # type: ignore[no-any-return]


def _halves(x: Any) -> tuple[Any, Any]:
    high = x * 134217729.0  # 2**27 + 1
    high = high - (high - x)
    return high, x - high


def lerp(start: Any, end: Any, weight: Any) -> Array:
    """Return what lies between arrays, reckoned from the nearer end, as PyTorch reckons it (`lerp_kernel`).

    >>> lerp(np.float32(1), np.float32(3), np.float32(0.25))
    np.float32(1.5)
    """
    way, rest = end - start, weight - start.dtype.type(1)
    return np.where(np.abs(weight) < 0.5, fused(weight, way, start), fused(rest, way, end))[()]


def wide(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return what a function gives in numbers of more digits, rounded once."""
    kind = arrays[0].dtype
    return function(*[a.astype(np.float64 if kind == np.float32 else np.longdouble) for a in arrays]).astype(kind)
