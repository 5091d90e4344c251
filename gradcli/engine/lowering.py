"""Lowering: a node in the few operations that engines have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gradcli.graph.node import Node, const, is_const, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter, Rule


def lower(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Return for each node one with the same value in the few operations that engines have.

    Softmax, for one, is made of exp, max, sum and `/`.  `nodes` stand in the order in which they are computed.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> lower([x, y := elementwise("sec", x)])[y]
    div(const, cos), shape ()
    """
    return _LOWERING.rewritten(nodes)


def _definition(definition: Callable[..., Node | None]) -> Rule:
    """Return the rule of a definition, which is None where it is the operation itself: a power that is no product."""

    def rule(node: Node) -> Node | None:
        simpler = definition(*node.settings, *node.args)
        return None if simpler is None or simpler.op == node.op or simpler.shape != node.shape else simpler

    return rule


# Arithmetic with signs


def _negative(node: Node) -> Node | None:
    return operand(node.args[0], "neg")


# They are exact, in the sign of a zero too, and mostly save an operation.


def _sum(node: Node) -> Node | None:
    """Return a + (−b) as a − b, and (−a) + b as b − a."""
    a, b = node.args
    for x, y in ((a, b), (b, a)):
        if (positive := operand(y, "neg")) is not None:
            return replace(node, op="sub", args=(x, positive))
    return None


def _difference(node: Node) -> Node | None:
    """Return a − (−b) as a + b."""
    a, b = node.args
    positive = operand(b, "neg")
    return None if positive is None else replace(node, op="add", args=(a, positive))


def _product(node: Node) -> Node:
    plain, minus = _without_signs(node)
    plain = _twos(plain, *plain.args)
    return Node("neg", (plain,), plain.shape) if minus else plain


def _quotient(node: Node) -> Node:
    plain, minus = _without_signs(node)
    return Node("neg", (plain,), plain.shape) if minus else plain


def _without_signs(node: Node) -> tuple[Node, bool]:
    """Return a product or quotient without the signs of its arguments, and whether it is the negative of that."""
    a, b = node.args
    args = operand(a, "neg") or a, operand(b, "neg") or b
    return (node if args == node.args else node.with_args(args)), (args[0] is a) != (args[1] is b)


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
    if node.op == "div" and (divisor := _half(node.args[1])) is not None:
        return node.with_args((node.args[0], divisor))  # the square's 2, and that of the root above it
    return Node("mul", (const(2), node), node.shape)


_RULES: dict[str, Rule] = {
    "add": _sum, "sub": _difference, "mul": _product, "div": _quotient, "neg": _negative,
}  # fmt: skip
_DEFINITIONS = {op: _definition(row.for_engines) for op, row in OPERATIONS.items() if row.for_engines is not None}
_LOWERING = Rewriter(_RULES, _DEFINITIONS, sharing=False)  # what engines compute, they share later
