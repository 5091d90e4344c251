"""Rules of the rewriter that save signs: a + (−b) is a − b.  They are exact, in the sign of a zero too."""

from __future__ import annotations

from gradcli.graph.node import Node, Rule, operand


def _sum(node: Node) -> Node | None:
    """Return a + (−b) as a − b, and (−a) + b as b − a."""
    a, b = node.args
    for x, y in ((a, b), (b, a)):
        if (positive := operand(y, "neg")) is not None:
            return Node("sub", (x, positive), node.shape, (), node.dtype)
    return None


def _difference(node: Node) -> Node | None:
    """Return a − (−b) as a + b."""
    a, b = node.args
    positive = operand(b, "neg")
    return None if positive is None else Node("add", (a, positive), node.shape, (), node.dtype)


def _product(node: Node) -> Node | None:
    """Return a product or quotient of negatives as that of what they are the negatives of, with one sign or none."""
    a, b = node.args
    args = operand(a, "neg") or a, operand(b, "neg") or b
    if args == node.args:
        return None
    plain = node.with_args(args)
    return plain if (args[0] is a) == (args[1] is b) else Node("neg", (plain,), plain.shape)


def _negative(node: Node) -> Node | None:
    """Return x for −(−x)."""
    return operand(node.args[0], "neg")


SIGNS: dict[str, Rule] = {
    "add": _sum, "sub": _difference, "mul": _product, "div": _product, "neg": _negative,
}  # fmt: skip
