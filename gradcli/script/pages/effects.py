"""The effects of a call on a script's gradients, as the record has them: hooks, and `.grad` before and after."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.notation.numbers import array_text
from gradcli.pages.sections import HVP, JVP, VJP, Grad, Math, Name, Partial, Typed, VectorProduct, sentence
from gradcli.record.numbers import Numbers, decimal, size_text
from gradcli.record.record import Contribution, Hook
from gradcli.script.errors.source import text_at
from gradcli.script.errors.syntax import parts
from gradcli.script.known import line_at
from gradcli.script.measured import hooked
from gradcli.script.pages.quantities import all_of, by_module
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded
from gradcli.text.wrapping import in_words

Sentence = tuple[Math, ...]

_GRAD = Typed(".grad")
_LISTED = 16  # leaves whose gradients are listed one by one where no formula is shown
_MANY = 2  # leaves whose .grad is listed one by one
_LONG = 8  # numbers that are not listed again
# What is said of what is returned, where a script asks for it by name.
_J, _H, _V, _U = (Name(name) for name in "JHvu")
_ROWS = sentence("returns {}, computed row by row: one backward for each output, with a one-hot {}.", _J, _V)
_COLUMNS = sentence("returns {}, computed column by column: one {} for each input, with a one-hot {}.", _J, JVP, _U)
_SYMMETRIC = "returns {}, which is also {}, because {} is symmetric."
RETURNED: dict[str, Sentence] = {
    "jacobian": ("jacobian ", *_ROWS),
    "jacrev": ("jacrev ", *_ROWS),
    "jacfwd": ("jacfwd ", *_COLUMNS),
    "hessian": ("hessian returns ", _H, ", the Jacobian of the gradient."),
    "gradcheck": ("gradcheck compares ", _J, " with finite differences of the outputs."),
    "vjp": ("vjp returns ", VJP, "."),
    "jvp": ("jvp returns ", JVP, "."),
    "hvp": ("hvp ", *sentence(_SYMMETRIC, HVP, VectorProduct("H", "u", first=True), _H)),
}
SHOWN = 36  # elements of an array that is written out


def done(scene: CallScene, explained: bool, unreached: Sequence[Sentence] = ()) -> list[Sentence]:
    """Return the effects of a call; `explained` is whether the page shows its gradients.

    `unreached` are the sentences on tensors that the call should have reached.
    """
    call = scene.recorded.call
    lines = [*((text,) for text in _hooks(scene)), *_accumulated(scene, explained)]
    lines += [*_not_kept(scene), *_unused(scene), *unreached]
    if call.freed:
        said = f"The graph is freed now; {{}} would keep it for another {'call' if call.returns else 'backward'}."
        lines.append(sentence(said, Typed("retain_graph=True")))
    return lines


def _hooks(scene: CallScene) -> Iterator[str]:
    """Yield the changes by hooks, in their order; a sentence says where no formula has them."""
    call = scene.recorded.call
    rest = [h for h in call.hooks if call.function in RETURNED or hooked(h, scene.recorded) is None]
    for hook in call.hooks:
        if hook in rest[:1]:
            yield "Hooks changed gradients in this backward; the formulas above leave that out."
        yield f"{_hook(hook, scene)}: {numbers_words(hook.before)} → {numbers_words(hook.after)}"


def _hook(hook: Hook, scene: CallScene) -> str:
    """Return the name of a hook: x's hook (line 5), or that of a module."""
    label, record = "" if hook.name.startswith("<") else f" {hook.name}", scene.recorded.record
    if hook.site.file and not hook.site.file.startswith("<frozen"):
        label += f" ({scene.where(line_at(hook.site))})"
    if hook.module:
        inner = record.producers[hook.quantity].operands[0] if hook.quantity in record.producers else None
        made = record.producers.get(inner) if isinstance(inner, int) else None
        side = "output" if made is not None and f"{made.module}.".startswith(f"{hook.module}.") else "input"
        return f"{hook.module}'s backward hook{label}, the gradient of its {side}"
    node = hooked(hook, scene.recorded)
    named = "" if node is None else scene.recorded.graph.labels.get(node, "")
    producer = record.producers.get(hook.quantity)
    grad_fn = "torch::autograd::AccumulateGrad" if producer is None else producer.grad_fn
    owner = named or scene.recorded.names.get(hook.quantity) or record.quantities[hook.quantity].name or grad_fn
    return f"{owner}'s hook{label}"


def _accumulated(scene: CallScene, explained: bool) -> Iterator[Sentence]:
    """Yield each `.grad` before and after the call."""
    recorded, call = scene.recorded, scene.recorded.call
    if explained and _is_first_of_many(scene):
        first, *others = call.leaves
        whose: Sentence = ("Each ", _GRAD) if others else (Grad(recorded.name(first.quantity)),)
        yield *whose, " was None before, and now holds the values above."
        return
    has_formulas = all(recorded.name(c.quantity) in recorded.wrt for c in call.leaves)
    if len(call.leaves) > _LISTED and not explained:
        yield from _by_module(scene)
    elif len(call.leaves) > _LISTED and not has_formulas:  # the flow has the norm of each
        before = len([c for c in call.leaves if c.before is not None])
        if before:
            yield f"{before:,} of {len(call.leaves):,} gradients were added to a ", _GRAD, " that was there."
    else:
        yield from _of_leaves(scene, explained)
    yield from _of_intermediates(scene)
    if call.function in RETURNED:
        yield *RETURNED[call.function], " No ", _GRAD, " changes."
    elif call.returns and call.leaves:
        yield f"grad returns {'this' if len(call.leaves) == 1 else 'these'}; no ", _GRAD, " changes."


