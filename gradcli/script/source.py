"""The text of a script as statements, and changes to its lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Edit = tuple[tuple[int, int], tuple[int, int], str]  # from, to (lines, and columns in bytes), and what stands there


@dataclass(frozen=True)
class Change:
    """Lines `first` to `last` of a file, and what stands there instead."""

    file: str
    first: int
    last: int
    lines: tuple[str, ...]

    def shown(self) -> list[str]:
        """Return the change as lines for a reader; what is taken away is said so."""
        if not self.lines:
            return ["(without it)" if self.first == self.last else "(without them)"]
        indent = min(len(line) - len(line.lstrip()) for line in self.lines)
        return [line[indent:] for line in self.lines]


def changed(source: str, changes: Sequence[Change]) -> str:
    """Return a text with its lines changed.

    >>> changed("a\\nb\\nc\\n", [Change("", 2, 2, ("B", "b"))])
    'a\\nB\\nb\\nc\\n'
    """
    lines = source.splitlines()
    for change in sorted(changes, key=lambda c: -c.first):
        lines[change.first - 1 : change.last] = change.lines
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Text:
    """The text of one file, and its syntax."""

    file: str
    source: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines."""
        return self.source.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax; that of an empty file where there is none."""
        try:
            return ast.parse(self.source)
        except SyntaxError:
            return ast.Module([], [])

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return ast.get_source_segment(self.source, node) or ""

    def statements(self) -> Iterator[ast.stmt]:
        """Yield all statements, those inside others too, in their order."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt)]
        yield from sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement at a line."""
        found = [n for n in self.statements() if n.lineno <= line <= (n.end_lineno or n.lineno)]
        return max(found, key=lambda n: (n.lineno, n.col_offset), default=None)

    def around(self, line: int, kinds: Any) -> Iterator[Any]:
        """Yield the statements of some kinds around a line, the innermost first."""
        found = [n for n in self.statements() if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or 0)]
        yield from reversed(found)

    def calls(self, line: int, *names: str) -> list[ast.Call]:
        """Return the calls of functions or methods of these names in the statement at a line."""
        statement = self.at(line)
        found = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []
        return [c for c in found if called(c) in names]

    def assigned(self, name: str, before: int) -> tuple[ast.Assign, ast.expr] | None:
        """Return the last assignment to a name, x or self.x, above a line, and what it is given there."""
        found = None
        for n in self.statements():
            if isinstance(n, ast.Assign) and n.lineno < before:
                for target in n.targets:
                    found = next(((n, value) for own, value in pairs(target, n.value) if self.text(own) == name), found)
        return found

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements among which a statement stands."""
        for node in ast.walk(self.tree):
            for part in ("body", "orelse", "finalbody"):
                inner = getattr(node, part, None)
                if isinstance(inner, list) and statement in inner:
                    return inner
        return []

    # Changes

    def edited(self, statement: ast.stmt, *edits: Edit) -> Change:
        """Return a statement with parts replaced."""
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        lines = [line.encode() for line in self.lines[first - 1 : last]]
        for start, end, text in sorted(edits, reverse=True):
            (i, a), (j, b) = (start[0] - first, start[1]), (end[0] - first, end[1])
            lines[i : j + 1] = [lines[i][:a] + text.encode() + lines[j][b:]]
        return Change(self.file, first, last, tuple(line.decode() for line in lines))

    def replaced(self, statement: ast.stmt, *lines: str) -> Change:
        """Return a statement with other lines in its place, indented as it is; what stands around it stays."""
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        head = self.lines[first - 1].encode()[: statement.col_offset].decode()
        indent = head if not head.strip() else ""
        tail = self.lines[last - 1].encode()[statement.end_col_offset :].decode()
        found = [f"{head}{lines[0]}" if lines else "", *(indent + line for line in lines[1:])]
        return Change(self.file, first, last, tuple([*found[:-1], found[-1] + tail] if lines else ()))

    def added(self, statement: ast.stmt, line: str) -> Change:
        """Return a statement with a line behind it."""
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        indent = " " * statement.col_offset
        own = self.lines[first - 1 : last]
        if own[0][: statement.col_offset].strip():  # behind a colon or a semicolon
            return Change(self.file, first, last, (*own[:-1], f"{own[-1]}; {line}"))
        return Change(self.file, first, last, (*own, indent + line))


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to what: x, z = 1, 2."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for own, part in zip(target.elts, value.elts, strict=True):
            yield from pairs(own, part)
    else:
        yield from ((own, value) for own in (target.elts if isinstance(target, ast.Tuple) else [target]))


def start(node: Any) -> tuple[int, int]:
    """Return where a node begins."""
    return node.lineno, node.col_offset


def end(node: Any) -> tuple[int, int]:
    """Return where a node ends."""
    return node.end_lineno, node.end_col_offset


def called(call: ast.Call) -> str:
    """Return the name of what is called, without what it belongs to."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_simple(node: ast.AST) -> bool:
    """Tell whether something may stand in front of a dot, or behind an operator, without brackets."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant | ast.List | ast.Tuple)


def behind(node: ast.expr, words: str, text: Text | None = None) -> list[Edit]:
    """Put words behind an expression, in brackets where it needs them; with a text, behind those that it has."""
    if text is not None and not is_simple(node):
        line = text.lines[end(node)[0] - 1].encode()
        if line[end(node)[1] : end(node)[1] + 1] == b")":
            place = (end(node)[0], end(node)[1] + 1)
            return [(place, place, words)]
    return (
        [(end(node), end(node), words)]
        if is_simple(node)
        else [
            (start(node), start(node), "("),
            (end(node), end(node), ")" + words),
        ]
    )
