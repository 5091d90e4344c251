"""Choices, steps and conditions.  Ties are split evenly, a clamp passes its gradient at its bounds, as in PyTorch."""

from __future__ import annotations

import math
from fractions import Fraction

from gradcli.graph.construct import call, equal, where
from gradcli.graph.node import Node, compare, lift
from gradcli.graph.operation import Corner, Operation, condition, function, step


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
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x: equal(x, 0), "0, the middle of -1 and 1"),
    ),
    "maximum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a < b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b < a, 0, 1)),
        exact=True,
        keeps_integers=True,
        corner=_SHARED,
    ),
    "minimum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a > b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b > a, 0, 1)),
        exact=True,
        keeps_integers=True,
        corner=_SHARED,
    ),
    "clamp": function(
        lambda y, x, low, high: where(_within(x, low, high), 1, 0),
        lambda y, x, low, high: where(x < low if high.value == math.inf else (x < low) & (low < high), 1, 0),
        lambda y, x, low, high: where(x > high if low.value == -math.inf else (x > high) | (high < low), 1, 0),
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x, low, high: equal(x, low) | equal(x, high), "1: the bound itself passes"),
    ),
    # PyTorch has no derivative for heaviside; 0 is what every other step function has there.
    "heaviside": function(
        lambda y, x, h: 0,
        lambda y, x, h: where(equal(x, 0), 1, 0),
        exact=True,
        keeps_integers=True,
        corner=Corner(lambda y, x, h: equal(x, 0), _FLAT),
    ),
    "sign": step(corner=Corner(lambda y, x: equal(x, 0), _FLAT)),  # of NaN: 0, as in PyTorch
    "floor": step(corner=Corner(_is_integer, _FLAT)),
    "ceil": step(corner=Corner(_is_integer, _FLAT)),
    "trunc": step(
        lowered=lambda x: where(x < 0, call("ceil", x), call("floor", x)), corner=Corner(_is_integer_but_0, _FLAT)
    ),
    # Halves go to the even neighbour.
    "round": step(corner=Corner(lambda y, x: equal(call("abs", x - call("floor", x)), Fraction(1, 2)), _FLAT)),
    "frac": function(
        lambda y, x: 1,
        lowered=lambda x: x - call("trunc", x),
        corner=Corner(_is_integer_but_0, "1, as everywhere else"),
    ),
    "detach": Operation("elementwise", lowered=lambda x: x, formula=lambda x: x, exact=True, keeps_integers=True),
    "lt": condition("<"),
    "le": condition("<="),
    "gt": condition(">"),
    "ge": condition(">="),
    "eq": condition("==", commutes=True),
    "ne": condition("!=", commutes=True),
    "and": condition("&", commutes=True),
    "or": condition("|", commutes=True),
    "not": condition("~", 1),
}
