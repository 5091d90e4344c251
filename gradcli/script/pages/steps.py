"""What an optimizer's step did with `.grad`: its rule, and the numbers where they are few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.notation.numbers import array_text
from gradcli.wrapping import in_words

_FEW = 4  # elements of a parameter whose numbers are shown
_MOST = 6  # parameters whose numbers are shown
_LONG = 70  # characters of such numbers
_NAMES = 8  # that are listed

Done = tuple[Any, Any, dict[str, Any]]  # a parameter, its numbers before, and its group


def step_lines(optimizer: Any, done: Sequence[Done], name: Callable[[Any], str]) -> list[str]:
    """Return what a step did: w ← w - lr·w.grad = 0.5 - 0.1·2 = 0.3; with several parameters, a line for each."""
    if not done:
        return ["nothing changes: none of its parameters has a .grad"]
    rules = [_rule(optimizer, p, name(p), group) for p, _, group in done]
    if len(done) == 1:
        (p, before, group), (rule, *words) = done[0], rules[0]
        numbers = _numbers(optimizer, p, before, group)
        settings = "" if numbers else f", lr = {_short(float(group['lr']))}"
        return [f"{name(p)} ← {rule}{numbers and ' = '}{numbers}{settings}", *words]
    names = [name(p) for p, _, _ in done]
    shown = names if len(names) <= _NAMES else [*names[: _NAMES - 1], "…", names[-1]]
    rates = list(dict.fromkeys(_short(float(group["lr"])) for _, _, group in done))
    rule, *words = _rule(optimizer, done[0][0], "p", done[0][2])
    found = [f"p ← {rule} for p = {', '.join(shown)}; lr = {', '.join(rates)}", *words]
    each = [_numbers(optimizer, p, before, group) for p, before, group in done]
    if len(done) <= _MOST and all(each) and max(map(len, each)) <= _LONG:
        found += [f"{n} = {text}" for n, text in zip(names, each, strict=True)]
    return found


def left_out(named: Mapping[str, Any], optimizers: Sequence[Any]) -> list[str]:
    """Return which leaves have a gradient, and no optimizer changes them."""
    known = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    left = [n for n, x in named.items() if x._requires and x._fn is None and x._grad is not None and id(x) not in known]
    if not left or not optimizers:
        return []
    shown = in_words(left if len(left) <= _NAMES else [*left[: _NAMES - 1], f"{len(left) - _NAMES + 1} more"])
    own = "has a .grad, and is" if len(left) == 1 else "have a .grad, and are"
    return [
        f"{shown} {own} not among the parameters of an optimizer: no step changes {'it' if len(left) == 1 else 'them'}"
    ]


def optimizers_of(frame: Any) -> list[Any]:
    """Return the optimizers that have names where the script is."""
    found: dict[int, Any] = {}
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("gradcli."):
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            found |= {id(value): value} if hasattr(value, "param_groups") else {}
        frame = frame.f_back
    return list(found.values())


def _short(number: float) -> str:
    return f"{number:.6g}"


def _text(a: Any) -> str:
    return array_text(np.asarray(a), lambda v: f"{float(v):.6g}")


def _rule(optimizer: Any, p: Any, w: str, group: dict[str, Any]) -> list[str]:
    """Return the rule of an optimizer for a parameter called w, and what its letters mean; first the right side."""
    kind = next((k for k in ("AdamW", "Adam", "SGD", "RMSprop", "Adagrad") if _is(optimizer, k)), "")
    decay = group.get("weight_decay", 0)
    grad = f"{w}.grad"
    if decay and kind != "AdamW":
        grad = f"({grad} + {_short(decay)}·{w})"
    sign = "+" if group.get("maximize") else "-"
    if kind == "SGD":
        return _sgd(optimizer.state[p], w, grad, sign, group)
    if kind in ("Adam", "AdamW"):
        start = f"(1 - lr·{_short(decay)})·{w}" if kind == "AdamW" and decay else w
        most = "; v is the largest so far" if group.get("amsgrad") else ""
        said = f"m and v: the means of {grad} and of its square so far, where recent ones weigh more{most}"
        return [f"{start} {sign} lr·m/(√v + eps)", said]
    if kind == "RMSprop":
        mean = f"s: the mean of the square of {grad} so far, where recent ones weigh more"
        centered = ", without the square of the mean" if group.get("centered") else ""
        if group.get("momentum"):
            return [f"{w} - lr·b, b ← {_short(group['momentum'])}·b + {grad}/(√s + eps)", mean + centered]
        return [f"{w} {sign} lr·{grad}/(√s + eps)", mean + centered]
    if kind == "Adagrad":
        return [f"{w} - lr·{grad}/(√s + eps)", f"s: the sum of the squares of {grad} so far"]
    return [f"what {type(optimizer).__name__} makes of {w}.grad"]


def _is(optimizer: Any, name: str) -> bool:
    return any(c.__name__ == name and c.__module__ == f"torch.optim.{name.lower()}" for c in type(optimizer).__mro__)


def _sgd(state: dict[str, Any], w: str, grad: str, sign: str, group: dict[str, Any]) -> list[str]:
    if not group["momentum"]:
        return [f"{w} {sign} lr·{grad}"]
    share = f"{_short(1 - group['dampening'])}·" if group["dampening"] else ""
    momentum = _short(group["momentum"])
    step = f"({grad} + {momentum}·b)" if group["nesterov"] else "b"
    said = f"b, the velocity: b ← {momentum}·b + {share}{grad}, and {grad} in the first step"
    return [f"{w} {sign} lr·{step}", said]


def _numbers(optimizer: Any, p: Any, before: Any, group: dict[str, Any]) -> str:
    """Return the arithmetic of a step in numbers, where the parameter is small: 0.5 - 0.1·2 = 0.3."""
    if p._a.size > _FEW:
        return ""
    old, new, lr = _text(before[..., 0]), _text(p._a[..., 0]), _short(float(group["lr"]))
    state = optimizer.state.get(p, {})
    grad = p._grad._a[..., 0] if p._grad is not None else None
    if grad is None:
        return new
    sign = "+" if group.get("maximize") else "-"
    if _is(optimizer, "SGD") and not group["weight_decay"] and not group["nesterov"]:
        velocity = state["momentum_buffer"]._a[..., 0] if group["momentum"] else grad
        velocity, sign = (-velocity, sign) if group["momentum"] and sign == "+" else (velocity, sign)
        return f"{old} {sign} {lr}·{_signed(velocity)} = {new}"
    if _is(optimizer, "Adam") and not (_is(optimizer, "AdamW") and group["weight_decay"]) and not group["amsgrad"]:
        (beta1, beta2), t = group["betas"], state["step"].item()
        mean = state["exp_avg"]._a[..., 0].astype(float) / (1 - beta1**t)
        square = state["exp_avg_sq"]._a[..., 0].astype(float) / (1 - beta2**t)
        mean = -mean if sign == "+" else mean
        return f"{old} {sign} {lr}·{_signed(mean)}/(√{_text(square)} + {_short(group['eps'])}) = {new}"
    return f"{old} → {new}"


def _signed(a: Any) -> str:
    text = _text(a)
    return f"({text})" if text.startswith("-") else text
