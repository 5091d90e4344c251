"""Changes to a script where it changes tensors in place, or carries them from round to round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradcli.script.flow import Flow
from gradcli.script.source import Change, Text, behind, called, end, is_simple, start

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
        name, value = text.text(whole), text.text(statement.value)  # type: ignore[attr-defined]
        if isinstance(statement, ast.Assign) and any(text.text(n) == name for n in ast.walk(statement.value)):
            lines = f"part = {value}", f"{name} = {name}.clone()", f"{text.text(element)} = part"
            return [text.replaced(statement, *lines)]
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


def kept_leaves(text: Text, line: int) -> list[Change]:
    """Update parameters in place, where a script computes new tensors under their names: w = w - lr*w.grad.

    Those that stand beside the one at the line are changed as well.
    """
    own = text.at(line)
    found = [s for s in text.block(own) if _updates(text, s)] if own is not None and _updates(text, own) else []
    recorded = not any("no_grad" in text.text(i.context_expr) for n in text.around(line, ast.With) for i in n.items)
    head = "with torch.no_grad(): " if recorded else ""
    changes = []
    for statement in found:
        value, name = statement.value, text.text(statement.targets[0])  # type: ignore[attr-defined]
        changes.append(text.replaced(statement, f"{head}{name} {_OPERATORS[type(value.op)]}= {text.text(value.right)}"))
    return changes


def _updates(text: Text, statement: ast.stmt) -> bool:
    """Tell whether a statement computes a new tensor of an old one and its gradient, under the same name."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    name = text.text(statement.targets[0])
    return text.text(statement.value.left) == name and f"{name}.grad" in text.text(statement.value.right)


def made_a_leaf(text: Text, name: str, line: int) -> list[Change]:
    """Let a tensor require a gradient last, behind what is done with it where it is made."""
    flow = Flow(text)
    waiting: list[ast.AST] = [n for n in ast.walk(text.at(line) or text.tree) if text.text(n) == name][:1]
    while waiting and isinstance(waiting[0], ast.Name | ast.Attribute):  # another name for the same
        waiting = [*flow.of_name(waiting[0])[:1]]
    own = waiting[0].elt if waiting and isinstance(waiting[0], ast.ListComp) else waiting[0] if waiting else None
    statement = text.at(own.lineno) if isinstance(own, ast.expr) else None
    if statement is None or not isinstance(own, ast.Call | ast.BinOp):
        return []
    edits = []
    for call in [n for n in ast.walk(own) if isinstance(n, ast.Call)]:
        for k, keyword in enumerate(call.keywords):
            if keyword.arg == "requires_grad":
                before = [*call.args, *(w.value for w in call.keywords[:k])]
                edits.append((end(before[-1]) if before else start(keyword), end(keyword.value), ""))
    return [text.edited(statement, *edits, *behind(own, ".requires_grad_()"))] if edits else []


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


def into_the_loop(text: Text, line: int, made: int) -> list[Change]:
    """Compute something at the beginning of each round of a training loop, where a script does so before the loop."""
    own = text.at(made)
    for loop in text.around(line, ast.For | ast.While):
        trains = any(isinstance(n, ast.Call) and called(n) == "step" for n in ast.walk(loop))
        if own is None or not trains or not made < loop.lineno or own not in text.block(loop):
            continue
        first = loop.body[0]
        indent = " " * first.col_offset
        lines = [indent + line.strip() for line in text.lines[own.lineno - 1 : own.end_lineno]]
        place = first.lineno
        gone = Change(text.file, own.lineno, own.end_lineno or own.lineno, ())
        return [gone, Change(text.file, place, place, (*lines, text.lines[place - 1]))]
    return []


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
