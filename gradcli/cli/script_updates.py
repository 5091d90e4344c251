"""Changes to a script where it changes tensors in place, or carries them from round to round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradcli.cli.script_source import Change, Text, behind, called, end, is_simple, start

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//",
    ast.Mod: "%",
}  # fmt: skip


def out_of_place(text: Text, line: int) -> list[Change]:
    """Compute a new tensor in the place of changing one: y = y + 1 for y += 1."""
    statement = text.at(line)
    if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Subscript):
        target, value = text.text(statement.target), text.text(statement.value)
        value = value if is_simple(statement.value) else f"({value})"
        return [text.replaced(statement, f"{target} = {target} {_OPERATORS[type(statement.op)]} {value}")]
    element = statement.target if isinstance(statement, ast.AugAssign) else None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        element = statement.targets[0]
    if isinstance(statement, ast.stmt) and isinstance(element, ast.Subscript):
        whole: ast.expr = element
        while isinstance(whole, ast.Subscript):
            whole = whole.value
        name = text.text(whole)
        return [text.replaced(statement, f"{name} = {name}.clone()", text.text(statement))]
    if isinstance(statement, ast.Expr | ast.Assign):
        for call in [n for n in ast.walk(statement) if isinstance(n, ast.Call)]:
            if isinstance(call.func, ast.Attribute) and called(call).endswith("_") and called(call)[-2:] != "__":
                return [_without_underscore(text, statement, call)]
    return _not_in_place(text)


def _without_underscore(text: Text, statement: ast.Expr | ast.Assign, call: ast.Call) -> Change:
    assert isinstance(call.func, ast.Attribute)
    owner, arguments = text.text(call.func.value), ", ".join(map(text.text, call.args))
    new = {
        "zero_": f"torch.zeros_like({owner})",
        "fill_": f"torch.full_like({owner}, {arguments})",
        "copy_": f"{arguments}.clone()",
    }.get(called(call), f"{owner}.{called(call)[:-1]}{text.text(call)[len(text.text(call.func)) :]}")
    if isinstance(statement, ast.Expr):
        return text.replaced(statement, f"{owner} = {new}")
    return text.edited(statement, (start(call), end(call), new))


def _not_in_place(text: Text) -> list[Change]:
    """Take inplace=True away from the modules and functions of a script."""
    found = []
    for statement in text.statements():
        own = [n for n in ast.walk(statement) if isinstance(n, ast.keyword) and n.arg == "inplace"]
        if own and not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.With | ast.If):
            found.append(text.edited(statement, *((start(k.value), end(k.value), "False") for k in own)))
    return found


def without_grad(text: Text, line: int) -> list[Change]:
    """Change a leaf where nothing is recorded: with torch.no_grad(): w -= …."""
    statement = text.at(line)
    if isinstance(statement, ast.AugAssign | ast.Assign | ast.Expr):
        return [text.replaced(statement, f"with torch.no_grad(): {text.text(statement)}")]
    return []


def kept_a_leaf(text: Text, name: str) -> list[Change]:
    """Update a parameter in place, where a script computes a new tensor under its name: w = w - lr*w.grad."""
    for statement in text.statements():
        if not isinstance(statement, ast.Assign) or text.text(statement.targets[0]) != name:
            continue
        value = statement.value
        if isinstance(value, ast.BinOp) and text.text(value.left) == name and f"{name}.grad" in text.text(value.right):
            sign, right = _OPERATORS[type(value.op)], text.text(value.right)
            return [text.replaced(statement, f"with torch.no_grad(): {name} {sign}= {right}")]
    return []


def made_a_leaf(text: Text, name: str, line: int) -> list[Change]:
    """Let a tensor require a gradient last, behind what is done with it where it is made."""
    given = text.assigned(name, line)
    if given is None:
        return []
    statement, value = given
    edits = []
    for call in [n for n in ast.walk(value) if isinstance(n, ast.Call)]:
        for k, keyword in enumerate(call.keywords):
            if keyword.arg == "requires_grad":
                before = [*call.args, *(w.value for w in call.keywords[:k])]
                edits.append((end(before[-1]) if before else start(keyword), end(keyword.value), ""))
    if not edits:
        return []
    return [text.edited(statement, *edits, *behind(value, ".requires_grad_()"))]


def detached_at_the_end(text: Text, line: int, frame: Any) -> tuple[str, list[Change]]:
    """Let what a loop carries from round to round go on without its history: h = h.detach() at its end."""
    from gradcli.pytorch.tensor import Tensor

    for loop in text.around(line, ast.For | ast.While):
        for name in _carried(loop):
            value = frame.f_locals.get(name, frame.f_globals.get(name))
            if isinstance(value, Tensor) and value.grad_fn is not None:
                return name, [text.added(loop.body[-1], f"{name} = {name}.detach()")]
    for statement in text.statements():
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            name = text.text(statement.targets[0])
            read = [n for n in ast.walk(statement.value) if isinstance(n, ast.Attribute) and text.text(n) == name]
            if read:
                return name, [text.edited(statement, *((end(n), end(n), ".detach()") for n in read))]
    return "", []


def _carried(loop: ast.For | ast.While) -> Iterator[str]:
    """Yield the names that a loop reads before it gives them a new value."""
    read: set[str] = set()
    for statement in sorted((n for n in ast.walk(loop) if isinstance(n, ast.stmt)), key=start):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
            read |= {n.id for n in names if isinstance(n.ctx, ast.Load)}
            read |= {n.id for n in names if isinstance(statement, ast.AugAssign) and n is statement.target}
            yield from (n.id for n in names if isinstance(n.ctx, ast.Store) and n.id in read)


def moved(text: Text, line: int, behind: int) -> list[Change]:
    """Put the statement at a line behind another one, if both stand in the same block."""
    own, other = _outer(text, line, behind), _outer(text, behind, line)
    if own is None or other is None or own.lineno >= other.lineno:
        return []
    lines = text.lines[own.lineno - 1 : own.end_lineno]
    kept = text.lines[other.lineno - 1 : other.end_lineno]
    gone = Change(text.file, own.lineno, own.end_lineno or own.lineno, ())
    return [gone, Change(text.file, other.lineno, other.end_lineno or other.lineno, (*kept, *lines))]


def _outer(text: Text, line: int, other: int) -> ast.stmt | None:
    """Return the statement around a line that stands in the same block as one around another line."""
    theirs = [block for s in text.around(other, ast.stmt) if (block := text.block(s))]
    return next((s for s in text.around(line, ast.stmt) if any(text.block(s) is b for b in theirs)), None)
