"""Functions of one number, and a few of two: powers and logarithms, trigonometric, hyperbolic and special functions."""

from __future__ import annotations

from gradcli.graph.construct import call, corner, equal, where
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Corner, Operation, function


def _bell(x: Node) -> Node:
    return 2 * call("exp", -(x**2)) / call("sqrt", const("pi"))


def normal_density(x: Node) -> Node:
    """Return the density of the normal distribution."""
    return call("exp", -(x**2) / 2) / call("sqrt", 2 * const("pi"))


def _lowered_logaddexp(a: Node, b: Node) -> Node:
    far = call("maximum", a, b) + call("softplus", -call("abs", a - b))
    return where(equal(a, b), a + call("log", 2), far)  # two infinities have no difference


ROWS: dict[str, Operation] = {
    # Powers and logarithms
    "sqrt": function(lambda y, x: 1 / (2 * y)),
    "cbrt": function(lambda y, x: 1 / (3 * y**2)),
    "exp": function(lambda y, x: y),
    "exp2": function(lambda y, x: y * call("log", 2), lowered=lambda x: call("pow", 2, x)),
    "expm1": function(lambda y, x: call("exp", x)),
    "log": function(lambda y, x: 1 / x),
    "log1p": function(lambda y, x: 1 / (1 + x)),
    "log2": function(lambda y, x: 1 / (x * call("log", 2))),
    "log10": function(lambda y, x: 1 / (x * call("log", 10))),
    "logaddexp": function(
        lambda y, a, b: call("sigmoid", a - b), lambda y, a, b: call("sigmoid", b - a), lowered=_lowered_logaddexp
    ),
    "hypot": function(lambda y, a, b: a / y, lambda y, a, b: b / y),
    # Trigonometric
    "sin": function(lambda y, x: call("cos", x)),
    "cos": function(lambda y, x: -call("sin", x)),
    "tan": function(lambda y, x: 1 + y**2),
    "sec": function(lambda y, x: y * call("tan", x), lowered=lambda x: 1 / call("cos", x)),
    "csc": function(lambda y, x: -(y * call("cot", x)), lowered=lambda x: 1 / call("sin", x)),
    "cot": function(lambda y, x: -(1 + y**2), lowered=lambda x: call("cos", x) / call("sin", x)),
    "asin": function(lambda y, x: 1 / call("sqrt", 1 - x**2)),
    "acos": function(lambda y, x: -(1 / call("sqrt", 1 - x**2))),
    "atan": function(lambda y, x: 1 / (1 + x**2)),
    # PyTorch: 0 at the origin, where the angle has no slope.
    "atan2": function(
        lambda y, a, b: corner(equal(a**2 + b**2, 0), 0, b / (a**2 + b**2)),
        lambda y, a, b: corner(equal(a**2 + b**2, 0), 0, -(a / (a**2 + b**2))),
        multiplies=(0, 1),
        corner=Corner(lambda y, a, b: equal(a, 0) & equal(b, 0), "0", (0, 1)),
    ),
    # Hyperbolic
    "sinh": function(lambda y, x: call("cosh", x)),
    "cosh": function(lambda y, x: call("sinh", x)),
    "tanh": function(lambda y, x: 1 - y**2),
    "sech": function(lambda y, x: -(y * call("tanh", x)), lowered=lambda x: 1 / call("cosh", x)),
    "asinh": function(lambda y, x: 1 / call("sqrt", 1 + x**2)),
    # PyTorch: finite below -1 too, where the function is not.
    "acosh": function(lambda y, x: 1 / (call("sqrt", call("abs", x) - 1) * call("sqrt", call("abs", x) + 1))),
    "atanh": function(lambda y, x: 1 / (1 - x**2)),
    # Special
    "erf": function(lambda y, x: _bell(x)),
    "erfc": function(lambda y, x: -_bell(x)),
    # The normal distribution.  Of 1 + erf nothing is left where x is far below 0.
    "ndtr": function(
        lambda y, x: normal_density(x),
        lowered=lambda x: call("erfc", -x / call("sqrt", 2)) / 2,
        formula=lambda x: (1 + call("erf", x / call("sqrt", 2))) / 2,
    ),
    "gamma": function(lambda y, x: y * call("digamma", x)),
    "lgamma": function(lambda y, x: call("digamma", x)),
    "digamma": function(lambda y, x: call("polygamma", 1, x)),
    "polygamma": function(lambda y, n, x: 0, lambda y, n, x: call("polygamma", n + 1, x)),
}
