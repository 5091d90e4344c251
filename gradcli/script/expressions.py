"""The expressions of recorded operations in a script's files, with their targets and operands.

A record knows of each operation the columns of the lines that it was compiled from.  Files are parsed when the first of
their lines is looked up.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from gradcli.record.record import CallSite, Operation, Span
from gradcli.script.errors.syntax import last_name, parsed, within

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


class LoopSpan(NamedTuple):
    """A loop: its first and its last line, the names that it calls, and what counts its rounds: of `range`, say."""

    first: tuple[int, int]
    last: tuple[int, int]
    calls: frozenset[str]
    counter: str

    def has(self, site: CallSite) -> bool:
        """Return whether a place is in the loop: its line, or its first column where that is known."""
        row, _, column, _ = site.span or (None, None, None, None)
        where = (site.line, self.first[1]) if row is None or column is None else (row, column)
        return self.first <= where <= self.last


class File(NamedTuple):
    """The expressions of a file by their spans, the names that it imports, those that it assigns to, and its loops."""

    expressions: Mapping[Span, Expression]
    imported: frozenset[str]
    assigned: frozenset[str]
    loops: tuple[LoopSpan, ...] = ()


@dataclass
class Expressions:
    """The expressions of files; `sources` holds the text of files that are not to be read from disk."""

    sources: Mapping[str, str] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)

    def file(self, name: str) -> File:
        """Return a parsed file; an empty one if it cannot be parsed."""
        if name not in self.files:
            source = self.sources[name] if name in self.sources else "".join(linecache.getlines(name))
            self.files[name] = _read(source)
        return self.files[name]

    def of(self, site: CallSite) -> Expression | None:
        """Return the expression that is computed at a place.

        >>> site = CallSite("f.py", 1, (1, 1, 8, 14))
        >>> found = Expressions({"f.py": "h = c * x ** 2"}).of(site)
        >>> ast.unparse(found.node), found.target, found.whole
        ('x ** 2', 'h', False)
        """
        return self.file(site.file).expressions.get(site.span) if site.span is not None else None

    def operands(self, site: CallSite) -> Sequence[ast.expr]:
        """Return the expressions of what an operation at a place reads; those of a method begin with its object."""
        result = self.of(site)
        match result and result.node:
            case ast.BinOp(left, _, right):
                return left, right
            case ast.AugAssign(target, _, value):
                return target, value
            case ast.UnaryOp(_, operand):
                return (operand,)
            case ast.Call(func, args):
                is_method = isinstance(func, ast.Attribute) and not site.is_module
                is_method = is_method and _root(func) not in self.file(site.file).imported
                return [func.value, *args] if is_method and isinstance(func, ast.Attribute) else args
        return ()

    def operand_name(self, operation: Operation, i: int, or_function: bool = False) -> str:
        """Return the script's name of an operation's operand at a position; "" unless it is certainly a variable.

        With `or_function` the operand may be a call of an imported function, whose name is returned.
        """
        site, operands, call = operation.site, self.operands(operation.site), self.call(operation.site)
        is_known = call is None or operation.is_opaque or site.is_module or _is_called(operation, last_name(call))
        if not is_known or not 0 <= i < len(operands):
            return ""
        return variable(operands[i]) or (self.function(site, operands[i]) if or_function else "")

    def function(self, site: CallSite, node: ast.expr) -> str:
        """Return the name of an imported module's function that makes an operand: randn_like."""
        is_imported = isinstance(node, ast.Call) and _root(node.func) in self.file(site.file).imported
        return last_name(node.func) if isinstance(node, ast.Call) and is_imported else ""

    def call(self, site: CallSite) -> ast.Call | None:
        """Return the call that is computed at a place; None for anything else."""
        result = self.of(site)
        return result.node if result is not None and isinstance(result.node, ast.Call) else None

    def called(self, site: CallSite) -> str:
        """Return the name of the function that is called at a place; "" for anything else."""
        call = self.call(site)
        return "" if call is None else last_name(call)

    def is_call_of(self, site: CallSite, module: str) -> bool:
        """Return whether a module itself is called at a place, and not one that contains it."""
        call = self.call(site)
        called = "" if call is None else variable(call.func)
        return bool(site.is_module and called) and f".{module}".endswith(f".{called}")

    def call_name(self, site: CallSite, module: str) -> str:
        """Return the name of a module's output in one of its calls: D(fake).0 of D.0, D(fake) of D itself."""
        call = self.call(site)
        if call is None or not site.is_module:
            return module
        written, called = _plain_call(call), variable(call.func)
        before, called_here, rest = f".{module}.".rpartition(f".{called}.")
        if not (written and called_here) or len(written) > _LONG or "[" in written:
            return module
        return f"{before}.{written}.{rest}".strip(".")

    def loops(self) -> list[LoopSpan]:
        """Return the loops of all files."""
        return [loop for file in self.files.values() for loop in file.loops]

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


def _is_called(operation: Operation, name: str) -> bool:
    """Return whether an operation has that name, so that it reads the arguments in their order."""
    op = operation.grad_fn.removesuffix("Backward0").lower()
    return name.strip("_") == operation.row or name.replace("_", "") == op


def _plain_call(node: ast.expr) -> str:
    """Return a call of a variable with variables, or with such calls, as it is written; "" for any other."""
    if not isinstance(node, ast.Call):
        return variable(node)
    parts = [variable(node.func), *map(_plain_call, node.args)]
    return f"{parts[0]}({', '.join(parts[1:])})" if all(parts) and not node.keywords else ""


def _root(node: ast.expr) -> str:
    return str(getattr(within(node, ast.Attribute), "id", ""))


@lru_cache(maxsize=8)
def _read(source: str) -> File:
    tree = parsed(source)
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
    return File(result, imported, frozenset(name for e in result.values() for name in e.targets), tuple(_loops(tree)))


def _loops(tree: ast.AST) -> Iterator[LoopSpan]:
    for node in ast.walk(tree):
        match node:
            case ast.For(target, iterable) | ast.ListComp(generators=[ast.comprehension(target, iterable)]):
                index = _index(target, iterable)
            case ast.While():
                index = ""
            case _:
                continue
        calls = frozenset(last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call))
        yield LoopSpan((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0), calls, index)


def _index(target: ast.expr, iterable: ast.expr) -> str:
    """Return what counts the rounds of a loop; "" where nothing does, or its name says that it is not used."""
    match target, iterable:
        case (ast.Name(name), ast.Call(ast.Name(function))) if "range" in function:
            return name.lstrip("_") and name
        case (ast.Tuple([ast.Name(name), *_]), ast.Call(ast.Name("enumerate"))):
            return name.lstrip("_") and name
    return ""


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
