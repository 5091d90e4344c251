"""The warnings of a page: what the tensors of a script say of gradients that are missing, partial or not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gradcli.pages.sections import Block, Code, Grad, Math, Text, Typed
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Leaf, edge_of, finite
from gradcli.pytorch.tensor import Tensor
from gradcli.script.errors.custom import constant
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.finite import not_finite_answer
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, text_at
from gradcli.script.errors.surprises import surprises
from gradcli.script.errors.syntax import calls
from gradcli.script.known import CutLine
from gradcli.script.scene import CallScene, Scene
from gradcli.text.wrapping import in_words

Sentence = tuple[Math, ...]
_GRAD = Typed(".grad")


class Warned(NamedTuple):
    """What is said of a call beside its numbers: warnings with fixes, notes, and what stays without a gradient."""

    warnings: Sequence[Block] = ()
    notes: Sequence[str] = ()
    unreached: Sequence[Sentence] = ()


def warned(call: Call, scene: CallScene) -> Warned:
    """Return what is said of a call."""
    blocks = [*not_finite(call, scene), *_of_detached_output(call, scene), *_of_forward_constants(scene)]
    return Warned(blocks, [f"note: {text}" for text in surprises(call, scene)], [*_unreached(call, scene)])


def _unreached(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield the tensors whose `.grad` stays None because the graph is cut between them and the loss."""
    without_grad = _without_grad(call, scene)
    if not without_grad or _detached_output(call, scene) is not None:
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


def _detached_output(call: Call, scene: CallScene) -> tuple[Tensor, CutLine] | None:
    """Return an output that is a leaf though it was computed, as it was cut off, and where; None without one.

    What all gradients of a call end at counts as an output.
    """
    without_grad = _without_grad(call, scene)
    ends = [c.tensor for c in call.contributions]
    ends = ends if all(x._detached is not None for x in ends) else []
    for y in [y for y in (*(y for y, _ in call.roots), *ends) if without_grad and isinstance(edge_of(y)[0], Leaf)]:
        of_output = scene.known.cut_of(scene.tape.quantity(y)) if scene.tape is not None else None
        for cut in (of_output, *History(text_at(scene, scene.line), scene.known).cuts()):
            if cut is not None and any(cut.leads_to(scene.known.id_of(x)) for x in without_grad.values()):
                return y, cut
    return None


def _of_detached_output(call: Call, scene: CallScene) -> Iterator[Block]:
    """Yield a warning of an output that was cut off, and then made a leaf, which hides the error; and the fix."""
    result = _detached_output(call, scene)
    if result is None:
        return
    y, cut = result
    at, history = Failure.here(scene, scene.line), History(text_at(scene, scene.line), scene.known)
    name = scene.name(y, "") or history.root or "the output"
    without_grad = [n for n, x in _without_grad(call, scene).items() if cut.leads_to(scene.known.id_of(x))]
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


def _without_grad(call: Call, scene: CallScene) -> dict[str, Tensor]:
    """Return the tensors of the script, by name, that should get a `.grad` and that no call has reached."""
    reached = {id(c.tensor) for c in call.contributions}
    without = {n: x for n, x in scene.names.tensors.items() if x._grad is None and x.requires_grad}
    leaves = {n: x for n, x in without.items() if x._fn is None or (x._fn.retained and not x._fn.reached)}
    return {n: x for n, x in leaves.items() if id(x) not in reached} if call.inputs is None else {}


def not_finite(call: Call, scene: CallScene, where: str = "") -> Iterator[Block]:
    """Yield a warning of gradients that are not finite, with the operations and the lines where that arose, and a fix.

    `where` says which call it is, where no page does.
    """
    for c in call.contributions:
        bad = c.grad._a[~np.isfinite(c.grad._a)]
        if bad.size:
            what = "nan" if np.isnan(bad).any() else "inf" if (bad > 0).all() else "-inf"
            backwards = scene.known.record.backwards
            answer = not_finite_answer(scene, backwards[-1]) if backwards else None
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
