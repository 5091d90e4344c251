"""The exponential, the logarithm, tanh, sine and cosine of vectors: polynomials, within 2 ulp.

An argument is brought to the neighbourhood of 0, where Taylor's polynomial of that degree is exact to a tenth of an
ulp.  Products that are added are FMAs (`contract`) where the processor has them, except where a product must be rounded
by itself.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from gradcli.engine.llvm.writer import InstructionWriter, vector_function

# Added to a number, it leaves the nearest integer in the lowest bits.
_MAGIC = 1.5 * 2.0**52
_BIAS, _EXPONENT = 1023, 52
_ROOT = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]  # the bits of √½
_BITS = 32  # of a part of a constant: its product with an integer of 20 bits is exact
_TURNS = 2.0**19  # quarter turns, beyond which C's functions reduce the angle

# 46 digits: the binary digits of ln 2 and π/2 that the parts below hold, and some more.
_LN2 = Fraction("0.6931471805599453094172321214581765680755001344")
_QUARTER = Fraction("1.5707963267948966192313216916397514420985846997")


def _parts(number: Fraction, count: int) -> list[float]:
    """Return `count` numbers that add up to a constant: all but the last are exact times an integer of 20 bits.

    >>> parts = _parts(_LN2, 2)
    >>> parts[0].hex(), abs(sum(map(Fraction, parts)) - _LN2) < Fraction(1, 2**85)
    ('0x1.62e42ff000000p-1', True)
    """
    result = []
    for _ in range(count - 1):
        scale = Fraction(2) ** (_BITS - math.frexp(float(number))[1])
        result.append(float(Fraction(round(number * scale)) / scale))
        number -= Fraction(result[-1])
    return [*result, float(number)]


def _series(w: InstructionWriter, x: str, coefficients: Sequence[Fraction]) -> str:
    """Return the polynomial in x, the constant coefficient first."""
    total = w.number(float(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = w.plus_product(w.number(float(coefficient)), total, x)
    return total


def _nearest(w: InstructionWriter, x: str) -> tuple[str, str]:
    """Return the nearest integer, and a number that has it in its lowest bits."""
    shifted = w.do("fadd", x, w.number(_MAGIC))
    return w.do("fsub", shifted, w.number(_MAGIC)), shifted


def _power(w: InstructionWriter, shifted: str) -> str:
    """Return 2**n, of an integer in the lowest bits."""
    biased = w.on_integers("add", w.bits(shifted), w.integer(_BIAS))
    return w.numbers(w.on_integers("shl", biased, w.integer(_EXPONENT)))


def _at_most(w: InstructionWriter, x: str, limit: float) -> str:
    """Return min(x, limit), and nan for nan."""
    return w.select(w.compare("ogt", x, w.number(limit)), w.number(limit), x)


def _reduced(w: InstructionWriter, x: str) -> tuple[str, str, str]:
    """Return n and r, x = n·ln 2 + r, and exp(r) - 1 - r."""
    n, _ = _nearest(w, w.do("fmul", x, w.number(1 / math.log(2))))
    high, low = _parts(_LN2, 2)
    near = w.do("fsub", x, w.do("fmul", n, w.number(high)))
    r = w.do("fsub", near, w.do("fmul", n, w.number(low)))
    series = _series(w, r, [Fraction(1, math.factorial(k)) for k in range(2, 14)])
    return n, r, w.do("fmul", series, w.do("fmul", r, r))


def _exp(w: InstructionWriter, x: str) -> str:
    """Return exp(x)."""
    x = w.select(w.compare("olt", x, w.number(-800)), w.number(-800), _at_most(w, x, 800))
    n, r, rest = _reduced(w, x)
    value = w.do("fadd", w.number(1), w.do("fadd", r, rest))
    # By two factors, of which only the second can leave the range.
    half, first = _nearest(w, w.do("fmul", n, w.number(0.5)))
    _, second = _nearest(w, w.do("fsub", n, half))
    return w.do("fmul", w.do("fmul", value, _power(w, first)), _power(w, second))


def _tanh(w: InstructionWriter, x: str) -> str:
    """Write m/(m + 2), where m = exp(2|x|) - 1."""
    size = _at_most(w, w.call("llvm.fabs", x), 22)  # from there on it is 1
    n, r, rest = _reduced(w, w.do("fadd", size, size))
    power = _power(w, w.do("fadd", n, w.number(_MAGIC)))
    m = w.plus_product(w.do("fsub", power, w.number(1)), power, w.do("fadd", r, rest))
    return w.call("llvm.copysign", w.do("fdiv", m, w.do("fadd", m, w.number(2))), x)


def _log(w: InstructionWriter, x: str) -> str:
    """Write n·ln 2 + log(1 + f), x = 2**n·(1 + f), by the series of artanh in f/(2 + f)."""
    zero, one = w.number(0), w.number(1)
    small = w.compare("olt", x, w.number(2.0**-1022))
    bits = w.bits(w.select(small, w.do("fmul", x, w.number(2.0**54)), x))
    # From √½ to √2, where the logarithm's own digits are f's.
    shifted = w.on_integers("sub", bits, w.integer(_ROOT))
    n = _to_number(w, w.on_integers("ashr", shifted, w.integer(_EXPONENT)))
    n = w.do("fsub", n, w.select(small, w.number(54), zero))
    mantissa = w.on_integers("and", shifted, w.integer(2**_EXPONENT - 1))
    f = w.do("fsub", w.numbers(w.on_integers("add", mantissa, w.integer(_ROOT))), one)
    s = w.do("fdiv", f, w.do("fadd", f, w.number(2)))
    square, half = w.do("fmul", s, s), w.do("fmul", w.do("fmul", f, f), w.number(0.5))
    series = w.do("fmul", square, _series(w, square, [Fraction(2, 2 * k + 1) for k in range(1, 11)]))
    high, low = (w.do("fmul", n, w.number(part)) for part in _parts(_LN2, 2))
    lost = w.do("fsub", half, w.do("fadd", w.do("fmul", s, w.do("fadd", half, series)), low))
    result = w.do("fadd", high, w.do("fsub", f, lost))
    result = w.select(w.compare("oeq", x, w.number(math.inf)), x, result)
    result = w.select(w.compare("oeq", x, zero), w.number(-math.inf), result)
    return w.select(w.compare("oge", x, zero), result, w.number(math.nan))


def _to_number(w: InstructionWriter, integer: str) -> str:
    """Return an integer of few bits as a double, by adding it to the lowest bits of a large one."""
    magic = w.on_integers("add", integer, w.bits(w.number(_MAGIC)))
    return w.do("fsub", w.numbers(magic), w.number(_MAGIC))


def _circular(ahead: int, w: InstructionWriter, x: str) -> str:
    """Write sin(x + ahead·π/2): with 1 it is the cosine."""
    n, shifted = _nearest(w, w.do("fmul", x, w.number(2 / math.pi)))
    r, tail = _angle(w, x, n)
    square = w.do("fmul", r, r)
    sine, cosine = _sine(w, r, tail, square), _cosine(w, r, tail, square)
    quarter = w.on_integers("add", w.bits(shifted), w.integer(ahead))
    odd = w.new(f"icmp ne {w.integers} {w.on_integers('and', quarter, w.integer(1))}, zeroinitializer", "m")
    sign = w.on_integers("shl", w.on_integers("and", quarter, w.integer(2)), w.integer(62))
    result = w.numbers(w.on_integers("xor", w.bits(w.select(odd, cosine, sine)), sign))
    return result if ahead else w.select(w.compare("oeq", x, w.number(0)), x, result)  # the sine of -0 is -0


def _angle(w: InstructionWriter, x: str, n: str) -> tuple[str, str]:
    """Return x - n·π/2 as a sum of two doubles, accurate also near a multiple of π/2."""
    first, second, third, last = (w.do("fmul", n, w.number(part)) for part in _parts(_QUARTER, 4))
    near = w.do("fsub", x, first)
    nearer = w.do("fsub", near, second)
    lost = w.do("fsub", w.do("fsub", near, nearer), second)
    lost = w.do("fsub", w.do("fsub", lost, third), last)
    r = w.do("fadd", nearer, lost)
    return r, w.do("fadd", w.do("fsub", nearer, r), lost)


def _sine(w: InstructionWriter, r: str, tail: str, square: str) -> str:
    """Return sin(r + tail) for |r| ≤ π/4 by its Taylor series; `square` is r²."""
    series = _series(w, square, [Fraction((-1) ** k, math.factorial(2 * k + 1)) for k in range(1, 9)])
    # The slope of sine is 1 - r²/2.
    tail = w.do("fsub", tail, w.do("fmul", w.do("fmul", square, w.number(0.5)), tail))
    return w.do("fadd", r, w.plus_product(tail, w.do("fmul", r, square), series))


def _cosine(w: InstructionWriter, r: str, tail: str, square: str) -> str:
    """Return cos(r + tail) for |r| ≤ π/4 by its Taylor series; `square` is r².  1 - r²/2 keeps its rounding error."""
    series = _series(w, square, [Fraction((-1) ** k, math.factorial(2 * k)) for k in range(2, 10)])
    half = w.do("fmul", square, w.number(0.5))
    near = w.do("fsub", w.number(1), half)
    lost = w.do("fsub", w.do("fsub", w.number(1), near), half)
    rest = w.plus_product(w.do("fsub", lost, w.do("fmul", r, tail)), w.do("fmul", square, square), series)
    return w.do("fadd", near, rest)


# Each with the size up to which it is so computed; beyond, C's function does it, number by number.
FUNCTIONS: dict[str, tuple[Callable[[InstructionWriter, str], str], float]] = {
    "exp": (_exp, math.inf),
    "log": (_log, math.inf),
    "tanh": (_tanh, math.inf),
    "sin": (partial(_circular, 0), _TURNS),
    "cos": (partial(_circular, 1), _TURNS),
}


def function(name: str, lanes: int) -> tuple[list[str], set[str]]:
    """Return the lines that define a function of vectors, and what it calls."""
    write, limit = FUNCTIONS[name]
    w = InstructionWriter(lanes)
    w.lines = [f"define internal {w.vector} @{vector_function(name, lanes)}({w.vector} %x) alwaysinline nounwind {{"]
    if math.isfinite(limit):
        w.lines.append("start:")
    value = write(w, "%x")
    if math.isfinite(limit):
        value = _beyond(w, name, limit, value)
    return [*w.lines, f"  ret {w.vector} {value}", "}"], w.called


def _beyond(w: InstructionWriter, name: str, limit: float, value: str) -> str:
    """Return the value, or C's for the numbers that are larger than the limit."""
    far = w.compare("ogt", w.call("llvm.fabs", "%x"), w.number(limit))
    w.lines += [
        f"  %far = call i1 @llvm.vector.reduce.or.v{w.lanes}i1({w.masks} {far})",
        "  br i1 %far, label %each, label %done, !prof !1",
        "each:",
        f"  %others = call {w.vector} @each.{name}({w.vector} %x)",
    ]
    others = w.select(far, "%others", value)
    w.lines += ["  br label %done", "done:"]
    return w.new(f"phi {w.vector} [ {value}, %start ], [ {others}, %each ]")
