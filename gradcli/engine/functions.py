"""Functions on arrays that NumPy does not have, under the names of operations; like NumPy's, they take `out`.

The error function and the gamma function come from the standard library, one element at a time, or from SciPy
(extra `special`) where it is installed; digamma from SciPy or SymPy's arbitrary precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from gradcli.engine.polygamma import MAX_ORDER, hurwitz_zeta, polygamma_of_order
from gradcli.graph.array import Array


def into(out: Array | None, result: Array) -> Array:
    """Return the result, in the array `out` if there is one."""
    if out is None:
        return result
    out[...] = result
    return out


def identity(x: Array, out: Array | None = None) -> Array:
    """Return a copy, also of booleans, which `np.positive` does not take."""
    return into(out, np.copy(x) if out is None else x)


def where(condition: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """Return `a` where the condition holds and `b` elsewhere."""
    if out is None:
        return np.where(condition, a, b)
    np.copyto(out, b)
    np.copyto(out, a, where=condition)
    return out


def clamp(x: Array, low: Array, high: Array, out: Array | None = None) -> Array:
    """Return x within bounds.  A zero at a bound keeps its sign; with `np.clip` that depends on the memory layout."""
    return np.minimum(high, np.maximum(low, x), out=out)


def sign(x: Array, out: Array | None = None) -> Array:
    """Return -1, 0 or 1; 0 for NaN."""
    result = np.sign(x, out=out)
    np.copyto(result, 0, where=np.isnan(result))
    return result


def softplus(x: Array, out: Array | None = None) -> Array:
    """Return log(1 + exp(x)), without overflow."""
    return np.asarray(np.logaddexp(0, x, out=out))


def digamma(x: Array, out: Array | None = None) -> Array:
    """Return the derivative of log Γ."""
    return polygamma(np.zeros(1), x, out)


def polygamma(n: Array, x: Array, out: Array | None = None) -> Array:
    """Return the n-th derivative of digamma."""
    return with_out(_of_orders)(n, x, out=out)


def zeta(x: Array, q: Array, out: Array | None = None) -> Array:
    """Return Hurwitz's zeta function."""
    return with_out(hurwitz_zeta)(np.asarray(x, float), np.asarray(q, float), out=out)


def _of_orders(n: Array, x: Array) -> Array:
    """Return polygamma of each order; nan where an order is negative, not an integer, or too large."""
    n, x = np.broadcast_arrays(np.asarray(n, float), np.asarray(x, float))
    result = np.full(x.shape, np.nan)
    for order in np.unique(n[(n >= 0) & (n <= MAX_ORDER) & (n == np.floor(n))]):
        points = n == order
        at = x[points]
        result[points] = _special("psi", _digamma)(at) if order == 0 else polygamma_of_order(int(order), at)
    return result


@cache
def _special(name: str, fallback: Callable[..., float]) -> Callable[..., Array]:
    """Return SciPy's function where SciPy is installed, the scalar function over arrays where not."""
    try:
        import scipy.special
    except ImportError:
        return with_out(np.vectorize(_with_poles(name, fallback), otypes=[float]))
    if name == "gammaln":
        return with_out(_scipy_lgamma)
    function: Callable[..., Array] = getattr(scipy.special, name)
    return function


def _of_one(name: str, fallback: Callable[[float], float]) -> Callable[..., Array]:
    return lambda x, out=None: _special(name, fallback)(x, out=out)


erf, erfc = _of_one("erf", math.erf), _of_one("erfc", math.erfc)
gamma = _of_one("gamma", math.gamma)  # nan at its poles
lgamma = _of_one("gammaln", math.lgamma)  # log|Γ(x)|; inf at the poles


def with_out(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the function with an argument `out`."""

    def call(*args: Array, out: Array | None = None) -> Array:
        return into(out, function(*args))

    return call


def _scipy_lgamma(x: Array) -> Array:
    import scipy.special

    # SciPy's is inf at 1e-310, and -inf at -inf.
    size = np.abs(x)
    return np.asarray(np.where(size < 1e-300, -np.log(size), np.where(size == np.inf, size, scipy.special.gammaln(x))))


def _with_poles(name: str, function: Callable[..., float]) -> Callable[..., float]:
    def at(*args: float) -> float:
        try:
            return function(*args)
        except (ValueError, ZeroDivisionError):  # a pole, or outside of the domain
            if name == "gammaln":
                return math.inf
            return math.copysign(math.inf, args[-1]) if args[-1] == 0 else math.nan
        except OverflowError:
            return math.copysign(math.inf, args[-1]) if name == "gamma" else math.inf

    return at


def _digamma(x: float) -> float:
    import sympy

    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return -math.copysign(math.inf, x) if x == 0 else math.nan
    if not math.isfinite(x):
        return x
    return float(sympy.digamma(sympy.Float(x, 30)).evalf(20))
