"""Terms, in which a formula of matrices is read: a number times scalars times a body; and their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from gradcli.graph.node import Exact, Node, const, fold, operand, operands
from gradcli.graph.rewrite import are_equal
from gradcli.graph.shapes import broadcast_shapes

_TERMS = 8  # of a sum that are looked through for one like another: so many for each term added
_SIGNS = {"add": 1, "sub": -1}  # of the last term of a sum


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


def add(node: Node, a: Term, b: Term, sign: int = 1) -> Term:
    """Return the sum of two terms, or with the sign -1 their difference."""
    b = b.times(Term(sign))
    if not (a.number and b.number):
        return b if b.number else a
    result = None
    if (a.scalars, a.divisors) == (b.scalars, b.divisors) and a.body is not None and b.body is not None:
        result = _together(a, a.body, b, b.body)
    if result or (result := _factored(node, a, b)):
        return result
    op, b = ("add", b) if b.number >= 0 else ("sub", b.times(Term(-1)))
    return Term(1, body=with_arguments(replace(node, op=op), written(a, node.args[0]), written(b, node.args[1])))


def _factored(node: Node, a: Term, b: Term) -> Term | None:
    """Return 2*x - 2*mean(x) as 2*(x - mean(x)), a sum of terms with the same number and the same divisors."""
    plain = [replace(term, number=1, divisors=()) for term in (a, b)]
    if Term(1) in plain or abs(a.number) != abs(b.number) or a.divisors != b.divisors:
        return None
    if abs(a.number) == 1 and not a.divisors:
        return None
    first, second = plain if a.number > 0 or b.number < 0 else plain[::-1]
    op = "add" if (a.number > 0) == (b.number > 0) else "sub"
    total = with_arguments(replace(node, op=op), written(first, node.args[0]), written(second, node.args[1]))
    return Term(max(a.number, b.number), divisors=a.divisors, body=total)


def _together(a: Term, x: Node, b: Term, z: Node) -> Term | None:
    """Return the sum of two terms with the bodies x and z as one; None where the bodies have nothing in common."""
    if x.shape != z.shape:
        return None
    if are_equal(x, z):
        total = exact("add", a.number, b.number)
        if total is None:
            return None
        return replace(a, number=total) if total else Term(0)
    if gathered := _gathered(a, x, b, z) or _gathered(b, z, a, x):
        return gathered
    if Fraction(a.number) == Fraction(b.number):
        return replace(a, body=_joined(x, z, "add"))
    if Fraction(a.number) != -Fraction(b.number):
        return None
    return replace(b, body=_joined(z, x, "sub")) if a.number < 0 else replace(a, body=_joined(x, z, "sub"))


def _gathered(a: Term, x: Node, b: Term, z: Node) -> Term | None:
    """Return a sum plus a multiple of one of its terms: eye(4) + 2*A.T for eye(4) + A.T + A.T."""
    terms = _addends(x)
    like = next((k for k, (_, body) in enumerate(terms) if are_equal(body, z)), None)
    ratio = exact("div", b.number, a.number)
    total = None if like is None or ratio is None else exact("add", terms[like][0], ratio)
    if like is None or total is None or len(terms) == 1:
        return None
    terms[like] = (total, z)
    first, *rest = (Term(number, body=body) for number, body in terms if number)
    result = written(first, x)
    for term in rest:
        op, size = ("add", term) if term.number > 0 else ("sub", term.times(Term(-1)))
        result = Node(op, (result, written(size, x)), x.shape)
    return replace(a, body=result)


def _addends(body: Node) -> list[tuple[Exact, Node]]:
    """Return the last terms of a sum of arrays with their factors, after the rest of the sum."""
    result: list[tuple[Exact, Node]] = []
    while (sign := _SIGNS.get(body.op)) and body.args[0].shape == body.args[1].shape and len(result) < _TERMS:
        number, last = _factor(body.args[1])
        result.append((sign * number, last))
        body = body.args[0]
    return [_factor(body), *reversed(result)]


def _factor(node: Node) -> tuple[Exact, Node]:
    """Return the number before an array, and the array."""
    if (positive := operand(node, "neg")) is not None:
        number, rest = _factor(positive)
        return -number, rest
    match operands(node, "mul"):
        case factor, rest if isinstance(factor.value, Exact) and rest.shape == node.shape:
            return factor.value, rest
    return 1, node


def _joined(a: Node, b: Node, op: str) -> Node:
    """Return a sum of bodies: A @ (x + z) for A @ x + A @ z."""
    factors = [operands(a, "matmul"), operands(b, "matmul")]
    for k in (0, 1) if all(factors) else ():
        common, other = (pair[k] for pair in factors)
        first, second = (pair[1 - k] for pair in factors)
        if are_equal(common, other) and first.shape == second.shape:
            if op == "add" and operand(first, "transpose") is not None:
                first, second = second, first
            inner = Node(op, (first, second), first.shape)
            return Node("matmul", (common, inner) if k == 0 else (inner, common), a.shape)
    return Node(op, (a, b), a.shape)
