"""The operations of the table as SymPy functions.

One that SymPy has algebra for is SymPy's own function.  Any other becomes a function here that SymPy leaves as it is,
so that a formula says what the engine computes.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import sympy

from gradcli.graph.names import ElementName
from gradcli.graph.node import Constant, bits
from gradcli.graph.operations import OPERATIONS

# Numbers beyond these limits are not evaluated: formulas show them as they were typed.
_MAX_EXPONENT = 128  # and argument of a function that grows like a power: 128! has 216 digits
_MAX_POWER = 1280  # bits of a power: more than float64 has, and a few lines of digits
_MAX_LENGTH = 64  # bits of an exponent
_LONG_SUM = 8  # terms of an exponent in which SymPy does not look for logarithms, which is slow

_EXACT: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "sign": sympy.sign,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
    "maximum": max,
    "minimum": min,
    "relu": lambda x: max(x, sympy.S.Zero),
    "not": lambda a: int(not a),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    **{
        op: lambda a, b, test=test: int(bool(test(a, b)))
        for op, test in vars(operator).items()
        if op in ("lt", "le", "gt", "ge", "eq", "ne")
    },
}


_ABSORBING = {"and": sympy.S.Zero, "or": sympy.S.One}  # the condition that decides, whatever the other one is


# Functions that mpmath defines otherwise for negative numbers, as it does some odd ones.
_OF_REALS: dict[str, Callable[..., Any]] = {
    "frac": lambda x: mpmath.sign(x) * mpmath.frac(abs(x)),
    "fmod": lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
}


class Element(sympy.Symbol):  # type: ignore[misc]
    """The symbol of an array's element, which SymPy prints in natural order: x[2] before x[10]."""

    def sort_key(self, order: Any = None) -> Any:
        """Return SymPy's key, with the numbers in the name made equally long."""
        padded = re.sub(r"\d+", lambda m: m.group().zfill(9), self.name)
        return self.class_key(), (1, (padded,)), sympy.S.One.sort_key(), sympy.S.One


def symbol(name: str) -> Any:
    """Return the symbol of a variable or of an element.

    >>> from gradcli.graph.names import element_name
    >>> symbol(element_name("x", [10])) + symbol(element_name("x", [2])) + symbol("y")
    x[2] + x[10] + y
    """
    return Element(name) if isinstance(name, ElementName) else sympy.Symbol(name)


class TableFunction(sympy.Function):  # type: ignore[misc]
    """A function of the table that SymPy has no algebra for."""

    op: str

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return the value of exact numbers, and of a `where` whose condition or branches decide it."""
        if cls.op == "where":
            chosen = {sympy.S.One: args[1], sympy.S.Zero: args[2]}.get(args[0])
            return args[1] if args[1] == args[2] else chosen
        if cls.op in _ABSORBING and (known := [a for a in args if a.is_Integer]):
            return known[0] if known[0] is _ABSORBING[cls.op] else args[args[0] is known[0]]
        if cls.op in _EXACT and all(a.is_Rational for a in args):
            return sympy.sympify(_EXACT[cls.op](*args))
        return None

    def _eval_evalf(self, prec: int) -> Any:
        """Return the number, if it and the arguments are real: mpmath's functions are complex where ours are nan."""
        try:
            number = super()._eval_evalf(prec) if all(a.is_extended_real for a in self.args) else None
        except (ArithmeticError, ValueError):  # a pole
            return None
        return None if number is None or number.is_extended_real is False else number

    def _eval_mpmath(self) -> Any:
        """Return mpmath's function, which SymPy evaluates: ours where mpmath has another one of that name."""
        named: Any = _OF_REALS.get(self.op, getattr(mpmath, self.op, None))
        return (lambda x: mpmath.sign(x) * named(abs(x))) if named and OPERATIONS[self.op].odd else named, self.args


def evaluated(expr: Any) -> Any:
    """Return an expression without variables as a number to 15 digits; at a pole, nan."""
    try:
        return expr.evalf(15)
    except (ArithmeticError, ValueError):
        return sympy.nan


@cache
def extremum(op: str) -> Any:
    """Return the SymPy function of the `max` or `min` of an array."""
    return type(op, (TableFunction,), {"op": op})


def constant(value: Constant) -> Any:
    """Return an exact number as SymPy's; inf and nan stay names, so that no algebra is done with them."""
    if value in ("pi", "e"):
        return sympy.pi if value == "pi" else sympy.E
    if isinstance(value, float) and not math.isfinite(value):
        return -sympy.Symbol("inf") if value < 0 else sympy.Symbol("nan" if math.isnan(value) else "inf")
    return sympy.Rational(str(value))


