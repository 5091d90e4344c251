"""Errors inside of `vmap`: numbers of a row, and conditions on them."""

from __future__ import annotations

import ast

from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.operands import elementwise
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import calls, owner_of, parts

_ALL_ROWS = "inside vmap, a tensor represents all rows at once, and"


def number(at: Failure) -> Answer:
    """Return the answer about a number of a row: x.sum().item() or float(x.sum())."""
    reason = f"{_ALL_ROWS} so it has no single number."
    nodes = parts(at.text.statement, ast.Subscript)
    sizes = [n for s in nodes for n in ast.walk(s.slice)]
    sizes += [n for c in calls(at.text.statement, "range") for n in ast.walk(c)]
    for call in at.failed_calls("item", "float", "int", "tolist"):
        if call in sizes:
            return Answer(f"{reason} The shape of a result must not depend on it.", "use a mask, and torch.where")
        is_function = owner_of(call) is None
        changed = edits.instead(call, at.text.of(call.args[0])) if is_function else edits.method(call, "")
        return Answer(reason, "compute with the tensor itself", at.text.edited(changed))
    return Answer(reason, "compute with PyTorch's functions of the tensor itself")


def condition(at: Failure) -> Answer:
    """Return the answer about a condition on a row: both branches are computed, and torch.where chooses."""
    reason = f"{_ALL_ROWS} the condition may differ from row to row."
    if changes := elementwise(at):
        return Answer(reason, "use PyTorch's elementwise function", changes)
    if isinstance(at.text.statement, ast.While):
        fix = "loop a fixed number of times, and choose in each round with torch.where what is kept"
        return Answer(reason, fix)
    return Answer(reason, "compute both branches, and choose with torch.where", _chosen(at))


def _chosen(at: Failure) -> list[Change]:
    """Return the fix that computes both branches of a condition in one line."""
    failed = at.failed_parts(ast.expr)
    for node in [n for n in parts(at.text.statement, ast.IfExp) if n in failed or n.test in failed]:
        new = _choice(at.text, node.test, node.body, node.orelse)
        return at.text.edited(edits.instead(node, new)) if new else []
    statement = at.text.statement
    if not isinstance(statement, ast.If) or len(statement.body) != 1:
        return []
    block = at.text.block(statement)
    following = block[block.index(statement) + 1 :]
    match statement.body, statement.orelse or following[:1]:
        case [ast.Return(a)], [ast.Return(b) as last] if a is not None and b is not None:
            new, head = _choice(at.text, statement.test, a, b), "return "
        case [ast.Assign([x], a)], [ast.Assign([y], b) as last] if at.text.of(x) == at.text.of(y) and statement.orelse:
            new, head = _choice(at.text, statement.test, a, b), f"{at.text.of(x)} = "
        case _:
            return []
    line = at.text.head(statement) + head + new
    return [Change(at.text.file, statement.lineno, last.end_lineno or last.lineno, (line,))] if new else []


def _choice(text: Text, test: ast.expr, a: ast.expr, b: ast.expr) -> str:
    """Return the choice between two branches; "" for a condition that is too long for a line."""
    condition = text.of(test)
    if isinstance(test, ast.BoolOp):  # and, or: of elements they are & and |
        sign = " & " if isinstance(test.op, ast.And) else " | "
        condition = sign.join(f"({text.of(v)})" for v in test.values)
    inner = [n for n in ast.walk(test) if n is not test]
    if any(isinstance(n, ast.BoolOp) or (isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)) for n in (*inner,)):
        return ""
    return f"torch.where({condition}, {text.of(a)}, {text.of(b)})"
