"""Choices, steps and conditions.  Ties are split evenly, a clamp passes its gradient at its bounds, as in PyTorch."""

from __future__ import annotations

import math
from fractions import Fraction

from gradcli.graph.construct import call, equal, where
from gradcli.graph.node import Node
from gradcli.graph.operation import Operation, condition, function, step


def _within(x: Node, low: Node, high: Node) -> Node:
    """Return the condition that a number is between bounds, of which an infinite one asks nothing."""
    if low.value == -math.inf:
        return x <= high
    return x >= low if high.value == math.inf else (x >= low) & (x <= high)


ROWS: dict[str, Operation] = {
    "where": function(
        lambda y, c, a, b: 0, lambda y, c, a, b: where(c, 1, 0), lambda y, c, a, b: where(c, 0, 1), exact=True
    ),
    # As `where`, but a formula shows the last argument alone.
    "corner": function(
        lambda y, c, a, b: 0,
        lambda y, c, a, b: where(c, 1, 0),
        lambda y, c, a, b: where(c, 0, 1),
        lowered=where,
        exact=True,
    ),
    "abs": function(lambda y, x: call("sign", x), exact=True),
    "maximum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a < b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b < a, 0, 1)),
        exact=True,
    ),
    "minimum": function(
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a > b, 0, 1)),
        lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b > a, 0, 1)),
        exact=True,
    ),
    "clamp": function(
        lambda y, x, low, high: where(_within(x, low, high), 1, 0),
        lambda y, x, low, high: where(x < low if high.value == math.inf else (x < low) & (low < high), 1, 0),
        lambda y, x, low, high: where(x > high if low.value == -math.inf else (x > high) | (high < low), 1, 0),
        exact=True,
    ),
    # PyTorch has no derivative for heaviside; 0 is what every other step function has there.
    "heaviside": function(lambda y, x, h: 0, lambda y, x, h: where(equal(x, 0), 1, 0), exact=True),
    "sign": step(),  # of NaN: 0, as in PyTorch
    "floor": step(),
    "ceil": step(),
    "trunc": step(lowered=lambda x: where(x < 0, call("ceil", x), call("floor", x))),
    "round": step(),  # halves to the even neighbour
    "frac": function(lambda y, x: 1, lowered=lambda x: x - call("trunc", x)),
    "detach": Operation("elementwise", lowered=lambda x: x, formula=lambda x: x, exact=True),
    "lt": condition("<"),
    "le": condition("<="),
    "gt": condition(">"),
    "ge": condition(">="),
    "eq": condition("=="),
    "ne": condition("!="),
    "and": condition("&"),
    "or": condition("|"),
    "not": condition("~", 1),
}
