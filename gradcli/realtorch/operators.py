"""How a program writes the sums and products of a tensor and a number: which of the two comes first."""

from __future__ import annotations

import ast
import linecache
from contextlib import suppress
from functools import lru_cache
from types import FrameType, ModuleType

import torch

from gradcli.realtorch.sites import site_of
from gradcli.record.record import Span


def begins_with_number(frame: FrameType | None) -> bool:
    """Return whether a frame runs an operator between a number on its left and a tensor, as in `2 * x`.

    PyTorch's call has the tensor first, either way.
    """
    site = site_of(frame)
    sides = _operator(site.file, site.span) if frame is not None and site.span is not None else None
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


@lru_cache(1024)
def _operator(file: str, span: Span) -> tuple[ast.expr, ast.expr] | None:
    """Return the two sides of a sum or a product at a place in a file; None of anything else."""
    first, last, start, end = span
    with suppress(SyntaxError, ValueError, RecursionError, IndexError, TypeError):
        lines = [line.encode() for line in linecache.getlines(file)[(first or 1) - 1 : last]]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        match ast.parse(b"(%s)" % b"".join(lines), mode="eval").body:
            case ast.BinOp(left, ast.Mult() | ast.Add(), right):
                return left, right
    return None
