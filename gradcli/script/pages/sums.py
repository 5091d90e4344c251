"""The accumulation in `.grad` at a line of a script that is reached again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.script.pages.gradients import SHOWN, array_words
from gradcli.script.scene import CallScene
from gradcli.wrapping import in_words

_NAMED = 3  # leaves that are listed one by one
_LONG = 40  # characters of a sum that is shown


@dataclass
class Sums:
    """The leaves of each line whose `.grad` nothing has changed from call to call.

    Of each the name, what `.grad` is now, and how often the leaf itself was changed.

    A training loop zeroes them, so that a line of it is looked at twice and not kept.
    """

    lines: dict[int, dict[int, tuple[str, Any, int]]] = field(default_factory=dict)
    left: dict[int, Any] = field(default_factory=dict)  # what the last call left in `.grad`, if it was a line's first
    added: set[int] = field(default_factory=set)  # the lines whose calls have added to what the first one left
    moved: set[int] = field(default_factory=set)  # those of them between whose calls a leaf was changed

    def first(self, scene: CallScene, call: Call) -> None:
        """Record each `.grad` after the first call at a line."""
        if not call.returns:
            changed = [(c.tensor, c.after) for c in call.contributions if c.after is not None]
            result = {id(x): (scene.name(x), after._a.copy(), x._memory.version) for x, after in changed}
            self.lines[scene.line] = result
            self.left |= {x: value for x, (_, value, _) in result.items()}

    def again(self, line: int, call: Call) -> None:
        """Keep the leaves whose `.grad` the next call at the line accumulates into, unchanged since the call before."""
        last = self.lines.pop(line, {})
        kept = {}
        for c in call.contributions:
            x = c.tensor
            self.left.pop(id(x), None)
            name, left, version = last.get(id(x), ("", None, 0))
            if c.before is not None and c.after is not None and np.array_equal(c.before, left):
                kept[id(x)] = name, c.after._a.copy(), x._memory.version
                if version != x._memory.version:
                    self.moved.add(line)
        if kept:
            self.lines[line] = kept
            self.added.add(line)

    def words(self, line: int) -> str:
        """Return which gradients accumulate at a line: x.grad accumulates to [8, 16, 24]; "" where none does."""
        result = list(self.lines.get(line, {}).values()) if line in self.added else []
        each = " over the updates: call `optimizer.zero_grad()` once per step" if line in self.moved else ""
        if len(result) == 1:
            name, value, _ = result[0]
            total = array_words(value)
            to = f" to {total}" if len(total) <= _LONG and value.size <= SHOWN else ""
            return f"{name}.grad accumulates{to}{each}"
        names = [f"{name}.grad" for name, *_ in result]
        if len(names) > _NAMED:
            return f".grad of {len(names)} leaves accumulates{each}"
        return f"{in_words(names)} accumulate{each}" if names else ""
