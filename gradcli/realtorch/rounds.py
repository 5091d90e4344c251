"""The first rounds of each line that calls `backward`: the loss, and what is added to each `.grad`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch

from gradcli.realtorch.sweep import Leaf, is_leaf, nodes_behind
from gradcli.realtorch.values import PLAIN, array_of, tensors_in
from gradcli.record.record import CallSite, Left

_MOST = 2**20  # numbers in the leaves of a call that is looked at

# Gets the site of a call, its loss, the norm of what it has added, what is left, and whether the call is explained.
Count = Callable[[CallSite, float | None, float, Sequence[Left], bool], None]


class Round(NamedTuple):
    """A call: its loss, and the leaves that it reaches, each with its `.grad` before."""

    loss: float | None
    leaves: Sequence[tuple[torch.Tensor, torch.Tensor | None]]


class Rounds:
    """Looks at calls of `backward` as long as there is a `count`, and tells it of each what it has left in `.grad`."""

    def __init__(self, count: Count | None) -> None:
        self.count = count

    def begin(self, name: str, given: dict[str, Any]) -> Round | None:
        """Return a call that is about to run, and is not explained; None of one that is not looked at."""
        if self.count is None or name != "backward":
            return None
        with suppress(Exception), PLAIN(), torch.no_grad():
            roots, inputs = [*tensors_in(given.get("tensors"))], given.get("inputs")
            if inputs is None:
                nodes = nodes_behind(y.grad_fn for y in roots if y.grad_fn is not None)
                leaves = [y for y in roots if y.is_leaf] + [node.variable for node in nodes if is_leaf(node)]
            else:
                leaves = [x for x in tensors_in(inputs) if x.is_leaf]
            if sum(x.numel() for x in leaves) <= _MOST:
                before = [(x, None if x.grad is None else x.grad.detach().clone()) for x in leaves]
                return Round(_loss(roots), before)
        return None

    def end(self, site: CallSite, begun: Round | None) -> None:
        """Tell of a call that is done."""
        if begun is not None:
            self._tell(site, begun, False)

    def explained(self, site: CallSite, name: str, roots: Sequence[torch.Tensor], leaves: Iterable[Leaf]) -> None:
        """Tell of a call that is done, and explained."""
        if name == "backward":
            known = [x for x in leaves if x.added is not None and x.after is not None]
            is_small = sum(x.tensor.numel() for x in known) <= _MOST
            done = Round(_loss(roots) if is_small else None, [(x.tensor, x.before) for x in known])
            self._tell(site, done, True, is_small)

    def _tell(self, site: CallSite, done: Round, explained: bool, is_small: bool = True) -> None:
        if self.count is None:
            return
        with suppress(Exception), PLAIN(), torch.no_grad():  # the program goes on, whatever fails here
            left, norm = [], 0.0
            for x, before in done.leaves:
                after = array_of(x.grad) if x.grad is not None and is_small else None
                old = None if before is None or after is None else array_of(before)
                if after is not None:
                    norm = math.hypot(norm, float(np.linalg.norm((after if old is None else after - old).reshape(-1))))
                points = [None if a is None else a[..., None] for a in (old, after)]
                left.append(Left(id(x), points[0], points[1], x._version))
            self.count(site, done.loss, norm, left, explained)


def _loss(roots: Sequence[torch.Tensor]) -> float | None:
    return roots[0].detach().item() if len(roots) == 1 and roots[0].numel() == 1 else None
