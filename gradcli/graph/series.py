"""Functions as sums of series, for targets that have no function for them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from gradcli.graph.construct import call, where
from gradcli.graph.node import Exact, Node, const

_FAR = 20  # from here on the asymptotic series is exact to the last digits
_NEAR_TERMS, _FAR_TERMS = 36, 20


def modified_bessel(order: int, x: Node) -> Node:
    """Return the modified Bessel function of the first kind of order 0 or 1, to the last digits of float64.

    Source: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), 9.6.10 and 9.7.1.
    """
    near = _polynomial([Fraction(1, factorial(k) * factorial(k + order)) for k in range(_NEAR_TERMS)], x**2 / 4)
    coefficients = [Fraction(1)]
    for k in range(1, _FAR_TERMS):
        coefficients.append(coefficients[-1] * Fraction((2 * k - 1) ** 2 - 4 * order, 8 * k))
    size = call("abs", x)
    half = call("exp", size / 2)  # whose square overflows last
    far = half * (_polynomial(coefficients, 1 / size) / call("sqrt", 2 * const("pi") * size)) * half
    if order:
        near, far = near * (x / 2), far * call("sign", x)
    return where(size <= _FAR, near, far)


def _polynomial(coefficients: Sequence[Exact], x: Node) -> Node:
    """Return the polynomial in x, the constant coefficient first, by Horner's rule."""
    *rest, last = coefficients
    total: Node | Exact = last
    for coefficient in reversed(rest):
        total = total * x + coefficient
    assert isinstance(total, Node)
    return total
