"""The chain rule along a path: the local derivatives between an output and a leaf, where one path leads there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.explain.sections import Math, Value, quantity
from gradcli.explain.trace import Trace
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass, Sweep, textbook_slope
from gradcli.notation.nodes import written_size

_LONGEST = 5  # factors of a chain that is written: a longer one is a table (--steps)
_MEDIUM = 30  # operations in all factors: more are longer than two lines


def path(swept: Sweep, leaf: Node, output: Node) -> list[Pass] | None:
    """Return the passes from an output to a leaf; none unless one path leads there, of products entry by entry."""
    incoming: dict[Node, list[Pass]] = {}
    for p in swept.passes:
        incoming.setdefault(p.argument, []).append(p)
    result: list[Pass] = []
    node = leaf
    while node is not output:
        passes = incoming.get(node, [])
        if len(passes) != 1 or len(result) == _LONGEST or not _multiplies(passes[0]):
            return None
        result.insert(0, passes[0])
        node = passes[0].node
    return result


def _multiplies(p: Pass) -> bool:
    """Return whether a pass multiplies an adjoint of the argument's shape, or a scalar that broadcasts to it."""
    if OPERATIONS[p.node.op].broadcasts:
        return p.node.shape == p.argument.shape
    return p.node.op in ("sum", "mean", "norm")


def factors(passes: list[Pass], names: Mapping[Node, str]) -> list[Math] | None:
    """Return the local derivatives as formulas, without those that are 1; nothing where they are too long."""
    nodes = [n for n in map(_local, passes) if n.value != 1]
    if len(nodes) < 2 or sum(written_size(n, names) for n in nodes) > _MEDIUM:
        return None
    return [quantity(n, names) for n in nodes]


def numbers(passes: list[Pass], trace: Trace) -> list[Math] | None:
    """Return the local derivatives of scalars as numbers."""
    slopes = trace.calls[0].slopes
    if any(p not in slopes or slopes[p].shape for p in passes):
        return None
    return [Value(slopes[p]) for p in passes if _local(p).value != 1]


def _local(p: Pass) -> Node:
    """Return the local derivative of a pass: the factor of its adjoint."""
    if p.slope is not None:
        return textbook_slope(p.node, p.position)
    pullback: Any = OPERATIONS[p.node.op].pullback
    result: Node = pullback(const(1, p.node.shape), p.node, *p.node.settings, *p.node.args)[p.position]
    while result.args and OPERATIONS[result.op].kind == "view" and result.args[0].size == 1:
        result = result.args[0]
    return const(result.value) if result.value is not None else result
