"""The step of an optimizer: its rule, and the numbers where they are few."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import Constant, Node, const, leaf
from gradcli.notation.nodes import Notation
from gradcli.notation.numbers import array_text, number_text
from gradcli.notation.text import exact_text
from gradcli.record.numbers import Numbers, decimal
from gradcli.record.record import Altered, Assignment, OptimizerStep, Stepped, Update
from gradcli.script.known import line_at
from gradcli.script.scene import Scene
from gradcli.text.wrapping import in_words

_MOST = 6  # parameters whose numbers are shown
_NAMES = 8  # that are listed
_RULES = 3  # that are shown, for groups of parameters
Values = Mapping[str, Any]  # arrays by the names of a rule
_DIGITS = (".6g", ".9g", "")  # of the numbers that are put in: as few as give the result
_CLOSE = 1e-5  # of a result with six digits
_TINY = 1e-13  # of the numbers put in: what is left where they cancel, in float64
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
    """Return the rule of some parameters, with the numbers of an entry whose gradient is not 0; of few, of each."""
    names, first = [u.name for u in step.updates], next(filter(_has_gradient, step.updates), step.updates[0])
    many = len(names) > 1
    shown = ("p" if "p" not in names else "parameter") if many else names[0]
    where = f" for {shown} = {_listed(names)}" if many else ""
    if not step.rule:
        return [f"{shown} ← {shown} + t*d{where}, {first.after['n_iter'].whole:.0f} times so far", *_in_words(step)]
    formulas, entry = Formulas(step, shown, names), first.name + _first_index(first)
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


def _has_gradient(update: Update) -> bool:
    """Return whether the gradient of the first entry is not 0, as it is for padding and behind a dead relu."""
    return "p.grad" in update.before and bool(np.asarray(update.before["p.grad"].whole).reshape(-1)[:1].any())


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


# The rule of an optimizer as text: its formulas, and the same with the numbers of one entry put in


class Equation(NamedTuple):
    """A line of a rule with numbers: those of the names that it reads, and its result, in the order of the rule."""

    line: Assignment
    values: Values
    result: Any

    @property
    def arithmetic(self) -> str:
        """The formula with the numbers put in, and its result.

        The result is what the step has left, which float32 may have rounded to another number where terms cancel.
        """
        result, text, exact = _decimal(self.result), "", np.zeros(())
        shown = _constant(result, _DIGITS[0])
        for digits in _DIGITS:
            node = self.line.formula.node([_constant(_decimal(a), digits) for a in self.values.values()])
            if node.is_constant:
                return values_text(result)
            text, exact = Notation({}).expression(node), _value(node)
            if _is_close(exact, _value(shown), self.values):
                return f"{text} = {values_text(result)}"
        return f"{text} = {values_text(exact)}, in {self.result.dtype} {values_text(result)}"


def equations(step: OptimizerStep, update: Update, of_entry: bool = True) -> Iterator[Equation]:
    """Yield the lines of a rule with the numbers of a parameter, or of its first entry.

    Each name has the value that it has then; where it does not stay, that of the formula.
    """

    def number(numbers: Numbers) -> Any:
        whole = np.asarray(numbers.whole)
        return whole.reshape(-1)[0] if of_entry else whole

    values = {name: number(numbers) for name, numbers in update.before.items()}
    for line in step.rule:
        read = {name: values[name] for name in line.reads}
        if line.stays:
            values[line.name] = number(update.after[line.name])
        else:
            values[line.name] = _value(line.formula.node([_constant(_decimal(a), "") for a in read.values()]))
        yield Equation(line, read, values[line.name])


class Formulas:
    """The formulas of a rule for a parameter that is called `parameter`; names that are `taken` are written otherwise.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.record.definition import Definition
    >>> p, g = leaf(), leaf()
    >>> line = Assignment("p", ("p", "p.grad"), Definition.of([p, g], p - 2 * g), True)
    >>> Formulas(OptimizerStep(optimizer="", rule=(line,), updates=()), "w", ["w"]).formula(line)
    'w ← w - 2*w.grad'
    """

    def __init__(self, step: OptimizerStep, parameter: str, taken: Collection[str]) -> None:
        self._step = step
        self._names = {"p": parameter, "p.grad": f"{parameter}.grad"}
        for name in (n for line in step.rule for n in (line.name, *line.reads)):
            free = (n for n in (name, step.kept.get(name, name)) if n not in taken)
            self._names.setdefault(name, next(free, f"{name}_"))

    def formula(self, line: Assignment) -> str:
        """Return a line as text: what stays is assigned, the value of another formula has a name."""
        leaves = {leaf(): self._names[name] for name in line.reads}
        right = Notation(leaves).name(line.formula.node([*leaves]))
        return f"{self._names[line.name]} {'←' if line.stays else '='} {right}"

    def meanings(self) -> Iterator[str]:
        """Yield what the names of the rule mean."""
        words = {"p": self._names["p"], "g": self._names.get("g", self._names["p.grad"])}
        for name, meaning in self._step.meanings.items():
            shown, kept = self._names.get(name, name), self._step.kept.get(name, name)
            if meaning:
                yield f"{shown}: {f'{kept}, ' * (kept not in (name, shown))}{meaning.format(**words)}"


def _value(node: Node) -> Any:
    """Return the value of a node of constants, in float64."""
    return at_point(Graph.of({}, {"": node}), {}, [node])[node]


def _is_close(a: Any, b: Any, used: Values) -> bool:
    finite = [abs(x) for a in used.values() for x in np.ravel(a).tolist() if math.isfinite(x)]
    return bool(np.allclose(a, b, _CLOSE, _TINY * max(finite, default=0.0), equal_nan=True))


def _decimal(a: Any) -> Any:
    """Return numbers as the decimals that they are written as."""
    return decimal(np.asarray(a))


def _exact(number: float, digits: str = _DIGITS[0]) -> Constant:
    if not math.isfinite(number):
        return float(number)
    return Decimal(f"{number + 0.0:{digits}}" if digits else number_text(number + 0.0))  # -0.0 is 0


def _constant(a: Any, digits: str) -> Node:
    values = tuple(_exact(v, digits) for v in a.reshape(-1).tolist())
    return const(values if a.shape else values[0], a.shape)


def values_text(a: Any) -> str:
    """Return numbers with six digits.

    >>> values_text(np.array([0.1234567, -1e-8]))
    '[0.123457, -1e-8]'
    """
    return array_text(np.asarray(a), lambda v: exact_text(_exact(v)))
