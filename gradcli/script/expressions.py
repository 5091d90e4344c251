"""The expressions of recorded operations in a script's files, with their targets and operands.

A recorded line knows its file, its code and its instruction; Python knows for each instruction which columns of which
lines it was compiled from.  Files are parsed when the first of their lines is looked up.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from gradcli.pytorch.record import Line, Step

Span = tuple[int | None, int | None, int | None, int | None]  # first and last line, first and last column

# Which argument of a call each operand of a step is, where it is not that at the same position, by the function ("" for
# a module) and the operation; -1 for none.
_ORDER: Mapping[tuple[str, str], Sequence[int]] = {("linear", "addmm"): (2, 0, 1), ("", "addmm"): (-1, 0, -1)}
_LONG = 24  # characters of a name that is written as the script has it


class Expression(NamedTuple):
    """An expression, the names that its statement assigns to, and whether it is all that is assigned."""

    node: ast.expr | ast.AugAssign
    targets: tuple[str, ...] = ()
    whole: bool = False

    @property
    def target(self) -> str:
        """The only name that the statement assigns to, if it is one."""
        return self.targets[0] if len(self.targets) == 1 else ""


class File(NamedTuple):
    """The expressions of a file by their spans, the names that it imports, and those that it assigns to."""

    expressions: Mapping[Span, Expression]
    imported: frozenset[str]
    assigned: frozenset[str]


@dataclass
class Expressions:
    """The expressions of files; `sources` holds the text of files that are not to be read from disk."""

    sources: Mapping[str, str] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    spans: dict[CodeType, list[Span]] = field(default_factory=dict)

    def file(self, name: str) -> File:
        """Return a parsed file; an empty one if it cannot be parsed."""
        if name not in self.files:
            source = self.sources[name] if name in self.sources else "".join(linecache.getlines(name))
            self.files[name] = _read(source)
        return self.files[name]

    def of(self, line: Line) -> Expression | None:
        """Return the expression that the instruction of a line computes.

        >>> line = Line(1)
        >>> line.file, line.code, line.call = "f.py", compile("h = c * x ** 2", "f.py", "exec"), (0, 10)
        >>> found = Expressions({"f.py": "h = c * x ** 2"}).of(line)
        >>> ast.unparse(found.node), found.target, found.whole
        ('x ** 2', 'h', False)
        """
        if line.code is None:
            return None
        if line.code not in self.spans:
            self.spans[line.code] = [*line.code.co_positions()]
        spans, k = self.spans[line.code], line.call[1] // 2
        return self.file(line.file).expressions.get(spans[k]) if k < len(spans) else None

    def operands(self, line: Line) -> Sequence[ast.expr]:
        """Return the expressions of what the operation of a line reads; those of a method begin with its object."""
        result = self.of(line)
        match result and result.node:
            case ast.BinOp(left, _, right):
                return left, right
            case ast.AugAssign(target, _, value):
                return target, value
            case ast.UnaryOp(_, operand):
                return (operand,)
            case ast.Call(func, args):
                is_method = isinstance(func, ast.Attribute) and not line.inside
                is_method = is_method and _root(func) not in self.file(line.file).imported
                return [func.value, *args] if is_method and isinstance(func, ast.Attribute) else args
        return ()

    def operand_name(self, step: Step, i: int, or_function: bool = False) -> str:
        """Return the script's name of a step's operand at a position; "" unless it is certainly a variable.

        With `or_function` the operand may be a call of an imported function, whose name is returned.
        """
        result = self.of(step.line)
        operands = self.operands(step.line)
        if result is not None and isinstance(result.node, ast.Call):
            called = "" if step.line.inside else _last(result.node.func)
            if not (step.is_custom or step.line.inside or _is_called(step, called)):
                order = _ORDER.get((called, step.recipe.op), ())
            else:
                order = _ORDER.get((called, "" if step.is_custom else step.recipe.op), range(len(operands)))
            i = order[i] if i < len(order) else len(operands)
        if not 0 <= i < len(operands):
            return ""
        return variable(operands[i]) or (self.function(step.line, operands[i]) if or_function else "")

    def function(self, line: Line, node: ast.expr) -> str:
        """Return the name of an imported module's function that makes an operand: randn_like."""
        is_imported = isinstance(node, ast.Call) and _root(node.func) in self.file(line.file).imported
        return _last(node.func) if isinstance(node, ast.Call) and is_imported else ""

    def is_call_of(self, line: Line, module: str) -> bool:
        """Return whether the instruction of a line calls a module itself, and not one that contains it."""
        result = self.of(line)
        called = variable(result.node.func) if result is not None and isinstance(result.node, ast.Call) else ""
        return bool(line.inside and called) and f".{module}".endswith(f".{called}")

    def call_name(self, line: Line, module: str) -> str:
        """Return the name of a module's output in one of its calls: D(fake).0 of D.0, D(fake) of D itself."""
        result = self.of(line)
        if result is None or not line.inside or not isinstance(result.node, ast.Call):
            return module
        written, called = _plain_call(result.node), variable(result.node.func)
        before, called_here, rest = f".{module}.".rpartition(f".{called}.")
        if not (written and called_here) or len(written) > _LONG or "[" in written:
            return module
        return f"{before}.{written}.{rest}".strip(".")

    def assigned(self) -> set[str]:
        """Return the names that the files assign to."""
        return {name for file in self.files.values() for name in file.assigned}


