"""The step of an optimizer: its rule, and the numbers where they are few."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.pytorch.optim.rules import SHOWN, Altered, Change, altered, events
from gradcli.pytorch.recipes import Array
from gradcli.pytorch.record import Recorder
from gradcli.record.record import OptimizerStep, Update
from gradcli.script.naming import Names
from gradcli.script.pages.entries import Formulas, equations, values_text
from gradcli.script.scene import Scene
from gradcli.text.wrapping import in_words

_MOST = 6  # parameters whose numbers are shown
_NAMES = 8  # that are listed
_RULES = 3  # that are shown, for groups of parameters


def step_lines(optimizer: Any, changes: Sequence[Change], scene: Scene, left: Mapping[int, Any]) -> list[str]:
    """Return a step as its rule, with numbers: w ← w - lr*w.grad = 0.5 - 0.1*2 = 0.3.

    Behind the first line stand gradients that are not as `backward` has `left` them, by the identity of the parameter;
    behind all, what the step leaves as it is, and why.
    """
    first, *more = _rules(optimizer, changes, scene)
    more = [*_changed(changes, scene, left), *more]
    return [first, *more, *_without_gradient(optimizer, scene), *_left_out(scene.names)]


def _rules(optimizer: Any, changes: Sequence[Change], scene: Scene) -> list[str]:
    """Return the rules of a step, or why nothing changes."""
    if not changes:
        return [_nothing(optimizer, scene)]
    some = [c for c in changes if c.parameter.numel()]
    steps = events(type(optimizer).__name__, some, lambda p: _name(p, scene))
    return rules_lines(steps) or ["no parameter changes: they have no elements"]


def rules_lines(steps: Sequence[OptimizerStep]) -> list[str]:
    """Return the rules of a step, with numbers."""
    result = [line for step in steps[:_RULES] for line in _rule_lines(step)]
    return result + [f"{_listed([u.name for u in step.updates])}: with other settings" for step in steps[_RULES:]]


def _rule_lines(step: OptimizerStep) -> list[str]:
    """Return the rule of some parameters, with the numbers of an entry of the first; of few small ones, of each."""
    names, first = [u.name for u in step.updates], step.updates[0]
    many = len(names) > 1
    shown = ("p" if "p" not in names else "parameter") if many else names[0]
    where = f" for {shown} = {_listed(names)}" if many else ""
    if not step.rule:
        return [f"{shown} ← {shown} + t*d{where}, {first.after['n_iter'].whole:.0f} times so far", *_in_words(step)]
    formulas, entry = Formulas(step, shown, names), names[0] + _first_index(first)
    (head,) = (formulas.formula(line) for line in step.rule if line.name == "p")
    if len(step.rule) == 1 and len(names) <= _MOST and all(math.prod(u.shape) <= SHOWN for u in step.updates):
        each = [e.arithmetic for u in step.updates for e in equations(step, u, of_entry=False)]
        return [head + where, *map(" ← ".join, zip(names, each, strict=True))] if many else [f"{head} = {each[0]}"]
    lines, time, last = [], "", ""
    for equation in equations(step, first):
        match equation.line.name:
            case "p":
                last = equation.arithmetic
            case "t":
                time = f" in step {equation.result:.0f}"
            case _:
                lines.append(f"{formulas.formula(equation.line)} = {equation.arithmetic}")
    if shown == entry:
        head += f" = {last}"
    else:
        time = f" for {entry}{time}" if lines else ""
        lines.append(f"{entry} ← {last}")
    lines[0] = f"{time}: {lines[0]}".lstrip(" :")
    meanings = "; ".join(formulas.meanings())
    return [head + where, *[meanings][: len(meanings)], *lines]


def _first_index(update: Update) -> str:
    """Return the index of the first entry: [0, 0]; "" of a scalar."""
    return f"[{', '.join('0' * len(update.shape))}]" if update.shape else ""


def _in_words(step: OptimizerStep) -> Iterator[str]:
    """Yield what L-BFGS does, and what came of it for each parameter."""
    yield "d: minus the gradient, times an approximation of the inverse Hessian (L-BFGS); t: the length of a step"
    for update in step.updates[:_MOST]:
        entry = update.name + _first_index(update) * (math.prod(update.shape) > SHOWN)
        yield f"{entry}: {' → '.join(values_text(numbers['p'].whole) for numbers in (update.before, update.after))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= _NAMES else [*names[: _NAMES - 1], "…", names[-1]])


def _and_more(names: Sequence[str]) -> str:
    return in_words(names if len(names) <= _NAMES else [*names[: _NAMES - 1], f"{len(names) - _NAMES + 1} more"])


def _name(p: Any, scene: Scene) -> str:
    return scene.names.of(p) or "p"


def _nothing(optimizer: Any, scene: Scene) -> str:
    """Return why a step changes nothing: no backward has run, or zero_grad() ran after it."""
    for p in optimizer._parameters():
        if p._reached is not None and p._cleared is not None:
            order = f"{scene.where(p._cleared)} cleared each .grad after the backward of {scene.where(p._reached)}"
            return f"no parameter changes: {order}. Call `zero_grad()` before the backward"
    never = ", as no backward has run: call `loss.backward()` before the step" * (Recorder.swept is None)
    return f"no parameter changes: none of them has a .grad{never}"


def _changed(done: Sequence[Change], scene: Scene, left: Mapping[int, Any]) -> list[str]:
    """Return which gradients are not what `backward` has `left`."""
    known = [p for p, *_ in done if id(p) in left]
    return altered_lines(altered((_name(p, scene), _normed(left[id(p)]), _normed(p._grad._a)) for p in known))


def _normed(a: Array) -> tuple[Array, float]:
    return a, float(np.linalg.norm(a.reshape(-1).astype(float)))


def altered_lines(gradients: Altered | None) -> list[str]:
    """Return what happened to gradients between a backward and a step."""
    if gradients is None:
        return []
    how = "changed" if gradients.factor is None else f"scaled by {_short(gradients.factor)}"
    if len(gradients.names) == 1:
        numbers = "" if gradients.numbers is None else f": {' → '.join(map(values_text, gradients.numbers))}"
        return [f"{gradients.names[0]}.grad was {how} before this step{numbers}"]
    each = in_words([f"{name}.grad" for name in gradients.names])
    count = len(gradients.names)
    return [f"{each if count <= _NAMES else f'.grad of {count} parameters'} were {how} before this step"]


def _without_gradient(optimizer: Any, scene: Scene) -> list[str]:
    """Return which parameters of an optimizer have no gradient, while others have one; and whether they are frozen."""
    parameters = optimizer._parameters()
    missing = [p for p in parameters if p._grad is None and scene.names.of(p)]
    if not missing or all(p._grad is None for p in parameters):
        return []
    names = [scene.names.of(p) for p in missing]
    have, they = ("has", "it") if len(names) == 1 else ("have", "they")
    frozen = sorted({int(p._frozen) for p in missing if p._frozen is not None and not p.requires_grad})
    why = f": frozen in {scene.lines(frozen)}, requires_grad is False" if frozen else ""
    return [f"{_and_more(names)} {have} no .grad, so {they} {'stays' if len(names) == 1 else 'stay'} the same{why}"]


def _left_out(names: Names) -> list[str]:
    """Return which leaves have a gradient, and no optimizer changes them; and why, as far as modules show that."""
    from gradcli.pytorch.optim import LIVE

    optimizers, modules = list(LIVE), list(names.modules.values())
    known = {id(p) for o in optimizers for p in o._parameters()}
    leaves = {n: x for n, x in names.tensors.items() if x._requires and x._fn is None and x._grad is not None}
    ids = {id(x): n for n, x in reversed(leaves.items()) if id(x) not in known}  # by the first name of each
    left = [n for n, x in leaves.items() if ids.get(id(x)) == n]
    if not left:
        return []
    have, are, them = ("has", "is", "it") if len(left) == 1 else ("have", "are", "them")
    reasons = (_unregistered(n, leaves[n], modules) or _later(leaves[n], optimizers, modules) for n in left)
    why = next(filter(None, reasons), "")
    others = f"{are} not among the parameters of an optimizer: no step changes {them}{why}"
    return [f"{_and_more(left)} {have} a .grad, but {others}"]


def _unregistered(name: str, p: Any, modules: Sequence[Any]) -> str:
    """Return the advice for a parameter in a Python list of a module."""
    for held in (x for m in modules for inner in m.modules() for x in vars(inner).values() if isinstance(x, list)):
        if any(
            e is p for x in held if isinstance(x, list) for m in x if hasattr(m, "parameters") for e in m.parameters()
        ):
            return f". {name.partition('[')[0]} is a Python list of lists: make each of them a torch.nn.ModuleList"
        if any(e is p for e in held):
            return f". {name.rpartition('[')[0]} is a Python list: make it a torch.nn.ParameterList"
        if any(e is p for x in held if hasattr(x, "parameters") for e in x.parameters()):
            return f". {name.rpartition('[')[0]} is a Python list: make it a torch.nn.ModuleList, which is registered"
    return ""


def _later(p: Any, optimizers: Sequence[Any], modules: Sequence[Any]) -> str:
    """Return the advice for a parameter of a module that was created after all optimizers."""
    is_of_module = any(p is e for m in modules for e in m.parameters())
    if is_of_module and all(o._made < p._made for o in optimizers):
        return ". An optimizer keeps the parameters that it was created with: create it after the layers are replaced"
    return ""


def _short(number: Any) -> str:
    return f"{float(number):.6g}"
