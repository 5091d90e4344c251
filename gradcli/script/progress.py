"""What becomes of a call that is reached again and again: the course of its loss, and what accumulates in `.grad`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.record.numbers import Numbers
from gradcli.script.pages.effects import SHOWN, numbers_words
from gradcli.script.scene import CallScene, Site
from gradcli.text.bars import curve
from gradcli.text.wrapping import in_words

Array = np.ndarray[Any, Any]

_LEAST = 3  # rounds that are worth a curve
_CACHED = 2**14  # numbers that are squared at a time
_NAMED = 3  # leaves that are listed one by one
_LONG = 40  # characters of a sum that is shown


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


@dataclass
class Sums:
    """The leaves whose `.grad` nothing but calls has changed, and what is in it, by the identity of the leaf.

    A training loop zeroes them, so that a leaf of it is looked at twice and not kept.
    """

    left: dict[int, Any] = field(default_factory=dict)
    sites: dict[Site, dict[int, tuple[str, int]]] = field(default_factory=dict)  # names, and how often a leaf changed
    added: set[Site] = field(default_factory=set)  # whose calls have added to what was left before
    moved: set[Site] = field(default_factory=set)  # those of them between whose calls a leaf was changed

    def first(self, scene: CallScene, call: Call) -> None:
        """Record each `.grad` after the first call at a site."""
        changed = [(c.tensor, c.after) for c in call.contributions if c.after is not None and not call.returns]
        self.left |= {id(x): after._a.copy() for x, after in changed}
        self.sites[scene.site] = {id(x): (scene.name(x), x._memory.version) for x, _ in changed}

    def again(self, site: Site, call: Call) -> None:
        """Keep the leaves whose `.grad` the next call at the site accumulates into, unchanged since the call before."""
        last, kept = self.sites.pop(site, {}), {}
        for c in call.contributions:
            x = c.tensor
            left = self.left.pop(id(x), None)
            if c.before is None or c.after is None or not np.array_equal(c.before, left):
                continue
            self.left[id(x)] = c.after._a.copy()
            if id(x) in last:
                name, version = last[id(x)]
                kept[id(x)] = name, x._memory.version
                if version != x._memory.version:
                    self.moved.add(site)
        if kept:
            self.sites[site] = kept
            self.added.add(site)

    def words(self, site: Site) -> str:
        """Return which gradients accumulate at a site: x.grad accumulates to [8, 16, 24]; "" where none does."""
        leaves = self.sites.get(site, {}) if site in self.added else {}
        result = [(name, self.left[x]) for x, (name, _) in leaves.items() if x in self.left]
        each = " over the updates: call `optimizer.zero_grad()` once per step" if site in self.moved else ""
        if len(result) == 1:
            name, value = result[0]
            total = numbers_words(Numbers.of(value[..., 0]))
            to = f" to {total}" if len(total) <= _LONG and value.size <= SHOWN else ""
            return f"{name}.grad accumulates{to}{each}"
        names = [f"{name}.grad" for name, _ in result]
        if len(names) > _NAMED:
            return f".grad of {len(names)} leaves accumulates{each}"
        return f"{in_words(names)} accumulate{each}" if names else ""
