"""Why a script's backward failed, in the script's own names and lines, and the smallest change that mends it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.script import mends, updates
from gradcli.script.messages import BY_TEXT
from gradcli.script.places import lines_in_words
from gradcli.script.scene import BEFORE, Scene, Told, scene_of
from gradcli.script.source import Text
from gradcli.script.threads import Threads, lost

if TYPE_CHECKING:
    from gradcli.pytorch.record import Line
    from gradcli.pytorch.session import Script
    from gradcli.script.source import Change


def why(error: BaseException, script: Script) -> str:
    """Return what happened, what mends it, and where the guide has more; nothing where PyTorch's message says all."""
    from gradcli.guide.messages import find

    found = find(str(error))
    told = explained(error, script)
    lines = _written(told, script) if told is not None else []
    return "\n".join([*lines, *([f"more: gradcli explain {found.topic.name}"] if found else [])])


def explained(error: BaseException, script: Script) -> Told | None:
    """Return what is to be said of an error, or of the one that it was made of; None where that is nothing."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if (told := _explained(found, script)) is not None:
            return told
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return None


def _explained(error: BaseException, script: Script) -> Told | None:
    scene = scene_of(error, script)
    if scene is None:
        return None
    kind = getattr(error, "kind", None)
    if kind in _BY_KIND:
        return _BY_KIND[kind](scene, *error.subjects)  # type: ignore[attr-defined]
    return next((tell(scene) for part, tell in BY_TEXT.items() if re.search(part, scene.message)), None)


def _written(told: Told, script: Script) -> list[str]:
    """Return the two as paragraphs, their lines broken, and the lines to change as they are to be."""
    lines = _filled("why: ", told.reason)
    lines += _filled("mend:", told.mend + (":" if told.changes else "."))
    for change in told.changes:
        head = f"      {lines_in_words(script, _places(change))}: "
        shown = change.shown()
        lines += [head + shown[0], *(" " * len(head) + line for line in shown[1:])]
    return lines


def _places(change: Change) -> list[Line]:
    from gradcli.pytorch.record import Line

    found = [Line(number) for number in range(change.first, change.last + 1)]
    for line in found:
        line.file = change.file
    return found


def _filled(head: str, words: str) -> list[str]:
    import shutil
    from textwrap import wrap

    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    return wrap(f"{head} {words}", width, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)


# Errors that know what they are about


def _second(scene: Scene, step: Any) -> Told:
    reason = (
        f"the backward at {scene.code(step.freed)} freed what the graph keeps for a backward: {step.name()} of "
        f"{scene.code(step.line)} kept numbers, and they are gone."
    )
    text = scene.text()
    same = int(step.freed) == int(scene.line)
    carried, changes = updates.detached_at_the_end(text, scene.line, scene.frame) if same else ("", [])
    if changes:
        said = f" {carried} carries the graph of one round into the next one"
        return Told(
            reason + said.capitalize() + ".",
            f"cut it off where the next round begins anew, {carried}.detach()",
            changes,
        )
    if same and (changes := updates.into_the_loop(text, scene.line, step.line)):
        made = f"{reason} It is computed once, and each round goes back through it."
        return Told(made, "compute it in each round, from the weights as they are then", changes)
    changes = mends.with_argument(scene.text(step.freed), step.freed, "backward", "retain_graph=True")
    changes = changes or mends.with_argument(scene.text(step.freed), step.freed, "grad", "retain_graph=True")
    mend = "keep the graph in the first call; or compute the loss again before the second one, as a training loop does"
    return Told(reason, mend, changes)


def _in_place(scene: Scene, step: Any, memory: Any, version: int) -> Told:
    if not memory.changed:
        reason = (
            f"{step.name()} of {scene.code(step.line)} needs numbers for its backward, and they were changed since."
        )
        return Told(reason, "the change out of place: y = y + 1 instead of y += 1")
    line, how = memory.changed
    reason = (
        f"{step.name()} of {scene.code(step.line)} needs numbers for its backward, and {scene.code(line)} changed them "
        f"in place after that (version {memory.version}, where {version} was expected)."
    )
    text = scene.text(line)
    leaf = how == "step" or _unrecorded(text, line)
    if not leaf:
        changes = updates.out_of_place(text, line)
        return Told(reason, "the change out of place, so that the old numbers stay", changes)
    carried, changes = updates.detached_at_the_end(scene.text(), scene.line, scene.frame)
    if changes:
        said = f" {carried} carries the graph of one round into the next one, with the weights of before."
        return Told(
            reason + said.capitalize(), f"cut it off where the next round begins anew, {carried}.detach()", changes
        )
    what = "the optimizer's step" if how == "step" else "the change"
    mend = f"{what} behind the backward; or compute the loss again after it, with the new numbers"
    return Told(reason, mend, updates.moved(text, line, scene.line))


def _unrecorded(text: Text, line: int) -> bool:
    """Tell whether a line changes numbers where nothing is recorded: a parameter's."""
    import ast

    statement = text.at(line)
    blocks = [text.text(item.context_expr) for node in text.around(line, ast.With) for item in node.items]
    return any("no_grad" in block for block in blocks) or (statement is not None and ".data" in text.text(statement))


