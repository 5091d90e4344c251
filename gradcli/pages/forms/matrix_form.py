"""Gradients and Hessians as a textbook of matrices has them: 2*X.T @ (X @ w - t), A + A.T.  For display alone.

Each node is read as a number times scalars times a body; numbers and scalars are drawn through what is linear, so that
they stand in front, and sums of products with a common factor are drawn together.

H·u is linear in u: where its formula multiplies u from the left alone, what multiplies it is H.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gradcli.graph import hessian as second
from gradcli.graph.construct import from_diagonal, matmul, reshape, spread, swap
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.matrices import inv
from gradcli.graph.node import Exact, Node, const, leaf, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import are_equal, interpret, substituted
from gradcli.notation.nodes import written_size
from gradcli.pages.forms.matrix_terms import Term, add, exact, with_arguments, written

_LONG = 14  # operations in a formula that says less than the entries: half a line
_PARTS = 300  # nodes of a product H·u whose formula is worked out: the work is their square


class MatrixForms:
    """Writes nodes that are shorter to read; what several of them are computed from is read once.

    Nodes in `named` are not looked into; those in `known` have one number for all elements.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((3,))
    >>> MatrixForms({x: "x"})(2 * (x * 3)).args[0].value
    6
    """

    def __init__(self, named: Mapping[Node, str], known: Mapping[Node, Exact] | None = None) -> None:
        self.named, self.known = named, known or {}
        self.read = ChainMap[Node, object](named, self.known)  # type: ignore[arg-type] # neither is written to
        self.terms: dict[Node, Term] = {}
        self.replaced: dict[Node, Node] = {}  # the named node of each leaf that stands for one: no rule looks into it

    def __call__(self, node: Node) -> Node:
        """Return a node with the same value, up to broadcasting."""
        (result,) = substituted([written(self.term(node), node)], self.replaced)
        return result

    def term(self, node: Node) -> Term:
        """Return a node as a term, in which leaves replace computed nodes with names."""
        parts = computed_from(ChainMap[Node, object](self.terms, self.read), [node])  # type: ignore[arg-type]
        for n in (*(a for part in parts for a in part.args), node):
            if n in self.read and n not in self.terms:
                letter = leaf(n.shape) if n.args and n in self.named else n
                self.terms[n] = Term(self.known[n]) if n in self.known else Term(1, body=letter)
                self.replaced |= {letter: n} if letter is not n else {}
        return interpret(parts, _read, self.terms)[node]


def number_and_rest(node: Node, named: Mapping[Node, str]) -> tuple[Exact, Node]:
    """Return the number in front of a node as it is read best, and the rest.

    >>> from fractions import Fraction
    >>> from gradcli.graph.node import leaf
    >>> t = leaf((3,))
    >>> number_and_rest(-2 * t / 4, {t: "t"}) == (Fraction(-1, 2), t)
    True
    """
    forms = MatrixForms(named)
    term = forms.term(node)
    (rest,) = substituted([written(replace(term, number=1), node)], forms.replaced)
    return term.number, rest


def scaled(node: Node, named: Mapping[Node, str], known: Mapping[Node, Exact]) -> tuple[Exact, Node] | None:
    """Return a node as a number times an array in its shape; None where it has other scalars in front.

    >>> from fractions import Fraction
    >>> from gradcli.graph.node import leaf
    >>> t = leaf((3,))
    >>> scaled(2 * (t / -3), {t: "t"}, {}) == (Fraction(-2, 3), t)
    True
    """
    forms = MatrixForms(named, known)
    term = forms.term(node)
    if term.scalars or term.divisors or term.body is None:
        return None
    (body,) = substituted([spread(term.body, node.shape)], forms.replaced)
    return term.number, body


def _read(node: Node, args: Sequence[Term]) -> Term:
    """Return a node as a term, from the terms of its arguments."""
    if isinstance(node.value, Exact):
        return Term(node.value)
    if not node.args:
        return Term(1, body=node)
    row = OPERATIONS[node.op]
    if row.kind == "view" and args[0].scalar().body is None:  # a number everywhere stays one
        return args[0].scalar()
    counts = not row.broadcasts and operand(node, "broadcast") is None  # its arguments' elements
    if counts and (result := _of_scalars(node, args[0].scalar())):
        return result
    if counts:
        args = [_whole(a, like) for a, like in zip(args, node.args, strict=True)]
    if not row.broadcasts and len(args) == 1 and row.is_linear_in(0):
        if args[0].body is not None:
            return replace(args[0], body=_OF_LINEAR.get(node.op, _another_argument)(args[0].body, node))
        if row.kind == "scatter":  # of a number into zeros: that number times ones
            return replace(args[0], body=node.with_args((const(1, node.args[0].shape),)))
    rule = _RULES.get(node.op)
    if result := rule(node, *args) if rule is not None else None:
        return _by_inverse(result)
    parts = tuple(map(written, args, node.args))
    return Term(1, body=with_arguments(node, *parts) if row.broadcasts else replace(node, args=parts))


def _by_inverse(term: Term) -> Term:
    """Return the cofactors of a matrix over its determinant as its inverse, transposed."""
    matrix = None if term.body is None else operand(term.body, "cofactors")
    if matrix is None or len(matrix.shape) != 2:
        return term
    det = next((d for d in term.divisors if (x := operand(d, "det")) is not None and are_equal(x, matrix)), None)
    if det is None:
        return term
    rest = tuple(d for d in term.divisors if d is not det)
    return replace(term, divisors=rest, body=swap(inv(matrix)))


def _of_scalars(node: Node, first: Term) -> Term | None:
    """Return the sum of an array that is the same scalars everywhere, or the matrix with them on its diagonal."""
    if first.body is not None:
        return None
    if (x := operand(node, "sum")) is not None and node.size:
        return first.times(Term(x.size // node.size))
    if (diagonal := operand(node, "from_diagonal")) is not None:
        return replace(first, body=replace(node, args=(const(1, diagonal.shape),)))
    return None


def _whole(term: Term, like: Node) -> Term:
    """Return a term whose body is broadcast to the shape of its node, for operations that depend on the shape."""
    if term.body is not None:
        return replace(term, body=spread(term.body, like.shape))
    return Term(1, body=spread(written(term, like), like.shape)) if term.scalars + term.divisors else term


def _another_argument(body: Node, node: Node) -> Node:
    return replace(node, args=(body,))


def _reshaped(body: Node, node: Node) -> Node:
    return reshape(operand(body, "reshape") or body, node.shape)


def _transposed(body: Node, node: Node) -> Node:
    """Return a matrix's transpose: of a product the product of the transposes, of a transpose what it was."""
    if len(body.shape) < 2 or _is_identity(body):
        return body
    plain = node.settings == ((1, 0),)
    if plain and body.settings == node.settings and (before := operand(body, "transpose")) is not None:
        return before
    match operands(body, "matmul"):
        case a, b if plain and len(a.shape) == len(b.shape) == 2:
            return Node("matmul", (_transposed(b, _flip(b)), _transposed(a, _flip(a))), node.shape)
    return replace(node, args=(body,))


