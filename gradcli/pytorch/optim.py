"""`torch.optim`: what changes parameters by their gradients."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.record import Recorder, script_line
from gradcli.pytorch.tensor import Tensor


class Optimizer:
    """Parameters in groups, each with its settings, and what is kept for each parameter."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()  # type: ignore[attr-defined]
            )
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        own = group["params"]
        own = [own] if isinstance(own, Tensor) else list(own)
        named = [p[0] for p in own if isinstance(p, tuple)]
        own = [p[1] if isinstance(p, tuple) else p for p in own]
        for p in own:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf and not p.retains_grad:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(set(map(id, own))) < len(own):
            warnings.warn(_DUPLICATES, UserWarning, stacklevel=3)
        if {id(p) for p in own} & {id(p) for g in self.param_groups for p in g["params"]}:
            raise ValueError("some parameters appear in more than one parameter group")
        names = {"param_names": named} if named else {}
        given = {k: v for k, v in group.items() if k != "params"}
        self.param_groups.append({"params": own, **names, **self.defaults, **given})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if set_to_none:
                        p._grad = None
                    else:
                        p._grad._a[...] = 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; a closure computes the loss first, with its gradients."""
        self._opt_called, loss = True, None
        if closure is not None:
            with enable_grad():
                loss = closure()
        done = []
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        before = p._a.copy() if Recorder.explains else None
                        self._change(p, _downhill(p, group), group)
                        p._memory.version += 1
                        if Recorder.explains:
                            p._memory.changed = (script_line(), "step")
                            done.append((p, before, group))
        if Recorder.stepped is not None and done:
            Recorder.stepped(self, done)
        return loss

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        """Change a parameter, given what the loss grows along."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Return settings and what is kept, by the numbers of the parameters."""
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        groups = [{**{k: v for k, v in g.items() if k != "params"}, "params": g["params"]} for g in groups]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over settings and what was kept."""
        listed = [p for group in self.param_groups for p in group["params"]]
        self.state.update({listed[i]: dict(s) for i, s in state_dict["state"].items()})
        for own, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            own.update({k: v for k, v in given.items() if k != "params"})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


_DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)


def _downhill(p: Tensor, group: Mapping[str, Any]) -> Any:
    """Return what the loss grows along: the gradient, or minus it to maximize, and that of the weight decay."""
    g = p._grad._a  # type: ignore[union-attr]
    g = -g if group.get("maximize") else g
    if group.get("weight_decay") and not group.get("decoupled_weight_decay"):
        g = g + p._a.dtype.type(group["weight_decay"]) * p._a
    return g


def _check(**settings: float) -> None:
    words = {
        "lr": "learning rate",
        "eps": "epsilon value",
    }
    for name, value in settings.items():
        if value < 0:
            raise ValueError(f"Invalid {words.get(name, f'{name} value')}: {value}")


class SGD(Optimizer):
    """w ← w - lr·(gradient, with momentum and weight decay)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        own = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        own |= {"nesterov": nesterov, "maximize": maximize, "foreach": foreach, "differentiable": differentiable}
        super().__init__(params, {**own, "fused": fused})

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        from gradcli.pytorch.tensor import new

        kind = p._a.dtype.type
        if group["momentum"]:
            state = self.state[p]
            before = state.get("momentum_buffer")
            if before is None:
                state["momentum_buffer"] = new(np.array(g))
            else:
                before._a[...] = before._a * kind(group["momentum"]) + kind(1 - group["dampening"]) * g
            velocity = state["momentum_buffer"]._a
            g = g + kind(group["momentum"]) * velocity if group["nesterov"] else velocity
        p._a -= kind(float(group["lr"])) * g


