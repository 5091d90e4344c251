"""The warnings of a page: what the tensors of a script say of gradients that are missing, partial or not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradcli.pages.sections import Block, Code, Grad, Math, Text, Typed
from gradcli.record.record import Contribution
from gradcli.script.errors.custom import constant
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.finite import not_finite_answer
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import text_at
from gradcli.script.errors.surprises import surprises
from gradcli.script.errors.syntax import calls
from gradcli.script.known import CutLine
from gradcli.script.scene import CallScene, Scene
from gradcli.text.wrapping import in_words

Sentence = tuple[Math, ...]
_GRAD = Typed(".grad")
_NAMED = 3  # leaves whose gradient is not finite


class Warned(NamedTuple):
    """What is said of a call beside its numbers: warnings with fixes, notes, and what stays without a gradient."""

    warnings: Sequence[Block] = ()
    notes: Sequence[str] = ()
    unreached: Sequence[Sentence] = ()


def warned(scene: CallScene, hooks: Sequence[Any]) -> Warned:
    """Return what is said of a call, on whose way back are `hooks`."""
    blocks = [*not_finite(scene), *_of_detached_output(scene), *_of_forward_constants(scene)]
    return Warned(blocks, [f"note: {text}" for text in surprises(scene, hooks)], [*_unreached(scene)])


def _unreached(scene: CallScene) -> Iterator[Sentence]:
    """Yield the tensors whose `.grad` stays None because the graph is cut between them and the loss."""
    without_grad = _without_grad(scene)
    if not without_grad or _detached_output(scene) is not None:
        return
    at, history = Failure.here(scene, scene.line), History(text_at(scene, scene.line), scene.known)
    for cut in _cuts(scene):
        if names := [n for n, x in without_grad.items() if cut.leads_to(scene.known.id_of(x))]:
            without_grad = {n: x for n, x in without_grad.items() if n not in names}
            which: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, f" of {in_words(names)}")
            it, one = ("it", "it should have one") if len(names) == 1 else ("them", "they should have one")
            fix = detached_answer(at, history.root or "the loss", cut, history).fix
            yield (
                *which,
                f" stays None: {scene.code(cut.line)} cuts the loss off from {it}: {cut.how}. If {one}: {fix}.",
            )


def _cuts(scene: CallScene) -> Iterator[CutLine]:
    """Yield where what a call goes through was cut off from other tensors: first as recorded, then as the text says."""
    known, roots = scene.known, scene.recorded.call.roots
    operations, _ = known.behind(roots)
    read = [x for o in reversed(operations) for x in o.operands if isinstance(x, int)]
    found = {(c.line.file, c.line): c for c in map(known.cut_of, (*roots, *read)) if c is not None}
    yield from found.values()
    yield from History(text_at(scene, scene.line), known).cuts()


def _detached_output(scene: CallScene) -> tuple[int, CutLine] | None:
    """Return the quantity of an output that was cut off, and then made a leaf, and where; None without one.

    What all gradients of a call end at counts as an output.
    """
    known, call, without_grad = scene.known, scene.recorded.call, _without_grad(scene)
    ends = [c.quantity for c in call.leaves]
    ends = ends if all(c is not None and "DETACHED" not in c.kinds for c in map(known.cut_of, ends)) else []
    for y in [y for y in (*call.roots, *ends) if without_grad and y not in known.producers]:
        for cut in (known.cut_of(y), *History(text_at(scene, scene.line), scene.known).cuts()):
            if cut is not None and any(cut.leads_to(scene.known.id_of(x)) for x in without_grad.values()):
                return y, cut
    return None


def _of_detached_output(scene: CallScene) -> Iterator[Block]:
    """Yield a warning of an output that was cut off, and then made a leaf, which hides the error; and the fix."""
    result = _detached_output(scene)
    if result is None:
        return
    y, cut = result
    at, history = Failure.here(scene, scene.line), History(text_at(scene, scene.line), scene.known)
    name = scene.recorded.name(y, "") or history.root or "the output"
    without_grad = [n for n, x in _without_grad(scene).items() if cut.leads_to(scene.known.id_of(x))]
    answer = detached_answer(at, name, cut, history)
    stays = f"{without_grad[0]}.grad stays" if len(without_grad) == 1 else f".grad of {in_words(without_grad)} stay"
    wish = "requires_grad_()" if calls(at.text.tree, "requires_grad_") else "requires_grad=True"
    leaf = "whose gradient is v" if y in scene.recorded.call.roots else "at which the gradient ends"
    said = f"{wish} makes {name} a leaf, {leaf}, and only hides the error of backward."
    yield Text((f"warning: {stays} None: {answer.reason} {said}",))
    yield from fixed(replace(answer, fix=f"{answer.fix}; and leave {wish} out"), scene)


def _of_forward_constants(scene: CallScene) -> Iterator[Block]:
    """Yield a warning of what a Function has computed in forward, and its backward reads: a constant; and the fix."""
    operations, _ = scene.known.behind(scene.recorded.call.roots)
    cuts = [scene.known.cut_of(x) for o in operations for x in o.operands if isinstance(x, int)]
    for cut in [c for c in cuts if c is not None and "FORWARD" in c.kinds][:1]:
        reached = [c.quantity for c in scene.recorded.call.leaves if cut.leads_to(c.quantity)]
        if names := [scene.recorded.names.get(q, "x") for q in reached]:
            answer = constant(Failure.here(scene, scene.line), text_at(scene, cut.line))
            leave = "leaves" if len(names) == 1 else "leave"
            yield Text((f"warning: the gradient of {in_words(names)} {leave} out a part: {answer.reason}",))
            yield from fixed(answer, scene)


def _without_grad(scene: CallScene) -> dict[str, Any]:
    """Return the tensors of the script, by name, that should get a `.grad` and that no call has reached."""
    call = scene.recorded.call
    reached = {c.quantity for c in call.leaves}
    known = {n: x for n, x in scene.names.tensors.items() if x.requires_grad and (x.is_leaf or x.retains_grad)}
    without = {n: x for n, x in known.items() if x.grad is None}
    return {n: x for n, x in without.items() if scene.known.id_of(x) not in reached} if call.inputs is None else {}


def not_finite(scene: CallScene, where: str = "") -> Iterator[Block]:
    """Yield a warning of gradients that are not finite, with the operations and the lines where that arose, and a fix.

    `where` says which call it is, where no page does.
    """
    record = scene.known.record
    leaves = [c for c in record.backwards[-1].leaves if _bad(c).size] if record.backwards else []
    if not leaves:
        return
    kinds = {"nan" if np.isnan(bad).any() else "inf" if (bad > 0).all() else "-inf" for bad in map(_bad, leaves)}
    what = kinds.pop() if len(kinds) == 1 else "not finite"
    answer = not_finite_answer(scene, record.backwards[-1])
    arose = _unknown_origin(scene) if answer is None else answer.reason
    names = [scene.recorded.names.get(c.quantity) or record.quantities[c.quantity].name or "x" for c in leaves]
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    of = f"gradients of {in_words(names[:_NAMED] + more)} are" if len(names) > 1 else f"gradient of {names[0]} is"
    yield Text((f"warning: {where}the {of} {what}: {arose}",))
    if answer is not None and answer.fix:
        yield from fixed(answer, scene)


def _bad(c: Contribution) -> Any:
    a = np.zeros(0) if c.added.whole is None else c.added.whole
    return a[~np.isfinite(a)]


def _unknown_origin(scene: CallScene) -> str:
    call = scene.known.record.backwards[-1]
    if not all(v.whole is None or np.isfinite(v.whole).all() for v in call.v):
        return "v itself is not finite"
    return "it arises where contributions are summed" if not call.hooks else "a hook returned it"


def fixed(answer: Answer, scene: Scene) -> Iterator[Block]:
    """Yield a fix in words, and the lines of the script as they are to be."""
    yield Text((f"fix: {answer.fix}{':' * bool(answer.changes)}",))
    yield from (Code(tuple(change.shown()), scene.lines(change.places())) for change in answer.changes)
