"""The formula of a node in those of its arguments, for each operation that algebra element by element sees through.

A rule gets the node and the formulas of its arguments; it returns None where the node is a letter in formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import sympy

from gradcli.engine.evaluate import values_of
from gradcli.graph.construct import index, reshape
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, const, elementwise, operand, operands
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.shapes import Shape, bare
from gradcli.notation.one_hot import one_hot_of
from gradcli.notation.writer import spread_argument

_LARGEST_POWER = 8  # that algebra multiplies out: larger ones make formulas that nobody reads
_FEW = 12  # elements of an array that is written out: a line
_TERMS = 8  # of a sum that may cancel: more are not a deviation from a mean

Formula = Any  # of SymPy


class ElementwiseForm(Protocol):
    """The part of a form that rules use: the nodes of its letters, and nodes with shorter arguments."""

    meanings: dict[Formula, Node]
    plain: dict[Node, Node]
    shared: Rewriter

    @property
    def named(self) -> Mapping[Node, str]:
        """The names that nodes have."""

    def __call__(self, node: Node) -> Node:
        """Return a node with the same value that is shorter to read."""

    def letter(self, node: Node) -> Formula:
        """Return the letter, or the number, that a node is in formulas."""

    def shortest(self, node: Node) -> Node:
        """Return the shortest form of a node, in its own shape."""

    def written(self, formula: Formula, like: Node) -> Node:
        """Return the shortest form of a formula, in the shape of a node."""

    def shapes(self, formula: Formula) -> set[Shape]:
        """Return the shapes of the letters of a formula."""

    def reshaped(self, letter: Formula, shape: Shape) -> Formula:
        """Return the letter of a letter's meaning in another shape."""

    def exact(self, number: Formula) -> Any:
        """Return a number of a formula, as a decimal where the system has some."""


Rule = Callable[..., Formula | None]  # of a form, a node, and the formulas of its arguments


def _power(form: ElementwiseForm, node: Node, base: Formula, exponent: Formula) -> Formula | None:
    whole = node.args[1].value
    return base**whole if isinstance(whole, int) and 0 < whole <= _LARGEST_POWER else None


def _exp(form: ElementwiseForm, node: Node, formula: Formula) -> Formula | None:
    """Return softmax(x) for exp(log_softmax(x)), which the derivative of a log-softmax reads from its result."""
    x = form.plain[node.args[0]]
    if x in form.named or operand(x, "log_softmax") is None:
        return None
    return form.letter(replace(x, op="softmax"))


def _sigmoid(form: ElementwiseForm, node: Node, formula: Formula) -> Formula | None:
    """Return 1 - sigmoid(x) for sigmoid(-x)."""
    positive = operand(node.args[0], "neg")
    if positive is None:
        return None
    return 1 - form.letter(elementwise("sigmoid", form.shortest(positive)))


def _through(form: ElementwiseForm, node: Node, *formulas: Formula) -> Formula:
    """Return the last argument, of what a formula does not show."""
    return formulas[-1]


def _root(form: ElementwiseForm, node: Node, formula: Formula) -> Formula | None:
    """Return the root of a number; others are letters, whose squares are written as what is below the root."""
    return sympy.sqrt(formula) if formula.is_Integer and formula >= 0 else None


def _reshaped(form: ElementwiseForm, node: Node, formula: Formula) -> Formula | None:
    """Return a reshape that adds or removes axes of size 1 as a formula of reshaped letters."""
    (x,) = node.args
    whole = {s: m for s in formula.free_symbols if (m := _in_shape(form.meanings[s], x, node)) is not None}
    if whole.keys() == formula.free_symbols:
        return formula.xreplace({s: form.letter(m) for s, m in whole.items()})
    if spread_argument(node) is None or not form.shapes(formula) <= {(), bare(x.shape)}:
        return None
    return formula.xreplace({s: form.reshaped(s, node.shape) for s in formula.free_symbols if form.shapes(s) != {()}})


