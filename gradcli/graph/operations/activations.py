"""Activations of neural networks, with PyTorch's values at their corners."""

from __future__ import annotations

from gradcli.graph.construct import call, where
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Operation, function


def _normal_density(x: Node) -> Node:
    return call("exp", -(x**2) / 2) / call("sqrt", 2 * const("pi"))


def _normal_distribution(x: Node) -> Node:
    return (1 + call("erf", x / call("sqrt", 2))) / 2


ROWS: dict[str, Operation] = {
    # PyTorch: 0 at 0, and the slope of NaN is 1, hence `<=`.
    "relu": function(lambda y, x: where(x <= 0, 0, 1), lowered=lambda x: call("maximum", x, 0)),
    "leaky_relu": function(
        lambda y, x, s: where(x > 0, 1, s),
        lambda y, x, s: where(x > 0, 0, x),
        lowered=lambda x, s: where(x > 0, x, s * x),
    ),
    # y·(1 - y) cancels where y is near 1.  The definition has full relative precision on both sides.
    "sigmoid": function(lambda y, x: y * call("sigmoid", -x), lowered=lambda x: call("exp", -call("softplus", -x))),
    "softplus": function(lambda y, x: call("sigmoid", x)),
    "silu": function(
        lambda y, x: call("sigmoid", x) * (1 + x * call("sigmoid", -x)), lowered=lambda x: x * call("sigmoid", x)
    ),
    # x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016; PyTorch's default, not the tanh form).
    "gelu": function(
        lambda y, x: _normal_distribution(x) + x * _normal_density(x),
        lowered=lambda x: x * call("erfc", -x / call("sqrt", 2)) / 2,
    ),
}
