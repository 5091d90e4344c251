"""Questions to a script's syntax: its parts, where they stand, what is called of what, and with what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from tokenize import COMMENT, ENDMARKER, NEWLINE, NL, generate_tokens
from typing import Any, TypeVar

Position = tuple[int, int]  # a line, and a column in bytes
N = TypeVar("N", bound=ast.AST)


@lru_cache(maxsize=8)
def parsed(source: str) -> ast.Module:
    """Return the syntax of a text; that of an empty text where it does not parse."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the pairs of target and value of an assignment: two for x, z = 1, 2."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for name, part in zip(target.elts, value.elts, strict=True):
            yield from pairs(name, part)
    else:
        yield from ((name, value) for name in (target.elts if isinstance(target, ast.Tuple) else [target]))


def parts(node: ast.AST, *kinds: type[N]) -> list[N]:
    """Return the nodes of some kinds in a node, itself included."""
    if isinstance(node, ast.Module):
        return [*_of_module(node, *kinds)]  # type: ignore[arg-type] # types are hashable
    return [n for n in ast.walk(node) if isinstance(n, kinds)]


@lru_cache(maxsize=64)  # each page of a script asks for the same
def _of_module(tree: ast.Module, *kinds: type[N]) -> tuple[N, ...]:
    return tuple(n for n in ast.walk(tree) if isinstance(n, kinds))


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """Return the calls in a node; only those of functions or methods of some names, where names are given."""
    return [c for c in parts(node, ast.Call) if not names or called(c) in names]


def methods(cls: ast.ClassDef, *names: str) -> list[ast.FunctionDef]:
    """Return the functions in a class; only those of some names, where names are given."""
    return [f for f in cls.body if isinstance(f, ast.FunctionDef) and (not names or f.name in names)]


def bound(node: ast.AST) -> set[str]:
    """Return the names that a node assigns: those of variables, not of attributes or elements."""
    return {n.id for n in parts(node, ast.Name) if isinstance(n.ctx, ast.Store)}


def keyword(call: ast.Call, *names: str) -> ast.keyword | None:
    """Return the first keyword argument of a call with one of some names."""
    return next((k for k in call.keywords if k.arg in names), None)


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """Return the argument of a call at a position, or with one of some names."""
    named = keyword(call, *names)
    return named.value if named else next(iter(call.args[position:]), None)


def elements(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a list or a tuple as it is written; anything else alone."""
    return node.elts if isinstance(node, ast.List | ast.Tuple) else [node]


def tokens(code: str) -> list[str]:
    """Return the tokens of an expression, without comments.

    >>> tokens("f(a,  # a comment\\n)")
    ['f', '(', 'a', ',', ')']
    """
    kinds = (COMMENT, ENDMARKER, NEWLINE, NL)
    return [token.string for token in generate_tokens(StringIO(code).readline) if token.type not in kinds]


def integer(node: ast.AST) -> int | None:
    """Return an integer as it is written, with its sign, or as a product: 6 * 14 * 14."""
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
        case ast.BinOp(left, ast.Mult(), right):
            factors = integer(left), integer(right)
            return None if None in factors else factors[0] * factors[1]  # type: ignore[operator]
    return None


def within(node: ast.expr, *kinds: type[ast.Subscript | ast.Attribute | ast.Starred]) -> ast.expr:
    """Return what expressions of some kinds begin with: x of x[0][1], torch of torch.nn.functional."""
    while isinstance(node, kinds):
        node = node.value
    return node


def start(node: Any) -> Position:
    """Return where a node begins."""
    return node.lineno, node.col_offset


def end(node: Any) -> Position:
    """Return where a node ends."""
    return node.end_lineno, node.end_col_offset


def called(call: ast.AST) -> str:
    """Return the name of what is called, without what it belongs to; nothing for what is no call."""
    function = getattr(call, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def last_name(node: ast.AST) -> str:
    """Return the last name of what is called, or of an expression itself: no_grad of torch.no_grad()."""
    callee = node.func if isinstance(node, ast.Call) else node
    return callee.attr if isinstance(callee, ast.Attribute) else callee.id if isinstance(callee, ast.Name) else ""


def decorators(node: ast.AST) -> list[ast.expr]:
    """Return the decorators in a node, in their order."""
    return sorted((d for n in ast.walk(node) for d in getattr(n, "decorator_list", ())), key=start)


def owner_of(call: ast.Call) -> ast.expr | None:
    """Return the object before the dot of a call: x in x.log(), torch in torch.log(x)."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def receiver_of(call: ast.Call) -> ast.expr | None:
    """Return the tensor whose method is called: y in y.backward(); None for a function, autograd.backward(y)."""
    owner = owner_of(call)
    return None if owner is None or last_name(owner) == "autograd" else owner


def requires_target(statement: ast.stmt) -> ast.expr | None:
    """Return the tensor whose `requires_grad` a statement sets: x in x.requires_grad = True and x.requires_grad_()."""
    match statement:
        case ast.Assign([ast.Attribute(owner, "requires_grad")]):
            return owner
        case ast.Expr(ast.Call(ast.Attribute(owner, "requires_grad_"))):
            return owner
    return None
