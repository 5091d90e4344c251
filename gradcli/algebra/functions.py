"""The operations of the table as SymPy functions.

An operation that asks SymPy for its derivative is SymPy's own function.  One that states its slopes becomes a
SymPy function here, with those slopes, so that a formula says what the engine computes.
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

import sympy

from gradcli.graph.calculus import slope, sympy_function
from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Constant, Node, bits, elementwise, leaf

# A power of a number beyond this is kept as it was typed.
_MAX_EXPONENT = 128
_MAX_POWER = 1280  # bits
_MAX_LENGTH = 64  # bits of an exponent
_LONG_SUM = 8
# SymPy asks whether their arguments are real, which takes it twice as long at each level of nesting.
_HYPERBOLIC = ("sinh", "cosh", "tanh", "sech")

_EXACT: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "sign": sympy.sign,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
    "maximum": max,
    "minimum": min,
    "relu": lambda x: max(x, sympy.S.Zero),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    **{
        op: lambda a, b, test=test: int(bool(test(a, b)))
        for op, test in vars(operator).items()
        if op in ("lt", "le", "gt", "ge", "eq", "ne")
    },
}


class Element(sympy.Symbol):  # type: ignore[misc]
    """The symbol of an array's element, which SymPy prints in natural order: x[2] before x[10]."""

    def sort_key(self, order: Any = None) -> Any:
        """Return SymPy's key, with the numbers in the name made equally long."""
        padded = re.sub(r"\d+", lambda m: m.group().zfill(9), self.name)
        return self.class_key(), (1, (padded,)), sympy.S.One.sort_key(), sympy.S.One


def symbol(name: str) -> Any:
    """Return the symbol of a variable or of an element.

    >>> symbol("x[10]") + symbol("x[2]") + symbol("y")
    x[2] + x[10] + y
    """
    return Element(name) if "[" in name else sympy.Symbol(name)


class TableFunction(sympy.Function):  # type: ignore[misc]
    """A SymPy function whose derivative is the slope that the table states."""

    op: str

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Work out exact numbers, and a choice that is none."""
        if cls.op == "where":
            chosen = {sympy.S.One: args[1], sympy.S.Zero: args[2]}.get(args[0])
            return args[1] if args[1] == args[2] else chosen
        if cls.op in _EXACT and all(a.is_Rational for a in args):
            return sympy.sympify(_EXACT[cls.op](*args))
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        """Return the derivative with respect to an argument, counted from 1."""
        places = [leaf(f"a{i}") for i in range(len(self.args))]
        node = elementwise(self.op, *places)
        return expression(slope(node, argindex - 1), dict(zip(places, self.args, strict=True)) | {node: self})


class Tanh(TableFunction):
    """The hyperbolic tangent, with its slope in the form that textbooks print."""

    def fdiff(self, argindex: int = 1) -> Any:
        """Return 1 - tanh(x)**2."""
        return 1 - self**2


class Extremum(TableFunction):
    """The `max` or `min` of any number of values: at a tie the slope is shared evenly, or the `first` has it all."""

    ties = "even"

    def fdiff(self, argindex: int = 1) -> Any:
        """Return the derivative with respect to a value, counted from 1."""
        best, others = self.args[argindex - 1], self.args[: argindex - 1]
        wins = function("eq")(best, self)
        if self.ties != "first":
            return function("where")(wins, 1 / winners(self), 0)
        for other in others:
            wins = function("and")(wins, function("ne")(other, self))
        return function("where")(wins, 1, 0)


@cache
def winners(extremum: Extremum) -> Any:
    """Return how many values are the extremum."""
    return sympy.Add(*(function("where")(function("eq")(a, extremum), 1, 0) for a in extremum.args))


@cache
def extremum(op: str, ties: str) -> Any:
    """Return the SymPy function of the `max` or `min` of an array."""
    return type(op, (Extremum,), {"op": op, "ties": ties})


def expression(node: Node, known: dict[Node, Any]) -> Any:
    """Return a small scalar node as a SymPy expression; `known` holds what stands for the nodes below it."""
    if node not in known:
        if node.op == "const":
            known[node] = constant(node.params[0])
        else:
            known[node] = apply(node.op, *(expression(a, known) for a in node.args))
    return known[node]


def constant(value: Constant) -> Any:
    """Return an exact number as SymPy's; inf and nan stay names, so that no algebra is done with them."""
    if value in ("pi", "e"):
        return sympy.pi if value == "pi" else sympy.E
    if isinstance(value, float) and not math.isfinite(value):
        return -sympy.Symbol("inf") if value < 0 else sympy.Symbol("nan" if math.isnan(value) else "inf")
    return sympy.Rational(str(value))


def exact_number(value: float) -> Any:
    """Return the simple fraction that a float64 stands for, as SymPy's number.

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
    match op:
        case "add":
            return args[0] + args[1]
        case "sub":
            return args[0] - args[1]
        case "mul":
            return args[0] * args[1]
        case "div":
            return args[0] / args[1] if args[1] != 0 else kept("div")(*args)
        case "neg":
            return -args[0]
        case "identity":
            return args[0]
        case "pow":
            return _power(*args)
        case "floor_divide":
            return apply("floor", apply("div", *args))
        case "gamma" | "lgamma" | "exp" | "expm1" if args[0].is_number and not _harmless(op, args[0]):
            return kept(op)(args[0])
        case "exp" if args[0].is_Add and len(args[0].args) > _LONG_SUM:
            return sympy.exp(args[0], evaluate=False)  # SymPy would look for logarithms among the terms
    if not all(a.is_number for a in args):
        return function(op)(*args)
    number = function(op)(*args)
    # log(0) and the like stay as they were typed: SymPy's nan would swallow all that is added to it.
    return kept(op)(*args) if number.has(sympy.nan, sympy.zoo, sympy.oo, sympy.AccumBounds) else number


def _harmless(op: str, number: Any) -> bool:
    """Tell whether SymPy may evaluate: gamma(10**6) has five million digits, exp(10**9*log(2)) is a whole number."""
    return bool(number.is_Rational and (op in ("exp", "expm1") or abs(number) <= _MAX_EXPONENT))


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; a large one of a number stays as it was typed: (3*x)**10**9 has a billion digits."""
    # Of a number to the power of 1/10**320 SymPy cannot tell the sign in a lifetime.
    if exponent.is_Rational and _bits(exponent) > _MAX_LENGTH:
        return kept("pow")(base, exponent)
    numbers = (f for f in sympy.Mul.make_args(base) if f.is_number and f not in (1, -1))
    if exponent.is_Rational and any(_digits(f, exponent) for f in numbers):
        return kept("pow")(base, exponent)
    return base**exponent


def _digits(number: Any, exponent: Any) -> bool:
    """Tell whether the power of a number is too long to be worked out."""
    size = _bits(number) if number.is_Rational else 1
    return bool(size * abs(exponent) > _MAX_POWER)


def _bits(number: Any) -> int:
    return bits(max(abs(number.p), number.q))


@cache
def function(op: str) -> Any:
    """Return the SymPy function of an operation."""
    return sympy_function(op) if ELEMENTWISE[op].sympy and op not in _HYPERBOLIC else kept(op)


@cache
def kept(op: str) -> Any:
    """Return the function of an operation that SymPy has no algebra for, and so leaves as it is."""
    base = Tanh if op == "tanh" else TableFunction
    return type(op, (base,), {"op": op, "nargs": ELEMENTWISE[op].arity})
