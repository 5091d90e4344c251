"""Choices, steps and conditions.  Ties are split evenly, a clamp passes its gradient at its bounds, as in PyTorch."""

from __future__ import annotations

import math
from fractions import Fraction

from gradcli.graph.construct import call, equal, where
from gradcli.graph.node import Node, compare, lift
from gradcli.graph.operation import Corner, Operation, condition, function, spelled, step


def _within(x: Node, low: Node, high: Node) -> Node:
    """Return the condition that a number is between bounds, of which an infinite one asks nothing."""
    if low.value == -math.inf:
        return x <= high
    return x >= low if high.value == math.inf else (x >= low) & (x <= high)


def _is_integer(y: Node, x: Node) -> Node:
    return equal(call("floor", x), x)


def _is_integer_but_0(y: Node, x: Node) -> Node:
    return _is_integer(y, x) & compare("ne", x, lift(0))


_FLAT = "0, as everywhere else"
_SHARED = Corner(lambda y, a, b: equal(a, b), "1/2 for each: a tie is shared", (0, 1))


ROWS: dict[str, Operation] = {
    "where": function(
        lambda y, c, a, b: 0,
        lambda y, c, a, b: where(c, 1, 0),
        lambda y, c, a, b: where(c, 0, 1),
        exact=True,
        selects=True,
        linear=(1, 2),
        keeps_integers=True,
        spelling=spelled(numpy="where", torch="where"),
    ),
    # As `where`, but a formula shows the last argument alone.
    "corner": function(
        lambda y, c, a, b: 0,
        lambda y, c, a, b: where(c, 1, 0),
        lambda y, c, a, b: where(c, 0, 1),
        lowered=where,
        exact=True,
        selects=True,
        linear=(1, 2),
        keeps_integers=True,
    ),
    "abs": function(
        lambda y, x: call("sign", x),
        degree=1,
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x: equal(x, 0), "0, the middle of -1 and 1"),
        spelling=spelled("abs", c="fabs", llvm="llvm.fabs", sympy="", latex=r"\left|{}\right|"),
    ),
    "maximum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a < b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b < a, 0, 1)),
        exact=True,
        keeps_integers=True,
        corner=_SHARED,
        spelling=spelled(numpy="maximum", torch="maximum", c="larger", javascript="max", onnx="Max", latex=r"\max"),
    ),
    "minimum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a > b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b > a, 0, 1)),
        exact=True,
        keeps_integers=True,
        corner=_SHARED,
        spelling=spelled(numpy="minimum", torch="minimum", c="smaller", javascript="min", onnx="Min", latex=r"\min"),
    ),
    "clamp": function(
        lambda y, x, low, high: where(_within(x, low, high), 1, 0),
        lambda y, x, low, high: where(x < low if high.value == math.inf else (x < low) & (low < high), 1, 0),
        lambda y, x, low, high: where(x > high if low.value == -math.inf else (x > high) | (high < low), 1, 0),
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x, low, high: equal(x, low) | equal(x, high), "1: the bound itself passes"),
        spelling=spelled(
            numpy="clip",
            torch="clamp",
            c="smaller(larger({}, {}), {})",
            javascript="Math.min(Math.max({}, {}), {})",
            onnx="Min(Max({}, {}), {})",
        ),
    ),
    # PyTorch has no derivative for heaviside; 0 is what every other step function has there.
    "heaviside": function(
        lambda y, x, h: 0,
        lambda y, x, h: where(equal(x, 0), 1, 0),
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x, h: equal(x, 0), _FLAT),
        spelling=spelled("heaviside", llvm="", sympy="", onnx="Where(Equal({0}, 0), {1}, Where(Less({0}, 0), 0, 1))"),
    ),
    "sign": step(  # of NaN: 0, as in PyTorch
        corner=Corner(lambda y, x: equal(x, 0), _FLAT),
        spelling=spelled(c="sign", javascript="sign", onnx="Sign", latex=r"\operatorname{sgn}"),
    ),
    "floor": step(
        corner=Corner(_is_integer, _FLAT),
        spelling=spelled("floor", llvm="llvm.floor", sympy="", latex=r"\left\lfloor {}\right\rfloor"),
    ),
    "ceil": step(
        corner=Corner(_is_integer, _FLAT),
        spelling=spelled("ceil", llvm="llvm.ceil", sympy="", latex=r"\left\lceil {}\right\rceil"),
    ),
    "trunc": step(
        lowered=lambda x: where(x < 0, call("ceil", x), call("floor", x)), corner=Corner(_is_integer_but_0, _FLAT)
    ),
    # Halves go to the even neighbour.
    "round": step(
        corner=Corner(lambda y, x: equal(call("abs", x - call("floor", x)), Fraction(1, 2)), _FLAT),
        spelling=spelled("round", numpy="rint", c="rint", javascript="roundEven", llvm="llvm.rint", sympy=""),
    ),
    "frac": function(
        lambda y, x: 1,
        lowered=lambda x: x - call("trunc", x),
        corner=Corner(_is_integer_but_0, "1, as everywhere else"),
    ),
    "detach": Operation("elementwise", lowered=lambda x: x, formula=lambda x: x, exact=True, keeps_integers=True),
    "lt": condition("<", "less", "Less"),
    "le": condition("<=", "less_equal", "LessOrEqual"),
    "gt": condition(">", "greater", "Greater"),
    "ge": condition(">=", "greater_equal", "GreaterOrEqual"),
    "eq": condition("==", "equal", "Equal", commutes=True),
    "ne": condition("!=", "not_equal", commutes=True),
    "and": condition("&", "logical_and", "And", commutes=True),
    "or": condition("|", "logical_or", "Or", commutes=True),
    "not": condition("~", "logical_not", "Not", 1),
}
