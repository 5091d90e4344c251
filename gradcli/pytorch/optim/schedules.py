"""Schedules of schedules, and rates that go up and down again."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.pytorch.limits import check_limits
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.optim.lr_scheduler import LRScheduler, _of_groups, _set_momentum


class SequentialLR(LRScheduler):
    """One schedule after another, each from its milestone on."""

    def __init__(
        self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:  # fmt: skip
        count = len(schedulers), len(milestones)
        raise_if(count[0] - 1 != count[1], "milestones of schedules", *count)
        self._schedulers, self._milestones, self.optimizer = schedulers, milestones, optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:  # their first steps are taken back
            scheduler.last_epoch -= 1
        schedulers[0]._step_count = 0
        schedulers[0].step()
        self._last_lr = self.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        begins = index > 0 and self._milestones[index - 1] == self.last_epoch
        scheduler = self._schedulers[index]
        if begins:
            scheduler.set_epoch(0)
        else:
            scheduler.step()
        self._last_lr = self.get_last_lr()


class ChainedScheduler(LRScheduler):
    """Several schedules, each of which changes the rates that the others leave."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        self._schedulers, self.optimizer = schedulers, optimizer or schedulers[0].optimizer
        self._last_lr = self.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.get_last_lr()


class CyclicLR(LRScheduler):
    """Smith, "Cyclical learning rates for training neural networks" (2017): up and down, again and again."""

    def __init__(
        self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[Any], float] | None = None,
        scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._of(optimizer)
        if scale_fn is None:
            check_limits("CyclicLR", locals())
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.mode, self.gamma, self.scale_mode, self._scale_fn = mode, gamma, scale_mode, scale_fn
        least, self.max_lrs = (_of_groups(optimizer, *pair) for pair in (("base_lr", base_lr), ("max_lr", max_lr)))
        for group, lr in zip(optimizer.param_groups, least, strict=True) if last_epoch == -1 else ():
            group["lr"] = lr
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio, self.cycle_momentum = step_size_up / self.total_size, cycle_momentum
        if cycle_momentum:
            raise_if(not {"momentum", "betas"} & optimizer.defaults.keys(), "cycle of momentum")
            self.use_beta1 = "betas" in optimizer.defaults
            bounds = (("max_momentum", max_momentum), ("base_momentum", base_momentum))
            self.max_momentums, self.base_momentums = (_of_groups(optimizer, *pair) for pair in bounds)
            momenta = zip(optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True)
            for group, most, low in momenta if last_epoch == -1 else ():
                _set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = least

    def _rates(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True)
            for group, most, low in momenta:
                _set_momentum(group, most - (most - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def scale_fn(self, x: Any) -> float:
        """Return the factor of a cycle's height, of the number of the cycle or of the epoch."""
        if self._scale_fn is not None:
            return self._scale_fn(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]


__all__ = ["ChainedScheduler", "CyclicLR", "SequentialLR"]
for _name in __all__:
    globals()[_name].__module__ = "torch.optim.lr_scheduler"
