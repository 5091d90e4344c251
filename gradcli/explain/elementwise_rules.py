"""The formula of a node in those of its arguments, for each operation that algebra element by element sees through.

A rule returns None where the node is a letter in formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.shapes import bare
from gradcli.notation.writer import spread_argument

if TYPE_CHECKING:
    from gradcli.explain.elementwise_form import ElementwiseForm

_LARGEST_POWER = 8

Formula = Any  # of SymPy
Rule = Callable[["ElementwiseForm", Node], Formula | None]


def key(node: Node) -> Any:
    """Return what is the same for nodes that are alike."""
    return (node.op, node.args, node.shape, node.settings, repr(node.values)) if node.op != "input" else node


def _arithmetic(compute: Callable[..., Formula]) -> Rule:
    return lambda form, node: compute(*(form.formulas[a] for a in node.args))


def _quotient(form: ElementwiseForm, node: Node) -> Formula | None:
    a, b = (form.formulas[n] for n in node.args)
    return a / b if b != 0 else None


def _power(form: ElementwiseForm, node: Node) -> Formula | None:
    base, exponent = node.args
    if not isinstance(exponent.value, int) or not 0 < exponent.value <= _LARGEST_POWER:
        return None
    if base.op == "sech" and exponent.value == 2:
        return 1 - form.letter(form.first(elementwise("tanh", form.shortest(base.args[0])))) ** 2
    return form.formulas[base] ** exponent.value


def _sigmoid(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return 1 - sigmoid(x) for sigmoid(-x)."""
    (x,) = node.args
    if x.op != "neg":
        return None
    return 1 - form.letter(form.first(elementwise("sigmoid", form.shortest(x.args[0]))))


def _through(form: ElementwiseForm, node: Node) -> Formula:
    """Return the last argument, of what a formula does not show."""
    return form.formulas[node.args[-1]]


def _root(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return the root of a number; others are letters, whose squares are written as what is below the root."""
    formula = form.formulas[node.args[0]]
    return sympy.sqrt(formula) if formula.is_Integer and formula >= 0 else None


def _reshaped(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return what axes of size 1 are added to, or taken from, in terms of letters of which the same is true."""
    (x,) = node.args
    formula = form.formulas[x]
    if spread_argument(node) is None or not form.shapes(formula) <= {(), bare(x.shape)}:
        return None
    return formula.xreplace({s: form.reshaped(s, node.shape) for s in formula.free_symbols if form.shapes(s) != {()}})


def _total(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return a sum with what is the same for all its terms drawn out."""
    (x,) = node.args
    axes = node.settings[0]
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    outside: list[Formula] = []
    inside: list[Formula] = []
    for factor in sympy.Mul.make_args(form.formulas[x]):
        (outside if form.shapes(factor) <= {(), bare(kept)} else inside).append(factor)
    drawn = sympy.Mul(*outside)
    drawn = drawn.xreplace({s: form.reshaped(s, node.shape) for s in drawn.free_symbols if form.shapes(s) != {()}})
    if not inside:
        return drawn * (x.size // node.size if node.op == "sum" else 1) if node.size else None
    rest = form.written(sympy.Mul(*inside), x) if outside else form.shortest(x)
    return drawn * form.letter(form.first(replace(node, args=(rest,))))


def _choice(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return a choice between 0 and one number as that number times a choice between 0 and 1."""
    condition, *choices = node.args
    numbers = [form.formulas[a] for a in choices]
    if 0 not in numbers:
        return None
    (number,) = [n for n in numbers if n != 0] or [None]
    if number is None or form.shapes(number) - {()}:
        return None
    ones = [const(int(n != 0)) for n in numbers]
    return number * form.letter(form.first(replace(node, args=(form.shortest(condition), *ones))))


def _either(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return a condition without the one that holds for a NaN alone, which is unlike itself."""
    a, b = node.args
    return form.formulas[a] if b.op == "ne" and form.formulas[b.args[0]] == form.formulas[b.args[1]] else None


def _not_above(form: ElementwiseForm, node: Node) -> Formula | None:
    """Return h <= 0 for x <= 0, where h is the name of relu(x)."""
    x, zero = node.args
    relu = Node("relu", (form.shortest(x),), x.shape)
    named = form.equal.get(key(relu))
    told = named in form.named and zero.value == 0
    return form.letter(form.first(replace(node, args=(named, zero)))) if named and told else None


def _sum(sign: int) -> Rule:
    return lambda form, node: (
        _joined(form, node, sign) or form.formulas[node.args[0]] + sign * form.formulas[node.args[1]]
    )


def _joined(form: ElementwiseForm, node: Node, sign: int) -> Formula | None:
    """Return X.T @ (a + b) for X.T @ a + X.T @ b, where that is shorter."""
    numbers, letters = zip(*(form.formulas[a].as_coeff_Mul() for a in node.args), strict=True)
    a, b = (form.meanings.get(letter, node) for letter in letters)
    if a.op != "matmul" or b.op != "matmul" or a.args[0] is not b.args[0] or a.shape != b.shape:
        return None
    parts = [elementwise("mul", const(form.exact(n)), m.args[1]) for n, m in zip(numbers, (a, b), strict=True)]
    together = form(elementwise("add" if sign > 0 else "sub", *parts))
    return form.letter(form.first(replace(a, args=(a.args[0], together))))


USUAL = ("sigmoid", "where", "or", "le")  # whose formulas are as a textbook has them, if longer
RULES: Mapping[str, Rule] = {
    "add": _sum(1),
    "sub": _sum(-1),
    "mul": _arithmetic(lambda a, b: a * b),
    "neg": _arithmetic(lambda a: -a),
    "sqrt": _root,
    "reshape": _reshaped,
    "div": _quotient,
    "pow": _power,
    "sigmoid": _sigmoid,
    "broadcast": _through,
    "identity": _through,
    "corner": _through,
    "sum": _total,
    "mean": _total,
    "where": _choice,
    "or": _either,
    "le": _not_above,
}
