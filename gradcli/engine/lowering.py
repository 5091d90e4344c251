"""Lowering: a node in the few operations that engines have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node, const, is_const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.substitute import rewritten

_SIGNED = frozenset(["add", "sub", "mul", "div"])
_COMPOSITE = {op: row.for_engines for op, row in OPERATIONS.items() if row.for_engines is not None}
_LOWERED = _SIGNED | {"neg"} | _COMPOSITE.keys()


def lower(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Return for each node one with the same value in the few operations that engines have.

    Softmax, for one, is made of exp, max, sum and `/`.  `nodes` stand in the order in which they are computed.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> lower([x, y := elementwise("sec", x)])[y]
    div(const, cos), shape ()
    """
    new: dict[Node, Node] = {}
    changed: set[Node] = set()
    for node in nodes:
        simpler = node if changed.isdisjoint(node.args) else node.with_args(tuple(new[a] for a in node.args))
        if node.op in _LOWERED:
            simpler = _lowered(simpler)
        if simpler is not node:
            changed.add(node)
        new[node] = simpler
    return new


def _lowered(node: Node) -> Node:
    """Return a node, whose arguments are lowered, in operations that engines have."""
    if node.op in _SIGNED:
        return _signs(node, *node.args)
    if node.op == "neg" and node.args[0].op == "neg":
        return node.args[0].args[0]
    definition = _COMPOSITE.get(node.op)
    simpler = definition(*node.settings, *node.args) if definition is not None else None
    if simpler is None or simpler.op == node.op or simpler.shape != node.shape:  # a power that is no product
        return node
    # Simplification may have taken the definition to an argument's argument: -(-x) is x.
    known = {n: n for arg in node.args for n in (arg, *arg.args)}
    return rewritten(scheduled([simpler], known), lambda n: _lowered(n) if n.args else n, known)[simpler]


def _signs(node: Node, a: Node, b: Node) -> Node:
    """Return a sum with the minus of a term as a subtraction, a product with the minus of a factor in front of it.

    Both are exact, in the sign of a zero too, and mostly save an operation.
    """
    if node.op in ("mul", "div"):
        minus = (a.op == "neg") != (b.op == "neg")
        if "neg" in (a.op, b.op):
            node = node.with_args(tuple(x.args[0] if x.op == "neg" else x for x in (a, b)))
        if node.op == "mul":
            node = _twos(node, *node.args)
        return Node("neg", (node,), node.shape) if minus else node
    if b.op == "neg":
        return replace(node, op="add" if node.op == "sub" else "sub", args=(a, b.args[0]))
    if a.op == "neg" and node.op == "add":
        return replace(node, op="sub", args=(b, a.args[0]))
    return node


def _twos(node: Node, a: Node, b: Node) -> Node:
    """Return the product v·(2·x), which a square leaves behind, as (2·v)·x: one 2·v serves all the x that were summed.

    It is exact, if nothing overflows.
    """
    for v, double in ((a, b), (b, a)):
        if (x := _half(double)) is not None and _half(v) is None:
            return node.with_args((_doubled(v), x))
    return node


def _half(node: Node) -> Node | None:
    """Return x for 2·x."""
    if node.op != "mul":
        return None
    for two, x in (node.args, node.args[::-1]):
        if is_const(two, 2) and x.shape == node.shape:
            return x
    return None


def _doubled(node: Node) -> Node:
    """Return 2·x for x, in as few operations as there are."""
    if node.op == "broadcast":
        return node.with_args((_doubled(node.args[0]),))
    if node.op == "div" and (divisor := _half(node.args[1])) is not None:
        return node.with_args((node.args[0], divisor))  # the square's 2, and that of the root above it
    return Node("mul", (const(2), node), node.shape)