def variable(node: ast.expr) -> str:
    """Return the name of a variable, an attribute or an element; "" for any other expression, or a long name.

    >>> [variable(ast.parse(text, mode="eval").body) for text in ("eps", "self.std", "xs[0]", "x + 1")]
    ['eps', 'std', 'xs[0]', '']
    """
    name = _dotted(node)
    return name if len(name) <= _LONG else ""


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(name) | ast.Attribute(ast.Name("self"), name):
            return name
        case ast.Attribute(inner, name) if owner := _dotted(inner):
            return f"{owner}.{name}"
        case ast.Subscript(inner, ast.Constant(int() as index)) if type(index) is int and (owner := _dotted(inner)):
            return f"{owner}[{index}]"
    return ""


def _last(node: ast.expr) -> str:
    """Return the name of a function: of F.linear, linear."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_called(step: Step, name: str) -> bool:
    """Return whether a step is the operation of that name, so that it reads the arguments in their order."""
    op = step.name().removesuffix("Backward0").lower()
    return name.strip("_") == step.recipe.op or name.replace("_", "") == op


def _plain_call(node: ast.expr) -> str:
    """Return a call of a variable with variables, or with such calls, as it is written; "" for any other."""
    if not isinstance(node, ast.Call):
        return variable(node)
    parts = [variable(node.func), *map(_plain_call, node.args)]
    return f"{parts[0]}({', '.join(parts[1:])})" if all(parts) and not node.keywords else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=8)
def _read(source: str) -> File:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return File({}, frozenset(), frozenset())
    result: dict[Span, Expression] = {}
    for node in ast.walk(tree):
        for targets, value in _assignments(node):
            for part in ast.walk(value):
                if isinstance(part, ast.expr):
                    result.setdefault(_span(part), Expression(part, targets, part is value))
        if isinstance(node, ast.AugAssign):
            result[_span(node)] = Expression(node, _names(node.target), True)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            result.setdefault(_span(node), Expression(node))
    imports = (a for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names)
    imported = frozenset((a.asname or a.name).partition(".")[0] for a in imports)
    return File(result, imported, frozenset(name for e in result.values() for name in e.targets))


def _span(node: Any) -> Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _assignments(node: ast.AST) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
    """Yield the names that a statement assigns to, each pair of a, b = x, y by itself, with what it assigns."""
    match node:
        case ast.Assign([ast.Tuple(left)], ast.Tuple(right)) if len(left) == len(right):
            yield from ((_names(target), value) for target, value in zip(left, right, strict=True))
        case ast.Assign([target, *_], value):
            yield _names(target), value
        case ast.AnnAssign(target, value=ast.expr() as value) | ast.AugAssign(target, value=value):
            yield _names(target), value
        case ast.NamedExpr(target, value):
            yield _names(target), value


def _names(target: ast.expr) -> tuple[str, ...]:
    """Return the names that an assignment to `x`, `self.x` or `x, y` defines; nothing where a target has no name."""
    match target:
        case ast.Name(name) | ast.Attribute(ast.Name("self"), name):
            return (name,)
        case ast.Tuple(parts) | ast.List(parts):
            names = [name for part in parts for name in _names(part)]
            return tuple(names) if len(names) == len(parts) else ()
    return ()
