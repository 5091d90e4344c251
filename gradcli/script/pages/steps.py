"""The step of an optimizer: its rule, and the numbers where they are few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.notation.numbers import array_text
from gradcli.script.naming import script_frames
from gradcli.script.pages.entries import adam, first_entry, momentum
from gradcli.script.scene import Scene
from gradcli.wrapping import in_words

_FEW = 4  # elements of a parameter whose numbers are shown
_MOST = 6  # parameters whose numbers are shown
_LONG = 70  # characters of such numbers
_NAMES = 8  # that are listed

# The letters of rules, and what is written for those that are names of parameters.
_LETTERS = {"p": "parameter", "b": "velocity", "s": "mean_square", "m": "mean", "v": "mean_square"}

# A parameter, its numbers before, the first element of what was kept for it before, and its group.
Done = tuple[Any, Any, dict[str, float], dict[str, Any]]


def step_lines(optimizer: Any, done: Sequence[Done], scene: Scene) -> list[str]:
    """Return a step in formulas: w ← w - lr·w.grad = 0.5 - 0.1·2 = 0.3; with several parameters, a line for each."""
    if not done:
        return [_nothing(optimizer, scene)]
    names = [_name(p, scene) for p, *_ in done]
    letters = {letter: word if letter in names else letter for letter, word in _LETTERS.items()}
    w = names[0] if len(done) == 1 else letters["p"]
    rules = [_rule(optimizer, p, w, group, letters) for p, *_, group in done]
    each = [_numbers(sides, step) for sides, (_, _, step) in zip(done, rules, strict=True)]
    rates = ", ".join(dict.fromkeys(_short(group["lr"]) for *_, group in done))
    right, words, _ = rules[0]
    if len(done) == 1:
        entry = _entry(optimizer, names[0], done[0], letters)
        entry = entry[:-1] if each[0] else entry
        return [f"{w} ← {right}" + (f" = {each[0]}" if each[0] else f", lr = {rates}"), *words, *entry]
    shown = names if len(names) <= _NAMES else [*names[: _NAMES - 1], "…", names[-1]]
    result = [f"{w} ← {right} for {w} = {', '.join(shown)}; lr = {rates}", *words]
    if len(done) <= _MOST and all(each) and max(map(len, each)) <= _LONG:
        result += [f"{n} = {text}" for n, text in zip(names, each, strict=True)]
    return result + _entry(optimizer, names[0], done[0], letters)


def _name(p: Any, scene: Scene) -> str:
    return scene.names.of(p) or "p"


def _nothing(optimizer: Any, scene: Scene) -> str:
    """Return why a step changes nothing: no backward has run, or zero_grad() ran after it."""
    for p in optimizer._parameters():
        if p._reached is not None and p._cleared is not None:
            order = f"{scene.where(p._cleared)} cleared each .grad after the backward of {scene.where(p._reached)}"
            return f"no parameter changes: {order}. Call `zero_grad()` before the backward"
    return "no parameter changes: none of them has a .grad"


def _entry(optimizer: Any, name: str, done: Done, letters: Mapping[str, str]) -> list[str]:
    """Return the step of one entry in numbers, for an optimizer that keeps a state: a momentum, or Adam's means."""
    p, before, state, group = done
    entry, kind = first_entry(name, p, before, group, state), _kind(optimizer)
    if kind == "SGD" and group["momentum"]:
        return [*momentum(entry, group, letters["b"])]
    return [*adam(entry, group, (letters["m"], letters["v"]))] if kind in ("Adam", "AdamW") else []


def _kind(optimizer: Any) -> str:
    """Return the optimizer of PyTorch's that an optimizer is."""
    classes = type(optimizer).__mro__
    return next((c.__name__ for c in classes if c.__module__ == f"torch.optim.{c.__name__.lower()}"), "")


