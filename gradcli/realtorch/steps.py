"""The steps of PyTorch's own optimizers, as events of the record: their rules are those of gradcli's optimizers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradcli.realtorch.names import Names
from gradcli.realtorch.sites import frames, site_of, user_frames
from gradcli.realtorch.updates import Updates
from gradcli.realtorch.values import PLAIN, array_of
from gradcli.record.record import CallSite, OptimizerStep


class Steps:
    """Listens to the steps of all optimizers of a program.

    `wants` says, of the site of a step and how often it was reached, which `reached` counts, whether it is explained;
    `explain` gets the events of each that is, and `updates` the parameters.
    """

    def __init__(
        self,
        wants: Callable[[CallSite, int], bool],
        explain: Callable[[Sequence[OptimizerStep], CallSite], None],
        reached: Counter[CallSite],
        updates: Updates,
    ) -> None:
        self.wants, self.explain, self.reached, self.updates = wants, explain, reached, updates
        self._hooks: Sequence[Any] = ()
        self._begun: dict[int, tuple[CallSite, Mapping[int, str], Sequence[Any]]] = {}  # by the optimizer's identity
        self._process = os.getpid()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen within a block."""
        self._hooks = register_optimizer_step_pre_hook(self._begin), register_optimizer_step_post_hook(self._end)
        try:
            yield
        finally:
            self.remove()

    def remove(self) -> None:
        """Listen no longer."""
        for hook in self._hooks:
            hook.remove()

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note the numbers before a step that is explained; the program goes on, whatever fails here."""
        self._begun.pop(id(optimizer), None)
        frame, _ = frames(sys._getframe(1))
        site = site_of(frame)
        if self._process != os.getpid():
            return
        self.reached[site] += 1
        if not self.wants(site, self.reached[site]):
            return
        with suppress(Exception), torch._C.DisableTorchFunction(), torch.no_grad():
            names = {id(x): name for name, x in Names(user_frames(frame)).tensors.items()}
            self._begun[id(optimizer)] = site, names, [*_before(optimizer)]

    def _end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Explain a step that is done."""
        if id(optimizer) not in self._begun:
            return
        from gradcli.pytorch.optim.rules import Change, events

        site, names, begun = self._begun.pop(id(optimizer))
        steps: list[OptimizerStep] = []
        with suppress(Exception), torch._C.DisableTorchFunction(), torch.no_grad():
            changes = [
                Change(
                    p,
                    rule,
                    before | {"p.grad": _few(p.grad)},
                    partial(_kept, rule, p, optimizer.state.get(p, {}), before),
                )
                for p, rule, before in begun
                if p.grad is not None and p.numel()
            ]
            steps = events(type(optimizer).__name__, changes, lambda p: names.get(id(p), "p"))
        if steps:
            self.updates.watch(site, self.reached[site], [p for p, *_ in begun], due=0)
            with torch._C.DisableTorchFunction():
                self.explain(steps, site)


def _before(optimizer: Any) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Yield each parameter, its rule, and the numbers that the rule starts from, but for the gradient."""
    from gradcli.pytorch.optim import rule_of

    name = next((c.__name__ for c in type(optimizer).__mro__ if c.__module__.startswith("torch.optim.")), "")
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            is_first = all(x is None for x in state.values())
            if (rule := rule_of(name, group, is_first)) is not None:
                first = {
                    rule.names[n]: np.asarray(float(group[s.first] if isinstance(s.first, str) else s.first))
                    for n, s in rule.states.items()
                }
                settings = dict(zip(rule.settings, rule.numbers_of(group), strict=True))
                yield p, rule, settings | _kept(rule, p, state, first)


def _kept(rule: Any, p: Any, state: Mapping[str, Any], otherwise: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a parameter and of what is kept for it, or else others."""
    kept = {rule.names[n]: state.get(s.name) for n, s in rule.states.items()}
    kept |= {name: state[name] for name in ("n_iter",) if name in state}  # of L-BFGS, which has no rule
    return {"p": _few(p)} | {name: otherwise[name] if x is None else _few(x) for name, x in kept.items()}


def _few(x: Any) -> Any:
    """Return the numbers of a tensor of few elements, or the first number of another."""
    from gradcli.pytorch.optim.rules import SHOWN

    if not isinstance(x, torch.Tensor):
        return np.asarray(float(x))
    with PLAIN():
        array = array_of(x if x.numel() <= SHOWN else x[(0,) * x.dim()])
    if array is None:
        raise ValueError("a tensor without numbers")
    return array.copy()
