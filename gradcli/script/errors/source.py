"""The text of a script: its statements, the values assigned to its names, and changes to its lines."""

from __future__ import annotations

import ast
import linecache
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from gradcli.record.record import CallSite
from gradcli.script.errors import syntax
from gradcli.script.known import Line, line_of
from gradcli.script.scene import Scene

Edit = tuple[syntax.Position, syntax.Position, str]  # from, to, and what stands there
_MOST = 2000  # expressions that are looked at on the way back from a node


@dataclass(frozen=True)
class Change:
    """Lines `first` to `last` of a file, and what stands there instead."""

    file: str
    first: int
    last: int
    lines: tuple[str, ...] = ()

    def places(self) -> list[Line]:
        """Return its lines, which know their file."""
        return [line_of(self.file, number) for number in range(self.first, self.last + 1)]

    def shown(self) -> list[str]:
        """Return the change as lines for a reader; what is taken away is said so."""
        if not self.lines:
            return ["(remove it)" if self.first == self.last else "(remove them)"]
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


@lru_cache(maxsize=8)
def _encoded(source: str) -> Sequence[bytes]:
    """Return the lines of a text as the syntax counts them: with their ends, in the bytes that columns are."""
    return [line.encode() for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", source)]


@lru_cache(maxsize=8)
def _statements(source: str) -> Sequence[ast.stmt]:
    return sorted(syntax.parts(syntax.parsed(source), ast.stmt), key=syntax.start)


@dataclass(frozen=True)
class Text:
    """The text of one file, and the line of it that is looked at."""

    file: str
    source: str
    line: int = 0

    def on(self, line: int) -> Text:
        """Return the same text with another line that is looked at."""
        return Text(self.file, self.source, line)

    @cached_property
    def lines(self) -> list[str]:
        """The lines."""
        return self.source.splitlines()

    @property
    def tree(self) -> ast.Module:
        """The syntax."""
        return syntax.parsed(self.source)

    def of(self, node: ast.AST | None) -> str:
        """Return the text of a node."""
        at: Any = node
        if getattr(node, "end_lineno", None) is None:
            return ""
        lines = _encoded(self.source)[at.lineno - 1 : at.end_lineno]
        if not lines:  # a node of another text
            return ""
        segment = b"".join(lines)
        return segment[at.col_offset : len(segment) - len(lines[-1]) + at.end_col_offset].decode()

    def statements(self) -> Sequence[ast.stmt]:
        """Return all statements, those inside others too, in their order."""
        return _statements(self.source)

    @cached_property
    def statement(self) -> ast.stmt:
        """The innermost statement at the line; one that does nothing where there is none."""
        return next(self.around(ast.stmt), ast.Pass())

    def around(self, *kinds: Any) -> Iterator[Any]:
        """Yield the statements of some kinds around the line, the innermost first."""
        for n in reversed(self.statements()):
            if isinstance(n, kinds) and n.lineno <= self.line <= (n.end_lineno or 0):
                yield n

    def contexts(self) -> list[ast.expr]:
        """Return what the line runs in: the managers of the blocks around it, and the decorators of its functions."""
        managers = [item.context_expr for block in self.around(ast.With) for item in block.items]
        return managers + [d for function in self.around(ast.FunctionDef) for d in function.decorator_list]

    def expression(self, site: CallSite) -> ast.expr | ast.AugAssign | None:
        """Return the expression that is computed at a place."""
        nodes: list[Any] = syntax.parts(self.tree, ast.expr, ast.AugAssign)
        return next((n for n in nodes if (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) == site.span), None)

    def is_bracketed(self, node: ast.expr) -> bool:
        """Return whether an expression stands in brackets, or is the only argument of a call."""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset].rstrip()
        after = self.lines[(node.end_lineno or 0) - 1].encode()[node.end_col_offset :].lstrip()
        return before.endswith(b"(") and after.startswith(b")")

    def calls(self, *names: str) -> list[ast.Call]:
        """Return the calls of functions or methods of these names in the statement at the line."""
        return syntax.calls(self.statement, *names)

    def owners(self, *names: str) -> list[ast.expr]:
        """Return the objects whose methods of these names the statement calls."""
        return [owner for call in self.calls(*names) if (owner := syntax.owner_of(call)) is not None]

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements among which a statement stands."""
        for node in ast.walk(self.tree):
            for part in ("body", "orelse", "finalbody"):
                inner = getattr(node, part, None)
                if isinstance(inner, list) and statement in inner:
                    return inner
        return []

    def operand(self, call: ast.Call) -> ast.expr | None:
        """Return the operand of a function: x in x.log() and in torch.log(x)."""
        owner = syntax.owner_of(call)
        is_method = owner is not None and self.of(owner) not in ("torch", "np", "numpy", "math")
        return owner if is_method else next(iter(call.args), None)

    # The values of names

    def assigned(self, name: str) -> tuple[ast.Assign, ast.expr] | None:
        """Return the last assignment to a name, x or self.x, above the line, with its value."""
        known = [a for a in _flow(self.on(0)).assigned.get(name, ()) if self.of(a.target) == name]
        above = [(a.statement, a.value) for a in known if a.statement.lineno < self.line]
        return next(((s, value) for s, value in reversed(above) if isinstance(s, ast.Assign)), None)

    def values(self, node: ast.AST | None) -> list[ast.expr]:
        """Return the values of a name: assigned in its function, passed to it, or assigned outside of it.

        They are those of all branches, the last one above the node first.
        """
        if not isinstance(node, ast.Name | ast.Attribute):
            return []
        name, scope, flow = self.of(node), self.scope(node), _flow(self.on(0))
        known = flow.assigned.get(name, ())
        if isinstance(node, ast.Attribute):
            return _near((a.value for a in known), node)
        while scope is not None:
            scoped = [a.value for a in known if self.scope(a.target) is scope]
            names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]
            if scoped or name in names:
                return [*_near(scoped, node), *(self._arguments(scope, name, names) if name in names else ())]
            scope = self.scope(scope)
        return _near((a.value for a in known if id(a.target) not in flow.scopes), node)

    def back(self, node: ast.AST) -> list[ast.expr]:
        """Return the expressions that lead to a node, the nearest first."""
        result: dict[ast.expr, None] = {}
        waiting = deque(self._read(node))
        while waiting and len(result) < _MOST:
            expression = waiting.popleft()
            if expression not in result:
                result[expression] = None
                waiting.extend(e for e in self._read(expression) if e not in result)
        return list(result)

    def scope(self, node: ast.AST | None) -> ast.FunctionDef | None:
        """Return the innermost function around a node; None at the top of the script."""
        return _flow(self.on(0)).scopes.get(id(node))

    def _read(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the values of the names in a node, and those that its functions return."""
        for n in sorted(ast.walk(node), key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
            if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load):
                yield from self.values(n)
            if isinstance(n, ast.Call):
                for function in self._called(syntax.called(n), syntax.owner_of(n) is not None):
                    returned = (r for r in ast.walk(function) if isinstance(r, ast.Return | ast.Yield))
                    yield from (r.value for r in returned if r.value is not None)

    def _called(self, name: str, is_method: bool) -> list[ast.FunctionDef]:
        """Return the functions of the script that a call by a name may run."""
        classes = syntax.parts(self.tree, ast.ClassDef)
        for cls in [c for c in classes if c.name == name][-1:]:
            return syntax.methods(cls, "forward", "__call__")
        inner = [f for c in classes for f in syntax.methods(c, name)]
        return [f for f in syntax.parts(self.tree, ast.FunctionDef) if f.name == name and (f in inner) == is_method]

    def _arguments(self, function: ast.FunctionDef, name: str, names: list[str]) -> Iterator[ast.expr]:
        """Yield the arguments that calls pass for a parameter of a function."""
        position = names.index(name) - (names[0] == "self")
        forward = names[0] == "self" and function.name in ("forward", "__call__")
        for call in syntax.calls(self.tree, *([] if forward else [function.name])):
            yield from (k.value for k in call.keywords if k.arg == name)
            if 0 <= position < len(call.args):
                yield call.args[position]

    # Changes

    def edited(self, edits: Sequence[Edit]) -> list[Change]:
        """Return the statements that edits change, each with its edits made."""
        ranges: dict[tuple[int, int], list[Edit]] = {}
        for edit in sorted({*edits}):
            ranges.setdefault(self._around(edit[0][0]), []).append(edit)
        return [self._edited(first, last, changes) for (first, last), changes in ranges.items()]

    def _around(self, line: int) -> tuple[int, int]:
        """Return the first and the last line of the statement at a line: of its head, or of a decorator above it."""
        for d in syntax.decorators(self.tree):
            if d.lineno <= line <= (d.end_lineno or 0):
                return d.lineno, d.end_lineno or d.lineno
        statement: Any = self.on(line).statement
        first = statement.lineno
        return first, max(first, statement.body[0].lineno - 1) if hasattr(statement, "body") else statement.end_lineno

    def _edited(self, first: int, last: int, edits: Sequence[Edit]) -> Change:
        lines = [line.encode() for line in self.lines[first - 1 : last]]
        for begin, until, text in sorted(edits, reverse=True):
            (i, a), (j, b) = (begin[0] - first, begin[1]), (until[0] - first, until[1])
            lines[i : j + 1] = [lines[i][:a] + text.encode() + lines[j][b:]]
        return Change(self.file, first, last, tuple(b"\n".join(lines).decode().split("\n")))

    def head(self, statement: ast.stmt) -> str:
        """Return the text before a statement in its line; columns count bytes."""
        return self.lines[statement.lineno - 1].encode()[: statement.col_offset].decode()

    def instead_of(self, node: ast.stmt | ast.expr, *lines: str) -> Change:
        """Return other lines instead of those of a node."""
        return Change(self.file, node.lineno, node.end_lineno or node.lineno, lines)

    def moved(self, statement: ast.stmt) -> list[str]:
        """Return the lines of a statement without the indentation of its first one, but for those inside a string."""
        strings = syntax.parts(statement, ast.Constant, ast.JoinedStr)
        inside = {line for s in strings for line in range(s.lineno + 1, (s.end_lineno or s.lineno) + 1)}
        first, columns = self.of(statement).split("\n")[0], statement.col_offset
        more = enumerate(self.lines[statement.lineno : statement.end_lineno], statement.lineno + 1)
        return [first, *(t if n in inside else t[min(columns, len(t) - len(t.lstrip())) :] for n, t in more)]

    def is_alone(self, statement: ast.stmt) -> bool:
        """Return whether no other statement has a part in the lines of a statement.

        >>> text = Text("", 'a = f("#"); b = 1\\nc = 2  # b = 1\\n')
        >>> [text.is_alone(s) for s in text.statements()]
        [False, False, True]
        """
        inside = {*ast.walk(statement)}
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        others = (s for s in self.statements() if s.lineno in lines and s not in inside)
        return not self.head(statement).strip() and not any(True for _ in others)

    def before(self, statement: ast.stmt, *new: str) -> list[Change]:
        """Return a statement with lines before it, indented as it is; that of a loop in one line gets its own line."""
        line, head = self.lines[statement.lineno - 1], self.head(statement)
        lines = (*(head + n if n else n for n in new), line)
        if head.strip():
            indent = " " * (len(line) - len(line.lstrip()) + 4)
            lines = (head.rstrip(), *(indent + n for n in new), indent + line[len(head) :])
        return [Change(self.file, statement.lineno, statement.lineno, lines)]

    def without(self, statements: Sequence[ast.stmt]) -> list[Change]:
        """Return the lines of statements as removed, those that follow one another as one change."""
        result: list[Change] = []
        for s in statements:
            change = self.instead_of(s)
            if result and result[-1].last + 1 == change.first:
                change = replace(result.pop(), last=change.last)
            result.append(change)
        return result

    def replaced(self, statement: ast.stmt, *lines: str) -> list[Change]:
        """Return a statement with other lines in its place, indented as it is; what stands around it stays."""
        head = self.head(statement)
        indent = "" if head.strip() else head
        return self.edited([(syntax.start(statement), syntax.end(statement), f"\n{indent}".join(lines))])

    def added(self, statement: ast.stmt, line: str) -> list[Change]:
        """Return a statement with a line behind it."""
        *most, last = self.lines[statement.lineno - 1 : statement.end_lineno]
        if self.head(statement).strip():  # behind a colon or a semicolon
            return [self.instead_of(statement, *most, f"{last}; {line}")]
        return [self.instead_of(statement, *most, last, " " * statement.col_offset + line)]


