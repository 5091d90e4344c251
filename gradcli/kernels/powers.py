"""Powers as PyTorch has them: a few are products and roots, of others whole vectors have an error of their own.

Source: SLEEF's `powf`, whose pairs of float32 are float64 here, and PyTorch's `PowKernel.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gradcli.kernels.mkl import sqrt
from gradcli.kernels.rounding import Array, wide
from gradcli.kernels.vector_functions import LN2, LN2_HIGH, LN2_LOW, LOG2_E, Vectors, in_loop, polynomial

_PRODUCTS: dict[float, Callable[[Array], Array]] = {
    0: np.ones_like,
    1: np.copy,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    -1: lambda x: 1 / x,
    -2: lambda x: 1 / (x * x),
    0.5: sqrt,
    -0.5: lambda x: 1 / np.sqrt(x),
}


def power(x: Array, exponent: float) -> Array:
    """Return powers by a number, which one by one is a float64.

    >>> power(np.float32([-2, 3]), 3)
    array([-8., 27.], dtype=float32)
    """
    if exponent in _PRODUCTS:
        return _PRODUCTS[exponent](x)
    raised = partial(wide, lambda x: np.power(x, exponent))
    if x.dtype != np.float32:
        return raised(x)
    return in_loop(lambda f, x: _in_vectors(x, np.asarray(exponent, np.float32)) if f is Vectors else raised(x), x)


def powers(x: Array, exponent: Array) -> Array:
    """Return powers by exponents of an array, which may be broadcast."""
    if x.dtype != np.float32 or exponent.dtype != np.float32:
        return wide(np.power, x, exponent) if x.dtype == exponent.dtype == np.float64 else np.power(x, exponent)
    shape = np.broadcast_shapes(x.shape, exponent.shape)
    whole, other = (x, exponent) if x.shape == shape else (exponent, x)
    if whole.shape != shape or other.shape not in (shape, (1,)):  # PyTorch has no whole vectors where axes are repeated
        return wide(np.power, x, exponent)

    def kernel(f: object, *numbers: Array) -> Array:
        own = numbers if whole is x else numbers[::-1]
        return _in_vectors(*own) if f is Vectors else wide(np.power, *own)

    return in_loop(kernel, whole, other)


def _in_vectors(x: Array, exponent: Array) -> Array:
    """Return powers of e of the exponents times logarithms that have some digits more."""
    is_whole = np.rint(exponent) == exponent
    ordinary = np.isfinite(exponent) & np.isfinite(x) & (x != 0) & ((x > 0) | is_whole)
    base = np.where(ordinary, abs(x), np.float32(1))
    found = _exp(np.asarray(exponent, np.float64) * _log(base))
    return np.where(ordinary, np.where((x < 0) & (exponent % 2 == 1), -found, found), np.power(x, exponent))


def _log(x: Array) -> Array:
    """Return logarithms of positive float32 numbers in float64."""
    two = np.frexp(x * np.float32(1 / 0.75))[1] - 1
    mantissa = np.ldexp(x, -two).astype(np.float64)
    ratio = (mantissa - 1) / (mantissa + 1)
    square = ratio * ratio
    series = polynomial(square.astype(np.float32), 0.2403203547, 0.2851126790, 0.4000079930)
    found: Array = LN2 * two + 2 * ratio + square * ratio * (square * series + 0.6666666306)
    return found


def _exp(x: Array) -> Array:
    """Return powers of e of float64 numbers in float32."""
    two = np.rint(x.astype(np.float32) * np.float32(LOG2_E))
    rest = x - two.astype(np.float64) * LN2_HIGH + two * np.float64(np.float32(LN2_LOW))
    slope = polynomial(
        rest.astype(np.float32), 1.3632464688e-3, 8.3659691736e-3, 4.1671082377e-2, 1.6666552424e-1, 0.4999998510
    )
    found: Array = np.ldexp((1 + (rest + rest * rest * slope)).astype(np.float32), two.clip(-300, 300).astype(np.int32))
    return np.where(x.astype(np.float32) < -104, np.float32(0), found)
