"""Corners as a program has them: the conditions of `corners`, which are told of numbers, traced to nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.explain.corners import CORNERS
from gradcli.graph.construct import broadcast, call, reduce, reshape, where
from gradcli.graph.node import Node, compare, lift
from gradcli.graph.operations import OPERATIONS


class Condition(NamedTuple):
    """That a point lies on a corner of a node, as a node of booleans, and what PyTorch takes there."""

    node: Node
    taken: str


def condition(node: Node) -> Condition | None:
    """Return where a node has its corner; None for one that has none.

    >>> from gradcli.graph.node import leaf
    >>> condition(call("abs", leaf()))
    Condition(node=eq(input, const), shape (), taken='0, the middle of -1 and 1')
    """
    if node.op not in CORNERS or not all(a.size for a in node.args):
        return None
    lies, taken = CORNERS[node.op]
    axes = node.settings[:1] if OPERATIONS[node.op].kind == "reduction" else ()
    result = lies(*(_Traced(a) for a in node.args), *axes)
    if node.op in ("max", "min") and node.settings[1] == "first":
        taken = "the first of the " + ("largest" if node.op == "max" else "smallest")
    return Condition(result.node, taken)


def _binary(build: Callable[[Node, Node], Node]) -> Callable[[_Traced, Any], _Traced]:
    return lambda self, other: _Traced(build(self.node, other.node if isinstance(other, _Traced) else lift(other)))


def _compare(op: str) -> Callable[[_Traced, Any], _Traced]:
    return _binary(lambda a, b: compare(op, a, b))


class _Traced:
    """Stands for an array in a condition, and makes a node of each of its operations."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    __eq__ = _compare("eq")  # type: ignore[assignment]
    __ne__ = _compare("ne")  # type: ignore[assignment]
    __gt__ = _compare("gt")
    __and__ = _binary(lambda a, b: a & b)
    __or__ = _binary(lambda a, b: a | b)
    __sub__ = _binary(lambda a, b: a - b)
    __truediv__ = _binary(lambda a, b: a / b)

    def sum(self, axes: tuple[int, ...], keepdims: bool) -> _Traced:
        """Count where it holds."""
        return self._reduced("sum", where(self.node, 1, 0) if self.node.dtype == "bool" else self.node, axes)

    def all(self, axes: tuple[int, ...], keepdims: bool) -> _Traced:
        """Tell whether it holds everywhere along axes."""
        count = float(np.prod([self.shape[axis] for axis in axes]))
        return self.sum(axes, keepdims) == count

    def _reduced(self, op: str, x: Node, axes: tuple[int, ...], *settings: str) -> _Traced:
        kept = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
        return _Traced(reshape(reduce(op, x, axes, *settings), kept))

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **_: Any) -> _Traced:
        return _Traced(call({"absolute": "abs"}.get(function.__name__, function.__name__), inputs[0].node))

    def __array_function__(self, function: Any, _: Any, args: tuple[Any, ...], named: dict[str, Any]) -> _Traced:
        if function is np.broadcast_to:
            return _Traced(broadcast(self.node, args[1]))
        return self._reduced("min" if function is np.min else "max", self.node, args[1], "even")


def may_have_corner(node: Node, active: set[Node]) -> bool:
    """Tell whether a node may have a corner on the way of a gradient to the active nodes: x**0 has none."""
    return node.op in CORNERS and node.args[1 if node.op == "pow" else 0] in active