def _no_root(scene: Scene, y: Any) -> Told:
    name = scene.name(y, "the output")
    threads = Threads(scene.text(), scene.line)
    cuts = threads.cuts()
    if y._detached is not None or cuts:
        return lost(scene, name, y._detached or cuts[0], threads)
    if changes := threads.gradient_recorded():
        said = f"{name} is computed from a gradient, and what computes that is recorded with create_graph=True alone."
        return Told(said, "record it where the gradient is taken", changes)
    changes = mends.thawed(scene.text())
    if changes:
        said = f"nothing that {name} was computed from requires a gradient: it was told so."
        return Told(said, "let some of the parameters require one", changes)
    reason = f"nothing that {name} was computed from requires a gradient, so that there is no graph to go back through."
    late = [n for n, x in scene.names.tensors.items() if x.is_leaf and x.requires_grad and threads.has(n)]
    if late:
        reason = f"{late[0]} did not require a gradient yet when {name} was computed from it: nothing was recorded."
    changes = mends.requiring(scene.text(), name, scene.line, y._a.dtype.kind != "f")
    return Told(reason, "let the input require one, where it is made" + ("" if changes else BEFORE), changes)


def _scalar(scene: Scene, y: Any) -> Told:
    name = scene.name(y, "y")
    size = "×".join(map(str, y.shape))
    reason = (
        f"{name} has {size} elements: x.grad = vᵀJ needs a weight v for each of them, and only of a scalar it is 1."
    )
    mend = f"the gradient of their sum, or of another mean of them: {name}.backward(v) with v = ∂L/∂{name}"
    return Told(reason, mend, mends.summed(scene.text(), scene.line, name))


def _shape(scene: Scene, y: Any, v: Any) -> Told:
    name, weight = scene.name(y, "y"), scene.name(v, "v")
    reason = (
        f"v holds ∂L/∂{name}, a weight for each element of {name}: its shape is that of {name}, {_size(y)}, and here "
        f"{weight} has {_size(v)}."
    )
    made = scene.text().assigned(weight, int(scene.line))
    if made is not None:
        reason += f" It comes from line {made[0].lineno}, `{scene.text().text(made[0])}`."
    mend = f"a v of the shape {_size(y)}" + ("; a scalar takes one number" if not y.shape else "")
    return Told(reason, mend, mends.other_weight(scene.text(), scene.line, y, v))


def _size(x: Any) -> str:
    return str(tuple(x.shape))


def _unused(scene: Scene, x: Any, roots: Any) -> Told:
    name, outputs = scene.name(x, "the input"), ", ".join(scene.name(y, "the output") for y in roots)
    reason = f"no path leads from {outputs} back to {name}: it was computed without {name}, or from a copy of it."
    mend = "let grad return None for it (materialize_grads=True: zeros); or use it in the computation"
    return Told(reason, mend, mends.with_argument(scene.text(), scene.line, "grad", "allow_unused=True"))


def _no_grad(scene: Scene, x: Any) -> Told:
    name = scene.name(x, "it")
    if x._detached is not None:
        return lost(scene, name, x._detached, Threads(scene.text(), scene.line))
    reason = f"{name} does not require a gradient, so that nothing was recorded for it."
    changes = mends.requiring(scene.text(), name, scene.line, x._a.dtype.kind != "f")
    return Told(reason, f"let {name} require one where it is made, before anything is computed from it", changes)


def _nan(scene: Scene, step: Any) -> Told:
    reason = f"the derivative of {step.name()} at {scene.code(step.line)} is not finite where its input is."
    mend = "keep the input away from that point before the operation (clamp, + eps); torch.where behind it is too late"
    return Told(reason, mend, mends.kept_away(scene.text(step.line), step.line))


def _count(scene: Scene) -> Told:
    return Told("each output needs a weight of its own, and each weight an output.", "as many of one as of the other")


_BY_KIND: dict[str, Callable[..., Told]] = {
    "second": _second,
    "in place": _in_place,
    "no root": _no_root,
    "scalar": _scalar,
    "shape": _shape,
    "unused": _unused,
    "no grad": _no_grad,
    "nan": _nan,
    "count": _count,
}
