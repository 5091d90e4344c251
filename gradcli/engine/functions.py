"""Functions on arrays that NumPy does not have, under the names of operations; like NumPy's, they take `out`.

The error function and the gamma function come from the standard library, one element at a time, or from SciPy
(extra `special`) where it is installed; digamma from SciPy or SymPy's arbitrary precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np

from gradcli.graph.array import Array

MAX_ORDER = 400  # beyond it, terms of the sum underflow
_FEW = 12  # from this order on, terms 40 steps away from the largest do not count
_NEAR = 40
_LOW = 10
_TINY = 1e-300  # below it, float64 loses digits
_NOTHING = 1e-18  # of a sum
_FACTORIALS = 171  # that float64 has room for
# B₂ₖ/(2k)!, the coefficients of Euler and Maclaurin's sum.
_COEFFICIENTS = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
]  # fmt: skip


def polygamma_of_order(n: int, x: Array) -> Array:
    """Return ψₙ at points; at 0 and the negative integers, which are poles, the limit from the right.

    >>> polygamma_of_order(1, np.array([1.0, -0.5])).round(9)
    array([1.64493407, 8.9348022 ])
    >>> polygamma_of_order(171, np.array([100.0, np.inf]))  # 171! itself is beyond float64
    array([1.51581242e-35, 0.00000000e+00])
    """
    sign = 1.0 if n % 2 else -1.0
    result = np.full(x.shape, np.nan)
    pole = (x <= 0) & (x == np.floor(x))
    result[pole] = sign * np.inf
    result[x == np.inf] = 0
    above = (x > 0) & (x < np.inf)
    below = (x < 0) & ~pole
    result[above] = _above(n, x[above])
    if not below.any():
        return result
    if n >= _FEW:
        base, total = _near_sum(n + 1, x[below])
        result[below] = sign * _scaled(n, base, total)
    else:
        result[below] = _reflected(n, x[below])
    return result


def _above(n: int, x: Array) -> Array:
    """Return ψₙ above 0: SciPy's where it is installed, which is quicker, for orders whose terms do not overflow."""
    if n <= _LOW:
        with suppress(ImportError):
            import scipy.special

            return np.asarray(scipy.special.polygamma(n, x))
    return (1 if n % 2 else -1) * _scaled(n, x, _tail_sum(n + 1, x))


def _scaled(n: int, base: Array, total: Array) -> Array:
    """Return n!·total/baseⁿ⁺¹."""
    s = n + 1
    size = np.abs(base)
    with np.errstate(all="ignore"):
        power = size ** -float(s)
        scaled = (math.factorial(n) if n < _FACTORIALS else math.inf) * power
        logarithm = math.lgamma(n + 1) - s * np.log(size) + np.log(np.abs(total))
        normal = (power > _TINY) & (scaled < np.inf)
        result = np.where(normal, scaled * total, np.copysign(np.exp(logarithm), total))
    return np.asarray(np.where((base < 0) & (s % 2 == 1), -result, result))


def hurwitz_zeta(x: Array, q: Array) -> Array:
    """Return Σ 1/(q + k)ˣ over k = 0, 1, 2, …; at the poles, and where the sum has no value, what PyTorch has.

    >>> hurwitz_zeta(np.array([2.0, 3.0, 2.0]), np.array([1.0, -1.5, 0.0])).round(9)
    array([1.64493407, 0.11810203,        inf])
    """
    x, q = np.broadcast_arrays(x, q)
    result = np.full(x.shape, np.nan)
    result[(x == 1) | ((x > 1) & (q <= 0) & (q == np.floor(q)))] = np.inf
    above = (x > 1) & (q > 0) & (q < np.inf)
    result[above] = q[above] ** -x[above] * _tail_sum(x[above], q[above])
    below = (x > 1) & (q < 0) & (q != np.floor(q)) & (x == np.floor(x)) & (x < np.inf)
    for s in map(int, np.unique(x[below])):
        points = below & (x == s)
        if s > _FEW:
            base, total = _near_sum(s, q[points])
            result[points] = total * base**-s
        else:
            result[points] = (-1) ** s / math.factorial(s - 1) * _reflected(s - 1, q[points])
    return result


def _tail_sum(s: Array | int, x: Array) -> Array:
    """Return Σ (x/(x + k))ˢ over all k from 0, by Euler and Maclaurin's sum behind the first terms."""
    z = x.copy()
    total, term = np.zeros_like(x), np.ones_like(x)
    s = np.broadcast_to(s, x.shape)
    while (small := (z < s + 12) & (term > _NOTHING * total)).any():
        total[small] += term[small]
        z[small] += 1
        term[small] = (x[small] / z[small]) ** s[small]
    term = np.where(term > _NOTHING * total, term, 0)  # the rest of the sum is of the size of its first term
    total += term * (z / (s - 1) + 0.5)
    term = term * s / z
    for k, coefficient in enumerate(_COEFFICIENTS):
        total += coefficient * term
        term = term * ((s + 2 * k + 1) * (s + 2 * k + 2)) / (z * z)
    return total


def _near_sum(s: int, x: Array) -> tuple[Array, Array]:
    """Return the x + k that is nearest to 0, for k from 0, and the sum of its power s over those of all.

    The largest come first: those of the two sides of 0 cancel each other where s is odd.
    """
    first = np.maximum(0, np.round(-x))
    base = x + first
    side = np.where(base > 0, -1.0, 1.0)
    total = np.ones_like(x)
    for step in range(1, _NEAR):
        for k in (step * side, -step * side):
            total += np.where(first + k >= 0, (base / (base + k)) ** s, 0)
    return base, total


def _reflected(n: int, x: Array) -> Array:
    """Return ψₙ below 0 from its value at 1 - x: the sum has a term for each step to 0."""
    mirrored = polygamma_of_order(n, 1 - x)
    rest = x - np.round(x)
    quarter = np.sign(rest) * (0.5 - np.abs(rest))  # exact, where the cotangent is near 0
    cot = np.where(np.abs(rest) < 0.25, 1 / np.tan(np.pi * rest), np.tan(np.pi * quarter))
    return np.asarray((mirrored if n % 2 == 0 else -mirrored) - _cotangent(n)(cot))


@cache
def _cotangent(order: int) -> np.polynomial.Polynomial:
    """Return the derivative of π·cot(πx) of an order, as a polynomial in cot(πx)."""
    slope = np.polynomial.Polynomial([0, np.pi])
    for _ in range(order):
        slope = -np.pi * np.polynomial.Polynomial([1, 0, 1]) * slope.deriv()
    return slope


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
