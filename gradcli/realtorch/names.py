"""The names that a program has for tensors and modules, and how it writes operators."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from functools import lru_cache
from types import FrameType
from typing import Any

import torch

from gradcli.graph.names import element_name
from gradcli.record.record import CallSite

_FEW = 64  # items of a list, a dictionary or an object that get names
_DEEP = 2  # lists and dictionaries within each other


class Names:
    """The tensors of a program by name, and the names of its modules by their identity."""

    def __init__(self, frames: Iterable[FrameType]) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.modules: dict[int, str] = {}
        self._known: set[int] = set()
        for frame in frames:
            for scope in (frame.f_locals, frame.f_globals):
                for name, value in [*scope.items()]:
                    if not name.startswith("__"):
                        self._add(name, value)

    def _add(self, name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._known:
                self._known.add(id(value))
                self.tensors.setdefault(name, value)
            return
        if isinstance(value, torch.nn.Module):
            self._add_module(name, value)
        elif isinstance(value, torch.optim.Optimizer):
            return
        if depth <= _DEEP:
            for inner, part in _inside(name, value, depth):
                self._add(inner, part, depth + 1)

    def _add_module(self, name: str, module: torch.nn.Module) -> None:
        before = "" if name == "self" else f"{name}."
        with suppress(Exception):  # a module in the middle of its making has none yet
            for inner, x in module.named_parameters():
                self._add(before + inner, x)
            for inner, part in module.named_modules():
                self.modules.setdefault(id(part), before + inner if inner else name)


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list, a dictionary or an object that may be or hold tensors, with their names."""
    items: Iterable[tuple[str, Any]] = ()
    match value:
        case list() | tuple() if len(value) <= _FEW:
            items = ((element_name(name, (i,)), x) for i, x in enumerate(value))
        case dict() if len(value) <= _FEW:
            keys = ((key, x) for key, x in value.items() if isinstance(key, str) and key.isidentifier())
            items = ((f"{name}.{key}" if depth else key, x) for key, x in keys)
        case _ if not depth and not isinstance(value, type | torch.nn.Module):
            attributes = getattr(value, "__dict__", None)
            some = [*attributes.items()][:_FEW] if isinstance(attributes, dict) else []
            items = ((key if name == "self" else f"{name}.{key}", x) for key, x in some if key[:1] != "_")
    for inner, part in items:
        if isinstance(part, torch.Tensor | list | tuple | dict | torch.nn.Module):
            yield inner, part


def begins_with_number(site: CallSite) -> bool:
    """Return whether a call is an operator between a number on its left and a tensor: 2 * x."""
    return site.span is not None and site.span in _numbers_first(site.file)


@lru_cache(64)
def _numbers_first(file: str) -> Set[Any]:
    """Return the spans of the sums and products of a file that begin with a number."""
    result: set[Any] = set()
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
                left = node.left.operand if isinstance(node.left, ast.UnaryOp) else node.left
                if isinstance(left, ast.Constant) or ast.unparse(left) in ("math.pi", "torch.pi", "np.pi", "math.e"):
                    result.add((node.lineno, node.end_lineno, node.col_offset, node.end_col_offset))
    return result
