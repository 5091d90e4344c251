"""The steps of PyTorch's own optimizers, as events of the record: their rules are those of gradcli's optimizers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from itertools import count
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from gradcli.realtorch.mode import Recording
from gradcli.realtorch.sites import frames, site_of, user_frames
from gradcli.realtorch.values import COPIED, PLAIN, array_of
from gradcli.record.naming import Names, names_in
from gradcli.record.record import NOWHERE, Altered, CallSite, Stepped

Explain = Callable[[Stepped, CallSite], None]


class Steps:
    """Listens to the steps of all optimizers of a program.

    `wants` says, of the site of a step and how often it was reached, which `reached` counts, whether it is explained;
    `explain` gets what each that is has done; `uncounted` gets the sites when it rests, and `recording` knows what
    happened to the parameters before.
    """

    def __init__(
        self,
        wants: Callable[[CallSite, int], bool],
        explain: Explain,
        reached: Counter[CallSite],
        uncounted: set[CallSite],
        recording: Recording,
    ) -> None:
        self.wants, self.explain, self.reached, self.uncounted = wants, explain, reached, uncounted
        self.recording = recording
        self._sites: set[CallSite] = set()
        self._live: WeakSet[Any] = WeakSet()  # all optimizers
        self._made: Any = WeakIdKeyDictionary()  # when each was created, and when a parameter became one of a module
        self._clock = count(1)
        self._hooks: Sequence[Any] = ()
        # By the optimizer's identity.
        self._begun: dict[int, tuple[CallSite, Names, Sequence[Any], Altered | None]] = {}
        self._left: Any = WeakIdKeyDictionary()  # numbers of each `.grad`, and its norm, after an explained backward
        self._process = os.getpid()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen within a block."""
        self._hooks = (
            register_optimizer_step_pre_hook(self._begin),
            register_optimizer_step_post_hook(self._end),
            register_module_parameter_registration_hook(lambda module, name, p: self._create(p)),
        )
        before = torch.optim.Optimizer._patch_step_function  # which each constructor calls

        @wraps(before)
        def created(optimizer: Any) -> None:
            before(optimizer)
            self._live.add(optimizer)
            self._create(optimizer)

        torch.optim.Optimizer._patch_step_function = created
        self._patched = before, created
        try:
            yield
        finally:
            self.remove()

    def _create(self, x: Any) -> None:
        if x is not None and x not in self._made:
            self._made[x] = next(self._clock)

    def remove(self) -> None:
        """Listen no longer."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = ()
        before, created = self._patched
        if torch.optim.Optimizer._patch_step_function is created:
            torch.optim.Optimizer._patch_step_function = before

    def rest(self) -> None:
        """Listen no longer, before the program ends: what listens takes a tenth of the time of a small step."""
        self.remove()
        self.uncounted |= self._sites

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note the numbers before a step that is explained; the program goes on, whatever fails here."""
        self._begun.pop(id(optimizer), None)
        frame, _ = frames(sys._getframe(1))
        site = site_of(frame)
        if self._process != os.getpid():
            return
        self.reached[site] += 1
        self._sites.add(site)
        if not self.wants(site, self.reached[site]):
            return
        with suppress(Exception), torch._C.DisableTorchFunction(), torch.no_grad():
            names = names_in(user_frames(frame))
            from gradcli.pytorch.optim.rules import altered

            begun = [*_before(optimizer)]
            gradients = [
                (names.of(p) or "p", self._left[p], now)
                for p, *_ in begun
                if p in self._left and (now := _gradient(p)) is not None
            ]
            self._begun[id(optimizer)] = site, names, begun, altered(gradients)

    def swept(self, leaves: Iterable[torch.Tensor] | None) -> None:
        """Keep what an explained backward leaves in the `.grad` of its leaves; None is one that is not explained.

        What that changes is not known: then no gradient is told to be altered.
        """
        if leaves is None or not self._hooks:
            self._left = WeakIdKeyDictionary() if len(self._left) else self._left
            return
        with suppress(Exception), torch._C.DisableTorchFunction(), torch.no_grad():
            for x in leaves:
                self._left.pop(x, None)
                if (now := _gradient(x)) is not None:
                    self._left[x] = now

    def _end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Explain a step that is done."""
        if id(optimizer) not in self._begun:
            return
        site, names, begun, gradients = self._begun.pop(id(optimizer))
        with torch._C.DisableTorchFunction(), torch.no_grad(), suppress(Exception):
            step = self._stepped(optimizer, names, begun, gradients)
            self.explain(step, site)

    def _stepped(self, optimizer: Any, names: Names, begun: Sequence[Any], gradients: Altered | None) -> Stepped:
        """Return what a step has done, and what it has left as it was."""
        from gradcli.pytorch.optim.rules import Change, events
        from gradcli.pytorch.optim.stepped import unlisted

        changes = [
            Change(
                p, rule, before | {"p.grad": _few(p.grad)}, partial(_kept, rule, p, optimizer.state.get(p, {}), before)
            )
            for p, rule, before in begun
            if p.grad is not None and p.numel()
        ]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        some, recording = [p for p in parameters if p.grad is not None], self.recording
        cleared = [
            (recording.cleared[p], recording.reached[p])
            for p in parameters
            if p in recording.cleared and p in recording.reached
        ]
        missing = [p for p in parameters if some and p.grad is None and names.of(p)]
        return Stepped(
            len(some),
            tuple(events(type(optimizer).__name__, changes, lambda p: names.of(p) or "p")),
            gradients,
            cleared[0] if cleared else None,
            recording.last is not None,
            tuple((names.of(p), NOWHERE if p.requires_grad else recording.frozen(p)) for p in missing),
            *unlisted(names, self._live, lambda x: self._made.get(x, 0)),
        )


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


def _gradient(p: torch.Tensor) -> tuple[Any, float] | None:
    """Return some elements of the `.grad` of a tensor, of a small one all, and its norm; None of one without them."""
    g = p.grad
    if g is None or g.layout is not torch.strided or g.is_complex():
        return None
    with PLAIN():
        g = g.detach()
        some = g if g.numel() <= COPIED else g.reshape(-1)[:: -(-g.numel() // COPIED)]
        array = array_of(some)
        norm = float(torch.linalg.vector_norm(g, dtype=torch.float64))
    return None if array is None else (array.copy(), norm)


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
