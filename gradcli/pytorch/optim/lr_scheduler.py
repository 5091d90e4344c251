"""`torch.optim.lr_scheduler`: learning rates that change from epoch to epoch, and schedules of schedules."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.optim import Optimizer


def _settings(signature: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Return a constructor whose arguments are attributes of the schedule, checked by its `_check`."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        signature.__qualname__ = f"{type(self).__name__}.__init__"
        settings = signature(self, *args, **kwargs)
        optimizer, last_epoch = settings.pop("optimizer"), settings.pop("last_epoch")
        del settings["self"]
        vars(self).update(settings)
        self._check()
        LRScheduler.__init__(self, optimizer, last_epoch)

    return __init__


class LRScheduler:
    """Sets each group's learning rate for the next epoch."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a setting."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self._of(optimizer)
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial, self._get_lr_called_within_step = True, False
        self.step()
        self._is_initial = False

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

    def set_epoch(self, epoch: Any) -> None:
        """Set the rates of an epoch, or of the next one."""
        self._get_lr_called_within_step = True
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self._closed()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._get_lr_called_within_step = False
        self._last_lr = self.get_last_lr()

    def _closed(self) -> list[float]:
        """Return the rates at an epoch that a script gives."""
        return self.get_lr()

    def _check(self) -> None:
        """Check the settings."""

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
    """Multiplies the rate of each group by a factor in each epoch.

    At an epoch k that a script gives, PyTorch reckons the rate from the first one: it is multiplied by `_total(k)`.
    """

    def _rates(self) -> list[float]:
        return [lr * self._factor(self.last_epoch, i) for i, lr in enumerate(self.get_last_lr())]

    def _factor(self, k: int, i: int) -> float:
        """Return the factor of a group in an epoch."""
        raise NotImplementedError

    def _closed(self) -> list[float]:
        return [base * self._total(self.last_epoch) for base in self.base_lrs]

    def _total(self, k: int) -> float:
        raise NotImplementedError


