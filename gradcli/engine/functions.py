"""Functions on arrays that NumPy does not have, under the names of operations; like NumPy's, they take `out`.

The error function and the gamma function come from the standard library, one element at a time, or from SciPy
(extra `special`) where it is installed; digamma and what follows it from SciPy, or from mpmath, which SymPy needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from gradcli.graph.array import Array

MAX_ORDER = 400  # of polygamma
_DIGITS = 30  # with which mpmath computes, and two more for each order: float64 has the first 16
_FEW, _NEAR = 12, 40  # the order of zeta from which on terms so many steps away from the largest do not count
_LOW = 10  # orders for which SciPy's numbers are exact above 0


def polygamma_at(n: int, x: float) -> float:
    """Return ψₙ at a point; at 0 and the negative integers, which are poles, the limit from the right.

    That of digamma is the limit at 0, and nan at the other poles.

    >>> round(polygamma_at(1, -0.5), 9), polygamma_at(1, -3.0), polygamma_at(0, -3.0)
    (8.934802201, inf, nan)
    """
    import mpmath  # SymPy's

    n = int(n)
    if math.isnan(x) or x == math.inf:
        return 0.0 if n and x == math.inf else x
    if x <= 0 and (x == -math.inf or x == math.floor(x)):
        if n:
            return math.inf if n % 2 else -math.inf
        return -math.copysign(math.inf, x) if x == 0 else math.nan
    with mpmath.workdps(_DIGITS + 2 * n):
        z = mpmath.mpf(x)
        if x > 0:
            return float(mpmath.psi(n, z))
        # By reflection: the sum has a term for each step to 0.
        slope = mpmath.pi ** (n + 1) * mpmath.polyval(_cotangent(n), mpmath.cot(mpmath.pi * (z - mpmath.nint(z))))
        return float((-1) ** n * mpmath.psi(n, 1 - z) - slope)


@cache
def _cotangent(order: int) -> list[int]:
    """Return the derivative of cot(x) of an order as a polynomial in cot(x): its coefficients, the highest first."""
    coefficients = [0, 1]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(coefficients)][1:]
        coefficients = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return coefficients[::-1]


def zeta_at(x: float, q: float) -> float:
    """Return Σ 1/(q + k)ˣ over k = 0, 1, 2, …; at the poles, and where the sum has no value, what PyTorch has.

    >>> [round(zeta_at(x, q), 9) for x, q in ((2.0, 1.0), (3.0, -1.5), (2.0, 0.0))]
    [1.644934067, 0.118102026, inf]
    """
    import mpmath

    if x == 1 or (x > 1 and q <= 0 and q == np.floor(q)):
        return math.inf
    if not x > 1 or not abs(q) < math.inf or (q < 0 and x != np.floor(x)):
        return math.nan
    if x == math.inf:
        return float(np.power(q, -x)) if q > 0 else math.nan
    with mpmath.workdps(_DIGITS):
        if q > 0:
            return float(mpmath.zeta(x, q))
        s, z, nearest = int(x), mpmath.mpf(q), round(-q)
        if s <= _FEW:
            return float((-1) ** s * polygamma_at(s - 1, q) / mpmath.factorial(s - 1))
        return float(mpmath.fsum((z + k) ** -s for k in range(max(0, nearest - _NEAR), nearest + _NEAR)))


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
    return _special("psi", _digamma)(x, out=out)


def polygamma(n: Array, x: Array, out: Array | None = None) -> Array:
    """Return the n-th derivative of digamma."""
    return with_out(_of_orders)(n, x, out=out)


def zeta(x: Array, q: Array, out: Array | None = None) -> Array:
    """Return Hurwitz's zeta function."""
    return with_out(_over_arrays(zeta_at))(x, q, out=out)


def _of_orders(n: Array, x: Array) -> Array:
    """Return polygamma of each order; nan where an order is negative, not an integer, or too large."""
    n, x = np.broadcast_arrays(np.asarray(n, float), np.asarray(x, float))
    result = np.full(x.shape, np.nan)
    for order in map(int, np.unique(n[(n >= 0) & (n <= MAX_ORDER) & (n == np.floor(n))])):
        points = n == order
        if not order:
            result[points] = digamma(x[points])
            continue
        quick = points & (x > 0) & (x < np.inf) & (order <= _LOW)
        result[quick] = _special("polygamma", polygamma_at)(order, x[quick])
        result[points & ~quick] = _over_arrays(polygamma_at)(order, x[points & ~quick])
    return result


def _over_arrays(function: Callable[..., float]) -> Callable[..., Array]:
    return np.vectorize(function, otypes=[float])


@cache
def _special(name: str, fallback: Callable[..., float]) -> Callable[..., Array]:
    """Return SciPy's function where SciPy is installed, the scalar function over arrays where not."""
    try:
        import scipy.special
    except ImportError:
        return with_out(_over_arrays(_with_poles(name, fallback)))
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
    return polygamma_at(0, x)
