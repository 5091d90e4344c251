"""What a value in a script comes from, as its text tells: the expressions that its names were given."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator

from gradcli.script.source import Text, called, pairs

_MOST = 2000  # expressions that are looked at


class Flow:
    """The way back from names to what they were given: all branches are taken, those above a line first."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.functions = [n for n in ast.walk(text.tree) if isinstance(n, ast.FunctionDef)]
        self.classes = {n.name: n for n in ast.walk(text.tree) if isinstance(n, ast.ClassDef)}
        self.scopes = {
            id(n): f for f in self.functions for n in ast.walk(f) if n is not f
        }  # the innermost function comes last
        self.given = [pair for statement in text.statements() for pair in _given(statement)]

    def back(self, start: ast.AST) -> list[ast.expr]:
        """Return the expressions that lead to a node, the nearest first."""
        found: list[ast.expr] = []
        waiting, seen = deque(self._from(start)), set[int]()
        while waiting and len(found) < _MOST:
            expression = waiting.popleft()
            if id(expression) not in seen:
                seen.add(id(expression))
                found.append(expression)
                waiting.extend(e for e in self._from(expression) if id(e) not in seen)
        return found

    def _from(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield what the names in a node were given, and what the functions in it return."""
        for n in sorted(ast.walk(node), key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
            if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load):
                yield from self.of_name(n)
            if isinstance(n, ast.Call):
                for function in self._called(called(n), isinstance(n.func, ast.Attribute)):
                    yield from _returned(function)

    def of_name(self, node: ast.Name | ast.Attribute) -> list[ast.expr]:
        """Return what a name was given in its function, or is called with, or was given outside of it."""
        name, scope = self.text.text(node), self.scopes.get(id(node))
        if isinstance(node, ast.Attribute):
            return self._near([value for own, value in self.given if self.text.text(own) == name], node)
        while scope is not None:
            own = [v for target, v in self.given if self.text.text(target) == name and self._is_in(target, scope)]
            names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]
            if own or name in names:
                return [*self._near(own, node), *(self._arguments(scope, name, names) if name in names else ())]
            scope = self.scopes.get(id(scope))
        outside = [v for target, v in self.given if id(target) not in self.scopes and self.text.text(target) == name]
        return self._near(outside, node)

    def _is_in(self, node: ast.AST, scope: ast.FunctionDef) -> bool:
        return self.scopes.get(id(node)) is scope

    def _near(self, found: Iterable[ast.expr], node: ast.expr) -> list[ast.expr]:
        """Return expressions in the order in which they are met on the way back: the last one above first."""
        return sorted(found, key=lambda e: (e.lineno >= node.lineno, -e.lineno))

    def _called(self, name: str, is_method: bool) -> list[ast.FunctionDef]:
        """Return the functions of the script that a call by a name may run."""
        if name in self.classes:
            inner = self.classes[name].body
            return [f for f in inner if isinstance(f, ast.FunctionDef) and f.name in ("forward", "__call__")]
        methods = {id(f) for c in self.classes.values() for f in c.body}
        return [f for f in self.functions if f.name == name and (id(f) in methods) == is_method]

    def _arguments(self, function: ast.FunctionDef, name: str, names: list[str]) -> Iterator[ast.expr]:
        """Yield what a function is called with for a parameter."""
        place = names.index(name) - (names[0] == "self")
        forward = names[0] == "self" and function.name in ("forward", "__call__")
        for call in [n for n in ast.walk(self.text.tree) if isinstance(n, ast.Call)]:
            if called(call) == function.name or forward:
                yield from (k.value for k in call.keywords if k.arg == name)
                if 0 <= place < len(call.args):
                    yield call.args[place]


def _given(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the names that a statement gives a value to, each with the expression: also what is put into them."""
    if isinstance(statement, ast.Assign):
        found = [pair for target in statement.targets for pair in pairs(target, statement.value)]
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign) and statement.value is not None:
        found = [(statement.target, statement.value)]
    elif isinstance(statement, ast.For):
        found = [*pairs(statement.target, statement.iter)]
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
    ):  # losses.append(loss), out.copy_(h)
        found = [(statement.value.func.value, argument) for argument in statement.value.args]
    else:
        found = []
    for target, value in found:
        while isinstance(target, ast.Subscript | ast.Starred):
            target = target.value
        yield target, value


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for n in ast.walk(function):
        if isinstance(n, ast.Return | ast.Yield) and n.value is not None:
            yield n.value