class StepLR(_Chained):
    """Multiplies the rate by gamma every so many epochs."""

    __init__ = _settings(lambda self, optimizer, step_size, gamma=0.1, last_epoch=-1: locals())

    def _factor(self, k: int, i: int) -> float:
        return self.gamma if k and k % self.step_size == 0 else 1

    def _total(self, k: int) -> float:
        return self.gamma ** (k // self.step_size)


class MultiStepLR(_Chained):
    """Multiplies the rate by gamma at these epochs."""

    __init__ = _settings(
        lambda self, optimizer, milestones, gamma=0.1, last_epoch=-1: locals() | {"milestones": Counter(milestones)}
    )

    def _factor(self, k: int, i: int) -> float:
        return self.gamma ** self.milestones[k] if self.milestones[k] else 1

    def _total(self, k: int) -> float:
        return self.gamma ** sum(m <= k for m in self.milestones.elements())


class ExponentialLR(_Chained):
    """Multiplies the rate by gamma every epoch."""

    __init__ = _settings(lambda self, optimizer, gamma, last_epoch=-1: locals())

    def _factor(self, k: int, i: int) -> float:
        return self.gamma if k else 1

    def _total(self, k: int) -> float:
        return self.gamma**k


class LinearLR(_Chained):
    """Multiplies the first rate by a factor that goes from one to another in so many epochs."""

    __init__ = _settings(
        lambda self, optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5, last_epoch=-1: locals()
    )

    def _check(self) -> None:
        raise_if(not 0 < self.start_factor <= 1, "factor to start with")
        raise_if(not 0 <= self.end_factor <= 1, "factor to end with", "Ending")

    def _factor(self, k: int, i: int) -> float:
        rise = self.end_factor - self.start_factor
        if k > self.total_iters:
            return 1.0
        return 1.0 + rise / (self.total_iters * self.start_factor + (k - 1) * rise) if k else self.start_factor

    def _total(self, k: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * (min(self.total_iters, k) / self.total_iters)


class ConstantLR(_Chained):
    """Multiplies the first rate by a factor for so many epochs."""

    __init__ = _settings(lambda self, optimizer, factor=1 / 3, total_iters=5, last_epoch=-1: locals())

    def _check(self) -> None:
        raise_if(not 0 <= self.factor <= 1, "factor to end with", "Constant")

    def _factor(self, k: int, i: int) -> float:
        return self.factor if k == 0 else 1.0 / self.factor if k == self.total_iters else 1.0

    def _total(self, k: int) -> float:
        return self.factor if k < self.total_iters else 1.0


class PolynomialLR(_Chained):
    """Lowers the rate to 0 in so many epochs, along a power of what is left of them."""

    __init__ = _settings(lambda self, optimizer, total_iters=5, power=1.0, last_epoch=-1: locals())

    def _factor(self, k: int, i: int) -> float:
        if k == 0 or k > self.total_iters:
            return 1
        return float(((1.0 - k / self.total_iters) / (1.0 - (k - 1) / self.total_iters)) ** self.power)

    def _total(self, k: int) -> float:
        return (1.0 - min(self.total_iters, k) / self.total_iters) ** self.power


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

    _closed = LRScheduler._closed

    def _factor(self, k: int, i: int) -> float:
        return 1 if self._is_initial else self.lr_lambdas[i](k)


def _along_cosine(rates: Sequence[float], least: float, k: float, period: float) -> list[float]:
    """Return rates lowered along a cosine, which reaches the least one after a period."""
    return [least + (rate - least) * (1 + math.cos(math.pi * k / period)) / 2 for rate in rates]


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate along a cosine."""

    __init__ = _settings(lambda self, optimizer, T_max, eta_min=0.0, last_epoch=-1: locals())

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
        return _along_cosine(self.base_lrs, self.eta_min, self.last_epoch, self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the rate along a cosine, again and again, in periods of which each is longer by a factor."""

    __init__ = _settings(lambda self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1: locals())

    def _check(self) -> None:
        raise_if(not isinstance(self.T_0, int) or self.T_0 <= 0, "period of a schedule", self.T_0)
        raise_if(not isinstance(self.T_mult, int) or self.T_mult < 1, "factor of periods", self.T_mult)

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        if epoch is None:
            super().step()
        else:
            self.set_epoch(epoch)
            self.last_epoch = math.floor(epoch)

    def _rates(self) -> list[float]:
        self.T_i, self.T_cur = self.T_0, self.last_epoch
        while self.T_cur >= self.T_i:
            self.T_i, self.T_cur = self.T_i * self.T_mult, self.T_cur - self.T_i
        return _along_cosine(self.base_lrs, self.eta_min, self.T_cur, self.T_i)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by a factor when a loss has not become better for some epochs."""

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        raise_if(factor >= 1, "factor of a plateau")
        raise_if(mode not in ("min", "max"), "mode of a plateau", "mode", mode)
        raise_if(threshold_mode not in ("rel", "abs"), "mode of a plateau", "threshold mode", threshold_mode)
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
        raise_if(anneal_strategy not in ("cos", "linear"), "shape of a cycle", anneal_strategy)
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
            raise_if(not _has_momentum(optimizer), "cycle without momentum")
            self.use_beta1, *_ = _momenta(optimizer, max_momentum, base_momentum, last_epoch)
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
            raise_if(mode not in ("triangular", "triangular2", "exp_range"), "mode of cycles")
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.mode, self.gamma, self.scale_mode, self._scale_fn_custom = mode, gamma, scale_mode, scale_fn
        least, self.max_lrs = (_of_groups(optimizer, *pair) for pair in (("base_lr", base_lr), ("max_lr", max_lr)))
        for group, lr in zip(optimizer.param_groups, least, strict=True) if last_epoch == -1 else ():
            group["lr"] = lr
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio, self.cycle_momentum = step_size_up / self.total_size, cycle_momentum
        if cycle_momentum:
            raise_if(not _has_momentum(optimizer), "cycle of momentum")
            self.use_beta1, self.max_momentums, self.base_momentums = _momenta(
                optimizer, max_momentum, base_momentum, last_epoch
            )
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
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]


def _total(total: Any, epochs: Any, steps: Any) -> int:
    """Return how many steps a cycle has."""
    raise_if(total is None and (epochs is None or steps is None), "no steps of a cycle")
    lengths = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps}
    for name, count in lengths.items():
        raise_if(not isinstance(count, int) or count <= 0, "count of a cycle", name, count)
    return math.prod(lengths.values())


def _has_momentum(optimizer: Any) -> bool:
    return bool({"momentum", "betas"} & optimizer.defaults.keys())


def _momenta(optimizer: Any, most: Any, least: Any, last_epoch: int) -> tuple[bool, Any, Any]:
    """Return whether the momentum is the first of `betas`, and its bounds for each group; begin at the upper ones."""
    bounds = [_of_groups(optimizer, *pair) for pair in (("max_momentum", most), ("base_momentum", least))]
    for group, high, low in zip(optimizer.param_groups, *bounds, strict=True) if last_epoch == -1 else ():
        _set_momentum(group, high)
        group["max_momentum"], group["base_momentum"] = high, low
    return "betas" in optimizer.defaults, bounds[0], bounds[1]


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


class _LRScheduler(LRScheduler):
    """The name of old, which scripts import."""


ELSEWHERE = {"_LRScheduler": "optim.lr_scheduler"}
for _class in [v for v in vars().values() if isinstance(v, type) and issubclass(v, LRScheduler)]:
    _class.__module__ = "torch.optim.lr_scheduler"
