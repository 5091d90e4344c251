"""`torch.optim.lr_scheduler`: learning rates that change from epoch to epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any


class LRScheduler:
    """Sets each group's learning rate for the next epoch."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every so many epochs."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self.get_last_lr()
        return [lr * self.gamma for lr in self.get_last_lr()]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at these epochs."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.gamma ** self.milestones.count(self.last_epoch) for lr in self.get_last_lr()]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self.get_last_lr() if self.last_epoch == 0 else [lr * self.gamma for lr in self.get_last_lr()]


class LambdaLR(LRScheduler):
    """Multiplies the first rate by what a function says of the epoch."""

    def __init__(self, optimizer: Any, lr_lambda: Callable[[int], float] | Sequence[Any], last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]  # type: ignore[operator]


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate along a cosine."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        k, least = self.last_epoch, self.eta_min
        if k == 0:
            return self.get_last_lr()
        if (k - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [
                lr + (base - least) * (1 - math.cos(math.pi / self.T_max)) / 2
                for base, lr in zip(self.base_lrs, self.get_last_lr(), strict=True)
            ]
        ratio = (1 + math.cos(math.pi * k / self.T_max)) / (1 + math.cos(math.pi * (k - 1) / self.T_max))
        return [ratio * (lr - least) + least for lr in self.get_last_lr()]


_LRScheduler = LRScheduler
