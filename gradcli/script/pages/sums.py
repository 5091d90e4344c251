"""The accumulation in `.grad` at a call of a script that is reached again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.record.numbers import Numbers
from gradcli.script.pages.effects import SHOWN, numbers_words
from gradcli.script.scene import CallScene, Site
from gradcli.text.wrapping import in_words

_NAMED = 3  # leaves that are listed one by one
_LONG = 40  # characters of a sum that is shown


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
