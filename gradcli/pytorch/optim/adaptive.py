"""Optimizers that scripts use less: variants of Adam, steps by signs alone, and averaged steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.optim import Optimizer, _settings
from gradcli.pytorch.tensor import Tensor, of_array


class Adamax(Optimizer):
    """Adam by the largest gradient: Kingma and Ba (2015), algorithm 2."""

    __init__ = _settings(
        lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *,
        maximize=False, differentiable=False, capturable=False: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        (beta1, beta2), t = group["betas"], self._counted(p)
        mean, most = self._kept(p, "exp_avg"), self._kept(p, "exp_inf")
        mean += (1 - beta1) * (g - mean)
        most[...] = np.maximum(beta2 * most, np.abs(g) + group["eps"])
        p._a -= float(group["lr"]) / (1 - beta1**t) * mean / most


class NAdam(Optimizer):
    """Dozat, "Incorporating Nesterov momentum into Adam" (2016)."""

    __init__ = _settings(
        lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
        decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, t = group["betas"], float(group["lr"]), self._counted(p)
        self._decay(p, group)
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (t, t + 1))
        product = self.state[p]["mu_product"] = self.state[p].get("mu_product", 1.0) * now
        mean, square = self._moments(p, g, group["betas"])
        root = np.sqrt(square / (1 - beta2**t)) + group["eps"]
        p._a -= lr * ((1 - now) / (1 - product) * g + then / (1 - product * then) * mean) / root


class RAdam(Optimizer):
    """Liu et al., "On the variance of the adaptive learning rate and beyond" (2020)."""

    __init__ = _settings(
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, t = group["betas"], float(group["lr"]), self._counted(p)
        self._decay(p, group)
        mean, square = self._moments(p, g, group["betas"])
        step = lr / (1 - beta1**t) * mean
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * t * beta2**t / (1 - beta2**t)  # of the average of squares
        if length > 5:
            share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            step = step * (share * (1 - beta2**t)) ** 0.5 / (np.sqrt(square) + group["eps"])
        p._a -= step


class Rprop(Optimizer):
    """Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993)."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize=False, differentiable=False: locals(),
        "lr", "etas", "step_sizes", "foreach",
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        self._counted(p)
        before, size = self._kept(p, "prev"), self._kept(p, "step_size", float(group["lr"]))
        same = np.sign(g * before)  # 1 where the gradient keeps its sign, -1 where it changes it
        shrink, grow = group["etas"]
        np.clip(size * np.where(same > 0, grow, np.where(same < 0, shrink, 1)), *group["step_sizes"], out=size)
        before[...] = np.where(same < 0, 0, g)
        p._a -= np.sign(before) * size


class ASGD(Optimizer):
    """Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992)."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
        differentiable=False, capturable=False: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        t, lr = self._counted(p), float(group["lr"])
        first = {"eta": lr, "mu": 1}
        rate, share = (self.state[p].setdefault(k, of_array(np.array(v, np.float32)))._a for k, v in first.items())
        mean = self._kept(p, "ax")
        p._a[...] = p._a * (1 - group["lambd"] * rate) - rate * g
        mean += (p._a - mean) * share
        rate[...] = lr / (1 + group["lambd"] * lr * t) ** group["alpha"]
        share[...] = 1 / max(1, t - group["t0"])


__all__ = ["ASGD", "Adamax", "NAdam", "RAdam", "Rprop"]
for _name in __all__:
    globals()[_name].__module__ = f"torch.optim.{_name.lower()}"
