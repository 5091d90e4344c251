"""`torch.optim`: what changes parameters by their gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from gradcli.kernels.mkl import sqrt
from gradcli.kernels.rounding import fused
from gradcli.pytorch.messages import typename, warn
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.nn.module import forget
from gradcli.pytorch.record import Recorder, script_line
from gradcli.pytorch.tensor import Tensor, new, of_array


class Optimizer:
    """Parameters in groups, each with its settings, and what is kept for each parameter."""

    first: ClassVar[tuple[str, ...]] = ()  # settings that stand first in a group, where the order is another one
    more: ClassVar[dict[str, Any]] = {}

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
        own = group["params"]
        own = [own] if isinstance(own, Tensor) else list(own)
        named = [p[0] for p in own if isinstance(p, tuple)]
        own = [p[1] if isinstance(p, tuple) else p for p in own]
        for p in own:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(p)}")
            if not p.is_leaf and not p.retains_grad:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(set(map(id, own))) < len(own):
            warn("parameter listed twice")
        if {id(p) for p in own} & {id(p) for g in self.param_groups for p in g["params"]}:
            raise ValueError("some parameters appear in more than one parameter group")
        names = {"param_names": named} if named else {}
        given = {k: v for k, v in group.items() if k != "params"}
        self.param_groups.append({"params": own, **names, **self.defaults, **given})

    def zero_grad(self, set_to_none: bool = True) -> None:
        forget((p for group in self.param_groups for p in group["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
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
        if Recorder.stepped is not None:
            Recorder.stepped(self, done)
        return loss

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        """Change a parameter, given what the loss grows along."""
        raise NotImplementedError

    def _kept(self, p: Tensor, name: str, first: float = 0) -> Any:
        """Return an array that is kept for a parameter, of one number at first."""
        return self.state[p].setdefault(name, new(np.full_like(p._a, first)))._a

    def _counted(self, p: Tensor) -> Any:
        """Return which step of a parameter this is."""
        count = self.state[p].setdefault("step", of_array(np.zeros((), np.float32)))
        count._a[...] += 1
        return count.item()

    def state_dict(self) -> dict[str, Any]:
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
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


def _downhill(p: Tensor, group: Mapping[str, Any]) -> Any:
    """Return what the loss grows along: the gradient, or minus it to maximize, and that of the weight decay."""
    g = p._grad._a  # type: ignore[union-attr]
    g = -g if group.get("maximize") else g
    if group.get("weight_decay") and not group.get("decoupled_weight_decay"):
        g = fused(p._a.dtype.type(group["weight_decay"]), p._a, g)
    return g


def _settings(signature: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Return a constructor whose arguments are the settings of all groups.

    Errors: `ValueError` for one that is out of its range.
    """

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        signature.__qualname__ = f"{type(self).__name__}.__init__"
        own = signature(self, *args, **kwargs)
        for name, word in _LEAST_0.items():
            if float(own.get(name, 0)) < 0:
                raise ValueError(f"Invalid {word}: {own[name]}")
        for i, beta in enumerate(own.get("betas", ())):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if own.get("nesterov") and (own["momentum"] <= 0 or own["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        Optimizer.__init__(self, own.pop("params"), {k: own[k] for k in (*self.first, *own) if k != "self"} | self.more)

    return __init__


_LEAST_0 = {"lr": "learning rate", "eps": "epsilon value"} | {
    n: f"{n} value" for n in ("momentum", "weight_decay", "alpha", "lr_decay")
}


class SGD(Optimizer):
    """w ← w - lr·(gradient, with momentum and weight decay)."""

    __init__ = _settings(
        lambda self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
        maximize=False, foreach=None, differentiable=False, fused=None: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        kind = p._a.dtype.type
        if group["momentum"]:
            before = self.state[p].get("momentum_buffer")
            if before is None:
                self.state[p]["momentum_buffer"] = new(np.array(g))
            else:
                before._a[...] = fused(kind(1 - group["dampening"]), g, before._a * kind(group["momentum"]))
            velocity = self.state[p]["momentum_buffer"]._a
            g = fused(kind(group["momentum"]), velocity, g) if group["nesterov"] else velocity
        p._a[...] = fused(kind(-float(group["lr"])), g, p._a)


class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization" (2015)."""

    more: ClassVar[dict[str, Any]] = {"decoupled_weight_decay": False}
    __init__ = _settings(
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *,
        maximize=False, foreach=None, capturable=False, differentiable=False, fused=None: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        kind = p._a.dtype.type
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p._a *= kind(1 - lr * group["weight_decay"])
        t = self._counted(p)
        mean, square = self._kept(p, "exp_avg"), self._kept(p, "exp_avg_sq")
        mean[...] = fused(kind(1 - beta1), g - mean, mean)
        square[...] = fused(kind(1 - beta2) * g, g, square * kind(beta2))
        if group["amsgrad"]:
            most = self._kept(p, "max_exp_avg_sq")
            square = np.maximum(most, square, out=most)
        root = sqrt(square) / kind((1 - beta2**t) ** 0.5) + kind(group["eps"])
        p._a += kind(-lr / (1 - beta1**t)) * mean / root


class AdamW(Adam):
    """Loshchilov and Hutter, "Decoupled weight decay regularization" (2019)."""

    more: ClassVar[dict[str, Any]] = {"decoupled_weight_decay": True}
    __init__ = _settings(
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
        maximize=False, foreach=None, capturable=False, differentiable=False, fused=None: locals()
    )  # fmt: skip


class RMSprop(Optimizer):
    """The gradient over the root of the mean of its squares."""

    first = ("lr", "momentum", "alpha", "eps", "centered")
    __init__ = _settings(
        lambda self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
        capturable=False, foreach=None, maximize=False, differentiable=False: locals()
    )  # fmt: skip

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        kind, alpha = p._a.dtype.type, group["alpha"]
        self._counted(p)
        square = self._kept(p, "square_avg")
        square[...] = fused(kind(1 - alpha) * g, g, square * kind(alpha))
        velocity: Any = self._kept(p, "momentum_buffer") if group["momentum"] > 0 else 0
        spread = square
        if group["centered"]:
            mean = self._kept(p, "grad_avg")
            mean[...] = fused(kind(1 - alpha), g - mean, mean)
            spread = fused(-mean, mean, square)
        root, rate = sqrt(spread) + kind(group["eps"]), kind(-float(group["lr"]))
        if group["momentum"]:
            velocity[...] = velocity * kind(group["momentum"]) + g / root
            p._a[...] = fused(rate, velocity, p._a)
        else:
            p._a += rate * g / root


class Adagrad(Optimizer):
    """Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011)."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None,
        *, maximize=False, differentiable=False, fused=None: locals()
    )  # fmt: skip
    first = ("lr", "lr_decay", "eps", "weight_decay", "initial_accumulator_value", "foreach")

    def _change(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        kind = p._a.dtype.type
        rate = float(group["lr"]) / (1 + (self._counted(p) - 1) * group["lr_decay"])
        total = self._kept(p, "sum", group["initial_accumulator_value"])
        total[...] = fused(g, g, total)
        p._a += kind(-rate) * g / (sqrt(total) + kind(group["eps"]))


_ALL = (Optimizer, SGD, Adam, AdamW, RMSprop, Adagrad)
for _class in _ALL:
    _class.__module__ = f"torch.optim.{_class.__name__.lower()}"
__all__ = [c.__name__ for c in _ALL]
