"""Equality of formulas for all values of their variables, as far as algebra decides it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from gradcli.algebra.functions import TableFunction, evaluated

_STEP = sympy.Function("step")  # 1 where its argument is positive, and 0 where it is negative
_EQUAL = sympy.Function("equal")  # 1 where its argument is 0, and 0 elsewhere


def _hyperbolic(name: str) -> Callable[..., Any]:
    return lambda x: getattr(sympy, name)(x).rewrite(sympy.exp)


def _step(x: Any) -> Any:
    """Return the unit step in one sign of its argument, by step(-x) = 1 - step(x)."""
    x = sympy.factor_terms(sympy.expand(x))
    if x.is_number:
        return sympy.Integer(int(bool(x > 0)))
    if x.is_positive or x.is_negative:
        return sympy.Integer(int(x.is_positive))
    return 1 - _STEP(-x) if x.could_extract_minus_sign() else _STEP(x)


def _is_nought(x: Any) -> Any:
    return sympy.Integer(int(bool(x == 0))) if x.is_number else _EQUAL(x)


def _equal(a: Any, b: Any) -> Any:
    """Return 0 where two formulas are equal at single points alone, 1 where they always are; else what is 0 or 1."""
    difference = sympy.expand(a - b)
    if difference == 0:
        return sympy.S.One
    jumps = difference.has(_STEP, _EQUAL, sympy.floor, sympy.ceiling, TableFunction)
    return _EQUAL(difference) if jumps or not is_refuted(difference) else sympy.S.Zero


def _where(c: Any, a: Any, b: Any) -> Any:
    return c * a + (1 - c) * b


# Functions without algebra in SymPy, in functions that have it.  Single points where branches meet are not considered.
_SIMPLER: dict[str, Callable[..., Any]] = {
    **{name: _hyperbolic(name) for name in ("sinh", "cosh", "tanh", "sech")},
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "logsigmoid": lambda x: -sympy.log(1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    "silu": lambda x: x / (1 + sympy.exp(-x)),
    "logaddexp": lambda a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
    "hypot": lambda a, b: sympy.sqrt(a**2 + b**2),
    "lt": lambda a, b: _step(b - a),
    "le": lambda a, b: _step(b - a),
    "gt": lambda a, b: _step(a - b),
    "ge": lambda a, b: _step(a - b),
    "eq": _equal,
    "ne": lambda a, b: 1 - _equal(a, b),
    "and": lambda a, b: a * b,
    "or": lambda a, b: a + b - a * b,
    "not": lambda a: 1 - a,
    "where": _where,
    "abs": lambda x: x * (2 * _step(x) - 1),
    "sign": lambda x: 2 * _step(x) - 1,
    "relu": lambda x: x * _step(x),
    "leaky_relu": lambda x, s: _where(_step(x), x, s * x),
    "maximum": lambda a, b: _where(_step(a - b), a, b),
    "minimum": lambda a, b: _where(_step(a - b), b, a),
    "div": lambda a, b: a / b,
}
_OFF = 1e-6  # a number above this in size is not 0 up to rounding
# Points with distinct values: that of the first variable, the difference from one variable to the next, and whether
# signs alternate.
_POINTS = ((0.3, 0.07, 1), (1.3, 0.11, -1), (-2.1, 0.13, 1))
_LOGARITHMS = ("log1p", "expm1", "log2", "log10")


def plain(expr: Any) -> Any:
    """Return the formula in functions that SymPy has algebra for, as far as there are such.

    >>> from gradcli.algebra.functions import function
    >>> x = sympy.Symbol("x")
    >>> sympy.expand(plain(function("abs")(x) - x * function("sign")(x)))
    0
    """
    if not expr.args:
        return expr
    args = [plain(a) for a in expr.args]
    if isinstance(expr, TableFunction) and (simpler := _SIMPLER.get(expr.op)) is not None:
        return simpler(*args)
    whole = expr if args == list(expr.args) else expr.func(*args)
    return whole.expand(func=True) if type(whole).__name__ in _LOGARITHMS else whole


def is_zero(expr: Any, patient: bool = True) -> bool:
    """Return whether algebra shows that a formula is 0, apart from single points; if `patient`, all of SymPy's.

    >>> x, y = sympy.symbols("x y")
    >>> is_zero((x + y) ** 2 - x**2 - 2 * x * y - y**2), is_zero(sympy.sqrt(x**2) - x)
    (True, False)
    >>> is_zero(1 / (1 + sympy.exp(-x)) + 1 / (1 + sympy.exp(x)) - 1, patient=False)
    True
    """
    if expr == 0:
        return True
    expr = plain(expr)
    # A step is 0 or 1, so that it is its own square; to the algebra it is a variable.
    steps = {s: sympy.Dummy() for s in expr.atoms(_STEP, _EQUAL)}
    expr = expr.xreplace(steps)
    for simpler in (sympy.expand, _numerator, *([sympy.simplify] if patient else [])):
        expr = _idempotent(simpler(expr), list(steps.values()))
        if expr == 0:
            return True
    return False


def _numerator(expr: Any) -> Any:
    """Return the numerator of the formula as one fraction, in which powers to sums are products of variables.

    >>> x, a = sympy.symbols("x a")
    >>> _numerator(x * x**a - x ** (a + 1)), _numerator(sympy.exp(x) ** 2 - sympy.exp(2 * x))
    (0, 0)
    """
    powers: dict[Any, Any] = {}

    def product(base: Any, exponent: Any) -> Any:
        factors = []
        for term in sympy.Add.make_args(sympy.expand(exponent)):
            count, rest = term.as_coeff_Mul()
            if rest == 1 and base is not sympy.E:
                factors.append(base**count)
                continue
            if not count.is_Integer:
                count, rest = sympy.S.One, term
            factors.append(powers.setdefault((base, rest), sympy.Dummy()) ** count)
        return sympy.Mul(*factors)

    whole = expr.replace(sympy.exp, lambda exponent: product(sympy.E, exponent))
    whole = whole.replace(lambda e: e.is_Pow and bool(e.exp.free_symbols), lambda e: product(*e.args))
    left = [n for part in _parts(whole) if (n := sympy.expand(sympy.fraction(sympy.together(part))[0])) != 0]
    if len(left) < 2:
        return sympy.Add(*left)
    return sympy.expand(sympy.fraction(sympy.together(whole))[0])


def _parts(expr: Any) -> list[Any]:
    """Return the sums of those terms that have variables in common: if all of them are 0, so is the whole.

    One fraction of them all would be as long as their denominators' product.
    """
    parts: list[tuple[set[Any], list[Any]]] = []
    for term in sympy.Add.make_args(expr):
        names, terms = set(term.free_symbols), [term]
        for other in [p for p in parts if p[0] & names]:
            parts.remove(other)
            names |= other[0]
            terms += other[1]
        parts.append((names, terms))
    return [sympy.Add(*terms) for _, terms in parts]


def is_refuted(expr: Any) -> bool:
    """Return whether the value of the formula differs from 0 at one of a few points.

    >>> x = sympy.Symbol("x")
    >>> is_refuted(x**2 - x), is_refuted(sympy.sin(x) ** 2 + sympy.cos(x) ** 2 - 1), is_refuted(_STEP(x) - 1)
    (True, False, True)
    """
    expr = plain(expr)
    names = sorted(expr.free_symbols, key=str)
    for start, step, sign in _POINTS:
        numbers = {s: sympy.Float((start + step * k) * sign**k) for k, s in enumerate(names)}
        numbers |= {s: abs(n) for s, n in numbers.items() if s.is_positive}
        value = evaluated(expr.xreplace(numbers).replace(_STEP, _step).replace(_EQUAL, _is_nought))
        if value.is_number and value.is_real and abs(value) > _OFF:
            return True
    return False


def is_nothing(expr: Any) -> bool:
    """Return whether algebra shows that a formula is 0, after its values at a few points refute most that are not.

    >>> x = sympy.Symbol("x")
    >>> is_nothing(x**x - x * x ** (x - 1)), is_nothing(x**x - x)
    (True, False)
    """
    return expr == 0 or (not is_refuted(expr) and is_zero(expr))


def _idempotent(expr: Any, steps: list[Any]) -> Any:
    for s in steps:
        expr = sympy.expand(expr).replace(
            lambda e, s=s: e.is_Pow and e.base == s and e.exp.is_Integer and e.exp > 1, lambda e: e.base
        )
    return expr
