"""Elementwise losses, of which the vocabulary builds the losses of batches."""

from __future__ import annotations

from decimal import Decimal

from gradcli.graph.construct import call, corner, where
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Operation, function

# PyTorch: no logarithm is below -100, and no slope is divided by less than this.
_LOWEST, _LEAST = const(-100), const(Decimal("1e-12"))


def _log_loss(p: Node, t: Node) -> Node:
    return -(t * call("log", p) + (1 - t) * call("log", 1 - p))


def _lowered_log_loss(p: Node, t: Node) -> Node:
    yes, no = call("maximum", call("log", p), _LOWEST), call("maximum", call("log1p", -p), _LOWEST)
    return -(t * yes + (1 - t) * no)


def _log_loss_slope(y: Node, p: Node, t: Node) -> Node:
    spread = p * (1 - p)
    return corner(spread < _LEAST, (p - t) / _LEAST, (p - t) / spread)


def _huber(x: Node, d: Node) -> Node:
    size = call("abs", x)
    return where(size > d, d * (size - d / 2), x**2 / 2)


def _lowered_huber(x: Node, d: Node) -> Node:
    near = call("clamp", x, -d, d)
    return near * (x - near / 2)


ROWS: dict[str, Operation] = {
    # P. J. Huber, "Robust estimation of a location parameter" (1964).  PyTorch: where both sides meet, it is straight.
    "huber": function(
        lambda y, x, d: where(call("abs", x) >= d, d * call("sign", x), x),
        lambda y, x, d: where(call("abs", x) > d, call("abs", x) - d, 0),
        lowered=_lowered_huber,
        formula=_huber,
    ),
    # Of the probability p and its target t.
    "log_loss": function(
        _log_loss_slope,
        lambda y, p, t: call("log1p", -p) - call("log", p),
        lowered=_lowered_log_loss,
        formula=_log_loss,
    ),
    # Of the logit x and its target t: the log loss of sigmoid(x).
    "logistic_loss": function(
        lambda y, x, t: call("sigmoid", x) - t,
        lambda y, x, t: -x,
        lowered=lambda x, t: (1 - t) * call("softplus", x) + t * call("softplus", -x),
    ),
}
