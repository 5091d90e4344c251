"""Numbers and arrays of them as text.  No number is cut short: float64 is written with all the digits it has.

Exact numbers are written as short as they are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gradcli.graph.array import Array

_LONG = 1000  # what nobody writes below or above the stroke of a fraction


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same float64.

    >>> number_text(26.0), number_text(0.1), number_text(float("nan")), number_text(1e22), number_text(-0.0)
    ('26', '0.1', 'nan', '1e+22', '-0.0')
    """
    text = repr(float(value))
    whole = math.isfinite(value) and value == int(value) and abs(value) < 1e16
    return str(int(value)) if whole and text != "-0.0" else text


def array_text(array: Array, element: Callable[[Any], str] = number_text) -> str:
    """Return an array as a nested list.

    >>> import numpy as np
    >>> array_text(np.array([[1.0, 2.5], [3.0, 4.0]]))
    '[[1, 2.5], [3, 4]]'
    """

    def text(nested: Any) -> str:
        return f"[{', '.join(map(text, nested))}]" if isinstance(nested, list) else element(nested)

    return text(array.tolist())


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as sizes: 2×3, and `5 numbers` of a vector.

    >>> shape_text((2, 3)), shape_text((1,))
    ('2×3', '1 number')
    """
    return "×".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]} number{'s' * (shape[0] != 1)}"


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
