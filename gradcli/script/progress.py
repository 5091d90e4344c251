"""What becomes of a call that is reached again and again: the course of its loss, and what accumulates in `.grad`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.record.numbers import Numbers
from gradcli.record.record import Left
from gradcli.script.pages.effects import SHOWN, numbers_words
from gradcli.script.scene import CallScene
from gradcli.text.bars import curve
from gradcli.text.wrapping import in_words

_LEAST = 3  # rounds that are worth a curve
_NAMED = 3  # leaves that are listed one by one
_LONG = 40  # characters of a sum that is shown


@dataclass
class Progress:
    """The loss of each call, and the norm of its gradients, round by round."""

    names: dict[Any, tuple[str, str]] = field(default_factory=dict)  # of the value, and the code of the line
    rounds: dict[Any, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, site: Any, loss: float, norm: float, scene: CallScene | None) -> None:
        """Add a call of `backward` from one number, with the norm of its gradients; `scene` where it is explained."""
        if scene is not None:
            recorded = scene.recorded
            names = (*recorded.roots, *(recorded.name(q, "y") for q in recorded.call.roots), "y")
            self.names.setdefault(site, (names[0], scene.statement))
        self.rounds.setdefault(site, []).append((loss, norm))

    def words(self, site: Any, times: int, room: int) -> list[str]:
        """Return how the loss and |grad| went at a call, in lines as wide as `room`; none for few rounds.

        `times` is how often it was reached: of more rounds than were looked at, these are the first.
        """
        rounds = self.rounds.get(site, [])
        if len(rounds) < _LEAST or site not in self.names:
            return []
        name, code = self.names[site]
        names = (name, "|grad|")
        wide = max(map(len, names))
        columns = list(zip(*rounds, strict=True))
        ends = [f"{numbers[0]:.6g} → {numbers[-1]:.6g}" for numbers in columns]
        bars = max(8, min(40, room - wide - max(map(len, ends)) - 6))
        first = "the first " if times > len(rounds) else ""
        return [f"line {site.line}, {code}, {first}{len(rounds):,} times:"] + [
            f"{each:<{wide}}  {end:<{max(map(len, ends))}}  {curve(numbers, bars)}"
            for each, end, numbers in zip(names, ends, columns, strict=True)
        ]


@dataclass
class Sums:
    """The leaves whose `.grad` nothing but calls has changed, and what is in it, by the identity of the leaf.

    A training loop zeroes them, so that a leaf of it is looked at twice and not kept.
    """

    left: dict[int, Any] = field(default_factory=dict)
    sites: dict[Any, dict[int, tuple[str, int]]] = field(default_factory=dict)  # names, and how often a leaf changed
    added: set[Any] = field(default_factory=set)  # whose calls have added to what was left before
    moved: set[Any] = field(default_factory=set)  # those of them between whose calls a leaf was changed

    def first(self, scene: CallScene, left: Sequence[Left]) -> None:
        """Record each `.grad` after the first call at a site."""
        names = [scene.recorded.name(c.quantity) for c in scene.recorded.call.leaves] or ["x"] * len(left)
        changed = [(x, name) for x, name in zip(left, names, strict=True) if x.after is not None]
        self.left |= {x.leaf: x.after.copy() for x, _ in changed if x.after is not None}
        self.sites[scene.site] = {x.leaf: (name, x.version) for x, name in changed}

    def again(self, site: Any, left: Sequence[Left]) -> None:
        """Keep the leaves whose `.grad` the next call at the site accumulates into, unchanged since the call before."""
        last, kept = self.sites.pop(site, {}), {}
        for x in left:
            before = self.left.pop(x.leaf, None)
            if x.before is None or x.after is None or not np.array_equal(x.before, before):
                continue
            self.left[x.leaf] = x.after.copy()
            if x.leaf in last:
                name, version = last[x.leaf]
                kept[x.leaf] = name, x.version
                if version != x.version:
                    self.moved.add(site)
        if kept:
            self.sites[site] = {leaf: kept[leaf] for leaf in last if leaf in kept}
            self.added.add(site)

    def words(self, site: Any) -> str:
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
