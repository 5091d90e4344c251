"""Why a `.grad` is None where a script needs it, and what changes that."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.script import mends, updates
from gradcli.script.places import where
from gradcli.script.scene import Scene, Told
from gradcli.script.source import Change, Text, behind, called
from gradcli.script.threads import Threads, lost

if TYPE_CHECKING:
    from gradcli.pytorch.tensor import Tensor


def none(scene: Scene) -> Told | None:
    """Return why a gradient is None that the line of an error needs; None where it is something else that is."""
    found = _owner(scene)
    if found is None:
        return None
    name, x = found
    text = scene.text()
    if not x.requires_grad:
        changes = _requiring(text, name, int(scene.line), x._a.dtype.kind != "f") + _besides(text, scene.line, name)
        mend = f"let {name} require one" if changes else f"go on without it, or let {name} require one"
        changes = changes or mends.if_there(text, scene.line, f"{name}.grad")
        return Told(f"{name}.grad is None: {name} does not require a gradient.", mend, changes)
    return _of_leaf(scene, name, x) if x.is_leaf else _of_intermediate(scene, name)


def _requiring(text: Text, name: str, line: int, whole: bool) -> list[Change]:
    """Let a tensor require a gradient: where it is made, or behind what computes it from others that need none."""
    given = text.assigned(name, line)
    if given is not None and any(text.text(n) == name for n in ast.walk(given[1])):  # img = img.clamp(0, 1)
        return [text.edited(given[0], *behind(given[1], (".float()" if whole else "") + ".requires_grad_()"))]
    return mends.requiring(text, name, line, whole)


def _besides(text: Text, line: int, name: str) -> list[Change]:
    """Return what else a line needs: nothing recorded for an update, and a question in a first round."""
    from gradcli.pytorch.record import Recorder

    statement = text.at(line)
    if isinstance(statement, ast.AugAssign) and text.text(statement.target) == name:
        return updates.without_grad(text, line)
    return mends.if_there(text, line, f"{name}.grad") if Recorder.swept is None and _empties(text, line) else []


def _owner(scene: Scene) -> tuple[str, Tensor] | None:
    """Return what has no gradient at the line, by the name that the script gives it there."""
    from gradcli.pytorch.tensor import Tensor

    text = scene.text()
    statement = text.at(scene.line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            x = scene.value(node.value)
            if isinstance(x, Tensor) and x._grad is None:
                return text.text(node.value), x
    return None


def _of_leaf(scene: Scene, name: str, x: Tensor) -> Told:
    from gradcli.pytorch.record import Recorder

    text, swept = scene.text(), Recorder.swept
    reason = f"{name}.grad is None: "
    own = next((n for n, y in scene.names.tensors.items() if y is x and "." in n), name)
    known = name if own == name else f"{name} ({own})"
    if x._reached is not None:
        line = _emptied(text, name, int(scene.line))
        by = f" at {where(scene.script, line)}" if line else ""
        reason += f"{scene.code(x._reached)} reached {known}, and it was set to None since{by}."
        changes = updates.moved(text, line, scene.line) or mends.if_there(text, scene.line, f"{name}.grad")
        return Told(reason, "look at it before that", changes)
    if swept is None:
        changes = mends.if_there(text, scene.line, f"{name}.grad") if _empties(text, scene.line) else []
        changes = changes or updates.moved(text, scene.line, _backward_below(text, scene.line))
        return Told(reason + "no backward has run yet.", "ask first, or look at it behind the backward", changes)
    threads = Threads(scene.text(swept), swept)
    cut = next((c for c in threads.cuts() if c.leads_to(x)), None)
    if cut is not None:
        told = lost(scene, threads.root or "what it went back from", cut, threads, name)
        there = f"{reason}the backward at {where(scene.script, swept)} did not reach it. "
        return Told(there + told.reason[0].upper() + told.reason[1:], told.mend, told.changes)
    reason += f"what {scene.code(swept)} went back from was computed without {known}."
    changes = mends.if_there(text, scene.line, f"{name}.grad")
    return Told(reason, f"use {name} in the loss, or leave it out here", changes)


def _empties(text: Text, line: int) -> bool:
    return any(called(c).endswith("_") for c in text.calls(line, "zero_", "fill_", "detach_"))


def _emptied(text: Text, name: str, line: int) -> int:
    """Return the line above another that sets gradients to None: zero_grad(), or x.grad = None."""
    found = 0
    for statement in text.statements():
        is_set = isinstance(statement, ast.Assign) and text.text(statement.targets[0]).endswith(".grad")
        is_zeroed = isinstance(statement, ast.Expr) and bool(text.calls(statement.lineno, "zero_grad"))
        if (is_set or is_zeroed) and statement.lineno < line:
            found = statement.lineno
    return found


def _backward_below(text: Text, line: int) -> int:
    """Return the next line below that calls backward; 0 where there is none."""
    calls = [n for n in ast.walk(text.tree) if isinstance(n, ast.Call) and called(n) == "backward"]
    return min((n.lineno for n in calls if n.lineno > line), default=0)


def _of_intermediate(scene: Scene, name: str) -> Told:
    text = scene.text()
    for statement in text.statements():
        if isinstance(statement, ast.Assign) and text.text(statement.targets[0]) == name:
            changes = updates.kept_leaves(text, statement.lineno)
            if changes:
                reason = f"{name}.grad is None: {where(scene.script, statement.lineno)} gives the name {name} to a new "
                mend = f"change {name} itself, where nothing is recorded"
                return Told(f"{reason}tensor, which is computed, and no leaf.", mend, changes)
    reason = f"{name}.grad is None: {name} is computed, and backward keeps the gradients of leaves only."
    changes = updates.made_a_leaf(text, name, int(scene.line))
    if changes:
        return Told(reason, f"let {name} require a gradient last, when it is what it is to be", changes)
    made = text.assigned(name, int(scene.line))
    changes = [text.added(made[0], f"{name}.retain_grad()")] if made is not None else []
    return Told(reason, f"keep it, with {name}.retain_grad() before the backward", changes)
