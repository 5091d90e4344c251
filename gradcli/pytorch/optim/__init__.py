"""`torch.optim`: what changes parameters by their gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any
from weakref import WeakSet

import numpy as np

from gradcli.graph.construct import call, where
from gradcli.graph.node import lift
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, typename, warn
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.nn.module import forget
from gradcli.pytorch.optim.rules import NO_RULE, Change, CompiledRule, Rule, State
from gradcli.pytorch.record import SEQUENCE, Recorder, script_line
from gradcli.pytorch.tensor import Tensor, new, of_array

LIVE: WeakSet[Optimizer] = WeakSet()  # all that there are, for explanations

# Settings that turn a part of a rule on.
_SWITCHES = (
    *("momentum", "dampening", "nesterov", "weight_decay", "decoupled_weight_decay", "maximize", "amsgrad"),
    *("centered", "lr_decay"),
)


class Optimizer:
    """Parameters in groups, each with its settings, and what is kept for each parameter."""

    _begins_otherwise = False  # whether the first step has a rule of its own

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise torch_error("parameters in a tensor", params.type())  # type: ignore[attr-defined]
        self.defaults = defaults
        self._switches = tuple(name for name in _SWITCHES if name in defaults)
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._made = next(SEQUENCE)  # when it was created, as parameters count it
        LIVE.add(self)
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
        changes: list[Change] = []
        for group in self.param_groups:
            switches, kind = tuple([bool(group[name]) for name in self._switches]), None
            for p in group["params"]:
                if p._grad is None:
                    continue
                if kind != (kind := (p._a.dtype, self._begins_otherwise and not self.state.get(p))):
                    update = _update(self._rule, self._switches, switches, *kind)
                    settings = update.rule.numbers_of(group)
                kept: Any = self.state.get(p) if update.rule.states else None
                if not kept and update.rule.states:
                    kept = self.state[p] = {s.name: _first(s, p, group) for s in update.rule.states.values()}
                arrays, memory = (p._a, p._grad._a, kept, settings), p._memory
                before = update.before(*arrays) if Recorder.explains else {}
                memory.keep()
                update(*arrays)
                memory.version += 1
                if Recorder.explains:
                    memory.storage.changed = (script_line(), "step")
                    changes.append(Change(p, update.rule, before, partial(update.kept, p._a, kept)))
        Recorder.listener.stepped(self, changes)
        return loss

    @staticmethod
    def _rule(s: Rule) -> None:
        """Write the rule of a step."""
        raise NotImplementedError

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


@cache
def _rule(write: Callable[[Rule], None], names: tuple[str, ...], switches: tuple[bool, ...], is_first: bool) -> Rule:
    """Return the rule of an optimizer with switches of these names."""
    return Rule(write, dict(zip(names, switches, strict=True)), is_first)


@cache
def _update(write: Callable[[Rule], None], names: Any, switches: Any, dtype: Any, is_first: bool) -> CompiledRule:
    """Return that rule, compiled for parameters of a dtype."""
    return CompiledRule(_rule(write, names, switches, is_first), dtype.name)


def rule_of(name: str, group: Mapping[str, Any], is_first: bool) -> Rule | None:
    """Return the rule of PyTorch's optimizer of a name, with the settings of a group; None where there is none."""
    kind = globals().get(name)
    if name == "LBFGS":
        return NO_RULE
    if not isinstance(kind, type) or not issubclass(kind, Optimizer) or kind is Optimizer:
        return None
    defaults = {"decoupled_weight_decay": kind is AdamW}  # older versions of PyTorch have no such setting
    switches = tuple(bool((defaults | dict(group)).get(switch)) for switch in _SWITCHES)
    return _rule(kind._rule, _SWITCHES, switches, is_first and kind._begins_otherwise)


def _first(state: State, p: Tensor, group: Mapping[str, Any]) -> Tensor:
    """Return what is kept for a parameter before the first step."""
    first = group[state.first] if isinstance(state.first, str) else state.first
    return of_array(np.array(first, np.float32)) if state.is_number else new(np.full_like(p._a, float(first)))


def _settings_of(group: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in group.items() if k != "params"}


