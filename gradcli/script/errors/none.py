"""Why a `.grad` is None where a script needs it, and what changes that."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from gradcli.pytorch.record import Leaf, Line, Recorder, dependencies
from gradcli.pytorch.tensor import Tensor
from gradcli.script.errors import edits, fixes, leaves, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import calls, parts


def none(at: Failure, *_: str) -> Answer | None:
    """Return why a gradient is None that the line of an error needs; None where it is something else that is."""
    for node in parts(at.text.statement, ast.Attribute):
        x = at.value(node.value) if node.attr == "grad" else None
        if isinstance(x, Tensor) and x._grad is None:
            name = at.text.of(node.value)
            if x.requires_grad and x.is_leaf:
                return _of_leaf(at, name, x)
            of_other = _of_intermediate if x.requires_grad else _of_constant
            return _renamed(at, name) or of_other(at, name, x)
    return None


def _of_constant(at: Failure, name: str, x: Tensor) -> Answer:
    changes = _requiring(at.text, name, x) + _besides(at, name)
    fix = f"let {name} require one" if changes else f"go on without it, or let {name} require one"
    reason = f"{name}.grad is None: {name} does not require a gradient."
    return Answer(reason, fix, changes or fixes.if_there(at.text, f"{name}.grad"))


def _requiring(text: Text, name: str, x: Tensor) -> list[Change]:
    """Return the fix that makes a tensor require a gradient, where it is created or computed without one."""
    assignment = text.assigned(name)
    if assignment is not None and any(text.of(n) == name for n in ast.walk(assignment[1])):  # img = img.clamp(0, 1)
        real = "" if x.is_floating_point() else ".float()"
        return text.edited(edits.behind(assignment[1], f"{real}.requires_grad_()"))
    return leaves.requiring(text, name, x)


def _besides(at: Failure, name: str) -> list[Change]:
    """Return the other fixes that a line needs: `no_grad` for an update, and a check for None in a first round."""
    statement = at.text.statement
    if isinstance(statement, ast.AugAssign) and at.text.of(statement.target) == name:
        return updates.without_grad(at)
    return _check_first(at, name)


def _check_first(at: Failure, name: str) -> list[Change]:
    """Ask whether there is a gradient, where a script empties it before any backward."""
    empties = at.text.calls("zero_", "fill_", "detach_")
    return fixes.if_there(at.text, f"{name}.grad") if Recorder.swept is None and empties else []


def _of_leaf(at: Failure, name: str, x: Tensor) -> Answer:
    text, swept = at.text, Recorder.swept
    reason = f"{name}.grad is None: "
    dotted = next((n for n, y in at.names.tensors.items() if y is x and "." in n), name)
    known = name if dotted == name else f"{name} ({dotted})"
    guard = fixes.if_there(text, f"{name}.grad")
    if x._reached is not None:
        line = _emptied(text)
        by = f" at {at.where(line)}" if line else ""
        reason += f"{at.code(x._reached)} reached {known}, and it was set to None since{by}."
        return Answer(reason, "read it before that", updates.moved(text.on(line), at.line) or guard)
    if swept is None:
        return _before_any(at, name, reason)
    return _not_reached(at, name, swept, [x], known)


def _not_reached(at: Failure, name: str, swept: Line, leaves: Sequence[Tensor], known: str) -> Answer:
    """Return the answer about a tensor that the last backward, at a line, did not reach; `leaves` are behind it."""
    history = History(at.text_at(swept))
    reason = f"{name}.grad is None: "
    cut = next((c for c in history.cuts() if any(map(c.leads_to, leaves))), None)
    if cut is not None:
        answer = detached_answer(at, history.root or "what it went back from", cut, history, name)
        reason += f"the backward at {at.where(swept)} did not reach it. {answer.reason[0].upper()}{answer.reason[1:]}"
        return Answer(reason, answer.fix, answer.changes)
    reason += f"what {at.code(swept)} went back from was computed without {known}."
    guard = fixes.if_there(at.text, f"{name}.grad")
    return Answer(reason, f"use {name} in the loss, or leave it out here", guard)


def _before_any(at: Failure, name: str, reason: str) -> Answer:
    """Return the answer where no backward has run."""
    text = at.text
    uncalled = [s.value for s in parts(text.tree, ast.Expr) if getattr(s.value, "attr", "") == "backward"]
    if uncalled:
        changes = text.on(uncalled[0].lineno).edited(edits.behind(uncalled[0], "()"))
        reason += f"{at.code(uncalled[0].lineno)} names the method, and does not call it."
        return Answer(reason, "call it", changes)
    below = [c.lineno for c in calls(text.tree, "backward") if c.lineno > at.line]
    changes = _check_first(at, name) or updates.moved(text, min(below, default=0))
    return Answer(
        reason + "no backward has run yet.", "test whether it is None, or read it after the backward", changes
    )


def _emptied(text: Text) -> int:
    """Return the last line above the line that sets gradients to None: zero_grad(), or x.grad = None."""
    result = 0
    for statement in text.statements():
        match statement:
            case ast.Assign([target, *_]):
                empties = isinstance(target, ast.Attribute) and target.attr == "grad"
            case _:
                empties = isinstance(statement, ast.Expr) and bool(calls(statement, "zero_grad"))
        result = statement.lineno if empties and statement.lineno < text.line else result
    return result


def _renamed(at: Failure, name: str) -> Answer | None:
    """Return the answer where an update assigns a new tensor to a parameter's name: w = w - lr*w.grad."""
    for statement in at.text.statements():
        is_assigned = isinstance(statement, ast.Assign) and at.text.of(statement.targets[0]) == name
        if is_assigned and (changes := updates.kept_leaves(at.text.on(statement.lineno))):
            reason = f"{name}.grad is None: {at.where(statement.lineno)} gives the name {name} to a new "
            fix = f"change {name} itself, where nothing is recorded"
            return Answer(
                f"{reason}tensor, which is computed, so it is not the leaf that backward has reached.", fix, changes
            )
    return None


def _of_intermediate(at: Failure, name: str, x: Tensor) -> Answer:
    text, step = at.text, x._step
    assignment = text.assigned(name)
    kept = text.added(assignment[0], f"{name}.retain_grad()") if assignment is not None else []
    if Recorder.swept is not None and step is not None and not step.reached:
        behind = [e.variable for e in dependencies([step]) if isinstance(e, Leaf)]
        answer = _not_reached(at, name, Recorder.swept, [x, *behind], name)
        if {c.first for c in answer.changes} & {c.first for c in kept} or step.retained:
            return answer
        return replace(
            answer, fix=f"{answer.fix}; and keep it, with {name}.retain_grad()", changes=[*kept, *answer.changes]
        )
    reason = f"{name}.grad is None: {name} is computed, and backward keeps the gradients of leaves only."
    if changes := leaves.as_leaf(text, name):
        return Answer(reason, f"let {name} require a gradient after the last operation that makes it", changes)
    return Answer(reason, f"keep it, with {name}.retain_grad() before the backward", kept)
