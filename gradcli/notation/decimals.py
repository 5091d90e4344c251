"""Exact numbers as text that is short and says the same; needs no SymPy."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

_LONG = 1000  # what nobody writes below or above the stroke of a fraction


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
    """Return an integer: as a power of ten where that is shorter than its digits.

    >>> whole_text(-2 * 10**300), whole_text(1200), whole_text(10**15)
    ('-2e+300', '1200', '1000000000000000')
    """
    digits = str(number)
    short = decimal_text(Fraction(number))
    return short if short and len(short) < len(digits) else digits


def quotient(number: Fraction) -> tuple[str, str]:
    """Return the two parts of a positive fraction; a long one was a number by a decimal, and is again.

    >>> quotient(Fraction(2, 3)), quotient(1 / Fraction("1.4142135")), quotient(11 / Fraction("1.4142135"))
    (('2', '3'), ('1', '1.4142135'), ('11', '1.4142135'))
    """
    part, whole = number.as_integer_ratio()
    if min(part, whole) >= _LONG:
        odd = part
        for prime in (2, 5):
            while odd % prime == 0:
                odd //= prime
        if odd < _LONG and (below := decimal_text(Fraction(whole * odd, part))):
            return str(odd), below
    return whole_text(part), whole_text(whole)
