"""Exact numbers as text that is short and says the same; needs no SymPy."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction


def decimal_text(number: Fraction) -> str | None:
    """Return an exact number as a decimal of at most 17 digits, or `None` where it has more.

    >>> decimal_text(Fraction(1, 5)), decimal_text(Fraction(10) ** 300), decimal_text(Fraction(1, 3))
    ('0.2', '1e+300', None)
    """
    try:
        short = Decimal(repr(number.numerator / number.denominator))
    except OverflowError:
        return None
    return str(short).replace("E", "e") if Fraction(short) == number else None


def whole_text(number: int) -> str:
    """Return a whole number: as a power of ten where that is shorter than its digits.

    >>> whole_text(-2 * 10**300), whole_text(1200), whole_text(10**15)
    ('-2e+300', '1200', '1000000000000000')
    """
    digits = str(number)
    short = decimal_text(Fraction(number))
    return short if short and len(short) < len(digits) else digits
