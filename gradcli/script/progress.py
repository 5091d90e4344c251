"""The course of the loss and of its gradient at a line that is reached again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.script.scene import CallScene

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 3  # rounds that are worth a curve
_WIDE = 100  # the ratio of numbers from which a curve is logarithmic


@dataclass
class Progress:
    """The loss of each line, and the norm of its gradients, round by round."""

    names: dict[int, tuple[str, str]] = field(default_factory=dict)  # of the value, and the code of the line
    rounds: dict[int, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, line: int, call: Call, scene: CallScene | None) -> None:
        """Add a call of `backward` from one number; `scene` is known where it is explained."""
        if call.returns or len(call.roots) != 1 or call.roots[0][0].numel() != 1:
            return
        y = call.roots[0][0]
        if scene is not None:
            name = next(iter(scene.recorded.roots), "") or scene.name(y, "y")
            self.names.setdefault(line, (name, scene.source(line)))
        squares = (np.vdot(a, a) for a in (c.grad._a.astype(float) for c in call.contributions))
        self.rounds.setdefault(line, []).append((y.item(), math.sqrt(sum(squares))))

    def words(self, line: int, room: int) -> list[str]:
        """Return how the loss and |grad| went at a line, in lines as wide as `room`; none for few rounds."""
        rounds = self.rounds.get(line, [])
        if len(rounds) < _LEAST or line not in self.names:
            return []
        name, code = self.names[line]
        names = (name, "|grad|")
        wide = max(map(len, names))
        columns = list(zip(*rounds, strict=True))
        ends = [f"{numbers[0]:.6g} → {numbers[-1]:.6g}" for numbers in columns]
        bars = max(8, min(40, room - wide - max(map(len, ends)) - 6))
        return [f"line {line}, {code}, {len(rounds):,} times:"] + [
            f"{each:<{wide}}  {end:<{max(map(len, ends))}}  {curve(numbers, bars)}"
            for each, end, numbers in zip(names, ends, columns, strict=True)
        ]


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