def exact_number(value: float) -> Any:
    """Return the simple fraction that rounds to a float64, as SymPy's number.

    >>> exact_number(1 / 3), exact_number(0.1), exact_number(1e-300) == sympy.Rational("1e-300")
    (1/3, 1/10, True)
    """
    value = float(value)  # not NumPy's, whose repr names its type
    if not math.isfinite(value):
        return constant(value)
    near = Fraction(value).limit_denominator(1000)
    simple = float(near) == value and abs(near) < 2**53
    return constant(near if simple else Decimal(repr(value)))


def apply(op: str, *args: Any) -> Any:
    """Return a scalar operation of SymPy expressions."""
    rule = _SCALARS.get(op)
    return rule(*args) if rule is not None else _called(op, *args)


def _called(op: str, *args: Any) -> Any:
    """Return a function of expressions; one of numbers is the number, where SymPy's is real and finite."""
    if op not in SYMPY or not all(a.is_number for a in args):
        return function(op)(*args)
    number = function(op)(*args)
    return number if _is_number(number) else kept(op)(*args)


def _product(a: Any, b: Any) -> Any:
    zero = a is sympy.S.Zero or b is sympy.S.Zero  # most of a derivative is 0
    return sympy.S.Zero if zero else sympy.Mul(a, b)


def _quotient(a: Any, b: Any) -> Any:
    """Return a quotient; one by 0 stays a function of gradcli's, as SymPy's would be zoo, which swallows all else."""
    return a / b if b is not sympy.S.Zero else kept("div")(a, b)


def _careful(op: str) -> Any:
    """Return the rule of a function that SymPy would compute of numbers until the result has millions of digits."""
    return lambda x: kept(op)(x) if x.is_number and not _harmless(op, x) else _called(op, x)


def _exp(x: Any) -> Any:
    long = x.is_Add and len(x.args) > _LONG_SUM and not x.is_number
    return sympy.exp(x, evaluate=False) if long else _careful("exp")(x)  # SymPy would look for logarithms among terms


def _is_number(value: Any) -> bool:
    """Return whether SymPy's result may replace a function of numbers: whether it is real and finite.

    log(0) may not: SymPy's nan would swallow all that is added to it.  Nor may log(-1), which is nan here, and whose
    square SymPy makes a real number.
    """
    return not value.has(sympy.nan, sympy.zoo, sympy.oo, sympy.AccumBounds) and value.is_extended_real is not False


def _harmless(op: str, number: Any) -> bool:
    """Return whether SymPy may evaluate: gamma(10**6) has five million digits, exp(10**9*log(2)) is an integer."""
    return bool(number.is_Rational and (op in ("exp", "expm1") or abs(number) <= _MAX_EXPONENT))


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; a large one of a number stays as it was typed: (3*x)**10**9 has a billion digits."""
    # Of a number to the power of 1/10**320 SymPy cannot tell the sign in a lifetime.
    if exponent.is_Rational and _bits(exponent) > _MAX_LENGTH:
        return kept("pow")(base, exponent)
    numbers = (f for f in sympy.Mul.make_args(base) if f.is_number and f not in (1, -1))
    if exponent.is_Rational and any(_digits(f, exponent) for f in numbers):
        return kept("pow")(base, exponent)
    power = base**exponent
    return kept("pow")(base, exponent) if power.is_number and power.is_extended_real is False else power


def _digits(number: Any, exponent: Any) -> bool:
    """Return whether the power of a number is too long to be worked out."""
    size = _bits(number) if number.is_Rational else 1
    return bool(size * abs(exponent) > _MAX_POWER)


def _bits(number: Any) -> int:
    return bits(max(abs(number.p), number.q))


# Operations that are not written as calls of a function, or not always.
_SCALARS: dict[str, Callable[..., Any]] = {
    "add": sympy.Add,  # `+` goes through the class of each operand first
    "sub": lambda a, b: sympy.Add(a, -b),
    "mul": _product,
    "div": _quotient,
    "neg": operator.neg,
    "identity": lambda x: x,
    "corner": lambda condition, value, formula: formula if condition != 1 else value,
    "pow": _power,
    "floor_divide": lambda a, b: apply("floor", apply("div", a, b)),
    "exp": _exp,
    **{op: _careful(op) for op in ("gamma", "lgamma", "expm1")},
}

# Operations that are SymPy's functions.  It has none for the others, or one that is complex where NumPy's is real.  Its
# hyperbolic functions ask whether their arguments are real, which takes twice as long at each level of nesting.
SYMPY = {op: name for op, row in OPERATIONS.items() if (name := row.spelling_in("sympy"))}


@cache
def function(op: str) -> Any:
    """Return the SymPy function of an operation."""
    from sympy.codegen import cfunctions

    if op not in SYMPY:
        return kept(op)
    return getattr(sympy, SYMPY[op], None) or getattr(cfunctions, op)


@cache
def kept(op: str) -> Any:
    """Return the function of an operation for which SymPy has no algebra; it leaves its calls as they are."""
    return type(op, (TableFunction,), {"op": op, "nargs": OPERATIONS[op].arity})