def changed(done: Sequence[Done], scene: Scene, left: Mapping[int, Any]) -> list[str]:
    """Return which gradients are not what `backward` has `left`, as those that were clipped.

    Scripts scale them in many ways: the factor is the ratio of the norms, and it is that of all numbers up to rounding.
    """
    result = [p for p, *_ in done if id(p) in left and not np.array_equal(left[id(p)], p._grad._a)]
    if not result:
        return []
    old = np.concatenate([left[id(p)].reshape(-1).astype(float) for p in result])
    new = np.concatenate([p._grad._a.reshape(-1).astype(float) for p in result])
    share = np.linalg.norm(new) / (np.linalg.norm(old) or 1)
    how = f"scaled by {_short(share)}" if np.allclose(new, share * old, 1e-4, 0) else "changed"
    if len(result) == 1:
        numbers = f": {_text(old)} → {_text(new)}" if old.size <= _FEW else ""
        return [f"{_name(result[0], scene)}.grad was {how} before this step{numbers}"]
    each = in_words([f"{_name(p, scene)}.grad" for p in result])
    return [f"{each if len(result) <= _NAMES else f'.grad of {len(result)} parameters'} were {how} before this step"]


def left_out(named: Mapping[str, Any], frame: Any) -> list[str]:
    """Return which leaves have a gradient, and no optimizer changes them; and why, as far as modules show that.

    The optimizers and modules are those that have names where the script is.
    """
    from gradcli.pytorch.nn.module import Module
    from gradcli.pytorch.optim import Optimizer

    optimizers = _values(frame, Optimizer)
    known = {id(p) for o in optimizers for p in o._parameters()}
    left = [n for n, x in named.items() if x._requires and x._fn is None and x._grad is not None and id(x) not in known]
    if not left or not optimizers:
        return []
    shown = in_words(left if len(left) <= _NAMES else [*left[: _NAMES - 1], f"{len(left) - _NAMES + 1} more"])
    have, are, them = ("has", "is", "it") if len(left) == 1 else ("have", "are", "them")
    modules = _values(frame, Module)
    why = next(
        filter(None, (_unregistered(n, named[n], modules) or _replaced(named[n], known, modules) for n in left)), ""
    )
    return [f"{shown} {have} a .grad, but {are} not among the parameters of an optimizer: no step changes {them}{why}"]


def _unregistered(name: str, p: Any, modules: Sequence[Any]) -> str:
    """Return the advice for a parameter in a Python list of a module."""
    for held in (x for m in modules for inner in m.modules() for x in vars(inner).values() if isinstance(x, list)):
        if any(e is p for e in held):
            return f". {name.rpartition('[')[0]} is a Python list: make it a torch.nn.ParameterList"
        if any(e is p for x in held if hasattr(x, "parameters") for e in x.parameters()):
            return f". {name.rpartition('[')[0]} is a Python list: make it a torch.nn.ModuleList, which is registered"
    return ""


def _replaced(p: Any, known: set[int], modules: Sequence[Any]) -> str:
    """Return the advice for an optimizer that has other parameters of the same module."""
    for ids in ({id(e) for e in m.parameters()} for m in modules):
        if id(p) in ids and ids & known:
            return (
                ". An optimizer keeps the parameters that it was created with: create it after the layers are replaced"
            )
    return ""


def _values(frame: Any, kind: type) -> list[Any]:
    """Return the objects of a class among the local and global variables of the script's frames."""
    frames = list(script_frames(frame))
    values = [v for each in frames for v in (*each.f_locals.values(), *each.f_globals.values())]
    return list({id(v): v for v in values if isinstance(v, kind)}.values())


def _short(number: Any) -> str:
    return f"{float(number):.6g}"


def _text(a: Any) -> str:
    return array_text(np.asarray(a), _short)


def _signed(a: Any) -> str:
    text = _text(a)
    return f"({text})" if text.startswith("-") else text


def _numbers(done: Done, step: str) -> str:
    """Return the arithmetic of a step in numbers, where the parameter is small: 0.5 - 0.1·2 = 0.3."""
    p, before, _, group = done
    if p._a.size > _FEW:
        return ""
    old, new = _text(before[..., 0]), _text(p._a[..., 0])
    return f"{old} {_sign(group)} {_short(group['lr'])}·{step} = {new}" if step else f"{old} → {new}"