def _in_shape(meaning: Node, x: Node, node: Node) -> Node | None:
    """Return the node of a letter of a reshaped x: a constant of that shape, or the node before it was reshaped."""
    if meaning.is_constant and meaning.shape == x.shape:
        return replace(meaning, shape=node.shape)
    before = operand(meaning, "reshape")
    return before if before is not None and before.shape == node.shape else None


def _mean(form: ElementwiseForm, node: Node, formula: Formula, of_ones: int = 1) -> Formula | None:
    """Return a mean, or a sum, with the factors outside that are the same for all its terms."""
    (x,) = node.args
    axes = node.settings[0]
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    if _cancels(form, node, formula, kept):
        return sympy.S.Zero
    outside: list[Formula] = []
    inside: list[Formula] = []
    for factor in sympy.Mul.make_args(at_indices(form, formula)):
        (outside if form.shapes(factor) <= {(), bare(kept)} else inside).append(factor)
    drawn = sympy.Mul(*outside)
    drawn = drawn.xreplace({s: form.reshaped(s, node.shape) for s in drawn.free_symbols if form.shapes(s) != {()}})
    if axes == (len(x.shape) - 1,) and _is_of_classes(form, inside):
        return drawn
    if not inside:
        return drawn * of_ones if node.size else None
    rest = form.written(sympy.Mul(*inside), x) if outside else form.shortest(x)
    return drawn * form.letter(replace(node, args=(rest,)))


def _cancels(form: ElementwiseForm, node: Node, formula: Formula, kept: Shape) -> bool:
    """Return whether a sum over axes is 0, as that of x - mean(x): a sum of multiples of arrays is one of their means.

    Numbers, and what has the shape `kept` of the result with its axes kept, are the same for all that is summed.
    """
    terms = sympy.Add.make_args(sympy.expand(formula))
    if not 1 < len(terms) <= _TERMS:
        return False
    total = sympy.S.Zero
    for term in terms:
        arrays = {s for s in term.free_symbols if form.shapes(s) - {(), bare(kept)}}
        for array in arrays:
            x = form.meanings[array]
            if len(arrays) > 1 or array in (term / array).free_symbols or x.shape != node.args[0].shape:
                return False
            mean = form.shared.unique(replace(node, op="mean", args=(x,)))
            term = term.subs(array, form.letter(mean if bare(kept) == bare(node.shape) else reshape(mean, kept)))
        total += term
    return bool(sympy.expand(total) == 0)


