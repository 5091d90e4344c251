"""Formulas as a textbook would print them.  What happens here is for display alone: no number is computed from it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import sympy

from gradcli.algebra.functions import function

READABLE = 50  # operations in a formula that a person still reads
_MUCH_SHORTER = 0.6  # of a formula's length: sin² + cos² = 1 is used only where it shortens this much
_DIVISION = 2  # added to the length of a fraction, which takes longer to read than a product
_LONG_FROM, _LONG_NUMBER = 10_000, 2  # numbers from which digits are many, and what they add to the length
_MANY = 200  # terms: a longer product is not multiplied out, since few of its terms would cancel
_MAX_EXPONENT = 8  # in a fraction that is cancelled: a quotient of polynomials has as many terms as the exponent

# The name of an activation, by its function and its argument, multiplied out.
Shorthands = Mapping[tuple[Any, sympy.Expr], sympy.Symbol]


def tidy(expr: sympy.Expr, known: Shorthands = MappingProxyType({})) -> sympy.Expr:
    """Return the shortest of several equal forms: as one fraction, cancelled, with one `where` instead of two.

    Activations in `known` are replaced by their names.

    >>> x = sympy.Symbol("x")
    >>> tidy(sympy.diff(x / (1 + x**2), x)), tidy(2 * x / (x - 1) - (x**2 - 1) / (x - 1) ** 2)
    ((1 - x**2)/(x**2 + 1)**2, 1)
    >>> tidy(x * x ** (x - 1) + x**x * sympy.log(x))
    x**x*(log(x) + 1)
    """
    if _is_plain(expr):
        return expr
    expr = _activations(_rewrite(expr), known)
    if expr.is_Atom or length(expr) > 2 * READABLE:
        return expr
    shortest = min(_forms(expr), key=length)
    for square, rest in _squares(expr).items():
        other = min(_forms(expr.xreplace({square: rest})), key=length)
        if length(other) < _MUCH_SHORTER * length(shortest):
            shortest = other
    return shortest


def shorthands(definitions: Mapping[sympy.Symbol, sympy.Expr]) -> Shorthands:
    """Return the names of the definitions that are activations, in which their derivatives are written.

    >>> x, p = sympy.symbols("x p")
    >>> sigmoid = function("sigmoid")
    >>> tidy(sigmoid(x) * sigmoid(-x), shorthands({p: sigmoid(x)})), tidy(sigmoid(x) * sigmoid(-x))
    (p*(1 - p), (1 - sigmoid(x))*sigmoid(x))
    """
    activations = (function("sigmoid"), function("tanh"))
    return {_activation(expr): symbol for symbol, expr in definitions.items() if isinstance(expr, activations)}


def _activation(expr: sympy.Expr) -> tuple[Any, sympy.Expr]:
    return expr.func, sympy.expand_mul(expr.args[0])


def _activations(expr: sympy.Expr, known: Shorthands) -> sympy.Expr:
    """Return the expression with names for activations, and 1 - sigmoid(x) for sigmoid(-x) where sigmoid(x) is read."""
    sigmoid = function("sigmoid")
    result = {f: _activation(f) for f in _ordered(expr.atoms(sigmoid, function("tanh")))}
    read = {key: f for f, key in result.items()} | dict(known)
    written = {f: known[key] for f, key in result.items() if key in known}
    for f, (func, x) in result.items():
        opposite = read.get((sigmoid, sympy.expand_mul(-x))) if func is sigmoid else None
        if f not in written and opposite is not None and (opposite.is_Symbol or x.could_extract_minus_sign()):
            written[f] = 1 - opposite
    return expr.xreplace(written)


def _ordered(exprs: set[sympy.Expr]) -> list[sympy.Expr]:
    """Return expressions in an order that is the same each time."""
    return sorted(exprs, key=sympy.default_sort_key)


def length(expr: Any) -> int:
    """Return how long an expression is to read: its operations and numbers; variables and divisions count more."""
    if expr.is_Symbol:
        return 2
    if expr.is_Rational:
        return int(expr != -1) + (_LONG_NUMBER if max(abs(expr.p), expr.q) >= _LONG_FROM else 0)
    factors = expr.args if expr.is_Mul else (expr,)
    divided = _DIVISION if any(f.is_Pow and _divides(f) for f in factors) else 0
    inner = (f.base if expr.is_Mul and f.is_Pow and f.exp == -1 else f for f in expr.args)
    return sum(length(a) for a in inner) + int(expr != -1) + divided


def _forms(expr: sympy.Expr) -> list[sympy.Expr]:
    """Return other ways to write an expression, itself among them."""
    forms = [expr]
    if not (expr.is_Add or expr.is_Mul):
        return forms
    if expr.is_Mul and expr.args[0] == -1 and expr.args[1].is_Add and len(expr.args[1].args) == len(expr.args) == 2:
        forms.append(sympy.expand_mul(expr))  # b - a for -(a - b)
    if not expr.has(sympy.Add):
        return forms
    if length(expanded := _multiplied_out(expr)) < length(expr) - 1:
        forms += [expanded, sympy.factor_terms(expanded)]
    if any(power.exp.is_Add for power in expr.atoms(sympy.Pow)):
        joined = sympy.powsimp(expr, combine="exp")  # x**x for x*x**(x - 1)
        forms += [joined, sympy.factor_terms(joined)]
    if any(_divides(power) for power in expr.atoms(sympy.Pow)) and not expr.has(function("where")):
        forms += _fractions(expr)
    return forms


def _squares(expr: sympy.Expr) -> dict[sympy.Expr, sympy.Expr]:
    """Return the substitutions of sin² by 1 - cos², or back, where the expression has both functions."""
    other = {sympy.sin: sympy.cos, sympy.cos: sympy.sin}
    squared = [w for w in _ordered(expr.atoms(*other)) if expr.has(w**2)]
    result = {w: other[w.func](*w.args) for w in squared}  # slow where the argument is long
    return {w**2: 1 - o**2 for w, o in result.items() if expr.has(o)}


def _fractions(expr: sympy.Expr) -> list[sympy.Expr]:
    """Return the ways to write an expression as one fraction, or as a sum of fractions of one denominator."""
    numerator, denominator = sympy.fraction(sympy.together(expr))
    expanded = _multiplied_out(numerator)
    forms = [numerator / denominator, sympy.factor_terms(expanded) / denominator]
    forms += [sympy.Add(*(term / denominator for term in sympy.Add.make_args(n))) for n in (numerator, expanded)]
    return [*forms, sympy.cancel(expr)] if _may_cancel(expr, denominator) else forms


def _multiplied_out(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression as a sum of products; as it is, if that would be longer than anyone reads."""
    return sympy.expand_mul(expr) if _terms(expr) <= _MANY else expr


