"""What algebra makes of each operation in formulas of arrays: what is drawn out of it, and its other forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from gradcli.engine.evaluate import values_of
from gradcli.graph.construct import matmul, reshape, transpose
from gradcli.graph.graph import Graph
from gradcli.graph.node import Exact, Node, const, elementwise, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, bare, broadcast_shapes
from gradcli.notation.writer import one_hot_of, spread_argument
from gradcli.pages.forms.sums import ONE, Algebra, Sum, constant, inverse, scaled, total

_FEW = 12  # elements of an array that is written out: a line
_TERMS = 8  # of a sum that may cancel: more are not a deviation from a mean


class ArrayForms(Algebra):
    """Writes formulas of arrays as a textbook has them: 2*X.T @ (X @ w - t), A + A.T, sum(t)*p - t.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> x, p = leaf((3,)), leaf((3,))
    >>> names = {x: "x", p: "p"}
    >>> Notation(names).expression(ArrayForms(names)(p * (x / p - 2)))
    'x - 2*p'
    """

    def rule(self, node: Node, args: list[Sum]) -> Sum | None:
        """Return what algebra makes of a node, from the sums of its arguments; None where it is a letter."""
        if (rule := _RULES.get(node.op)) is not None:
            return rule(self, node, *args)
        row = OPERATIONS[node.op]
        if row.kind == "contraction":
            return _contraction(self, node, *args)
        return _linear(self, node, *args) if len(args) == 1 and not row.broadcasts and row.is_linear_in(0) else None

    def operands(self, node: Node, op: str) -> tuple[Node, ...]:
        """Return the arguments of an operation that has no name; none of any other node."""
        return () if node in self.named else operands(node, op)


# Arithmetic


def _sum(sign: int) -> Rule:
    return lambda form, node, a, b: _together(form, total(_flat(form, a), scaled(_flat(form, b), sign)))


def _flat(form: ArrayForms, s: Sum) -> Sum:
    """Return a number times a sum as a sum."""
    match [*s.items()]:
        case [(product, number)] if len(product) == 1:
            ((node, exponent),) = product
            return scaled(form.sums[node], number) if exponent == 1 and node in form.sums else s
    return s


def _together(form: ArrayForms, s: Sum) -> Sum:
    """Return X.T @ (a + b) for X.T @ a + X.T @ b."""
    products = [(p, f) for p in s for f in form.ordered(p) if f[1] == 1 and form.operands(f[0], "matmul")]
    for (first, f), (second, g) in combinations(products, 2):
        pairs = list(zip(f[0].args, g[0].args, strict=True))
        for k, (a, b) in enumerate(pairs):
            x, z = pairs[1 - k]
            if first - {f} == second - {g} and a is b and x.shape == z.shape:
                inner = total(scaled(form.value(x), s[first]), scaled(form.value(z), s[second]))
                joined = form.write(inner, x.shape)
                whole = form.value(f[0].with_args((a, joined) if k == 0 else (joined, a)))
                rest = {p: n for p, n in s.items() if p not in (first, second)}
                return _together(form, total(rest, form.times({first - {f}: Fraction(1)}, whole)))
    return s


def _quotient(form: ArrayForms, node: Node, a: Sum, b: Sum) -> Sum | None:
    below = form.power(b, -1)
    return None if below is None else form.times(a, below)


def _power(form: ArrayForms, node: Node, base: Sum, exponent: Sum) -> Sum | None:
    number = exponent.get(ONE, Fraction(0)) if exponent.keys() <= {ONE} else None
    return form.power(base, int(number)) if number is not None and number.denominator == 1 else None


# Functions


def _exp(form: ArrayForms, node: Node, s: Sum) -> Sum | None:
    """Return softmax(x) for exp(log_softmax(x)), which the derivative of a log-softmax reads from its result."""
    x = form.only_letter(s)
    return None if x is None or not form.operands(x, "log_softmax") else form.letter(replace(x, op="softmax"))


def _sigmoid(form: ArrayForms, node: Node, s: Sum) -> Sum | None:
    """Return 1 - sigmoid(x) for sigmoid(-x)."""
    if operand(node.args[0], "neg") is None:
        return None
    return total(constant(1), scaled(form.letter(elementwise("sigmoid", form.write(scaled(s, -1)))), -1))


def _either(form: ArrayForms, node: Node, a: Sum, b: Sum) -> Sum | None:
    """Return a for `a or x != x`, whose second condition holds for nan alone."""
    compared = operands(node.args[1], "ne")
    return a if compared and compared[0] is compared[1] else None


def _not_above(form: ArrayForms, node: Node, x: Sum, zero: Sum) -> Sum | None:
    """Return h <= 0 for x <= 0, where h is the name of relu(x)."""
    relu = form.shared.unique(elementwise("relu", form.write(x)))
    return form.letter(replace(node, args=(relu, form.write(zero)))) if relu in form.named and not zero else None


def _where(form: ArrayForms, node: Node, condition: Sum, a: Sum, b: Sum) -> Sum | None:
    """Return where(c, 0, k·x) as k·where(c, 0, x), and where(c, k·x, k·z) as k·where(c, x, z)."""
    if a == b:
        return a
    (outer, first), (other, second) = (form.content(s) if s else ({}, s) for s in (a, b))
    if a and b and outer != other:
        return None
    args = tuple(map(form.write, (condition, first, second)))
    chosen = replace(node, args=args, shape=broadcast_shapes([x.shape for x in args]))
    return form.times(outer or other, form.letter(chosen))


# What moves elements, and what is linear


def _linear(form: ArrayForms, node: Node, s: Sum) -> Sum:
    """Return a linear operation with numbers and scalars in front of it."""
    if not s:
        return s
    (x,) = node.args
    outer, rest = form.content(s)
    if rest.keys() == {ONE} and OPERATIONS[node.op].kind == "view":
        return s
    body = form.write(rest, x.shape)
    if node.op == "reshape":
        (body,) = form.operands(body, "reshape") or (body,)
        return form.times(outer, form.letter(reshape(body, node.shape)))
    other = _transposed(form, node, body) if node.op == "transpose" else None
    return form.times(outer, form.letter(node.with_args((body,))) if other is None else form.value(other))


def _transposed(form: ArrayForms, node: Node, matrix: Node) -> Node | None:
    """Return the transpose of a product as the product of the transposes, and that of a transpose as what it was."""
    if _is_identity(matrix):
        return matrix
    if node.settings != ((1, 0),):
        return None
    if inner := form.operands(matrix, "transpose"):
        return inner[0]
    match form.operands(matrix, "matmul"):
        case a, b if len(a.shape) == len(b.shape) == 2:
            return matmul(transpose(b, (1, 0)), transpose(a, (1, 0)))
    return None


def _is_identity(node: Node) -> bool:
    diagonal = operand(node, "from_diagonal")
    return diagonal is not None and diagonal.value == 1


def _contraction(form: ArrayForms, node: Node, a: Sum, b: Sum) -> Sum:
    """Return a product of arrays with numbers and scalars in front of it."""
    if not (a and b):
        return {}
    (first, x), (second, z) = form.content(a), form.content(b)
    outer = form.times(first, second)
    left, right = (form.write(s, arg.shape) for s, arg in zip((x, z), node.args, strict=True))
    if node.op == "matmul":
        for one, other, rest in ((left, right, z), (right, left, x)):
            if _is_identity(one) and other.shape == node.shape:
                return form.times(outer, rest)
        if len(left.shape) == 1 and len(right.shape) == 2:  # x @ A is A.T @ x
            left, right = form(transpose(right, (1, 0))), left
    return form.times(outer, form.letter(node.with_args((left, right))))


def _reshaped(form: ArrayForms, node: Node, s: Sum) -> Sum | None:
    """Return a reshape that adds or removes axes of size 1 as that of each letter."""
    (x,) = node.args
    whole = form.mapped(s, lambda letter: _in_shape(form, letter, x, node))
    if whole is None and spread_argument(node) is not None:
        whole = form.mapped(s, lambda letter: _letter_in(form, letter, x.shape, node.shape))
    return _linear(form, node, s) if whole is None else whole


def _in_shape(form: ArrayForms, letter: Node, x: Node, node: Node) -> Sum | None:
    """Return a letter of a reshaped x: a constant of that shape, or what was reshaped before."""
    if letter.is_constant and letter.shape == x.shape:
        return form.letter(replace(letter, shape=node.shape))
    before = operand(letter, "reshape")
    return form.letter(before) if before is not None and before.shape == node.shape else None


def _letter_in(form: ArrayForms, letter: Node, old: Shape, shape: Shape) -> Sum | None:
    """Return a letter of an array of an old shape in another shape; a scalar stays as it is."""
    if not bare(letter.shape):
        return form.letter(letter)
    if bare(letter.shape) != bare(old):
        return None
    while bare(letter.shape) != bare(shape) and (inner := form.operands(letter, "reshape")):
        (letter,) = inner
    return form.letter(letter if bare(letter.shape) == bare(shape) else reshape(letter, shape))


def _reduced(form: ArrayForms, node: Node, s: Sum) -> Sum | None:
    """Return a mean, or a sum, with the factors outside that are the same for all its terms."""
    (x,) = node.args
    axes = node.settings[0]
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    if not s or _cancels(form, node, s, kept):
        return {}
    s = form.at_indices(s)
    shared = frozenset(f for f in frozenset.intersection(*s) if bare(f[0].shape) in ((), bare(kept)))
    (number,) = form.content(s)[0].values()
    outside = {shared: number}
    drawn = form.mapped(outside, lambda letter: _letter_in(form, letter, kept, node.shape))
    if drawn is None:
        return None
    inside = scaled(s, 1 / number, inverse(shared))
    count = x.size // node.size if node.op == "sum" and node.size else 1
    if inside.keys() == {ONE}:
        return scaled(drawn, count * inside[ONE]) if node.size else None
    if axes == (len(x.shape) - 1,) and _is_of_classes(form, inside):
        return drawn
    return form.times(drawn, form.letter(node.with_args((form.write(inside, x.shape),))))


def _cancels(form: ArrayForms, node: Node, s: Sum, kept: Shape) -> bool:
    """Return whether a sum over axes is 0, as that of x - mean(x): a sum of multiples of arrays is one of their means.

    Numbers, and what has the shape `kept` of the result with its axes kept, are the same for all that is summed.
    """
    wide = form.expanded(s)
    if not 1 < len(wide) <= _TERMS:
        return False
    whole: Sum = {}
    for product, number in wide.items():
        arrays = [f for f in product if bare(f[0].shape) not in ((), bare(kept))]
        part = {product - {*arrays}: number}
        if arrays:
            array, exponent = arrays[0]
            if len(arrays) > 1 or exponent != 1 or array.shape != node.args[0].shape:
                return False
            mean = replace(node, op="mean", args=(array,))
            part = form.times(part, form.value(mean if bare(kept) == bare(node.shape) else reshape(mean, kept)))
        whole = total(whole, part)
    return not form.expanded(whole)


def _is_of_classes(form: ArrayForms, s: Sum) -> bool:
    """Return whether a sum is a one-hot encoding of classes, whose rows sum to 1."""
    choice = form.only_letter(s)
    inner = None if choice is None else operand(choice, "reshape")  # of one sample
    if choice is not None and inner is not None and inner.shape[-1:] == choice.shape[-1:]:
        choice = inner
    encoded = None if choice is None or choice in form.named else one_hot_of(choice, form.named)
    if encoded is None:
        return False
    target, count = encoded
    return not target.is_constant or all(isinstance(k, int) and 0 <= k < count for k in target.values)


def _placed(form: ArrayForms, node: Node, *args: Sum) -> Sum | None:
    """Return a scatter of equal numbers into a small array as that number times ones at the indices.

    It is the same number at all of them, or at each a formula of the elements that were taken there.
    """
    first, *others = (form.mapped(s, lambda letter: _before_taking(form, letter, node)) for s in args)
    if first is None or any(other != first for other in others) or node.size > _FEW:
        return _linear(form, node, *args) if len(args) == 1 else None
    ones = node.with_args(tuple(const(1, a.shape) for a in node.args))
    values = [int(n) for n in values_of(Graph.of({}, {}), {}, [ones])[ones].flat]
    put = constant(values[0]) if len({*values}) == 1 else form.letter(const(tuple(values), node.shape))
    return form.times(first, put)


def _before_taking(form: ArrayForms, letter: Node, put: Node) -> Sum | None:
    """Return a number, and for elements at the indices of a `put` the array that these are of."""
    if not letter.shape:
        return form.letter(letter)
    array = operand(letter, "take")
    taken = array is not None and letter.settings == put.settings[:2] and array.shape == put.shape
    return form.letter(array) if array is not None and taken else None


Rule = Callable[..., Sum | None]  # of a form, a node, and the sums of its arguments
_RULES: Mapping[str, Rule] = {
    "add": _sum(1),
    "sub": _sum(-1),
    "mul": lambda form, node, a, b: form.times(a, b),
    "neg": lambda form, node, a: scaled(a, -1),
    "div": _quotient,
    "pow": _power,
    "exp": _exp,
    "sigmoid": _sigmoid,
    "or": _either,
    "le": _not_above,
    "where": _where,
    **dict.fromkeys(("broadcast", "identity", "corner"), lambda form, node, *args: args[-1]),
    "reshape": _reshaped,
    **dict.fromkeys(("sum", "mean"), _reduced),
    **dict.fromkeys(("scatter", "scatter_add"), _placed),
}


def scaled_array(node: Node, named: Mapping[Node, str], known: Mapping[Node, Exact]) -> tuple[Fraction, Node] | None:
    """Return a node as a number times an array in its shape; None where it has other scalars in front.

    >>> from gradcli.graph.node import leaf
    >>> t = leaf((3,))
    >>> scaled_array(2 * (t / -3), {t: "t"}, {}) == (Fraction(-2, 3), t)
    True
    """
    form = ArrayForms(named, known)
    value = form.value(node)
    if not value:
        return None
    outer, rest = form.content(value)
    if outer.keys() != {ONE} or rest.keys() == {ONE}:
        return None
    return outer[ONE], form.write(rest, node.shape)
