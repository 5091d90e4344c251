"""Functions on arrays that NumPy lacks, under the names of the table of operations.

The error function and the gamma function come from the standard library, one element at a time, or from SciPy
(extra `special`) where it is installed; digamma and polygamma from SciPy or SymPy's arbitrary precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def sec(x: Array) -> Array:
    """Return 1/cos(x)."""
    return np.asarray(1 / np.cos(x))


def csc(x: Array) -> Array:
    """Return 1/sin(x)."""
    return np.asarray(1 / np.sin(x))


def cot(x: Array) -> Array:
    """Return cos(x)/sin(x)."""
    return np.asarray(np.cos(x) / np.sin(x))


def sech(x: Array) -> Array:
    """Return 1/cosh(x)."""
    return np.asarray(1 / np.cosh(x))


def relu(x: Array) -> Array:
    """Return max(x, 0)."""
    return np.asarray(np.maximum(x, 0))


def leaky_relu(x: Array, slope: Array) -> Array:
    """Return x where positive, slope·x elsewhere."""
    return np.where(x > 0, x, slope * x)


def sigmoid(x: Array) -> Array:
    """Return 1/(1 + exp(-x)), without overflow and with full relative precision on both sides."""
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)), without overflow."""
    return np.asarray(np.logaddexp(0, x))


def silu(x: Array) -> Array:
    """Return x·sigmoid(x)."""
    return np.asarray(x * sigmoid(x))


def gelu(x: Array) -> Array:
    """Return x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016; PyTorch's default, not the tanh form)."""
    return np.asarray(x * erfc(-x / math.sqrt(2)) / 2)


def erf(x: Array) -> Array:
    """Return the error function."""
    return _special("erf", math.erf)(x)


def erfc(x: Array) -> Array:
    """Return 1 - erf(x)."""
    return _special("erfc", math.erfc)(x)


def gamma(x: Array) -> Array:
    """Return the gamma function; nan at its poles."""
    return _special("gamma", math.gamma)(x)


def lgamma(x: Array) -> Array:
    """Return log|Γ(x)|; inf at the poles."""
    return _special("gammaln", math.lgamma)(x)


def digamma(x: Array) -> Array:
    """Return the derivative of log Γ."""
    return polygamma(np.zeros(1), x)


def polygamma(n: Array, x: Array) -> Array:
    """Return the n-th derivative of digamma."""
    return _special("polygamma", _polygamma)(n, x)


@cache
def _special(name: str, fallback: Callable[..., float]) -> Callable[..., Array]:
    """Return SciPy's function where SciPy is installed, the scalar function over arrays where not."""
    try:
        import scipy.special
    except ImportError:
        return np.vectorize(_with_poles(name, fallback), otypes=[float])
    if name == "polygamma":
        return _scipy_polygamma
    function: Callable[..., Array] = getattr(scipy.special, name)
    return function


def _scipy_polygamma(n: Array, x: Array) -> Array:
    import scipy.special

    # SciPy's polygamma(0, x) is right but slow, and its psi has the poles that PyTorch has.
    return np.asarray(np.where(n == 0, scipy.special.psi(x), scipy.special.polygamma(n, x)))


def _with_poles(name: str, function: Callable[..., float]) -> Callable[..., float]:
    def at(*args: float) -> float:
        try:
            return function(*args)
        except (ValueError, ZeroDivisionError):  # a pole, or outside of the domain
            return math.inf if name == "gammaln" or args[-1] == 0 else math.nan
        except OverflowError:
            return math.inf

    return at


def _polygamma(n: float, x: float) -> float:
    import sympy

    if x <= 0 and x == math.floor(x):
        if n == 0:
            return -math.inf if x == 0 else math.nan
        return math.inf if n % 2 else -math.inf
    if not math.isfinite(x):
        return math.nan if x != math.inf else (math.inf if n == 0 else 0.0)
    return float(sympy.polygamma(int(n), sympy.Float(x, 30)).evalf(20))
