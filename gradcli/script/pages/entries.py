"""A step of an optimizer with a state, in numbers, for one entry of a parameter: momentum, and Adam's means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gradcli.script.written import decimal


class Entry(NamedTuple):
    """The first entry of a parameter: its name, its value before and after, its gradient, and what was kept before."""

    name: str
    before: float
    after: float
    grad: float
    state: Mapping[str, float]


def first_entry(name: str, p: Any, before: Any, group: Mapping[str, Any], state: Mapping[str, float]) -> Entry:
    """Return the first entry of a parameter, with its gradient as the step takes it: with weight decay, or negated."""
    old, grad = _first(before), _first(p._grad._a)
    grad = -grad if group.get("maximize") else grad
    if group.get("weight_decay") and not group.get("decoupled_weight_decay"):
        grad += group["weight_decay"] * old
    shape = p._a.shape[:-1]
    return Entry(name + (f"[{', '.join('0' * len(shape))}]" if shape else ""), old, _first(p._a), grad, state)


def _first(a: Any) -> float:
    return float(decimal(a.reshape(-1)[:1])[0])


def momentum(entry: Entry, group: Mapping[str, Any], b: str) -> Iterator[str]:
    """Yield the velocity of an entry, called b, and its step.

    >>> [*momentum(Entry("w", 0.3, -0.04, 1.6, {"momentum_buffer": 2.0}), {"momentum": 0.9, "lr": 0.1}, "b")]
    ['for w: b = 0.9·2 + 1.6 = 3.4', 'w ← 0.3 - 0.1·3.4 = -0.04']
    """
    old = entry.state.get("momentum_buffer")
    if group.get("nesterov"):
        return
    share = 1 - (group.get("dampening") or 0)
    new = entry.grad if old is None else group["momentum"] * old + share * entry.grad
    part = _factor(entry.grad) if share == 1 else f"{_short(share)}·{_factor(entry.grad)}"
    sums = "" if old is None else f"{_short(group['momentum'])}·{_factor(old)} + {part} = "
    yield f"for {entry.name}: {b} = {sums}{_short(new)}"
    yield f"{entry.name} ← {_short(entry.before)} - {_short(group['lr'])}·{_factor(new)} = {_short(entry.after)}"


def adam(entry: Entry, group: Mapping[str, Any], letters: tuple[str, str]) -> Iterator[str]:
    """Yield the two means of an entry with their bias correction, and its step.

    >>> group = {"betas": (0.9, 0.999), "lr": 0.1, "eps": 1e-8}
    >>> print(*adam(Entry("w", 0.5, 0.4, 2.0, {}), group, ("m", "v")), sep=chr(10))
    for w in step 1: m = (0.9·0 + 0.1·2)/(1 - 0.9**1) = 2
    v = (0.999·0 + 0.001·2**2)/(1 - 0.999**1) = 4
    w ← 0.5 - 0.1·2/(√4 + 1e-08) = 0.4
    """
    if group.get("amsgrad"):
        return
    (beta1, beta2), t = group["betas"], int(entry.state.get("step", 0)) + 1
    old_mean, old_square = entry.state.get("exp_avg", 0.0), entry.state.get("exp_avg_sq", 0.0)
    mean = (beta1 * old_mean + (1 - beta1) * entry.grad) / (1 - beta1**t)
    square = (beta2 * old_square + (1 - beta2) * entry.grad**2) / (1 - beta2**t)
    g, (m, v) = _factor(entry.grad), letters
    means = f"({_short(beta1)}·{_factor(old_mean)} + {_short(1 - beta1)}·{g})/(1 - {_short(beta1)}**{t})"
    squares = f"({_short(beta2)}·{_factor(old_square)} + {_short(1 - beta2)}·{g}**2)/(1 - {_short(beta2)}**{t})"
    decay = group["weight_decay"] if group.get("decoupled_weight_decay") else 0
    start = f"(1 - {_short(group['lr'])}·{_short(decay)})·{_factor(entry.before)}" if decay else _short(entry.before)
    yield f"for {entry.name} in step {t}: {m} = {means} = {_short(mean)}"
    yield f"{v} = {squares} = {_short(square)}"
    step = f"{_short(group['lr'])}·{_factor(mean)}/(√{_short(square)} + {_short(group['eps'])})"
    yield f"{entry.name} ← {start} - {step} = {_short(entry.after)}"


def _short(number: Any) -> str:
    return f"{float(number):.6g}"


def _factor(number: float) -> str:
    text = _short(number)
    return f"({text})" if text.startswith("-") else text