def _sign(group: dict[str, Any]) -> str:
    return "+" if group.get("maximize") else "-"


def _rule(
    optimizer: Any, p: Any, w: str, group: dict[str, Any], letters: Mapping[str, str]
) -> tuple[str, list[str], str]:
    """Return an optimizer's rule for a parameter called w, in which `letters` are written so.

    That is its right side, what its letters mean, and what lr is multiplied by in numbers, where that is short.
    """
    kind = _kind(optimizer)
    decay = group.get("weight_decay")
    grad = f"({w}.grad + {_short(decay)}·{w})" if decay and kind != "AdamW" else f"{w}.grad"
    kept = optimizer.state.get(p, {})
    if kind == "SGD":
        return _sgd(p, w, grad, group, kept, letters["b"])
    if kind in ("Adam", "AdamW"):
        start = f"(1 - lr·{_short(decay)})·{w}" if kind == "AdamW" and decay else w
        return _adam(p, start, grad, group, kept, (letters["m"], letters["v"]))
    if kind == "RMSprop":
        centered = ", without the square of the mean" if group["centered"] else ""
        b, s = letters["b"], letters["s"]
        words = [f"{s}: the exponential moving average of the square of {grad}{centered}"]
        if group["momentum"]:
            return f"{w} - lr·{b}, {b} ← {_short(group['momentum'])}·{b} + {grad}/(√{s} + eps)", words, ""
        return f"{w} {_sign(group)} lr·{grad}/(√{s} + eps)", words, ""
    return f"the update of {type(optimizer).__name__} for {w}.grad", [], ""


def _sgd(p: Any, w: str, grad: str, group: dict[str, Any], kept: dict[str, Any], b: str) -> tuple[str, list[str], str]:
    """Return the rule of SGD, in which the velocity is called b."""
    step, words, number = grad, [], p._grad._a
    if group["momentum"]:
        share = f"{_short(1 - group['dampening'])}·" if group["dampening"] else ""
        momentum = _short(group["momentum"])
        step = f"({grad} + {momentum}·{b})" if group["nesterov"] else b
        meaning = f"{b}, the velocity" if b == "b" else b
        words = [f"{meaning}: {b} ← {momentum}·{b} + {share}{grad}, and {grad} in the first step"]
        number = _uphill(group) * kept["momentum_buffer"]._a
    is_short = p._a.size <= _FEW and not group["weight_decay"] and not group["nesterov"]
    return f"{w} {_sign(group)} lr·{step}", words, _signed(number[..., 0]) if is_short else ""


def _adam(
    p: Any, start: str, grad: str, group: dict[str, Any], kept: dict[str, Any], letters: tuple[str, str]
) -> tuple[str, list[str], str]:
    """Return the rule of Adam, in which the means are called by two letters."""
    m, v = letters
    most = f"; {v} is the largest of them so far" if group["amsgrad"] else ""
    betas = ", ".join(map(_short, group["betas"]))
    words = [
        f"{m} and {v}: the exponential moving averages of {grad} and of its square (betas = {betas}), "
        f"divided by 1 - beta**t in step t (bias correction){most}"
    ]
    number = ""
    if p._a.size <= _FEW and not most and not (group["decoupled_weight_decay"] and group["weight_decay"]):
        (beta1, beta2), t = group["betas"], kept["step"].item()
        mean = _uphill(group) * kept["exp_avg"]._a[..., 0].astype(float) / (1 - beta1**t)
        square = kept["exp_avg_sq"]._a[..., 0].astype(float) / (1 - beta2**t)
        number = f"{_signed(mean)}/(√{_text(square)} + {_short(group['eps'])})"
    return f"{start} {_sign(group)} lr·{m}/(√{v} + eps)", words, number


def _uphill(group: dict[str, Any]) -> int:
    """Return the sign of the kept averages in the direction of the gradient."""
    return -1 if group.get("maximize") else 1