def _flip(x: Node) -> Node:
    return Node("transpose", (x,), x.shape[::-1], ((1, 0),))


def _mul(node: Node, a: Term, b: Term) -> Term:
    a, b = a.scalar(), b.scalar()
    product = a.times(b)
    if a.body is None or b.body is None:
        return replace(product, body=a.body or b.body)
    return replace(product, body=_power_product(a.body, b.body) or with_arguments(node, a.body, b.body))


def _power_product(a: Node, b: Node) -> Node | None:
    """Return x**4 * x as x**5."""
    (base, m), (other, n) = _power(a), _power(b)
    if m + n == 2 or not are_equal(base, other):
        return None
    return Node("pow", (base, const(m + n)), a.shape)


def _power(node: Node) -> tuple[Node, int]:
    """Return a base and its whole exponent."""
    match operands(node, "pow"):
        case base, Node(value=int(exponent)):
            return base, exponent
    return node, 1


def _div(node: Node, a: Term, b: Term) -> Term | None:
    a, b = a.scalar(), b.scalar()
    inverse = exact("div", 1, b.number)
    if inverse is None:
        return None
    quotient = a.times(Term(inverse, b.divisors, b.scalars))
    if b.body is None:
        return quotient
    return replace(quotient, body=with_arguments(node, a.body or const(1), b.body))


def _pow(node: Node, a: Term, b: Term) -> Term | None:
    """Return (2*x)**3 as 8*x**3."""
    exponent = b.number
    plain = a.body is not None and not (a.scalars or a.divisors or b.scalars or b.divisors or b.body)
    number = exact("pow", a.number, exponent) if plain and isinstance(exponent, int) and exponent > 0 else None
    if number is None or a.body is None:
        return None
    base, inner = _power(a.body)
    power = int(exponent) * inner
    return Term(number, body=base if power == 1 else with_arguments(node, base, const(power)))


def _exp(node: Node, a: Term) -> Term | None:
    """Return softmax(x) for exp(log_softmax(x)), which the derivative of a log-softmax reads from its result."""
    if a.body is None or operand(a.body, "log_softmax") is None or a != Term(1, body=a.body):
        return None
    return Term(1, body=replace(a.body, op="softmax"))


def _matmul(node: Node, a: Term, b: Term) -> Term | None:
    if not (a.number and b.number):
        return Term(0)
    if a.body is None or b.body is None:
        return None
    left, right = a.body, b.body
    for one, other in ((left, right), (right, left)):
        if _is_identity(one) and other.shape == node.shape:
            return replace(a.times(b), body=other)
    if len(left.shape) == 1 and len(right.shape) == 2:  # of a vector on the left: x @ A is A.T @ x
        left, right = _transposed(right, _flip(right)), left
    return replace(a.times(b), body=Node("matmul", (left, right), node.shape))


def _is_identity(node: Node) -> bool:
    diagonal = operand(node, "from_diagonal")
    return diagonal is not None and diagonal.value == 1