def _total(form: ElementwiseForm, node: Node, formula: Formula) -> Formula | None:
    return _mean(form, node, formula, node.args[0].size // max(node.size, 1))


def _placed(form: ElementwiseForm, node: Node, *formulas: Formula) -> Formula | None:
    """Return a scatter of equal numbers into a small array as that number times ones at the indices.

    It is the same number at all of them, or at each a formula of the elements that were taken there.
    """
    numbers = {_before_taking(form, formula, node) for formula in formulas}
    if len(numbers) > 1 or None in numbers or node.size > _FEW:
        return None
    ones = replace(node, args=tuple(const(1, a.shape) for a in node.args))
    values = values_of(Graph.of({}, {}), {}, [ones])[ones].reshape(-1)
    return numbers.pop() * form.letter(const(tuple(map(int, values)), node.shape))


def _before_taking(form: ElementwiseForm, formula: Formula, put: Node) -> Formula | None:
    """Return a formula of numbers, and of elements at the indices of a `put`, with the arrays that these are of."""
    arrays = {s: m for s in formula.free_symbols if (m := form.meanings[s]).shape}
    whole = {s: a for s, m in arrays.items() if (a := operand(m, "take")) and m.settings == put.settings[:2]}
    if whole.keys() != arrays.keys() or any(a.shape != put.shape for a in whole.values()):
        return None
    return formula.xreplace({s: form.letter(a) for s, a in whole.items()})


def at_indices(form: ElementwiseForm, formula: Formula) -> Formula:
    """Return a formula in which the factor of a one-hot array is an element: x[0]*[1, 0] for x*[1, 0]."""
    indices = {s: at for s in formula.free_symbols if (at := _only_one(form.meanings[s])) is not None}
    if not indices:
        return formula
    terms = []
    for term in sympy.Add.make_args(sympy.expand(formula)):
        for one in indices.keys() & term.free_symbols:
            power = term.as_powers_dict()[one]
            rest, shape = term / one**power, form.meanings[one].shape
            if power > 0 and one not in rest.free_symbols:
                arrays = {s: m for s in rest.free_symbols if (m := form.meanings[s]).shape == shape}
                elements = {s: form.letter(index(m, indices[one])) for s, m in arrays.items()}
                term = one * rest.xreplace(elements)
        terms.append(term)
    return sympy.Add(*terms)


def _only_one(node: Node) -> tuple[int, ...] | None:
    """Return where the only 1 is in an array of zeros."""
    if not node.is_constant or not node.shape or sorted(map(repr, node.values)) != [*"0" * (node.size - 1), "1"]:
        return None
    return tuple(map(int, np.unravel_index(node.values.index(1), node.shape)))


def _is_of_classes(form: ElementwiseForm, factors: Sequence[Formula]) -> bool:
    """Return whether factors are a one-hot encoding of classes, whose rows sum to 1."""
    choice = form.meanings.get(factors[0]) if len(factors) == 1 else None
    result = one_hot_of(choice, form.named) if choice is not None else None
    return result is not None and not result[0].is_constant


def _choice(form: ElementwiseForm, node: Node, condition: Formula, *numbers: Formula) -> Formula | None:
    """Return a choice between 0 and one number as that number times a choice between 0 and 1."""
    if 0 not in numbers:
        return None
    (number,) = [n for n in numbers if n != 0] or [None]
    if number is None or form.shapes(number) - {()}:
        return None
    chosen = form.shortest(node.args[0])  # in whose shape the choice is: it broadcasts
    return number * form.letter(
        replace(node, args=(chosen, *(const(int(n != 0)) for n in numbers)), shape=chosen.shape)
    )


def _either(form: ElementwiseForm, node: Node, a: Formula, b: Formula) -> Formula | None:
    """Return a for `a or x != x`, whose second condition holds for nan alone."""
    compared = operands(node.args[1], "ne")
    return a if compared and compared[0] is compared[1] else None


def _not_above(form: ElementwiseForm, node: Node, *formulas: Formula) -> Formula | None:
    """Return h <= 0 for x <= 0, where h is the name of relu(x)."""
    x, zero = node.args
    relu = form.shared.unique(elementwise("relu", form.shortest(x)))
    return form.letter(replace(node, args=(relu, zero))) if relu in form.named and zero.value == 0 else None


def _sum(sign: int) -> Rule:
    return lambda form, node, a, b: _joined(form, (a, b), sign) or a + sign * b


def _joined(form: ElementwiseForm, terms: Sequence[Formula], sign: int) -> Formula | None:
    """Return X.T @ (a + b) for X.T @ a + X.T @ b, and None for other terms."""
    numbers, letters = zip(*(term.as_coeff_Mul() for term in terms), strict=True)
    products = [form.meanings[letter] for letter in letters if letter in form.meanings]
    match [operands(product, "matmul") for product in products]:
        case (left, a), (other, b) if left is other and a.shape == b.shape:
            parts = [elementwise("mul", const(form.exact(n)), x) for n, x in zip(numbers, (a, b), strict=True)]
            together = form(elementwise("add" if sign > 0 else "sub", *parts))
            return form.letter(replace(products[0], args=(left, together)))
    return None


USUAL = ("sigmoid", "where", "or", "le")  # whose formulas are as a textbook has them, if longer
RULES: Mapping[str, Rule] = {
    "add": _sum(1),
    "sub": _sum(-1),
    "mul": lambda form, node, a, b: a * b,
    "neg": lambda form, node, a: -a,
    "sqrt": _root,
    "reshape": _reshaped,
    "div": lambda form, node, a, b: a / b if b != 0 else None,
    "pow": _power,
    "sigmoid": _sigmoid,
    "exp": _exp,
    "broadcast": _through,
    "identity": _through,
    "corner": _through,
    "sum": _total,
    "mean": _mean,
    "where": _choice,
    "scatter": _placed,
    "scatter_add": _placed,
    "or": _either,
    "le": _not_above,
}
