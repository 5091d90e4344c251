"""How a program writes the sums and products of a tensor and a number: which of the two comes first."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any

import torch

from gradcli.record.record import CallSite


def begins_with_number(site: CallSite, frame: FrameType | None) -> bool:
    """Return whether a call is an operator between a number on its left and a tensor, as in `2 * x`.

    PyTorch's call has the tensor first, either way.  The frame is that of the program, which has the values of names.
    """
    sides = _operators(site.file).get(site.span) if frame is not None else None
    if sides is None or frame is None:
        return False
    is_number = _is_number(sides[0], frame)
    return is_number if is_number is not None else _is_number(sides[1], frame) is False


def _is_number(node: ast.expr, frame: FrameType) -> bool | None:
    """Return whether an expression is a number, as far as that is plain from its names; None where it is not."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp():
            return _is_number(node.operand, frame)
        case ast.BinOp():
            sides = {_is_number(node.left, frame), _is_number(node.right, frame)}
            return False if False in sides else None if None in sides else True
        case ast.Name():
            value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        case ast.Attribute(value=ast.Name(id=name)):
            owner = frame.f_globals.get(name)
            value = getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        case ast.Call(func=ast.Name(id="float" | "int" | "len") | ast.Attribute(value=ast.Name(id="math"))):
            return True
        case _:
            return None
    return False if isinstance(value, torch.Tensor) else True if isinstance(value, int | float) else None


@lru_cache(64)
def _operators(file: str) -> Mapping[Any, tuple[ast.expr, ast.expr]]:
    """Return the two sides of each sum and product in a file, by its span."""
    result: dict[Any, tuple[ast.expr, ast.expr]] = {}
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
                span = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
                result[span] = node.left, node.right
    return result
