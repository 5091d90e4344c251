"""Why a `.grad`, or what a function returned, is None where a script needs it, and what changes that."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits, fixes, leaves, updates
from gradcli.script.errors.failure import Answer, Failure, is_whole
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import calls, parts
from gradcli.script.known import line_at

_TOPIC = "when-it-fails"  # of functions, not of gradients


def none(at: Failure, *_: str) -> Answer | None:
    """Return why a gradient, or what a function returned, is None; None where it is something else that is."""
    for node in parts(at.text.statement, ast.Attribute):
        x: Any = at.value(node.value) if node.attr == "grad" else None
        if is_tensor(x) and at.value(node) is None:
            name = at.text.of(node.value)
            if at.known.is_live and not at.known.record.quantities and calls(at.text.tree, "backward"):
                return _renamed(at, name)  # which backward has run is not known
            if x.requires_grad and x.is_leaf:
                return _of_leaf(at, name, x)
            of_other = _of_intermediate if x.requires_grad else _of_constant
            return _renamed(at, name) or of_other(at, name, x)
    return _without_return(at)


def _without_return(at: Failure) -> Answer | None:
    """Return the answer where a function of the script, or the forward of a module, ends without `return`."""
    text = at.text
    empty = [n.id for n in parts(text.statement, ast.Name) if at.value(n) is None]
    values = [assignment[1] for name in empty if (assignment := text.assigned(name)) is not None]
    for call in (c for node in (text.statement, *values) for c in parts(node, ast.Call)):
        function: Any = at.value(call.func)
        code: Any = getattr(getattr(function, "forward", function), "__code__", None)
        for definition in parts(text.tree, ast.FunctionDef) if code is not None else ():
            first = definition.decorator_list[0].lineno if definition.decorator_list else definition.lineno
            if (definition.name, first, text.file) != (code.co_name, code.co_firstlineno, code.co_filename):
                continue
            if any(n.value is not None for n in parts(definition, ast.Return)) or parts(definition, ast.Yield):
                return None
            reason = f"{at.code(call.lineno)} calls {code.co_qualname}, which ends without `return`: it returns None."
            match definition.body[-1]:
                case ast.Assign([ast.Name(name)]) as last:
                    return Answer(reason, "return its result", text.added(last, f"return {name}"), _TOPIC)
            return Answer(reason, "return its result at the end", topic=_TOPIC)
    return None


def _of_constant(at: Failure, name: str, x: Any) -> Answer:
    text, statement, assignment = at.text, at.text.statement, at.text.assigned(name)
    if assignment is not None and any(text.of(n) == name for n in ast.walk(assignment[1])):  # img = img.clamp(0, 1)
        changes = text.edited(edits.behind(assignment[1], ".float()" * is_whole(x) + ".requires_grad_()"))
    else:
        changes = leaves.requiring(text, name, at.known.of(x))
    if isinstance(statement, ast.AugAssign) and text.of(statement.target) == name:  # the update of a leaf
        changes += updates.without_grad(at)
    else:
        changes += _check_first(at, name)
    fix = f"let {name} require one" if changes else f"go on without it, or let {name} require one"
    reason = f"{name}.grad is None: {name} does not require a gradient."
    return Answer(reason, fix, changes or fixes.if_there(text, f"{name}.grad"))


def _check_first(at: Failure, name: str) -> list[Change]:
    """Ask whether there is a gradient, where a script empties it before any backward."""
    empties = at.text.calls("zero_", "fill_", "detach_")
    is_first = not at.known.record.backwards
    return fixes.if_there(at.text, f"{name}.grad") if is_first and empties else []


def _of_leaf(at: Failure, name: str, x: Any) -> Answer:
    backwards, q = at.known.record.backwards, at.known.of(x)
    reason = f"{name}.grad is None: "
    dotted = next((n for n, y in at.names.tensors.items() if y is x and "." in n), name)
    known = name if dotted == name else f"{name} ({dotted})"
    reached = [b for b in backwards if q is not None and q.id in {c.quantity for c in b.leaves}]
    if reached:
        line = _emptied(at.text)
        by = f" at {at.where(line)}" if line else ""
        reason += f"{at.code(line_at(reached[-1].site))} reached {known}, and it was set to None since{by}."
        return Answer(reason, "read it before that", fixes.if_there(at.text, f"{name}.grad"))
    if not backwards:
        return _before_any(at, name, reason)
    texts = [at.text_at(line_at(b.site)) for b in backwards]
    if all(text.calls("grad") and not text.calls("backward") for text in texts):
        reason += f"{at.code(line_at(backwards[-1].site))} returns the gradients, and fills no .grad."
        return Answer(reason, "read what it returns; or call backward, which fills .grad")
    return _not_reached(at, name, [] if q is None else [q.id], known)


def _not_reached(at: Failure, name: str, leaves: Sequence[int], known: str) -> Answer:
    """Return the answer about a tensor that the last backward did not reach; `leaves` are behind it."""
    swept = line_at(at.known.record.backwards[-1].site)
    history = History(at.text_at(swept), at.known)
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
    fix = "test whether it is None, or read it after the backward"
    return Answer(f"{reason}no backward has run yet.", fix, _check_first(at, name))


def _emptied(text: Text) -> int:
    """Return the last line above the line that sets gradients to None: zero_grad(), or x.grad = None."""
    sets: list[ast.expr | ast.stmt] = [
        s for s in parts(text.tree, ast.Assign) if getattr(s.targets[0], "attr", "") == "grad"
    ]
    lines = [n.lineno for n in [*sets, *calls(text.tree, "zero_grad")] if n.lineno < text.line]
    return max(lines, default=0)


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


def _of_intermediate(at: Failure, name: str, x: Any) -> Answer:
    text, known, q = at.text, at.known, at.known.of(x)
    assignment = text.assigned(name)
    kept = text.added(assignment[0], f"{name}.retain_grad()") if assignment is not None else []
    operation = known.producers.get(q.id) if q is not None else None
    backwards = known.record.backwards
    if operation is not None and q is not None and backwards and (operation.id, 0) not in backwards[-1].received:
        answer = _not_reached(at, name, sorted(known.behind([q.id])[1]), name)
        if {c.first for c in answer.changes} & {c.first for c in kept} or q.retains:
            return answer
        fix = f"{answer.fix}; and keep it, with {name}.retain_grad()"
        return replace(answer, fix=fix, changes=[*kept, *answer.changes])
    reason = f"{name}.grad is None: {name} is computed, and backward keeps the gradients of leaves only."
    if changes := leaves.as_leaf(text, name):
        return Answer(reason, f"let {name} require a gradient after the last operation that makes it", changes)
    return Answer(reason, f"keep it, with {name}.retain_grad() before the backward", kept)
