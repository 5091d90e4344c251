"""`torch.optim`: what changes parameters by their gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradcli.pytorch.limits import check_limits
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, typename, warn
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.nn.module import forget
from gradcli.pytorch.record import Recorder, script_line
from gradcli.pytorch.tensor import Tensor, new, of_array


class Optimizer:
    """Parameters in groups, each with its settings, and what is kept for each parameter."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise torch_error("parameters in a tensor", params.type())  # type: ignore[attr-defined]
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        raise_if(not groups, "no parameters")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __getattr__(self, name: str) -> Any:
        missing_if(name.startswith("register_"), f"torch.optim.Optimizer.{name}")
        raise torch_error("unknown attribute", type(self).__name__, name)

    def add_param_group(self, group: dict[str, Any]) -> None:
        raise_if(isinstance(group["params"], set), "parameters in a set")
        entries = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        names = [p[0] for p in entries if isinstance(p, tuple)]
        tensors = [p[1] if isinstance(p, tuple) else p for p in entries]
        for p in tensors:
            raise_if(not isinstance(p, Tensor), "parameter that is no tensor", typename(p))
            raise_if(not p.is_leaf and not p.retains_grad, "parameter that is no leaf")
        if len(set(map(id, tensors))) < len(tensors):
            warn("parameter listed twice")
        raise_if({*map(id, tensors)} & {*map(id, self._parameters())}, "parameter in two groups")
        named = {"param_names": names} if names else {}
        self.param_groups.append({"params": tensors, **named, **self.defaults, **group} | {"params": tensors})

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        forget(self._parameters(), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        self._opt_called, loss = True, None
        if closure is not None:
            with enable_grad():
                loss = closure()
        done = []
        with np.errstate(all="ignore"):
            for p, group in [(p, g) for g in self.param_groups for p in g["params"] if p._grad is not None]:
                before = (p._a.copy(), self._first_kept(p)) if Recorder.explains else None
                self._change(p, _downhill(p, group), group)
                p._memory.version += 1
                if before is not None:
                    p._memory.changed = (script_line(), "step")
                    done.append((p, *before, group))
        if Recorder.stepped is not None:
            Recorder.stepped(self, done)
        return loss

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        """Change a parameter, given what the loss grows along."""
        raise NotImplementedError

    def _first_kept(self, p: Tensor) -> dict[str, float]:
        """Return the first element of each array that is kept for a parameter."""
        arrays = {name: x._a for name, x in self.state.get(p, {}).items() if isinstance(x, Tensor)}
        return {name: float(a.reshape(-1)[0]) for name, a in arrays.items() if a.size}

    def _kept(self, p: Tensor, name: str, first: float = 0) -> Any:
        """Return an array that is kept for a parameter, of zeros at first."""
        return self.state[p].setdefault(name, new(np.full_like(p._a, first)))._a

    def _counted(self, p: Tensor) -> Any:
        """Return which step of a parameter this is."""
        count = self.state[p].setdefault("step", of_array(np.zeros((), np.float32)))
        count._a[...] += 1
        return count.item()

    def _decay(self, p: Tensor, group: dict[str, Any]) -> None:
        """Apply a weight decay that is not a part of the gradient: Loshchilov and Hutter (2019)."""
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p._a *= 1 - float(group["lr"]) * group["weight_decay"]

    def _moments(self, p: Tensor, g: Any, betas: tuple[float, float]) -> tuple[Any, Any]:
        """Return the running means of the gradient and of its square, with this gradient: Kingma and Ba (2015)."""
        (beta1, beta2), mean, square = betas, self._kept(p, "exp_avg"), self._kept(p, "exp_avg_sq")
        mean[...] = plus_scaled(mean, 1 - beta1, g - mean)
        square[...] = plus_scaled(beta2 * square, g, (1 - beta2) * g)
        return mean, square

    def state_dict(self) -> dict[str, Any]:
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        groups = [_settings_of(g) | {"params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        listed, current, groups = self._parameters(), self.param_groups, state_dict.copy()["param_groups"]
        raise_if(len(current) != len(groups), "count of groups")
        sizes = [[len(g["params"]) for g in part] for part in (current, groups)]
        raise_if(sizes[0] != sizes[1], "sizes of groups")
        self.state.update({listed[i]: dict(s) for i, s in state_dict["state"].items()})
        for group, loaded in zip(current, groups, strict=True):
            group.update(_settings_of(loaded))

    def __repr__(self) -> str:
        groups = [(i, sorted(_settings_of(group).items())) for i, group in enumerate(self.param_groups)]
        shown = (f"Parameter Group {i}\n" + "".join(f"    {k}: {v}\n" for k, v in items) for i, items in groups)
        return f"{type(self).__name__} (\n" + "\n".join(shown) + ")"


def _settings_of(group: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in group.items() if k != "params"}


def _downhill(p: Tensor, group: Mapping[str, Any]) -> Any:
    """Return the direction of ascent: the gradient (its negative to maximize) plus that of the weight decay."""
    g = p._grad._a  # type: ignore[union-attr]
    g = -g if group.get("maximize") else g
    if group.get("weight_decay") and not group.get("decoupled_weight_decay"):
        g = plus_scaled(g, group["weight_decay"], p._a)
    return g


def plus_scaled(a: Any, factor: Any, b: Any) -> Any:
    """Return `a + factor*b`, rounded once where it is float32, as by the FMA of PyTorch's `add_` with an `alpha`.

    >>> plus_scaled(np.float32([1]), -0.1, np.float32([10]))
    array([-1.4901161e-08], dtype=float32)
    """
    if a.dtype != np.float32:
        return a + factor * b
    return (a + np.float32(factor) * b.astype(np.float64)).astype(np.float32)


def _settings(signature: Callable[..., dict[str, Any]], *first: str, **more: Any) -> Callable[..., None]:
    """Return a constructor whose arguments are the settings of all groups; some stand first there, and some are more.

    Errors: `ValueError` for one that is out of its range.
    """

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        signature.__qualname__ = f"{type(self).__name__}.__init__"
        settings = signature(self, *args, **kwargs)
        params = settings.pop("params")
        check_limits(type(self).__name__, settings)
        raise_if(
            settings.get("nesterov") and (settings["momentum"] <= 0 or settings["dampening"] != 0), "nesterov alone"
        )
        Optimizer.__init__(self, params, {k: settings[k] for k in (*first, *settings) if k != "self"} | more)

    return __init__


class SGD(Optimizer):
    """w ← w - lr·(gradient, with momentum and weight decay)."""

    __init__ = _settings(
        lambda self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
        maximize=False, foreach=None, differentiable=False, fused=None: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        if group["momentum"]:
            before = self.state[p].get("momentum_buffer")
            if before is None:
                self.state[p]["momentum_buffer"] = new(np.array(g))
            else:
                before._a[...] = plus_scaled(group["momentum"] * before._a, 1 - group["dampening"], g)
            velocity = self.state[p]["momentum_buffer"]._a
            g = plus_scaled(g, group["momentum"], velocity) if group["nesterov"] else velocity
        p._a[...] = plus_scaled(p._a, -float(group["lr"]), g)


def _adam(decay: float) -> Callable[..., dict[str, Any]]:
    return (
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=decay, amsgrad=False, *,
        maximize=False, foreach=None, capturable=False, differentiable=False, fused=None: locals()
    )  # fmt: skip


class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization" (2015)."""

    __init__ = _settings(_adam(0), decoupled_weight_decay=False)

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, t = group["betas"], float(group["lr"]), self._counted(p)
        self._decay(p, group)
        mean, square = self._moments(p, g, group["betas"])
        if group["amsgrad"]:
            most = self._kept(p, "max_exp_avg_sq")
            square = np.maximum(most, square, out=most)
        root = np.sqrt(square) / (1 - beta2**t) ** 0.5 + group["eps"]
        p._a -= lr / (1 - beta1**t) * mean / root


class AdamW(Adam):
    """Loshchilov and Hutter, "Decoupled weight decay regularization" (2019)."""

    __init__ = _settings(_adam(1e-2), decoupled_weight_decay=True)


class RMSprop(Optimizer):
    """The gradient over the root of the mean of its squares."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
        capturable=False, foreach=None, maximize=False, differentiable=False: locals(),
        "lr", "momentum", "alpha", "eps", "centered",
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        alpha, lr = group["alpha"], float(group["lr"])
        self._counted(p)
        square = self._kept(p, "square_avg")
        square[...] = plus_scaled(alpha * square, g, (1 - alpha) * g)
        velocity: Any = self._kept(p, "momentum_buffer") if group["momentum"] > 0 else 0
        spread = square
        if group["centered"]:
            mean = self._kept(p, "grad_avg")
            mean += (1 - alpha) * (g - mean)
            spread = square - mean * mean
        step = g / (np.sqrt(spread) + group["eps"])
        if group["momentum"]:
            velocity[...] = step = group["momentum"] * velocity + step
        p._a -= lr * step


class Adagrad(Optimizer):
    """The gradient over the root of the sum of its squares."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
        foreach=None, *, maximize=False, differentiable=False, fused=None: locals(),
        "lr", "lr_decay", "eps",
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        rate = float(group["lr"]) / (1 + (self._counted(p) - 1) * group["lr_decay"])
        square = self._kept(p, "sum", group["initial_accumulator_value"])
        square[...] = plus_scaled(square, g, g)
        p._a -= rate * g / (np.sqrt(square) + group["eps"])


class Adadelta(Optimizer):
    """The gradient, by the roots of the means of its squares and of those of the steps."""

    __init__ = _settings(
        lambda self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
        maximize=False, differentiable=False: locals(),
        "lr", "rho", "eps", "weight_decay", "maximize", "capturable",
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        self._counted(p)
        square, steps = self._kept(p, "square_avg"), self._kept(p, "acc_delta")
        square[...] = plus_scaled(rho * square, g, (1 - rho) * g)
        step = np.sqrt(steps + eps) / np.sqrt(square + eps) * g
        steps[...] = plus_scaled(rho * steps, step, (1 - rho) * step)
        p._a[...] = plus_scaled(p._a, -float(group["lr"]), step)


ELSEWHERE = {"LBFGS": "optim.lbfgs"}
ELSEWHERE |= dict.fromkeys(("ASGD", "Adamax", "NAdam", "RAdam", "Rprop"), "optim.adaptive")
__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop"]
for _name in __all__:
    globals()[_name].__module__ = f"torch.optim.{_name.lower()}"
