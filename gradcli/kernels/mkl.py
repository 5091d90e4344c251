"""Roots, powers of e, sines and cosines of float32 numbers as PyTorch has them from MKL on processors of AMD's.

Not all are rounded correctly: one root in six is off by a digit, one power of e in a hundred, one sine in twenty.
On Intel's processors with AVX-512, where one root in two hundred is, roots and powers are rounded correctly.
Source: the results that PyTorch 2.13 printed for all numbers of several ranges, to which the roundings and the
coefficients were fitted; reciprocal_roots.txt has what the processor's instruction `rsqrtps` gives.
"""

from __future__ import annotations

import math
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.kernels.processor import IS_INTEL
from gradcli.kernels.rounding import Array, wide

_CELL = math.log(2) / 128
_CELL_HIGH = np.float32(round(_CELL * 2**16) / 2**16)  # its multiples are exact, having few digits
_CELL_LOW = np.float32(_CELL - float(_CELL_HIGH))
_POWERS = np.exp2(np.arange(128) / 128)
_POWERS_HIGH = _POWERS.astype(np.float32)
_POWERS_LOW = (_POWERS - _POWERS_HIGH).astype(np.float32)
_NORMAL = 126 * math.log(2)  # as far as powers of e are normal numbers; those beyond are rounded correctly
_PI_HIGH = round(math.pi * 2**30) / 2**30  # its multiples are exact too
_PI_LOW = math.pi - _PI_HIGH + 1.2246467991473532e-16
_REDUCED = 10000  # as far as sines are reduced in float64; those beyond are taken as rounded correctly
_SINE = (2.605780640175136e-06, -1.9809602902709738e-04, 8.333066246086606e-03, -1.666665955042741e-01, 1.0)
_LEAST = np.finfo(np.float32).tiny  # below, and for what is not finite, a root is rounded correctly


def exp(x: Array) -> Array:
    """Return powers of e: of 2 by a table of 128, and of what is left by two terms of the series.

    >>> x = np.arange(1, 2001, dtype=np.float32) / 100
    >>> int((exp(x) != np.exp(x.astype(np.float64)).astype(np.float32)).sum())
    24
    """
    if x.dtype != np.float32:
        return np.exp(x)
    if IS_INTEL:
        return wide(np.exp, x)
    normal = abs(x) < _NORMAL
    within = np.where(normal, x, 0)
    cells = np.rint(within * np.float32(1 / _CELL))
    rest = within - cells * _CELL_HIGH - cells * _CELL_LOW
    rest = rest * rest / 2 + rest
    power, cell = np.divmod(cells.astype(np.int32), 128)
    high = _POWERS_HIGH[cell]
    found = np.ldexp(high + (high * rest + _POWERS_LOW[cell]), power)
    return np.where(normal, found, np.exp(x.astype(np.float64)).astype(np.float32))


def _wave(function: Any, shift: float, x: Array) -> Array:
    """Return sines of what is left of numbers when multiples of π are taken away, shifted by a part of π."""
    if x.dtype != np.float32:
        return function(x)  # type: ignore[no-any-return]
    wide = x.astype(np.float64)
    reduced = abs(wide) < _REDUCED
    turns = np.rint(np.where(reduced, wide, 0) / np.pi + shift)
    rest = wide - (turns - shift) * _PI_HIGH - (turns - shift) * _PI_LOW
    found = rest * np.polyval(_SINE, rest * rest)
    return np.where(reduced, np.where(turns % 2, -found, found), function(wide)).astype(np.float32)


sin, cos = partial(_wave, np.sin, 0), partial(_wave, np.cos, 0.5)


def sqrt(x: Array) -> Array:
    """Return square roots: a reciprocal root of 12 bits, which Newton's method refines, each step rounded.

    >>> x = np.arange(1, 2001, dtype=np.float32)
    >>> int((sqrt(x) != np.sqrt(x)).sum()), float(sqrt(x[3]))
    (282, 2.0)
    """
    if x.dtype != np.float32 or IS_INTEL:
        return np.sqrt(x)
    bits = x.view(np.int32)
    power = (bits >> 23) - 127
    quarter = (power - (power & 1)) >> 1
    inverse = _reciprocal_roots()[(power & 1) << 12 | (bits & 0x7FFFFF) >> 11]
    within = np.ldexp(x, -2 * quarter)  # from 1 to 4
    root, half = within * inverse, inverse / 2
    missing = np.float32(0.5) - half * root
    root, half = root + root * missing, half + half * missing
    refined = np.ldexp(root + half * (within - root * root), quarter)
    return np.where((x >= _LEAST) & (x < np.inf), refined, np.sqrt(x))


@cache
def _reciprocal_roots() -> Array:
    """Return 1/√x for 4,096 steps of x from 1 to 2, and as many from 2 to 4.

    A line of the file has what 16 times 16 of them lack of 1, in units of 2⁻¹³: the first of each sixteen in three
    hexadecimal digits, and how much more the sixteen lack, in one each.
    """
    lines = [line.split() for line in Path(__file__).with_name("reciprocal_roots.txt").read_text("ascii").splitlines()]
    firsts = [[int(first[k : k + 3], 16) for k in range(0, len(first), 3)] for first, _ in lines]
    more = [[int(digit, 16) for digit in digits] for _, digits in lines]
    lacking = np.array(firsts)[:, :, None] + np.array(more)[:, None, :]
    return ((2**13 - lacking) / 2**13).astype(np.float32).reshape(-1)  # type: ignore[no-any-return]
