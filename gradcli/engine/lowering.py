"""Lowering: a node in the few operations that engines have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.graph.node import Node, Rule, const, is_const, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import SIGNS, Rewriter


def lower(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Return for each node one with the same value in the few operations that engines have.

    Softmax, for one, is made of exp, max, sum and `/`.  `nodes` are in the order of computation.  Where there are
    calls, equal nodes are one: the residuals that a definition and a pullback read are computed once.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> lower([x, y := elementwise("sec", x)])[y]
    div(const, cos), shape ()
    """
    return Rewriter(RULES, DEFINITIONS, sharing=not _CALLS.isdisjoint({n.op for n in nodes})).rewritten(nodes)


def _definition(definition: Callable[..., Node | None]) -> Rule:
    """Return the rule of a definition; None where it is the operation itself, as for a power that is not a product."""

    def rule(node: Node) -> Node | None:
        simpler = definition(*node.settings, *node.args)
        return None if simpler is None or simpler.op == node.op or simpler.shape != node.shape else simpler

    return rule


def _product(node: Node) -> Node:
    """Return a product with one sign or none, and with its number 2 beside the argument that is shared."""
    result = SIGNS["mul"](node) or node
    if (positive := operand(result, "neg")) is not None:
        doubled = _twos(positive, *positive.args)
        return Node("neg", (doubled,), doubled.shape)
    return _twos(result, *result.args)


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
    if (small := operand(node, "broadcast")) is not None:
        return node.with_args((_doubled(small),))
    match operands(node, "div"):
        case x, double if (divisor := _half(double)) is not None:
            return node.with_args((x, divisor))  # the square's 2, and that of the root above it
    return Node("mul", (const(2), node), node.shape)


RULES: dict[str, Rule] = {**SIGNS, "mul": _product}
_CALLS = frozenset(op for op, row in OPERATIONS.items() if row.kind == "call")
DEFINITIONS = {op: _definition(row.for_engines) for op, row in OPERATIONS.items() if row.for_engines is not None}
