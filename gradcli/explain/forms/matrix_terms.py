"""Terms, in which a formula of matrices is read: a number times scalars times a body."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from gradcli.graph.node import Exact, Node, const, fold, operands
from gradcli.graph.rewrite import are_equal
from gradcli.graph.shapes import broadcast_shapes


@dataclass(frozen=True)
class Term:
    """A number times scalars, some of them as divisors, times a body, which is None for ones."""

    number: Exact
    scalars: tuple[Node, ...] = ()
    divisors: tuple[Node, ...] = ()
    body: Node | None = None

    def times(self, other: Term) -> Term:
        """Return the product of the numbers and scalars, without what cancels; the body is this term's."""
        scalars = list(self.scalars + other.scalars)
        divisors: list[Node] = []
        for divisor in self.divisors + other.divisors:
            equal = next((s for s in scalars if are_equal(s, divisor)), None)
            if equal is None:
                divisors.append(divisor)
            else:
                scalars.remove(equal)
        number = Fraction(self.number) * Fraction(other.number)
        return Term(exact("mul", self.number, other.number) or number, tuple(scalars), tuple(divisors), self.body)

    def scalar(self) -> Term:
        """Return the term with a body that is a scalar among its scalars."""
        if self.body is None or self.body.shape:
            return self
        return replace(self, scalars=(*self.scalars, self.body), body=None)


def written(term: Term, like: Node) -> Node:
    """Return a term as a node: the number first, then the scalars, then the body; the divisors behind.

    A sign stands before all of it, or is that of the number before matrices, -2*A @ b, which needs no brackets so.
    """
    parts = [*term.scalars, *([term.body] if term.body is not None else [])]
    size: Exact = term.number if term.number >= 0 else -term.number
    if size != 1 and term.number < 0 and term.body is not None and operands(term.body, "matmul"):
        positive = written(replace(term, number=1), like)
        return Node("mul", (const(term.number), positive), positive.shape)
    if not parts or size != 1:
        number = const(size, () if parts else like.shape)
        parts = [number, *parts]
    product = parts[0]
    for part in parts[1:]:
        product = Node("mul", (product, part), part.shape or product.shape)
    if term.divisors:
        divisor = reduce(lambda a, b: Node("mul", (a, b), ()), term.divisors)
        product = Node("div", (product, divisor), product.shape)
    return product if term.number >= 0 else Node("neg", (product,), product.shape)


def with_arguments(node: Node, *args: Node) -> Node:
    """Return an elementwise node of other arguments, in the shape that these broadcast to."""
    return replace(node, args=args, shape=broadcast_shapes([a.shape for a in args]))


def exact(op: str, *numbers: Exact) -> Exact | None:
    """Return the result of an operation on exact numbers, if that is exact."""
    result = fold(op, list(numbers))
    return result if isinstance(result, Exact) else None