_NOT_NEGATIVE = {"lr": "learning rate", "eps": "epsilon value"}  # as PyTorch's errors call them
for _name in ("momentum", "weight_decay", "momentum_decay", "lr_decay", "initial_accumulator_value"):
    _NOT_NEGATIVE[_name] = f"{_name} value"


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Check that settings are in their ranges.

    Errors: `ValueError`.
    """
    for name, words in _NOT_NEGATIVE.items():
        raise_if(name in settings and settings[name] < 0.0, "setting below 0", words, settings.get(name))
    if "centered" in settings:  # of RMSprop: ASGD has another alpha
        raise_if(settings["alpha"] < 0, "setting below 0", "alpha value", settings["alpha"])
    raise_if(not 0 <= settings.get("rho", 0) <= 1, "setting below 0", "rho value", settings.get("rho"))
    for i, beta in enumerate(settings.get("betas", ())):
        raise_if(not 0 <= beta < 1, "beta out of range", i, beta)


def _settings(signature: Callable[..., dict[str, Any]], *first: str, **more: Any) -> Callable[..., None]:
    """Return a constructor whose arguments are the settings of all groups; some stand first there, and some are more.

    Errors: `ValueError` for one that is out of its range.
    """

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        signature.__qualname__ = f"{type(self).__name__}.__init__"
        settings = signature(self, *args, **kwargs)
        params = settings.pop("params")
        _check_settings(settings)
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
    _begins_otherwise = True

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g = s.parameter, s.gradient()
        if s.has("momentum"):
            momentum, b = s.setting("momentum"), s.state("momentum_buffer", "b", "the velocity")
            share = s.once(momentum * b + (1 - s.setting("dampening")) * g) if s.has("dampening") else momentum * b + g
            b = s.assign(b, g if s.is_first else share)
            g = s.once(g + momentum * b) if s.has("nesterov") else b
        s.assign(w, s.once(w - s.setting("lr") * g))


def _adam(decay: float) -> Callable[..., dict[str, Any]]:
    return (
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=decay, amsgrad=False, *,
        maximize=False, foreach=None, capturable=False, differentiable=False, fused=None: locals()
    )  # fmt: skip


class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization" (2015)."""

    __init__ = _settings(_adam(0), decoupled_weight_decay=False)

    @staticmethod
    def _rule(s: Rule) -> None:
        g, t = s.gradient(), s.count()
        m, v = s.mean(g), s.mean_of_squares(g, "exp_avg_sq", "beta2")
        if s.has("amsgrad"):
            most = s.state("max_exp_avg_sq", "v_max", "the largest v so far")
            v = s.assign(most, call("maximum", most, v))
        rate = s.let("step_size", s.setting("lr") / s.correction(t, "beta1"))
        root = s.let("denom", call("sqrt", v) / call("sqrt", s.correction(t, "beta2")) + s.setting("eps"))
        s.assign(s.parameter, s.decayed() - rate * m / root)


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

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g, lr = s.parameter, s.gradient(), s.setting("lr")
        s.count()
        v = s.mean_of_squares(g, "square_avg", "alpha")
        b = s.state("momentum_buffer", "b", "the velocity") if s.has("momentum") else None
        if s.has("centered"):
            m = s.mean(g, "grad_avg", "alpha")
            v = v - m * m
        root = s.let("denom", call("sqrt", v) + s.setting("eps"))
        if b is None:
            s.assign(w, w - lr * g / root)
        else:
            s.assign(w, s.once(w - lr * s.assign(b, s.setting("momentum") * b + g / root)))


