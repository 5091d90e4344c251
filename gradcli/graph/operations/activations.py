"""Activations of neural networks, with PyTorch's values at their corners."""

from __future__ import annotations

from decimal import Decimal

from gradcli.graph.construct import call, corner, equal, where
from gradcli.graph.node import Node, compare, lift
from gradcli.graph.operation import Corner, Operation, function, spelled
from gradcli.graph.operations.functions import normal_density

# Klambauer et al., "Self-normalizing neural networks" (2017): the scale, its product with α, and α, as in PyTorch.
_SCALE, _SCALED, _ALPHA = Decimal("1.0507009873554805"), Decimal("1.7580993408473766"), Decimal("1.6732632423543772")


def _mish_slope(y: Node, x: Node) -> Node:
    inner = call("softplus", x)
    return call("tanh", inner) + x * call("sigmoid", x) * (1 - call("tanh", inner) ** 2)


def _celu_alpha(y: Node, x: Node, a: Node) -> Node:
    return where(x <= 0, call("expm1", x / a) - x / a * call("exp", x / a), 0)


_LEFT = "the slope on the left"


def _at_0(y: Node, x: Node, *_: Node) -> Node:
    return equal(x, 0)


ROWS: dict[str, Operation] = {
    # PyTorch: 0 at 0, and the slope of NaN is 1, hence `<=`.
    "relu": function(
        lambda y, x: where(x <= 0, 0, 1),
        lowered=lambda x: call("maximum", 0, x),
        exact=True,
        degree=1,
        keeps_integers=True,
        corner=Corner(_at_0, f"0, {_LEFT}"),
    ),
    "leaky_relu": function(
        lambda y, x, s: where(x > 0, 1, s),
        lambda y, x, s: where(x > 0, 0, x),
        lowered=lambda x, s: where(x > 0, x, s * x),
        degree=1,
        corner=Corner(_at_0, _LEFT),
    ),
    # The definition for engines has full relative precision on both sides of 0.
    "sigmoid": function(lambda y, x: y * (1 - y), lowered=lambda x: call("exp", -call("softplus", -x))),
    "softplus": function(
        lambda y, x: call("sigmoid", x), spelling=spelled(c="softplus", javascript="softplus", onnx="Softplus")
    ),
    "silu": function(
        lambda y, x: call("sigmoid", x) * (1 + x * call("sigmoid", -x)), lowered=lambda x: x * call("sigmoid", x)
    ),
    # x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016; PyTorch's default, not the tanh form).
    "gelu": function(lambda y, x: call("ndtr", x) + x * normal_density(x), lowered=lambda x: x * call("ndtr", x)),
    "mish": function(_mish_slope, lowered=lambda x: x * call("tanh", call("softplus", x))),
    # PyTorch: at 0 the slope from below, whose own slope there is 0, and that of NaN is the one from above.
    "elu": function(
        lambda y, x, a: where(x < 0, a * call("exp", x), where(equal(x, 0), a, 1)),
        lambda y, x, a: where(x <= 0, call("expm1", x), 0),
        lowered=lambda x, a: where(x <= 0, a * call("expm1", x), x),
        corner=Corner(lambda y, x, a: equal(x, 0) & compare("ne", a, lift(1)), _LEFT),
    ),
    "selu": function(
        lambda y, x: where(x <= 0, _SCALED * call("exp", corner(equal(x, 0), 0, x)), _SCALE),
        lowered=lambda x: _SCALE * call("elu", x, _ALPHA),
        corner=Corner(_at_0, _LEFT),
    ),
    "celu": function(
        lambda y, x, a: where(x < 0, call("exp", x / a), 1),
        _celu_alpha,
        lowered=lambda x, a: where(x <= 0, a * call("expm1", x / a), x),
    ),
    # PyTorch: unlike a clamp it passes nothing on at its bounds.  Where these are in disorder, the upper one counts.
    "hardtanh": function(
        lambda y, x, low, high: where((x <= low) | (x >= high), 0, 1),
        lambda y, x, low, high: where((x <= low) & (low < high), 1, 0),
        lambda y, x, low, high: where((x >= high) | (high < low), 1, 0),
        lowered=lambda x, low, high: call("clamp", x, low, high),
        exact=True,
        corner=Corner(lambda y, x, low, high: equal(x, low) | equal(x, high), "0: the bound itself does not pass"),
    ),
    "logsigmoid": function(lambda y, x: call("sigmoid", -x), lowered=lambda x: -call("softplus", -x)),
    "softsign": function(
        lambda y, x: 1 / (1 + call("abs", x)) ** 2, lowered=lambda x: x / (1 + call("abs", x)), odd=True
    ),
    "tanhshrink": function(lambda y, x: call("tanh", x) ** 2, lowered=lambda x: x - call("tanh", x)),
}
