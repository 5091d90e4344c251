"""Integer expressions of indices, and the iterations of a loop: `y[i] = EXPRESSION for i in 0..9`.

The integers are computed for all iterations at once, as arrays, so that 100,000 elements are a few operations.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array

Integers = Mapping[str, Any]  # integers, and arrays of them that are as long as there are iterations

LARGEST = 2**31  # integer: products of two fit into int64
MAX_INTEGERS = 2**26  # that the indices of one statement may be

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Loop:
    """The iterations of a loop, in order: the loop variables, and the indices of the assigned element, if there is one.

    `integers` are the names of numbers that indices may be computed from, and `reads` those that the bounds are.
    """

    variables: Mapping[str, Array]
    integers: Mapping[str, int]
    reads: frozenset[str]
    key: tuple[Array, ...] = ()

    @property
    def size(self) -> int:
        """The number of iterations."""
        return len(next(iter(self.variables.values())))


def integers_of(tree: ast.expr, names: Integers) -> Any:
    """Return an integer expression, or a condition on integers, for all iterations.

    Errors: `InputError` about the part that is neither.

    >>> tree = ast.parse("2*i + 1", mode="eval").body
    >>> integers_of(tree, {"i": np.arange(3)})
    array([1, 3, 5])
    """
    done: list[Any] = []
    work: list[tuple[ast.expr, int]] = [(tree, -1)]
    while work:
        part, count = work.pop()
        if count < 0:
            parts = _parts(part)
            work.append((part, len(parts)))
            work += [(p, -1) for p in reversed(parts)]
        else:
            first = len(done) - count
            value = _value(part, done[first:], names)
            if not _is_condition(value) and np.any(np.abs(value) > LARGEST):
                raise InputError("this integer is too large", None, f"indices are below {LARGEST:,}", part)
            done[first:] = [value]
    return done.pop()


def _parts(tree: ast.expr) -> list[ast.expr]:
    match tree:
        case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
            return [left, right]
        case ast.UnaryOp(_, operand):
            return [operand]
        case ast.BoolOp(_, values):
            return values
        case ast.Compare(left, signs, others) if all(type(sign) in _ORDER for sign in signs):
            return [left, *others]
    return []


def _value(tree: ast.expr, parts: list[Any], names: Integers) -> Any:
    match tree:
        case ast.Constant(int(number)) if type(number) is int:
            return number
        case ast.Name(name) if name in names:
            return names[name]
        case ast.BinOp(_, sign, right) if parts:
            if isinstance(sign, ast.FloorDiv | ast.Mod) and np.any(parts[1] == 0):
                raise InputError("division by zero", None, None, right)
            return _ARITHMETIC[type(sign)](*_each(tree, parts, False))
        case ast.UnaryOp(ast.USub()):
            return -_each(tree, parts, False)[0]
        case ast.UnaryOp(ast.UAdd()):
            return _each(tree, parts, False)[0]
        case ast.UnaryOp(ast.Not() | ast.Invert()):
            return np.logical_not(_each(tree, parts, True)[0])
        case ast.BoolOp(sign):
            join = np.logical_and if isinstance(sign, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*_each(tree, parts, True)))
        case ast.Compare(_, signs) if parts:
            _each(tree, parts, False)
            pairs = zip(signs, parts, parts[1:], strict=False)
            return np.logical_and.reduce(np.broadcast_arrays(*(_ORDER[type(s)](a, b) for s, a, b in pairs)))
    if isinstance(tree, ast.Name):
        raise InputError(f"`{tree.id}` is not an integer that is known here", None, _KNOWN, tree)
    raise InputError("this is not made of integers and loop variables", None, _RULES, tree)


_KNOWN = "write the number, or give it a name in a statement before: n = 100"
_RULES = "integers are combined by + - * // %, compared by < <= > >= == != and joined by and, or, not"


def _each(tree: ast.expr, parts: list[Any], condition: bool) -> list[Any]:
    """Return the parts of an expression, which are all conditions, or all integers."""
    if any(_is_condition(part) != condition for part in parts):
        what = "conditions, such as `i > 0`" if condition else "integers"
        raise InputError(f"the operands are not {what}", None, "a condition is `i > 0`, an integer `i + 1`", tree)
    return parts


def _is_condition(value: Any) -> bool:
    return bool(np.asarray(value).dtype == np.bool_)


def iterations_by_part(tree: ast.expr, loop: Loop) -> dict[int, Integers]:
    """Return for each part of an expression, by its `id`, the loop variables in the iterations that compute it.

    A branch of `a if i > 0 else b` is computed where its condition selects it.

    Errors: `InputError` about a condition that is not one of indices.
    """
    result: dict[int, Integers] = {}
    work: list[tuple[ast.AST, Mapping[str, Array]]] = [(tree, loop.variables)]
    count = 0
    while work:
        part, variables = work.pop()
        result[id(part)] = variables
        if not isinstance(part, ast.IfExp):
            work += [(child, variables) for child in ast.iter_child_nodes(part)]
            continue
        mask = mask_of(part, {**loop.integers, **variables})
        count += sum(map(len, variables.values()))
        if count > MAX_INTEGERS:
            raise InputError("this has too many conditions for so many elements", None, "assign fewer at a time", part)
        for branch, wanted in ((part.body, mask), (part.orelse, ~mask)):
            if wanted.any():
                work.append((branch, {name: a[wanted] for name, a in variables.items()}))
    return result


def mask_of(choice: ast.IfExp, names: Integers) -> Array:
    """Return the iterations in which the condition of `a if i > 0 else b` is true."""
    try:
        mask = integers_of(choice.test, names)
    except InputError as error:
        raise InputError(
            "the condition of `if` is one of indices", None, "a choice by values is written `where(x[i] > 0, a, b)`",
            error.about,
        ) from None  # fmt: skip
    if not _is_condition(mask):
        raise InputError("the condition of `if` is an integer", None, "compare it, for example `i > 0`", choice.test)
    return np.broadcast_to(mask, np.broadcast_shapes(*(np.shape(a) for a in names.values())))


def varying(tree: ast.expr, variables: Iterable[str]) -> set[int]:
    """Return the parts of an expression, by their `id`, that depend on loop variables."""
    names = set(variables)
    result: set[int] = set()
    for part in reversed([*ast.walk(tree)]):  # parts of a part follow it
        if isinstance(part, ast.Name):
            depends = part.id in names
        else:
            depends = any(id(child) in result for child in ast.iter_child_nodes(part))
        if depends:
            result.add(id(part))
    return result
