"""Where numbers go on without the history that they had: for what is said of a gradient that is missing."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.modes import Mode
from gradcli.pytorch.record import Leaf, Line, Recorder, dependencies, edge_of, script_line
from gradcli.wrapping import in_words

Tensor = Any  # the class is defined above
_TIMES = 8  # that what leads to a line is looked at


@dataclass
class Cut:
    """A line at which the numbers of tensors went on alone, how they did, and the leaves that they came from."""

    line: Line
    hows: list[str]
    leaves: dict[int, weakref.ref[Tensor]] = field(default_factory=dict)
    times: int = 0

    @property
    def how(self) -> str:
        """How, in words."""
        return in_words(self.hows)

    def leads_to(self, x: Tensor) -> bool:
        """Tell whether the numbers came from a leaf, or from an intermediate that retains its gradient."""
        found = self.leaves.get(id(x))
        return found is not None and found() is x


CUTS: dict[tuple[str, int], Cut] = {}  # by the file and the line


def cut(x: Tensor, how: str) -> Cut | None:
    """Take down that the numbers of a tensor go on alone from here; None if they have no history."""
    before = x._detached
    if not Recorder.explains or (before is None and not x.requires_grad):
        return None
    line = script_line()
    found = CUTS.setdefault((line.file, int(line)), Cut(line, [how]))
    if how not in found.hows:
        found.hows.append(how)
    if found.times < _TIMES:
        found.times += 1
        found.leaves |= before.leaves if before is not None else _leaves(x)
    return found


def cut_all(data: Any, how: str) -> Cut | None:
    """Take down that the numbers of tensors in lists go on alone from here."""
    parts = data if isinstance(data, list | tuple) else [data]
    inner = [p for p in parts if isinstance(p, list | tuple) or hasattr(p, "_detached")]
    found = [cut_all(p, how) if isinstance(p, list | tuple) else cut(p, how) for p in inner]
    return next((c for c in found if c is not None), None)


def note_lost(out: Tensor, operands: Sequence[Any], how: str) -> None:
    """Remember where the thread to what requires a gradient was lost, for a result that is not recorded."""
    for x in operands if Recorder.explains else ():
        if isinstance(x, np.ndarray):
            continue
        if x._detached is not None:
            out._detached = x._detached
        elif x.requires_grad:
            out._detached = cut(x, f"{how}, which has no gradient" if Mode.grad else "no_grad()")


Recorder.lost = note_lost


def _leaves(x: Tensor) -> dict[int, weakref.ref[Tensor]]:
    """Return the leaves that a tensor was computed from, and the intermediates that retain their gradients."""
    try:
        edges = dependencies([edge_of(x)])
    except RuntimeError:  # a view that a change in place has left behind
        return {}
    retained = (e.retained() for e in edges if e.retained is not None)
    found = [*(e.variable for e in edges if isinstance(e, Leaf)), *(y for y in retained if y is not None)]
    return {id(y): weakref.ref(y) for y in found}
