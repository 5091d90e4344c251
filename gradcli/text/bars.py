"""Numbers as bars of a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_WIDE = 100  # the ratio of numbers from which bars are logarithmic


def curve(numbers: Sequence[float], width: int) -> str:
    """Return numbers as bars, the lowest and the highest as far apart as bars go; those that are not finite as ×.

    Of more numbers than bars each bar is one of them, at equal distances, with the first and the last.  The scale is
    logarithmic where numbers above 0 differ by much.

    >>> curve([1, 2, 3, 4, float("nan")], 40)
    '▁▃▆█×'
    >>> curve(range(100), 8)
    '▁▂▃▄▅▆▇█'
    """
    if len(numbers) > width:
        numbers = [numbers[round(k * (len(numbers) - 1) / (width - 1))] for k in range(width)]
    finite = [x for x in numbers if math.isfinite(x)]
    if finite and min(finite) > 0 and max(finite) > _WIDE * min(finite):
        numbers = [math.log(x) if math.isfinite(x) else x for x in numbers]
        finite = [math.log(x) for x in finite]
    low, high = min(finite, default=0), max(finite, default=0)
    step = (high - low) / (len(_BARS) - 1) or 1
    return "".join(_BARS[round((x - low) / step)] if math.isfinite(x) else "×" for x in numbers)
