"""`torch.optim.lr_scheduler`: learning rates that change from epoch to epoch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.pytorch.limits import check_limits
from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.optim import Optimizer


class LRScheduler:
    """Sets each group's learning rate for the next epoch."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self._of(optimizer)
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = self._get_lr_called_within_step = False
        self.step()

    def _of(self, optimizer: Any) -> None:
        raise_if(not isinstance(optimizer, Optimizer), "no optimizer", type(optimizer).__name__)
        self.optimizer = optimizer

    def get_lr(self) -> list[float]:
        if not self._get_lr_called_within_step:
            warn("rate outside a step")
        return self._rates()

    def _rates(self) -> list[float]:
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warn("schedule before the step")
        if epoch is not None:
            warn("schedule with an epoch")
        self._step_count += 1
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int | None) -> None:
        """Set the rates of an epoch, or of the next one."""
        self._get_lr_called_within_step = True
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self._closed()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._get_lr_called_within_step = False
        self._last_lr = self.get_last_lr()

    def _closed(self) -> list[float]:
        """Return the rates at an epoch that a script gives, which PyTorch reckons from the first ones where it can."""
        return self.get_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler, without functions."""
        state = {k: v for k, v in vars(self).items() if k not in ("optimizer", "lr_lambdas")}
        return state | ({"lr_lambdas": [None] * len(self.lr_lambdas)} if hasattr(self, "lr_lambdas") else {})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state of the scheduler."""
        vars(self).update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


class _Chained(LRScheduler):
    """Multiplies the rate of each group by a factor, from the second epoch on."""

    def _rates(self) -> list[float]:
        last = self.get_last_lr()
        return [lr * self._factor(i) for i, lr in enumerate(last)] if self.last_epoch else last

    def _factor(self, i: int) -> float:
        raise NotImplementedError


class StepLR(_Chained):
    """Multiplies the rate by gamma every so many epochs."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, i: int) -> float:
        return 1 if self.last_epoch % self.step_size else self.gamma

    def _closed(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(_Chained):
    """Multiplies the rate by gamma at these epochs."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, i: int) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def _closed(self) -> list[float]:
        reached = sum(m <= self.last_epoch for m in self.milestones.elements())
        return [base * self.gamma**reached for base in self.base_lrs]


class ExponentialLR(_Chained):
    """Multiplies the rate by gamma every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, i: int) -> float:
        return self.gamma

    def _closed(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class LambdaLR(LRScheduler):
    """Multiplies the first rate by what a function says of the epoch."""

    def __init__(self, optimizer: Any, lr_lambda: Callable[[int], float] | Sequence[Any], last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        raise_if(len(self.lr_lambdas) != count, "functions of groups", count, len(self.lr_lambdas))
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_Chained, LambdaLR):
    """Multiplies the rate by what a function says of the epoch."""

    def _factor(self, i: int) -> float:
        return self.lr_lambdas[i](self.last_epoch)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the rate along a cosine, again and again, in periods of which each is longer by a factor."""

    def __init__(
        self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:  # fmt: skip
        check_limits("CosineAnnealingWarmRestarts", locals())
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        if epoch is None:
            super().step()
            return
        self.last_epoch = epoch  # type: ignore[assignment]
        for group, lr in zip(self.optimizer.param_groups, self._rates(), strict=True):
            group["lr"] = lr
        self.last_epoch, self._last_lr = math.floor(epoch), self.get_last_lr()

    def _rates(self) -> list[float]:
        self.T_i, self.T_cur = self.T_0, self.last_epoch
        while self.T_cur >= self.T_i:
            self.T_i, self.T_cur = self.T_i * self.T_mult, self.T_cur - self.T_i
        share = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]