def _outer(node: Node, a: Term, b: Term) -> Term | None:
    if a.body is None or b.body is None:
        return None
    return replace(a.times(b), body=replace(node, args=(a.body, b.body)))


def _where(node: Node, condition: Term, a: Term, b: Term) -> Term | None:
    """Return where(c, 0, k·x) as k·where(c, 0, x), and where(c, k·x, k·z) as k·where(c, x, z)."""
    if condition.body is not None and a.body is None and b.body is None:
        return _where_of_numbers(node, condition.body, a, b)
    if condition.body is None or b.body is None:
        return None
    if a.body is not None and (a.number, a.scalars, a.divisors) == (b.number, b.scalars, b.divisors):
        return replace(b, body=with_arguments(node, condition.body, a.body, b.body))
    if a.body is not None or a.number:
        return None
    return replace(b, body=with_arguments(node, condition.body, const(0), b.body))


def _where_of_numbers(node: Node, condition: Node, a: Term, b: Term) -> Term | None:
    """Return where(c, k, 0) as k·where(c, 1, 0), and where(c, 0, k) likewise, for branches without bodies.

    None where both branches are nonzero, or the number in k is 1 already.
    """
    term = a if a.number else b
    if (a.number and b.number) or term.number == 1:
        return None
    ones = (const(int(t.number != 0)) for t in (a, b))
    return replace(term, body=with_arguments(node, condition, *ones))


_OF_LINEAR: Mapping[str, Callable[[Node, Node], Node]] = {"transpose": _transposed, "reshape": _reshaped}
_RULES: Mapping[str, Callable[..., Term | None]] = {
    "mul": _mul,
    "div": _div,
    "neg": lambda node, a: a.times(Term(-1)),
    "pow": _pow,
    "exp": _exp,
    "matmul": _matmul,
    "outer": _outer,
    "where": _where,
    "corner": lambda node, condition, a, b: b,
    "identity": lambda node, a: a,
    "add": add,
    "sub": lambda node, a, b: add(node, a, b, -1),
}


def hessian_form(graph: Graph, wrt: Sequence[str]) -> tuple[Node, Mapping[Node, str]] | None:
    """Return H as a node and the names in it; None where the leaves are not one vector or no short formula is known.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> A, x = leaf((3, 3)), leaf((3,))
    >>> H, names = hessian_form(Graph.of({"A": A, "x": x}, {"y": matmul(x, matmul(A, x))}), ["x"])
    >>> Notation(names, implicit=True).expression(H)
    'A + A.T'
    """
    if len(wrt) != 1 or len(graph.inputs[wrt[0]].shape) != 1:
        return None
    doubled = second.hvp(graph, wrt)
    product, u = doubled.outputs[f"{wrt[0]}.hvp"], doubled.inputs[f"{wrt[0]}.u"]
    if len(scheduled([product])) > _PARTS:
        return None
    names = {x: name for name, x in graph.inputs.items()}
    form = MatrixForms({**names, u: "u"})(product)
    identity = from_diagonal(const(1, u.shape), u.shape * 2)
    coefficients: dict[Node, Node | None] = {u: identity}
    matrix = interpret(computed_from(coefficients, [form]), _coefficient, coefficients)[form]
    if matrix is None or matrix.shape != (u.size, u.size) or written_size(matrix, names) > _LONG:
        return None
    return matrix, names


def _coefficient(form: Node, parts: Sequence[Node | None]) -> Node | None:
    """Return the matrix M of a formula M @ u, from those of its arguments; None where it has no such form."""
    match form.op, parts:
        case "neg", [Node() as inner]:
            return Node("neg", (inner,), inner.shape)
        case "add" | "sub", [Node() as a, Node() as b] if a.shape == b.shape:
            return Node(form.op, (a, b), a.shape)
        case "mul", [None, Node() as inner] | [Node() as inner, None]:
            return _scaled(form.args[parts.index(None)], inner)
        case "div", [Node() as inner, None] if not form.args[1].shape:
            return Node("div", (inner, form.args[1]), inner.shape)
        case "matmul", [None, Node() as inner] if form.args[0].shape[1:] and len(form.args[0].shape) == 2:
            return _product(form.args[0], inner)
    return None


def _scaled(factor: Node, matrix: Node) -> Node | None:
    """Return the matrix of factor·(M @ u): a number times M, or M with its rows scaled by a vector."""
    if not factor.shape:
        return Node("mul", (factor, matrix), matrix.shape)
    if factor.shape != matrix.shape[:1]:
        return None
    if (diagonal := operand(matrix, "from_diagonal")) is not None:
        return from_diagonal(factor * diagonal, matrix.shape)
    return _product(from_diagonal(factor, factor.shape * 2), matrix)


def _product(a: Node, b: Node) -> Node:
    """Return a product of matrices without brackets: (A @ B) @ C for A and B @ C, and A for A and an identity."""
    diagonal = operand(b, "from_diagonal")
    if diagonal is not None and diagonal.value == 1:
        return a
    factors = operands(b, "matmul")
    return matmul(_product(a, factors[0]), factors[1]) if factors else matmul(a, b)
