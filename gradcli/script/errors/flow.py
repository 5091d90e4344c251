"""Data flow in the text of a script: the expressions that were assigned to the names of a value."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from gradcli.script.errors.source import Text
from gradcli.script.errors.syntax import called, calls, methods, owner_of, pairs, parts

_MOST = 2000  # expressions that are looked at


class _Facts(NamedTuple):
    """The functions and classes of a text, the innermost function around each node, and the assignments by name."""

    functions: list[ast.FunctionDef]
    classes: dict[str, ast.ClassDef]
    scopes: dict[int, ast.FunctionDef]
    assigned: dict[str, list[tuple[ast.expr, ast.expr]]]


@lru_cache(maxsize=8)  # each page of a script asks for the same
def _facts(text: Text) -> _Facts:
    functions = parts(text.tree, ast.FunctionDef)
    scopes = {id(n): f for f in functions for n in ast.walk(f) if n is not f}  # the innermost function comes last
    assigned: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
    for statement in text.statements():
        for target, value in _assignments(statement):
            assigned.setdefault(text.of(target), []).append((target, value))
    return _Facts(functions, {n.name: n for n in parts(text.tree, ast.ClassDef)}, scopes, assigned)


class Flow:
    """The way back from names to the values assigned to them: in all branches, those above a line first."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.functions, self.classes, self.scopes, self.assigned = _facts(text.on(0))

    def back(self, start: ast.AST) -> list[ast.expr]:
        """Return the expressions that lead to a node, the nearest first."""
        result: dict[ast.expr, None] = {}
        waiting = deque(self._from(start))
        while waiting and len(result) < _MOST:
            expression = waiting.popleft()
            if expression not in result:
                result[expression] = None
                waiting.extend(e for e in self._from(expression) if e not in result)
        return list(result)

    def _from(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the values assigned to the names in a node, and those that its functions return."""
        for n in sorted(ast.walk(node), key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
            if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load):
                yield from self.of_name(n)
            if isinstance(n, ast.Call):
                for function in self._called(called(n), owner_of(n) is not None):
                    returned = (r for r in ast.walk(function) if isinstance(r, ast.Return | ast.Yield))
                    yield from (r.value for r in returned if r.value is not None)

    def scope(self, node: ast.AST | None) -> ast.FunctionDef | None:
        """Return the innermost function around a node; None at the top of the script."""
        return self.scopes.get(id(node))

    def of_name(self, node: ast.AST) -> list[ast.expr]:
        """Return the values of a name: assigned in its function, passed to it, or assigned outside of it."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return []
        name, scope = self.text.of(node), self.scope(node)
        values = self.assigned.get(name, ())
        if isinstance(node, ast.Attribute):
            return _near((value for _, value in values), node)
        while scope is not None:
            scoped = [value for target, value in values if self.scope(target) is scope]
            names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]
            if scoped or name in names:
                return [*_near(scoped, node), *(self._arguments(scope, name, names) if name in names else ())]
            scope = self.scope(scope)
        return _near((value for target, value in values if id(target) not in self.scopes), node)

    def _called(self, name: str, is_method: bool) -> list[ast.FunctionDef]:
        """Return the functions of the script that a call by a name may run."""
        if name in self.classes:
            return methods(self.classes[name], "forward", "__call__")
        inner = [f for c in self.classes.values() for f in methods(c, name)]
        return [f for f in self.functions if f.name == name and (f in inner) == is_method]

    def _arguments(self, function: ast.FunctionDef, name: str, names: list[str]) -> Iterator[ast.expr]:
        """Yield the arguments that calls pass for a parameter of a function."""
        position = names.index(name) - (names[0] == "self")
        forward = names[0] == "self" and function.name in ("forward", "__call__")
        for call in calls(self.text.tree, *([] if forward else [function.name])):
            yield from (k.value for k in call.keywords if k.arg == name)
            if 0 <= position < len(call.args):
                yield call.args[position]


def _near(expressions: Iterable[ast.expr], node: ast.expr) -> list[ast.expr]:
    """Return expressions in the order of the way back: the last one above first."""
    return sorted(expressions, key=lambda e: (e.lineno >= node.lineno, -e.lineno))


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the names that a statement assigns or adds elements to, each with the expression."""
    result: list[tuple[ast.expr, ast.expr]] = []
    match statement:
        case ast.Assign():
            result = [pair for target in statement.targets for pair in pairs(target, statement.value)]
        case ast.AugAssign() | ast.AnnAssign() if statement.value is not None:
            result = [(statement.target, statement.value)]
        case ast.For():
            result = [*pairs(statement.target, statement.iter)]
        case ast.Expr(ast.Call(ast.Attribute(owner), arguments)):  # losses.append(loss), out.copy_(h)
            result = [(owner, argument) for argument in arguments]
    for target, value in result:
        while isinstance(target, ast.Subscript | ast.Starred):
            target = target.value
        yield target, value
