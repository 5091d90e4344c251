"""The effects of a call on a script's gradients: hooks, `.grad` before and after, and values that are not finite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.notation.numbers import array_text
from gradcli.pages.sections import (
    HVP,
    JVP,
    VJP,
    Block,
    Code,
    Grad,
    Math,
    Name,
    Partial,
    Text,
    Typed,
    VectorProduct,
    sentence,
)
from gradcli.pytorch.backward import Call, Contribution
from gradcli.pytorch.cuts import Cut, Kind
from gradcli.pytorch.record import Leaf, edge_of, finite
from gradcli.pytorch.recording import reachable
from gradcli.pytorch.tensor import Tensor
from gradcli.record.numbers import Numbers
from gradcli.record.record import Hook
from gradcli.script.errors.custom import constant
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.finite import not_finite_answer
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, text_at
from gradcli.script.errors.syntax import calls, parts
from gradcli.script.measured import hooked
from gradcli.script.operands import whole
from gradcli.script.pages.quantities import all_of, by_module
from gradcli.script.scene import CallScene, Scene, line_at
from gradcli.script.written import decimal
from gradcli.text.wrapping import in_words

Array = np.ndarray[Any, Any]
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


def done(call: Call, scene: CallScene, explained: bool) -> list[Sentence]:
    """Return the effects of a call; `explained` is whether the page shows its gradients."""
    lines = [*((text,) for text in _hooks(call, scene)), *_accumulated(call, scene, explained)]
    lines += [*_not_kept(call, scene), *_unused(call, scene), *_unreached(call, scene)]
    if call.freed:
        said = f"The graph is freed now; {{}} would keep it for another {'call' if call.returns else 'backward'}."
        lines.append(sentence(said, Typed("retain_graph=True")))
    return lines


def _hooks(call: Call, scene: CallScene) -> Iterator[str]:
    """Yield the changes by hooks, in their order; a sentence says where no formula has them."""
    hooks = scene.recorded.call.hooks
    rest = [h for h in hooks if call.request is not None or hooked(h, scene.recorded) is None]
    for hook in hooks:
        if hook in rest[:1]:
            yield "Hooks changed gradients in this backward; the formulas above leave that out."
        yield f"{_hook(hook, scene)}: {numbers_words(hook.before)} → {numbers_words(hook.after)}"


def _hook(hook: Hook, scene: CallScene) -> str:
    """Return the name of a hook: x's hook (line 5), or that of a module."""
    label = "" if hook.name.startswith("<") else f" {hook.name}"
    if hook.site.file and not hook.site.file.startswith("<frozen"):
        label += f" ({scene.where(line_at(hook.site))})"
    if hook.module:
        return f"{hook.module}'s backward hook{label}, the gradient of its input"
    node, record = hooked(hook, scene.recorded), scene.recorded.record
    named = "" if node is None else scene.recorded.graph.labels.get(node, "")
    producer = record.producers().get(hook.quantity)
    grad_fn = "torch::autograd::AccumulateGrad" if producer is None else record.operations[producer[0]].grad_fn
    owner = named or scene.recorded.names.get(hook.quantity) or record.quantities[hook.quantity].name or grad_fn
    return f"{owner}'s hook{label}"


def _accumulated(call: Call, scene: CallScene, explained: bool) -> Iterator[Sentence]:
    """Yield each `.grad` before and after the call."""
    if explained and _is_first_of_many(call, scene):
        first, *others = call.contributions
        whose: Sentence = ("Each ", _GRAD) if others else (Grad(scene.name(first.tensor)),)
        yield *whose, " was None before, and now holds the values above."
        return
    if not explained and len(call.contributions) > _LISTED:
        yield from _by_module(call, scene)
    else:
        yield from _of_leaves(call, scene, explained)
    yield from _of_intermediates(call, scene)
    if call.request is not None:
        yield *RETURNED[call.request.name], " No ", _GRAD, " changes."
    elif call.returns and call.contributions:
        yield f"grad returns {'this' if len(call.contributions) == 1 else 'these'}; no ", _GRAD, " changes."


