"""The step of an optimizer: its rule, and the numbers where they are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.record.record import Altered, OptimizerStep, Stepped, Update
from gradcli.script.known import line_at
from gradcli.script.pages.entries import Formulas, equations, values_text
from gradcli.script.scene import Scene
from gradcli.text.wrapping import in_words

_MOST = 6  # parameters whose numbers are shown
_NAMES = 8  # that are listed
_RULES = 3  # that are shown, for groups of parameters
# Why no optimizer has a parameter, by what holds it.
_UNLISTED = {
    "lists": ". {} is a Python list of lists: make each of them a torch.nn.ModuleList",
    "parameters": ". {} is a Python list: make it a torch.nn.ParameterList",
    "modules": ". {} is a Python list: make it a torch.nn.ModuleList, which is registered",
    "later": ". An optimizer keeps the parameters that it was created with: create it after the layers are replaced",
}


def step_lines(step: Stepped, scene: Scene) -> list[str]:
    """Return a step as its rule, with numbers: w ← w - lr*w.grad = 0.5 - 0.1*2 = 0.3.

    Behind the first line stand gradients that are not as `backward` has left them; behind all, what the step leaves as
    it is, and why.
    """
    lines = rules_lines(step.steps, step.altered) if step.changes else [_nothing(step, scene)]
    return [*lines, *_without_gradient(step, scene), *_unlisted(step)]


def rules_lines(steps: Sequence[OptimizerStep], gradients: Altered | None = None) -> list[str]:
    """Return the rules of a step, with numbers, and behind the first line which gradients were altered before it."""
    lines = [line for step in steps[:_RULES] for line in _rule_lines(step)]
    lines += [f"{_listed([u.name for u in step.updates])}: with other settings" for step in steps[_RULES:]]
    lines = lines or ["no parameter changes: they have no elements"]
    return [*lines[:1], *altered_lines(gradients), *lines[1:]]


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
    if len(step.rule) == 1 and len(names) <= _MOST and all(map(_is_whole, step.updates)):
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


def _is_whole(update: Update) -> bool:
    """Return whether all numbers of a parameter are known, and not those of the first entry alone."""
    return update.before["p"].shape == update.shape


def _in_words(step: OptimizerStep) -> Iterator[str]:
    """Yield what L-BFGS does, and what came of it for each parameter."""
    yield "d: minus the gradient, times an approximation of the inverse Hessian (L-BFGS); t: the length of a step"
    for update in step.updates[:_MOST]:
        entry = update.name + ("" if _is_whole(update) else _first_index(update))
        yield f"{entry}: {' → '.join(values_text(numbers['p'].whole) for numbers in (update.before, update.after))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= _NAMES else [*names[: _NAMES - 1], "…", names[-1]])


def _and_more(names: Sequence[str]) -> str:
    return in_words(names if len(names) <= _NAMES else [*names[: _NAMES - 1], f"{len(names) - _NAMES + 1} more"])


def _nothing(step: Stepped, scene: Scene) -> str:
    """Return why a step changes nothing: no backward has run, or zero_grad() ran after it."""
    if step.cleared is not None:
        cleared, reached = (scene.where(line_at(site)) for site in step.cleared)
        order = f"{cleared} cleared each .grad after the backward of {reached}"
        return f"no parameter changes: {order}. Call `zero_grad()` before the backward"
    never = ", as no backward has run: call `loss.backward()` before the step" * (not step.has_swept)
    return f"no parameter changes: none of them has a .grad{never}"


def altered_lines(gradients: Altered | None) -> list[str]:
    """Return what happened to gradients between a backward and a step."""
    if gradients is None:
        return []
    how = "changed" if gradients.factor is None else f"scaled by {gradients.factor:.6g}"
    if len(gradients.names) == 1:
        numbers = " → ".join(values_text(n.whole) for n in gradients.numbers)
        return [f"{gradients.names[0]}.grad was {how} before this step{f': {numbers}' * bool(numbers)}"]
    each = in_words([f"{name}.grad" for name in gradients.names])
    count = len(gradients.names)
    return [f"{each if count <= _NAMES else f'.grad of {count} parameters'} were {how} before this step"]


def _without_gradient(step: Stepped, scene: Scene) -> list[str]:
    """Return which parameters of an optimizer have no gradient, while others have one; and whether they are frozen."""
    if not step.missing:
        return []
    names = [name for name, _ in step.missing]
    have, they = ("has", "it") if len(names) == 1 else ("have", "they")
    frozen = sorted({site.line for _, site in step.missing if site.line})
    why = f": frozen in {scene.lines(frozen)}, requires_grad is False" if frozen else ""
    return [f"{_and_more(names)} {have} no .grad, so {they} {'stays' if len(names) == 1 else 'stay'} the same{why}"]


def _unlisted(step: Stepped) -> list[str]:
    """Return which leaves have a gradient, and no optimizer changes them; and why, as far as modules show that."""
    if not step.unlisted:
        return []
    have, are, them = ("has", "is", "it") if len(step.unlisted) == 1 else ("have", "are", "them")
    why = _UNLISTED.get(step.why, "").format(step.held)
    others = f"{are} not among the parameters of an optimizer: no step changes {them}{why}"
    return [f"{_and_more(step.unlisted)} {have} a .grad, but {others}"]
