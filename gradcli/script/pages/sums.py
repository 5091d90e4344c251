"""What adds up in `.grad` at a line of a script that is reached again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.script.pages.gradients import array_words
from gradcli.script.scene import Told
from gradcli.wrapping import in_words

_NAMED = 3  # leaves that are told one by one
_LONG = 40  # characters of a sum that are told


@dataclass
class Sums:
    """For each line the leaves whose `.grad` nothing has changed from call to call: the name, and what it is now.

    A training loop zeroes them, so that a line of it is looked at twice and not kept.
    """

    lines: dict[int, dict[int, tuple[str, Any]]] = field(default_factory=dict)
    left: dict[int, Any] = field(default_factory=dict)  # what the last call left in `.grad`, if it was a line's first
    added: set[int] = field(default_factory=set)  # the lines whose calls have added to what the first one left

    def first(self, told: Told, call: Call) -> None:
        """Take down what `.grad` is after the first call at a line."""
        if not call.returns:
            found = {id(x): (told.name(x), after._a.copy()) for x, _, _, after in call.leaves if after is not None}
            self.lines[told.line] = found
            self.left |= {x: value for x, (_, value) in found.items()}

    def again(self, line: int, call: Call) -> None:
        """Keep the leaves whose `.grad` another call at the line found as the one before had left it, and added to."""
        last = self.lines.pop(line, {})
        kept = {}
        for x, before, _, after in call.leaves:
            self.left.pop(id(x), None)
            name, left = last.get(id(x), ("", None))
            if before is not None and after is not None and np.array_equal(before, left):
                kept[id(x)] = name, after._a.copy()
        if kept:
            self.lines[line] = kept
            self.added.add(line)

    def words(self, line: int) -> str:
        """Return what adds up at a line: x.grad adds up to [8, 16, 24]; nothing where nothing does."""
        found = list(self.lines.get(line, {}).values()) if line in self.added else []
        if len(found) == 1:
            name, value = found[0]
            total = array_words(value)
            to = f" to {total}" if len(total) <= _LONG and not total.endswith("numbers") else ""
            return f"{name}.grad adds up{to}"
        names = [f"{name}.grad" for name, _ in found]
        if len(names) > _NAMED:
            return f".grad of {len(names)} leaves adds up"
        return f"{in_words(names)} add up" if names else ""