class Adagrad(Optimizer):
    """The gradient over the root of the sum of its squares."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
        foreach=None, *, maximize=False, differentiable=False, fused=None: locals(),
        "lr", "lr_decay", "eps",
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g, rate, t = s.parameter, s.gradient(), s.setting("lr"), s.count()
        total = s.state("sum", "sum", "the sum of the squares of {g}", "initial_accumulator_value")
        if s.has("lr_decay"):
            rate = s.let("clr", rate / (1 + (t - 1) * s.setting("lr_decay")), "lr, decayed")
        total = s.assign(total, s.once(total + g * g))
        s.assign(w, w - rate * g / (call("sqrt", total) + s.setting("eps")))


class Adadelta(Optimizer):
    """The gradient, by the roots of the means of its squares and of those of the steps."""

    __init__ = _settings(
        lambda self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
        maximize=False, differentiable=False: locals(),
        "lr", "rho", "eps", "weight_decay", "maximize", "capturable",
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g, eps, rho = s.parameter, s.gradient(), s.setting("eps"), s.setting("rho")
        s.count()
        v = s.mean_of_squares(g, "square_avg", "rho")
        u = s.state("acc_delta", "u", "the exponential moving average of the square of delta")
        delta = s.let("delta", call("sqrt", u + eps) / call("sqrt", v + eps) * g)
        s.assign(u, s.once(rho * u + (1 - rho) * delta * delta))
        s.assign(w, s.once(w - s.setting("lr") * delta))


class Adamax(Optimizer):
    """Adam by the largest gradient: Kingma and Ba (2015), algorithm 2."""

    __init__ = _settings(
        lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *,
        maximize=False, differentiable=False, capturable=False: locals()
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g, t = s.parameter, s.gradient(), s.count()
        m, most = s.mean(g), s.state("exp_inf", "u", "the largest |{g}|, in which old ones fade")
        most = s.assign(most, call("maximum", s.setting("beta2") * most, call("abs", g) + s.setting("eps")))
        rate = s.let("clr", s.setting("lr") / s.correction(t, "beta1"))
        s.assign(w, w - rate * m / most)


class NAdam(Optimizer):
    """Dozat, "Incorporating Nesterov momentum into Adam" (2016)."""

    __init__ = _settings(
        lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
        decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False: locals()
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        g, t, beta1, lr = s.gradient(), s.count(), s.setting("beta1"), s.setting("lr")
        product = s.state("mu_product", "mu_product", "the product of all mu", 1, is_number=True)
        now, then = (
            s.let(name, beta1 * (1 - Fraction(1, 2) * lift(Decimal("0.96")) ** (k * s.setting("momentum_decay"))))
            for name, k in (("mu", t), ("mu_next", t + 1))
        )
        product = s.assign(product, product * now)
        m, v = s.mean(g), s.mean_of_squares(g, "exp_avg_sq", "beta2")
        root = s.let("denom", call("sqrt", v / s.correction(t, "beta2")) + s.setting("eps"))
        ahead = s.let("step", (1 - now) / (1 - product) * g + then / (1 - product * then) * m)
        s.assign(s.parameter, s.decayed() - lr * ahead / root)


class RAdam(Optimizer):
    """Liu et al., "On the variance of the adaptive learning rate and beyond" (2020)."""

    __init__ = _settings(
        lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False: locals()
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        g, t, beta2 = s.gradient(), s.count(), s.setting("beta2")
        m, v = s.mean(g), s.mean_of_squares(g, "exp_avg_sq", "beta2")
        rate = s.let("step_size", s.setting("lr") / s.correction(t, "beta1"))
        longest = s.let("rho_inf", 2 / (1 - beta2) - 1)
        length = s.let("rho", longest - 2 * t * beta2**t / (1 - beta2**t), "about how many gradients v averages")
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        factor = s.let("rect", call("sqrt", where(length > 5, ratio * (1 - beta2**t), 0)))
        step = rate * m
        step = where(length > 5, step * factor / (call("sqrt", v) + s.setting("eps")), step)
        s.assign(s.parameter, s.decayed() - step)


class Rprop(Optimizer):
    """Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993)."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize=False, differentiable=False: locals(),
        "lr", "etas", "step_sizes", "foreach",
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g = s.parameter, s.gradient()
        s.count()
        before = s.state("prev", "prev", "the gradient before, or 0 after a change of its sign")
        size = s.state("step_size", "step_size", "the size of the next step", "lr")
        turn = s.let("turn", g * before, "above 0 if {g} keeps its sign, below 0 if it changes")
        factor = where(turn > 0, s.setting("etaplus"), where(turn < 0, s.setting("etaminus"), 1))
        bounds = s.setting("step_size_min"), s.setting("step_size_max")
        size = s.assign(size, call("clamp", size * factor, *bounds))
        s.assign(w, w - call("sign", s.assign(before, where(turn < 0, 0, g))) * size)


class ASGD(Optimizer):
    """Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992)."""

    __init__ = _settings(
        lambda self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
        differentiable=False, capturable=False: locals()
    )  # fmt: skip

    @staticmethod
    def _rule(s: Rule) -> None:
        w, g, t, lr, lambd = s.parameter, s.gradient(), s.count(), s.setting("lr"), s.setting("lambd")
        rate = s.state("eta", "eta", "the rate of this step", "lr", is_number=True)
        share = s.state("mu", "mu", "the weight of the new value in ax", 1, is_number=True)
        mean = s.state("ax", "ax", "the mean of {p} over the steps from t0 on")
        w = s.assign(w, (1 - lambd * rate) * w - rate * g)
        s.assign(mean, mean + share * (w - mean))
        s.assign(rate, lr / (1 + lambd * lr * t) ** s.setting("alpha"))
        s.assign(share, 1 / call("maximum", 1, t - s.setting("t0")))


ELSEWHERE = {"LBFGS": "optim.lbfgs"}
__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop"]
__all__ += ["Rprop"]
for _name in __all__:
    globals()[_name].__module__ = f"torch.optim.{_name.lower()}"
