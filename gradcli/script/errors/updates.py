"""Changes to a script where it changes tensors in place, or carries them from round to round."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from gradcli.script.errors import edits
from gradcli.script.errors.failure import Failure
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import called, calls, end, last_name, owner_of, parts, start, within
from gradcli.text.wrapping import in_words

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//",
    ast.Mod: "%",
}  # fmt: skip


def out_of_place(text: Text) -> list[Change]:
    """Compute a new tensor instead of changing one: y = y + 1 for y += 1."""
    statement = text.statement
    match statement:
        case ast.AugAssign(ast.Subscript() as element) | ast.Assign([ast.Subscript() as element, *_]):
            return _of_a_copy(text, statement, element)
        case ast.AugAssign(target, how, value):
            code = text.of(value) if edits.is_simple(value) else f"({text.of(value)})"
            return text.replaced(statement, f"{text.of(target)} = {text.of(target)} {_OPERATORS[type(how)]} {code}")
        case ast.Expr() | ast.Assign():
            for call in calls(statement):
                if owner_of(call) is not None and called(call).endswith("_") and not called(call).endswith("__"):
                    return _without_underscore(text, call)
    return _without_inplace(text)


def _without_inplace(text: Text) -> list[Change]:
    """Return the script with inplace=False for inplace=True."""
    settings = [k.value for k in parts(text.tree, ast.keyword) if k.arg == "inplace"]
    on = [v for v in settings if isinstance(v, ast.Constant) and v.value is True]
    return text.edited([e for value in on for e in edits.instead(value, "False")])


def _of_a_copy(text: Text, statement: ast.AugAssign | ast.Assign, element: ast.Subscript) -> list[Change]:
    name = text.of(within(element, ast.Subscript))
    if any(text.of(n) == name for n in ast.walk(statement.value)):  # which may need the old values as well
        return []
    return text.replaced(statement, f"{name} = {name}.clone()", text.of(statement))


def _without_underscore(text: Text, call: ast.Call) -> list[Change]:
    owner, arguments = text.of(owner_of(call)), ", ".join(map(text.of, call.args))
    options = ", ".join(map(text.of, (*call.args, *call.keywords)))
    new = {
        "zero_": f"torch.zeros_like({owner})",
        "fill_": f"torch.full_like({owner}, {arguments})",
        "copy_": f"{arguments}.clone()",
    }.get(called(call), f"{owner}.{called(call)[:-1]}({options})")
    if isinstance(text.statement, ast.Expr):
        is_named = isinstance(owner_of(call), ast.Name | ast.Attribute | ast.Subscript)
        return text.replaced(text.statement, f"{owner} = {new}") if is_named else []
    return text.edited(edits.instead(call, new))


def without_grad(at: Failure) -> list[Change]:
    """Change a leaf where nothing is recorded, with torch.no_grad(): w -= …; or without inplace=True."""
    statement = at.text.statement
    match statement:
        case ast.Assign([ast.Name() | ast.Attribute(), *_], ast.Call()):
            return _without_inplace(at.text)
    is_update = isinstance(statement, ast.AugAssign | ast.Assign | ast.Expr)
    return at.text.replaced(statement, f"with torch.no_grad(): {at.text.of(statement)}") if is_update else []


def without_view(at: Failure) -> list[Change]:
    """Compute a new tensor instead of changing a view of a leaf: batch = batch + 1, where batch is w.expand(4, 3)."""
    match at.text.statement:
        case ast.AugAssign(ast.Name() as target) | ast.Expr(ast.Call(ast.Attribute(ast.Name() as target))):
            view = at.value(target)
            return out_of_place(at.text) if getattr(view, "_base", None) is not None else []
    return []


def is_unrecorded(text: Text) -> bool:
    """Return whether a line stands in a block of torch.no_grad(), or in a function with that decorator."""
    return any(last_name(e) == "no_grad" for e in text.contexts())


def kept_leaves(text: Text) -> list[Change]:
    """Update parameters in place, where a script computes new tensors under their names: w = w - lr*w.grad.

    Those that stand beside the one at the line are changed as well.
    """
    head = "" if is_unrecorded(text) else "with torch.no_grad(): "
    updates = [(s, new) for s in text.block(text.statement) if (new := _updated(text, s))]
    result = any(s is text.statement for s, _ in updates)
    return [c for s, new in updates for c in text.replaced(s, head + new)] if result else []


def _updated(text: Text, statement: ast.stmt) -> str:
    """Return the update in place, for one that computes a new tensor of an old one and its gradient."""
    match statement:
        case ast.Assign([target, *_], ast.BinOp(left, how, right)):
            name = text.of(target)
            grads = [n for n in parts(right, ast.Attribute) if n.attr == "grad" and text.of(n.value) == name]
            if text.of(left) == name and grads:
                return f"{name} {_OPERATORS[type(how)]}= {text.of(right)}"
    return ""


def carried(at: Failure, leads: Callable[[Any], bool]) -> tuple[str, list[Change]]:
    """Return the fix that detaches the values that a loop carries to the next round: h = h.detach() at its end.

    `leads` tells which values have the history that is in the way.
    """
    text = at.text
    for loop in text.around(ast.For, ast.While):
        names = [n for n in dict.fromkeys(_carried(loop)) if leads(at.value(ast.Name(n)))]
        if names:
            cut = ", ".join(_detached(n, at.value(ast.Name(n))) for n in names)
            return in_words(names), text.added(loop.body[-1], f"{', '.join(names)} = {cut}")
    for statement in text.statements():
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            name = text.of(statement.targets[0])
            read = [n for n in parts(statement.value, ast.Attribute) if text.of(n) == name]
            if read:
                return name, text.edited([(end(n), end(n), ".detach()") for n in read])
    return "", []


def _detached(name: str, x: Any) -> str:
    """Return the expression that cuts a tensor, or those in a tuple, off from their history."""
    if isinstance(x, list | tuple):
        return f"{type(x).__name__}(s.detach() for s in {name})"
    return f"{name}.detach()"


def _carried(loop: ast.For | ast.While) -> Iterator[str]:
    """Yield the names that a loop reads before it gives them a new value."""
    read: set[str] = set()
    for statement in sorted(parts(loop, ast.Assign, ast.AugAssign, ast.Expr), key=start):
        names = parts(statement, ast.Name)
        changed = statement.target if isinstance(statement, ast.AugAssign) else None
        read |= {n.id for n in names if isinstance(n.ctx, ast.Load) or n is changed}
        yield from (n.id for n in names if isinstance(n.ctx, ast.Store) and n.id in read)
