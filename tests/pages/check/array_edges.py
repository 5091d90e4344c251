"""What a wrong local derivative at one edge of a system of arrays makes of a derivative, by finite differences."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from slips_of_arrays import ArrayDerivation, evaluated
from slips_of_scalars import statements

STEP = 1e-5


Told = tuple[str, ...] | None  # what was written for what, of all that an edge passes on


def with_slip(d: ArrayDerivation, slip: Any, told: Told) -> np.ndarray:
    """Return the derivative at the points, with what `check` says was written at an edge."""
    return np.array([_at(d, slip, told, point) for point in d.points])


def _at(d: ArrayDerivation, slip: Any, told: Told, point: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the right derivative, and adjoint · (wrong - right) · tangent more."""
    of, by = re.fullmatch(r"d(\w+)/d(\w+)", d.left).groups()  # type: ignore[union-attr]
    node, operand, wrote = (ast.parse(part, mode="eval").body for part in (slip.node, slip.operand, slip.wrote or "0"))
    values = d.run(point)
    whole, part = evaluated(node, values), evaluated(operand, values)
    total = _jacobian(lambda x: d.run({**point, by: x})[of], point[by])
    tangent = _jacobian(lambda x: evaluated(operand, d.run({**point, by: x})), point[by])
    if told and not np.shape(values[of]):
        wrong, right = (evaluated(ast.parse(text, mode="eval").body, values) for text in told)
        return (total + np.broadcast_to(wrong - right, part.shape).reshape(1, -1) @ tangent).reshape(d.shape)
    adjoint = _jacobian(lambda x: _replaced(d, point, node, x)[of], whole)
    inner = _with(node, operand)
    right = _jacobian(lambda x: evaluated(inner, {**values, NAME: x}), part)
    truth = adjoint @ right @ tangent
    if slip.kind == "chain left out":
        change = adjoint @ right - truth
    elif slip.kind == "path left out":
        change = -truth
    elif isinstance(node, ast.BinOp | ast.UnaryOp) and not isinstance(getattr(node, "op", None), ast.MatMult):
        slope = np.broadcast_to(evaluated(wrote, values), whole.shape).reshape(-1, 1)
        change = adjoint @ (slope * _jacobian(lambda x: np.broadcast_to(x, whole.shape), part)) @ tangent - truth
    else:
        change = np.full(truth.shape, np.nan)  # of an operation on arrays what was written is only a part
    return (total + change).reshape(d.shape)


NAME = "replaced_"


def _jacobian(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    columns = []
    for key in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[key] = STEP
        columns.append(np.ravel(f(x + step) - f(x - step)) / (2 * STEP))
    return np.array(columns).T


def _replaced(d: ArrayDerivation, point: Mapping[str, np.ndarray], node: ast.expr, x: np.ndarray) -> dict[str, Any]:
    """Return the values of the system where an operation has another value."""
    right = d.run(point)
    whole = evaluated(node, right)
    values = {**point, NAME: x}
    for name, formula in statements(d.system):
        tree = _like(ast.parse(formula, mode="eval").body, lambda part: _is(part, node, whole, right))
        values[name] = evaluated(tree, values)
    return values


def _is(part: ast.expr, node: ast.expr, whole: np.ndarray, values: Mapping[str, np.ndarray]) -> bool:
    """Return whether a part of a formula is an operation: of its kind and with its value."""
    if type(part) is not type(node) or isinstance(part, ast.Name | ast.Constant):
        return False
    value = evaluated(part, values)
    return value.shape == whole.shape and np.allclose(value, whole, rtol=1e-12)


def _with(node: ast.expr, operand: ast.expr) -> ast.expr:
    """Return an operation with a name in the place of its operand."""
    text = ast.dump(operand)
    return _like(node, lambda part: part is not node and ast.dump(part) == text)


def _like(tree: ast.expr, chosen: Callable[[ast.expr], bool]) -> ast.expr:
    class Named(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if _may_be(node) and chosen(node):  # type: ignore[arg-type]
                return ast.Name(NAME, ast.Load())
            return self.generic_visit(node)

    return Named().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


def _may_be(node: ast.AST) -> bool:
    """Return whether a node is a formula of its own, and not the name of a function or a slice."""
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call | ast.Attribute | ast.Subscript | ast.Name)