class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization" (2015)."""

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool | None = None,
    ) -> None:
        _check(lr=lr, eps=eps, weight_decay=weight_decay)
        decoupled = self.decoupled if decoupled_weight_decay is None else decoupled_weight_decay
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        own = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        own |= {"maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**own, "fused": fused, "decoupled_weight_decay": decoupled})

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        from gradcli.pytorch.tensor import new, of_array

        kind = p._a.dtype.type
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p._a *= kind(1 - lr * group["weight_decay"])
        state = self.state[p]
        if not state:
            state["step"] = of_array(np.zeros((), np.float32))
            state["exp_avg"], state["exp_avg_sq"] = new(np.zeros_like(p._a)), new(np.zeros_like(p._a))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = new(np.zeros_like(p._a))
        state["step"]._a[...] += 1
        t = state["step"].item()
        mean, square = state["exp_avg"]._a, state["exp_avg_sq"]._a
        mean += kind(1 - beta1) * (g - mean)
        square[...] = square * kind(beta2) + kind(1 - beta2) * g * g
        if group["amsgrad"]:
            np.maximum(state["max_exp_avg_sq"]._a, square, out=state["max_exp_avg_sq"]._a)
            square = state["max_exp_avg_sq"]._a
        root = np.sqrt(square) / kind((1 - beta2**t) ** 0.5) + kind(group["eps"])
        p._a -= kind(lr / (1 - beta1**t)) * (mean / root)


class AdamW(Adam):
    """Loshchilov and Hutter, "Decoupled weight decay regularization" (2019)."""

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **more)


class RMSprop(Optimizer):
    """The gradient over the root of the mean of its squares."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        own = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        own |= {"weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize}
        super().__init__(params, {**own, "differentiable": differentiable})

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        from gradcli.pytorch.tensor import new

        kind = p._a.dtype.type
        state = self.state[p]
        state.setdefault("step", new(np.zeros(1, np.float32)))._a[...] += 1
        for name in ("square_avg", *["momentum_buffer"] * (group["momentum"] > 0), *["grad_avg"] * group["centered"]):
            state.setdefault(name, new(np.zeros_like(p._a)))
        square, alpha = state["square_avg"]._a, group["alpha"]
        square[...] = square * kind(alpha) + kind(1 - alpha) * g * g
        spread = square
        if group["centered"]:
            mean = state["grad_avg"]._a
            mean += kind(1 - alpha) * (g - mean)
            spread = square - mean * mean
        step = g / (np.sqrt(spread) + kind(group["eps"]))
        if group["momentum"]:
            velocity = state["momentum_buffer"]._a
            velocity[...] = velocity * kind(group["momentum"]) + step
            step = velocity
        p._a -= kind(float(group["lr"])) * step


class Adagrad(Optimizer):
    """Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        from gradcli.pytorch.tensor import new

        _check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay)
        _check(initial_accumulator_value=initial_accumulator_value, eps=eps)
        own = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        own |= {"initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize}
        super().__init__(params, {**own, "differentiable": differentiable, "fused": fused})
        for p in (p for group in self.param_groups for p in group["params"]):
            first = np.full_like(p._a, initial_accumulator_value)
            self.state[p] = {"step": new(np.zeros(1, np.float32)), "sum": new(first)}

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        kind = p._a.dtype.type
        state = self.state[p]
        state["step"]._a[...] += 1
        state["sum"]._a[...] += g * g
        total, t = state["sum"]._a, state["step"].item()
        rate = float(group["lr"]) / (1 + (t - 1) * group["lr_decay"])
        p._a -= kind(rate) * (g / (np.sqrt(total) + kind(group["eps"])))


_ALL = (Optimizer, SGD, Adam, AdamW, RMSprop, Adagrad)
for _class in _ALL:
    _class.__module__ = f"torch.optim.{_class.__name__.lower()}"
__all__ = [c.__name__ for c in _ALL]


def __getattr__(name: str) -> Any:
    if name == "lr_scheduler":
        from importlib import import_module

        return import_module("torch.optim.lr_scheduler")
    from gradcli.pytorch.lookup import absent

    raise absent("torch.optim", name, dict.fromkeys(__all__))
