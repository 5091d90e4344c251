"""Square roots of float32 numbers as PyTorch has them from MKL on processors of AMD's: one in six is off by a digit.

The processor gives a reciprocal root of 12 bits, which two rounds of Newton's method refine, each step rounded, and
nothing rounds the result correctly in the end.  Source: the roots of all numbers from 1 to 4 as PyTorch 2.13 printed
them; reciprocal_roots.txt has what the instruction `rsqrtps` gives.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LEAST = np.finfo(np.float32).tiny  # below, and for what is not finite, the root is rounded correctly


def sqrt(x: Array) -> Array:
    """Return square roots.

    >>> x = np.arange(1, 2001, dtype=np.float32)
    >>> int((sqrt(x) != np.sqrt(x)).sum()), float(sqrt(x[3]))
    (282, 2.0)
    """
    if x.dtype != np.float32:
        return np.sqrt(x)
    with np.errstate(all="ignore"):
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
    return ((2**13 - lacking) / 2**13).astype(np.float32).reshape(-1)