def text_at(scene: Scene, line: int) -> Text:
    """Return the text of the file of a line, at the line."""
    file = scene.file(line)
    is_main = file == scene.script.name
    return Text(file, scene.script.source if is_main else "".join(linecache.getlines(file)), line)


class _Assigned(NamedTuple):
    """A value that a statement assigns to a target, or adds to it as an element."""

    statement: ast.stmt
    target: ast.expr
    value: ast.expr


class _Flow(NamedTuple):
    """The innermost function around each node of a text, by its identity, and the assignments to each name."""

    scopes: dict[int, ast.FunctionDef]
    assigned: dict[str, list[_Assigned]]


@lru_cache(maxsize=8)  # each page of a script asks for the same
def _flow(text: Text) -> _Flow:
    scopes = {
        id(n): f for f in syntax.parts(text.tree, ast.FunctionDef) for n in ast.walk(f) if n is not f
    }  # innermost last
    assigned: dict[str, list[_Assigned]] = {}
    for statement in text.statements():
        for target, value in _assignments(statement):
            whole = syntax.within(target, ast.Subscript, ast.Starred)
            assigned.setdefault(text.of(whole), []).append(_Assigned(statement, target, value))
    return _Flow(scopes, assigned)


def _near(expressions: Iterable[ast.expr], node: ast.expr) -> list[ast.expr]:
    """Return expressions in the order of the way back: the last one above first."""
    return sorted(expressions, key=lambda e: (e.lineno >= node.lineno, -e.lineno))


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets that a statement assigns or adds elements to, each with the expression."""
    match statement:
        case ast.Assign():
            for target in statement.targets:
                yield from syntax.pairs(target, statement.value)
        case ast.AugAssign() | ast.AnnAssign() if statement.value is not None:
            yield statement.target, statement.value
        case ast.For():
            yield from syntax.pairs(statement.target, statement.iter)
        case ast.Expr(ast.Call(ast.Attribute(owner), arguments)):  # losses.append(loss), out.copy_(h)
            yield from ((owner, argument) for argument in arguments)
