"""Hurwitz's zeta function, ζ(x, q) = Σ 1/(q + k)ˣ over k = 0, 1, 2, …, and derivatives of digamma made of it.

These are ψₙ(x) = (-1)ⁿ⁺¹·n!·ζ(n + 1, x), for all orders n from 1.

Terms are divided by the largest of them, so nothing overflows unless the result does: 171! is beyond float64, while
ψ₁₇₁(100) is 1.5e-35.
"""

from __future__ import annotations

import math
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
