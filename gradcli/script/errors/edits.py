"""Edits of a script: text that replaces a node, or is inserted before or behind it."""

from __future__ import annotations

import ast

from gradcli.script.errors.source import Edit, Text
from gradcli.script.errors.syntax import Position, end, start, tokens


def is_simple(node: ast.AST) -> bool:
    """Return whether an expression needs no brackets before a dot, or behind an operator."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant | ast.List | ast.Tuple)


def instead(node: ast.AST, words: str) -> list[Edit]:
    """Replace a node."""
    return [(start(node), end(node), words)]


def wrapped(node: ast.AST, before: str, after: str = ")") -> list[Edit]:
    """Insert text before a node, and behind it."""
    return [(start(node), start(node), before), (end(node), end(node), after)]


def behind(node: ast.expr, words: str) -> list[Edit]:
    """Insert text behind an expression, in brackets where it needs them."""
    return [(end(node), end(node), words)] if is_simple(node) else wrapped(node, "(", ")" + words)


def dot(node: ast.Attribute) -> Position:
    """Return the position of the last dot of an expression: that of .item in (x ** 2).item."""
    line, column = end(node)
    return line, column - len(f".{node.attr}".encode())


def renamed(node: ast.AST, name: str) -> list[Edit]:
    """Replace the last name of a callee: torch.no_grad() for torch.inference_mode()."""
    target: ast.AST = node.func if isinstance(node, ast.Call) else node
    return [(dot(target), end(target), f".{name}")] if isinstance(target, ast.Attribute) else instead(target, name)


def method(call: ast.Call, words: str) -> list[Edit]:
    """Replace the call of a method: .tolist() for .item()."""
    return [(dot(call.func), end(call), words)] if isinstance(call.func, ast.Attribute) else []


def before_call(call: ast.Call, words: str) -> list[Edit]:
    """Insert text between an object and its method."""
    return [(dot(call.func), dot(call.func), words)] if isinstance(call.func, ast.Attribute) else []


def appended(call: ast.Call, argument: str, text: Text) -> list[Edit]:
    """Append an argument to a call."""
    position = (end(call)[0], end(call)[1] - 1)
    *_, last, _ = tokens(text.of(call))
    return [(position, position, argument if last in ("(", ",") else f", {argument}")]
