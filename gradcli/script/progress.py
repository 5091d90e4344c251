"""The course of the loss and of its gradient at a call that is reached again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.script.scene import CallScene, Site
from gradcli.text.bars import curve

Array = np.ndarray[Any, Any]

_LEAST = 3  # rounds that are worth a curve
_CACHED = 2**14  # numbers that are squared at a time


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