def _is_first_of_many(scene: CallScene) -> bool:
    """Return whether the page shows many numbers that each `.grad` holds now, and held none before."""
    recorded, leaves = scene.recorded, scene.recorded.call.leaves
    many = len(leaves) > _MANY or sum(math.prod(c.added.shape) for c in leaves) > _LONG
    none_before = all(c.before is None and c.after is not None for c in leaves)
    known = all(recorded.name(c.quantity) in recorded.wrt for c in leaves)
    return many and none_before and not recorded.call.hooks and known


def _by_module(scene: CallScene) -> Iterator[Sentence]:
    """Yield the norm of all gradients of each module."""
    by_name = {scene.recorded.name(c.quantity): c for c in scene.recorded.call.leaves}
    for module, names in by_module(list(by_name)).items():
        norm = f"norm {np.sqrt(sum(_square(by_name[name].added) for name in names)):.6g}"
        several = f" of {all_of(module, names)}, {len(names)} arrays"
        what: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, several)
        yield *what, f": {norm}{' is added' if any(by_name[n].before is not None for n in names) else ''}"


def _square(n: Numbers) -> float:
    a = np.abs(n.array.astype(complex if n.array.dtype.kind == "c" else float))
    return float(np.vdot(a, a))


def _of_leaves(scene: CallScene, explained: bool) -> Iterator[Sentence]:
    recorded, call = scene.recorded, scene.recorded.call
    order = {name: k for k, name in enumerate(recorded.wrt)}
    added: list[str] = []
    for c in sorted(call.leaves, key=lambda c: (order.get(recorded.name(c.quantity), -1), _named_at(c, recorded))):
        name = recorded.name(c.quantity)
        if c.after is not None:
            if c.before is not None and c.before.array.any() and recorded.record.quantities[c.quantity].name:
                added.append(name)
            yield Grad(name), f": {_held(c, scene)} → {numbers_words(c.after)}"
        elif call.function not in RETURNED and (not explained or call.hooks):
            yield Partial("", name), f": {numbers_words(c.added)}"
    if added:
        yield (f"To start afresh, write `{added[0]}.grad = None` (or `optimizer.zero_grad()`) before the call.",)


def _named_at(c: Contribution, recorded: Recorded) -> int:
    """Return when the script named a leaf, on the clock of the record."""
    names = recorded.record.quantities[c.quantity].names
    return names[0][0] if names else 0


def _held(c: Contribution, scene: CallScene) -> str:
    """Return a `.grad` before the call, the line that left it, and what is added to it: [2] (left by line 5) + [4]."""
    where = scene.where(line_at(c.origin)) if c.origin.line else ""
    if c.before is None:
        return f"None (cleared in {where})" if where else "None"
    how = "left by" if c.before.array.any() else "set to 0 in"
    before = numbers_words(c.before) + (f" ({how} {where})" if where else "")
    return before + (f" + {numbers_words(c.added)}" if math.prod(c.before.shape) <= SHOWN else "")


def _of_intermediates(scene: CallScene) -> Iterator[Sentence]:
    for c in scene.recorded.call.retained:
        name, grad = scene.recorded.name(c.quantity), numbers_words(c.after or c.added)
        if c.before is not None:
            yield Grad(name), f": {numbers_words(c.before)} + {numbers_words(c.added)} → {grad}"
        elif not scene.recorded.call.returns:
            yield Grad(name), f": None → {grad}, kept by ", Typed(f"{name}.retain_grad()")


def _not_kept(scene: CallScene) -> Iterator[Sentence]:
    """Yield which intermediates keep no gradient that the script asks for elsewhere."""
    recorded = scene.recorded
    producers, quantities = recorded.record.producers, recorded.record.quantities
    names = {} if recorded.call.returns else recorded.names
    dropped = [name for q, name in names.items() if q in producers and not quantities[q].retains]
    tree = text_at(scene, scene.line).tree if dropped else ast.Module([], [])
    read = {ast.unparse(n.value) for n in parts(tree, ast.Attribute) if n.attr == "grad"}
    for name in dropped:
        if name in read:
            retain = Typed(f"{name}.retain_grad()")
            yield Grad(name), f" stays None: {name} is computed, not a leaf. ", retain, " before this keeps it."


def _unused(scene: CallScene) -> Iterator[Sentence]:
    """Yield which inputs of `grad` have no gradient, as nothing was computed from them."""
    record, call = scene.recorded.record, scene.recorded.call
    known = {c.quantity for c in call.leaves}
    missed = [q for q in call.inputs or () if call.returns and q not in known]
    if names := [record.quantities[q].name or "the input" for q in missed]:
        who, its = (names[0], "its gradient is") if len(names) == 1 else (in_words(names), "their gradients are")
        said = f"The result does not depend on {who}: {its} None, or zeros with {{}}."
        yield sentence(said, Typed("materialize_grads=True"))


def numbers_words(n: Numbers) -> str:
    """Return numbers as words: themselves, or how many they are.

    >>> numbers_words(Numbers.of(np.array([1.5, -2.0]))), numbers_words(Numbers.of(np.zeros((8, 8))))
    ('[1.5, -2]', '8×8 numbers')
    """
    a = n.whole
    if a is None or a.size > SHOWN:
        return f"{size_text(n.shape)} numbers"
    return array_text(
        decimal(a) + 0.0 if a.dtype.kind == "f" else a,  # 0 for -0, as results are written
        lambda v: f"{v:.6g}" if isinstance(v, float | complex) else str(v),
    )
