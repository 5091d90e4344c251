"""How often lines ran that are no longer counted: a training changes its parameters in place once a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import ref

import torch

from gradcli.realtorch.values import PLAIN
from gradcli.record.record import CallSite


class Updates:
    """The tensors that change in place as often as a line runs, or a fixed number of times as often.

    `more` has what `finish` knows: how often each line ran after it was counted last; None where no tensor tells.
    """

    def __init__(self) -> None:
        self.more: dict[CallSite, int | None] = {}
        self._watched: dict[CallSite, tuple[int, list[tuple[ref[torch.Tensor], int]], int]] = {}
        self._counted: dict[CallSite, int] = {}
        self._kept: dict[CallSite, tuple[torch.Tensor, float, float]] = {}

    def watch(self, site: CallSite, times: int, tensors: Iterable[torch.Tensor], due: int) -> None:
        """Look at tensors from now on, when a line has run so many times; the changes of `due` rounds are to come."""
        versions = [(ref(x), x._version) for x in tensors if not x.is_inference()]
        self._watched.setdefault(site, (times, versions, due))

    def begin(self, reached: Counter[CallSite]) -> None:
        """Keep the smallest tensor that a line changes, and how often it did in each round, from the last count on."""
        for site, times in reached.items():
            before, versions, due = self._watched.get(site, (times, [], 0))
            if self._counted.get(site) == times:
                continue
            self._counted[site] = times
            alive = [(x, x._version - v) for r, v in versions if (x := r()) is not None and x._version > v]
            if alive and times > before:
                x, changes = min(alive, key=lambda pair: pair[0].numel())
                each = changes / (times - before)
                with PLAIN():
                    self._kept[site] = x.detach(), x._version + due * each, each

    def finish(self, reached: Counter[CallSite]) -> None:
        """Read how often the tensors were changed since, for lines that were not counted any more."""
        for site, times in self._counted.items():
            if reached[site] == times:
                known = self._kept.get(site)
                self.more[site] = None if known is None else round((known[0]._version - known[1]) / known[2])