def _is_first_of_many(call: Call, scene: CallScene) -> bool:
    """Return whether the page shows many numbers that each `.grad` holds now, and held none before."""
    every = call.contributions
    many = len(every) > _MANY or sum(c.tensor.numel() for c in every) > _LONG
    none_before = all(c.before is None and c.after is not None for c in every)
    return many and none_before and not call.changes and all(scene.name(c.tensor) in scene.recorded.wrt for c in every)


def _by_module(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield the norm of all gradients of each module."""
    by_name = {scene.name(c.tensor): c for c in call.contributions}
    for module, names in by_module(list(by_name)).items():
        squares = (np.vdot(a, a) for a in (by_name[name].grad._a.astype(float) for name in names))
        norm = f"norm {np.sqrt(sum(squares)):.6g}"
        several = f" of {all_of(module, names)}, {len(names)} arrays"
        what: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, several)
        yield *what, f": {norm}{' is added' if any(by_name[n].before is not None for n in names) else ''}"


def _of_leaves(call: Call, scene: CallScene, explained: bool) -> Iterator[Sentence]:
    order = {name: k for k, name in enumerate(scene.recorded.wrt)}
    added: list[str] = []
    for c in sorted(call.contributions, key=lambda c: order.get(scene.name(c.tensor), 0)):
        name = scene.name(c.tensor)
        if c.after is not None:
            if c.before is not None and c.before.any():
                added.append(name)
            yield Grad(name), f": {_held(c, scene)} → {array_words(c.after._a)}"
        elif call.request is None and (not explained or call.changes):
            yield Partial("", name), f": {array_words(c.grad._a)}"
    if named := [name for name in added if name in scene.names.tensors]:
        yield (f"To start afresh, write `{named[0]}.grad = None` (or `optimizer.zero_grad()`) before the call.",)


def _held(c: Contribution, scene: CallScene) -> str:
    """Return a `.grad` before the call, the line that left it, and what is added to it: [2] (left by line 5) + [4]."""
    cleared, reached = c.tensor._cleared, scene.reached.get(id(c.tensor))
    if c.before is None:
        return f"None (cleared in {scene.where(cleared)})" if cleared is not None else "None"
    added = f" + {array_words(c.grad._a)}" if c.before.size <= SHOWN else ""
    if c.before.any():
        return array_words(c.before) + (f" (left by {scene.where(reached)})" if reached else "") + added
    if cleared is None and c.after is not None and c.after._memory.storage.changed is not None:
        cleared = c.after._memory.storage.changed[0]
    return array_words(c.before) + (f" (set to 0 in {scene.where(cleared)})" if cleared is not None else "") + added


def _of_intermediates(call: Call, scene: CallScene) -> Iterator[Sentence]:
    for c in call.retained:
        name, grad = scene.name(c.tensor), array_words(c.after._a)
        if c.before is not None:
            yield Grad(name), f": {array_words(c.before)} + {array_words(c.grad._a)} → {grad}"
        elif not call.returns:
            yield Grad(name), f": None → {grad}, kept by ", Typed(f"{name}.retain_grad()")


def _not_kept(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield which intermediates keep no gradient that the script asks for elsewhere."""
    recorded = scene.recorded
    producers, quantities = recorded.record.producers(), recorded.record.quantities
    names = {} if call.returns else recorded.names
    dropped = [name for q, name in names.items() if q in producers and not quantities[q].retains]
    tree = text_at(scene, scene.line).tree if dropped else ast.Module([], [])
    read = {ast.unparse(n.value) for n in parts(tree, ast.Attribute) if n.attr == "grad"}
    for name in dropped:
        if name in read:
            retain = Typed(f"{name}.retain_grad()")
            yield Grad(name), f" stays None: {name} is computed, not a leaf. ", retain, " before this keeps it."


def _unused(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield which inputs of `grad` have no gradient, as nothing was computed from them."""
    missed = [x for x in call.inputs or () if call.returns and call.targets[edge_of(x)] is None]
    if names := [scene.names.of(x) or x._called or "the input" for x in missed]:
        who, its = (names[0], "its gradient is") if len(names) == 1 else (in_words(names), "their gradients are")
        said = f"The result does not depend on {who}: {its} None, or zeros with {{}}."
        yield sentence(said, Typed("materialize_grads=True"))


def _unreached(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield the tensors whose `.grad` stays None because the graph is cut between them and the loss."""
    without_grad = _without_grad(call, scene)
    if not without_grad or detached_output(call, scene) is not None:
        return
    at, history = Failure.here(scene, scene.line), History(text_at(scene, scene.line))
    for cut in _cuts(call, scene):
        if names := [n for n, x in without_grad.items() if cut.leads_to(x)]:
            without_grad = {n: x for n, x in without_grad.items() if n not in names}
            which: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, f" of {in_words(names)}")
            it, one = ("it", "it should have one") if len(names) == 1 else ("them", "they should have one")
            fix = detached_answer(at, history.root or "the loss", cut, history).fix
            yield (
                *which,
                f" stays None: {scene.code(cut.line)} cuts the loss off from {it}: {cut.how}. If {one}: {fix}.",
            )


def _cuts(call: Call, scene: CallScene) -> Iterator[Cut]:
    """Yield where what a call goes through was cut off from other tensors: first as recorded, then as the text says."""
    steps = reachable(edge_of(y)[0] for y, _ in call.roots)
    read = [x for s in reversed(steps) for x in s.operands or ()]
    leaves = (e[0].variable for s in reversed(steps) for e in s.edges if e and isinstance(e[0], Leaf))
    found = [x._detached for x in (*(y for y, _ in call.roots), *read, *leaves) if isinstance(x, Tensor)]
    yield from dict.fromkeys(filter(None, found))
    yield from History(text_at(scene, scene.line)).cuts()


def detached_output(call: Call, scene: CallScene) -> tuple[Tensor, Cut] | None:
    """Return an output that is a leaf though it was computed, as it was cut off, and where; None without one.

    What all gradients of a call end at counts as an output.
    """
    without_grad = _without_grad(call, scene)
    ends = [c.tensor for c in call.contributions]
    ends = ends if all(x._detached is not None for x in ends) else []
    for y in [y for y in (*(y for y, _ in call.roots), *ends) if without_grad and isinstance(edge_of(y)[0], Leaf)]:
        for cut in (y._detached, *History(text_at(scene, scene.line)).cuts()):
            if cut is not None and any(map(cut.leads_to, without_grad.values())):
                return y, cut
    return None


def detached_output_warning(call: Call, scene: CallScene) -> Iterator[Block]:
    """Yield a warning of an output that was cut off, and then made a leaf, which hides the error; and the fix."""
    result = detached_output(call, scene)
    if result is None:
        return
    y, cut = result
    at, history = Failure.here(scene, scene.line), History(text_at(scene, scene.line))
    name = scene.name(y, "") or history.root or "the output"
    without_grad = [n for n, x in _without_grad(call, scene).items() if cut.leads_to(x)]
    answer = detached_answer(at, name, cut, history)
    stays = f"{without_grad[0]}.grad stays" if len(without_grad) == 1 else f".grad of {in_words(without_grad)} stay"
    wish = "requires_grad_()" if calls(at.text.tree, "requires_grad_") else "requires_grad=True"
    yield Text(
        (
            f"warning: {stays} None: {answer.reason} {wish} makes {name} a leaf, whose gradient is v, and only hides "
            "the error of backward.",
        )
    )
    yield from fixed(
        replace(answer, fix=f"{answer.fix}; and leave {wish} out", changes=_without(history, name, answer)), scene
    )


def _without(history: History, name: str, answer: Answer) -> list[Change]:
    """Return the changes of an answer, and those after which nothing makes a leaf of a tensor any more."""
    if not answer.changes:
        return []
    lines = {n for c in answer.changes for n in range(c.first, c.last + 1)}
    more = [c for c in history.kept() if lines.isdisjoint(range(c.first, c.last + 1))]
    lines |= {n for c in more for n in range(c.first, c.last + 1)}
    wishes = [s for s in history.required(name) if s.lineno not in lines and len(history.text.block(s)) > 1]
    return [*answer.changes, *more, *(history.text.instead_of(s) for s in wishes if history.text.is_alone(s))]


def forward_constant_warning(call: Call, scene: CallScene) -> Iterator[Block]:
    """Yield a warning of what a Function has computed in forward, and its backward reads: a constant; and the fix."""
    steps = reachable(edge_of(y)[0] for y, _ in call.roots)
    cuts = [x._detached for s in steps for x in s.operands or () if isinstance(x, Tensor) and x._detached is not None]
    for cut in [c for c in cuts if any(how.kind is Kind.FORWARD for how in c.hows)][:1]:
        if names := [scene.name(c.tensor) for c in call.contributions if cut.leads_to(c.tensor)]:
            answer = constant(Failure.here(scene, scene.line), text_at(scene, cut.line))
            leave = "leaves" if len(names) == 1 else "leave"
            yield Text((f"warning: the gradient of {in_words(names)} {leave} out a part: {answer.reason}",))
            yield from fixed(answer, scene)


def _without_grad(call: Call, scene: CallScene) -> dict[str, Tensor]:
    """Return the tensors of the script, by name, that should get a `.grad` and that no call has reached."""
    reached = {id(c.tensor) for c in call.contributions}
    without = {n: x for n, x in scene.names.tensors.items() if x._grad is None and x.requires_grad}
    leaves = {n: x for n, x in without.items() if x._fn is None or (x._fn.retained and not x._fn.reached)}
    return {n: x for n, x in leaves.items() if id(x) not in reached} if call.inputs is None else {}


def numbers_words(a: Numbers) -> str:
    """Return numbers as words: themselves, or how many they are."""
    return array_words(whole(a)[..., None])


def array_words(a: Any) -> str:
    """Return an array as words: its numbers, or how many they are."""
    if a.size > SHOWN:
        return "×".join(map(str, a.shape[:-1])) + " numbers"
    numbers = decimal(a[..., 0]) if a.dtype.kind == "f" else a[..., 0]
    return array_text(numbers, lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))


def not_finite(call: Call, scene: CallScene, where: str = "") -> Iterator[Block]:
    """Yield a warning of gradients that are not finite, with the operations and the lines where that arose, and a fix.

    `where` says which call it is, where no page does.
    """
    for c in call.contributions:
        bad = c.grad._a[~np.isfinite(c.grad._a)]
        if bad.size:
            what = "nan" if np.isnan(bad).any() else "inf" if (bad > 0).all() else "-inf"
            answer = not_finite_answer(scene, call)
            arose = _unknown_origin(call) if answer is None else answer.reason
            yield Text((f"warning: {where}the gradient of {scene.name(c.tensor)} is {what}: {arose}",))
            if answer is not None:
                yield from fixed(answer, scene)
            return


def _unknown_origin(call: Call) -> str:
    if not all(finite(v._a) for _, v in call.roots):
        return "v itself is not finite"
    return "it arises where contributions are summed" if not call.changes else "a hook returned it"


def fixed(answer: Answer, scene: Scene) -> Iterator[Block]:
    """Yield a fix in words, and the lines of the script as they are to be."""
    yield Text((f"fix: {answer.fix}{':' * bool(answer.changes)}",))
    for change in answer.changes:
        yield Code(tuple(change.shown()), scene.lines(change.places()))