def _terms(expr: sympy.Expr) -> int:
    """Return how many terms an expression has when it is multiplied out."""
    result = [_terms(a) for a in expr.args]
    return math.prod(result) if expr.is_Mul else sum(result) if expr.is_Add else max(result, default=1)


def _is_plain(expr: sympy.Expr) -> bool:
    """Return whether an expression is a sum of products of variables and numbers, which has one form."""
    return all(factor.is_Atom for term in sympy.Add.make_args(expr) for factor in sympy.Mul.make_args(term))


def _divides(power: sympy.Pow) -> bool:
    return bool(power.exp.could_extract_minus_sign())


def _may_cancel(expr: sympy.Expr, denominator: sympy.Expr) -> bool:
    """Return whether a division of polynomials may cancel sums, and takes a bounded time."""
    powers = expr.atoms(sympy.Pow)
    sums = any(p.base.is_Add for p in powers) or any(f.is_Add for f in sympy.Mul.make_args(denominator))
    return sums and all(_small(p.exp) for p in powers)


def _small(exponent: sympy.Expr) -> bool:
    return bool(not exponent.is_Integer or abs(exponent) <= _MAX_EXPONENT)


@cache
def _rewrite(expr: sympy.Expr) -> sympy.Expr:
    """Return the expression with its `where`s merged, from the inside out."""
    if not expr.args:
        return expr
    where = function("where")
    args = [_rewrite(a) for a in expr.args]
    if isinstance(expr, function("ne")) and args[0] == args[1]:
        return sympy.S.Zero  # x != x holds for NaN alone
    if isinstance(expr, function("or")) and 0 in args:
        return args[0] if args[1] == 0 else args[1]
    if isinstance(expr, where):
        return _choice(*args)
    if expr.is_Mul:
        return _product(args, where)
    if expr.is_Add:
        return _sum(args, where)
    return expr if list(expr.args) == args else expr.func(*args)


def _product(factors: list[sympy.Expr], where: Any) -> sympy.Expr:
    """Return a product with `where(c, number, number)` as a factor as one `where`, whose branches are products."""
    choice = next((f for f in factors if isinstance(f, where)), None)
    if choice is None or not (choice.args[1].is_Number or choice.args[2].is_Number):
        return sympy.Mul(*factors)
    condition, yes, no = choice.args
    rest = sympy.Mul(*(f for f in factors if f is not choice))
    return _choice(condition, _rewrite(rest * yes), _rewrite(rest * no))


def _choice(condition: sympy.Expr, yes: sympy.Expr, no: sympy.Expr) -> sympy.Expr:
    """Return `where(condition, yes, no)`; a branch that is a `where` of the same condition is reduced to its value."""
    where = function("where")
    if isinstance(yes, where) and yes.args[0] == condition:
        yes = yes.args[1]
    if isinstance(no, where) and no.args[0] == condition:
        no = no.args[2]
    return where(condition, yes, no)


def _sum(terms: list[sympy.Expr], where: Any) -> sympy.Expr:
    """Return a sum in which the `where`s of one condition are one `where` of sums."""
    branches: dict[sympy.Expr, tuple[list[sympy.Expr], list[sympy.Expr]]] = defaultdict(lambda: ([], []))
    others = []
    for term in terms:
        if isinstance(term, where):
            branches[term.args[0]][0].append(term.args[1])
            branches[term.args[0]][1].append(term.args[2])
        else:
            others.append(term)
    chosen = [where(c, sympy.Add(*yes), sympy.Add(*no)) for c, (yes, no) in branches.items()]
    return sympy.Add(*others, *chosen)
