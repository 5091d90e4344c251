"""The course of the loss and of its gradient at a call that is reached again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.script.scene import CallScene, Site

Array = np.ndarray[Any, Any]

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 3  # rounds that are worth a curve
_CACHED = 2**14  # numbers that are squared at a time
_WIDE = 100  # the ratio of numbers from which a curve is logarithmic


@dataclass
class Progress:
    """The loss of each call, and the norm of its gradients, round by round."""

    names: dict[Site, tuple[str, str]] = field(default_factory=dict)  # of the value, and the code of the line
    rounds: dict[Site, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, site: Site, call: Call, scene: CallScene | None) -> float | None:
        """Add a call of `backward` from one number, and return the norm of its gradients; None for any other call.

        `scene` is known where it is explained.
        """
        if call.returns or len(call.roots) != 1 or call.roots[0][0].numel() != 1:
            return None
        y = call.roots[0][0]
        if scene is not None:
            name = next(iter(scene.recorded.roots), "") or scene.name(y, "y")
            self.names.setdefault(site, (name, scene.source(site.line)))
        norm = math.sqrt(sum(_square(c.grad._a) for c in call.contributions))
        self.rounds.setdefault(site, []).append((y.item(), norm))
        return norm

    def words(self, site: Site, room: int) -> list[str]:
        """Return how the loss and |grad| went at a call, in lines as wide as `room`; none for few rounds."""
        rounds = self.rounds.get(site, [])
        if len(rounds) < _LEAST or site not in self.names:
            return []
        name, code = self.names[site]
        names = (name, "|grad|")
        wide = max(map(len, names))
        columns = list(zip(*rounds, strict=True))
        ends = [f"{numbers[0]:.6g} → {numbers[-1]:.6g}" for numbers in columns]
        bars = max(8, min(40, room - wide - max(map(len, ends)) - 6))
        return [f"line {site.line}, {code}, {len(rounds):,} times:"] + [
            f"{each:<{wide}}  {end:<{max(map(len, ends))}}  {curve(numbers, bars)}"
            for each, end, numbers in zip(names, ends, columns, strict=True)
        ]


def _square(a: Array) -> float:
    """Return the sum of squares in float64, of as many numbers at a time as a cache holds."""
    row = a.reshape(-1)
    parts = (row[k : k + _CACHED].astype(float) for k in range(0, len(row), _CACHED))
    return float(sum(np.vdot(p, p) for p in parts))


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