class LinearLR(_Chained):
    """Multiplies the first rate by a factor that goes from one to another in so many epochs."""

    def __init__(
        self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_limits("LinearLR", locals())
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        return super()._rates() if self.last_epoch else [lr * self.start_factor for lr in self.get_last_lr()]

    def _factor(self, i: int) -> float:
        if self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _closed(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ConstantLR(_Chained):
    """Multiplies the first rate by a factor for so many epochs."""

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        check_limits("ConstantLR", locals())
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        return super()._rates() if self.last_epoch else [lr * self.factor for lr in self.get_last_lr()]

    def _factor(self, i: int) -> float:
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _closed(self) -> list[float]:
        return [base * (self.factor if self.last_epoch < self.total_iters else 1.0) for base in self.base_lrs]


class PolynomialLR(_Chained):
    """Lowers the rate to 0 in so many epochs, along a power of what is left of them."""

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, i: int) -> float:
        if self.last_epoch > self.total_iters:
            return 1.0
        left, before = (1.0 - k / self.total_iters for k in (self.last_epoch, self.last_epoch - 1))
        return float((left / before) ** self.power)

    def _closed(self) -> list[float]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate along a cosine."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        k, least, last = self.last_epoch, self.eta_min, self.get_last_lr()
        if k == 0:
            return last
        if (k - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the least rate on
            rise = 1 - math.cos(math.pi / self.T_max)
            return [lr + (base - least) * rise / 2 for base, lr in zip(self.base_lrs, last, strict=True)]
        ratio = (1 + math.cos(math.pi * k / self.T_max)) / (1 + math.cos(math.pi * (k - 1) / self.T_max))
        return [ratio * (lr - least) + least for lr in last]

    def _closed(self) -> list[float]:
        share = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by a factor when a loss has not become better for some epochs."""

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        check_limits("ReduceLROnPlateau", locals())
        self._of(optimizer)
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lrs = list(min_lr) if isinstance(min_lr, list | tuple) else [min_lr] * len(optimizer.param_groups)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        if epoch is not None:
            warn("schedule with an epoch")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        current = float(metrics)
        better = self.is_better(current, self.best)
        self.best, self.num_bad_epochs = (current, 0) if better else (self.best, self.num_bad_epochs + 1)
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                lr = max(float(group["lr"]) * self.factor, least)
                group["lr"] = lr if group["lr"] - lr > self.eps else group["lr"]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.get_last_lr()

    def is_better(self, a: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        edge = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return sign * a > sign * edge


# From which rate and momentum to which each phase of a cycle goes, by the names that they have in a group.
_RISING = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
_PHASES = (_RISING, ("max_lr", "min_lr", "base_momentum", "max_momentum"))
_THREE_PHASES = (
    _RISING,
    ("max_lr", "initial_lr", "base_momentum", "max_momentum"),
    ("initial_lr", "min_lr", "max_momentum", "max_momentum"),
)


class OneCycleLR(LRScheduler):
    """Raises the rate to a maximum and lowers it far below where it began; the momentum goes the other way."""

    def __init__(
        self, optimizer: Any, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._of(optimizer)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        fits = isinstance(pct_start, float) and 0 <= pct_start <= 1
        raise_if(not fits, "share of a cycle", pct_start)
        check_limits("OneCycleLR", locals())
        self._anneal_func_type = anneal_strategy
        ends = [float(k * pct_start * self.total_steps) - k for k in ((1, 2) if three_phase else (1,))]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        phases = zip([*ends, self.total_steps - 1], _THREE_PHASES if three_phase else _PHASES, strict=True)
        self._schedule_phases: list[dict[str, Any]] = [
            dict(zip(names, (end, *phase), strict=True)) for end, phase in phases
        ]
        rates = _of_groups(optimizer, "max_lr", max_lr)
        for group, lr in zip(optimizer.param_groups, rates, strict=True) if last_epoch == -1 else ():
            group["initial_lr"], group["max_lr"] = lr / div_factor, lr
            group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            raise_if(not {"momentum", "betas"} & optimizer.defaults.keys(), "cycle without momentum")
            self.use_beta1 = "betas" in optimizer.defaults
            bounds = (("max_momentum", max_momentum), ("base_momentum", base_momentum))
            momenta = [_of_groups(optimizer, name, value) for name, value in bounds]
            for group, most, least in zip(optimizer.param_groups, *momenta, strict=True) if last_epoch == -1 else ():
                _set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, least
        super().__init__(optimizer, last_epoch)

    def _annealed(self, start: float, end: float, share: float) -> float:
        """Return a number on the way from the start to the end."""
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def _rates(self) -> list[float]:
        step, begin = self.last_epoch, 0.0
        raise_if(step > self.total_steps, "steps of a cycle", step, self.total_steps)
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share, rates = (step - begin) / (phase["end_step"] - begin), []
        for group in self.optimizer.param_groups:
            rates.append(self._annealed(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self._annealed(start, end, share))
        return rates


def _total(total: Any, epochs: Any, steps: Any) -> int:
    """Return how many steps a cycle has."""
    raise_if(total is None and (epochs is None or steps is None), "no steps of a cycle")
    lengths = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps}
    for name, count in lengths.items():
        raise_if(not isinstance(count, int) or count <= 0, "count of a cycle", name, count)
    return math.prod(lengths.values())


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set the momentum of a group, or the first of its `betas`."""
    group |= {"betas": (momentum, *group["betas"][1:])} if "betas" in group else {"momentum": momentum}


def _of_groups(optimizer: Any, name: str, value: Any) -> list[Any]:
    """Return a setting of a scheduler for each group."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * count
    raise_if(len(value) != count, "setting for each group", name, len(value), count)
    return list(value)


class _LRScheduler(LRScheduler):
    """The name of old, which scripts import."""


ELSEWHERE = {"_LRScheduler": "optim.lr_scheduler"}
ELSEWHERE |= dict.fromkeys(("ChainedScheduler", "CyclicLR", "SequentialLR"), "optim.schedules")
for _class in [v for v in vars().values() if isinstance(v, type) and issubclass(v, LRScheduler)]:
    _class.__module__ = "torch.optim.lr_scheduler"
