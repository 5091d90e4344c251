"""Losses: of one number and its target, and of batches: the mean, the sum, or each of them (`reduction`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from gradcli.graph.construct import axes_of, call, corner, equal, index, reduce, reshape, softmax, sum_to, where
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.node import Node, compare, const, is_const
from gradcli.graph.operation import Operation, defined, function

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


def reduced(loss: Node, reduction: str, weight: Node | None = None) -> Node:
    """Return the losses of all samples as one, or as they are; with weights of the samples, their weighted mean."""
    if reduction == "mean" and weight is not None:
        return reduced(loss, "sum") / reduced(weight, "sum")
    return loss if reduction == "none" or not loss.shape else reduce(reduction, loss, axes_of(None, len(loss.shape)))


def _mse_loss(reduction: str, x: Node, t: Node) -> Node:
    return reduced((x - t) ** 2, reduction)


def _mse_pullback(g: Node, y: Node, reduction: str, x: Node, t: Node) -> list[Node]:
    difference = x - t
    g = g * Fraction(2, difference.size if reduction == "mean" else 1)
    return [sum_to(g * difference, x.shape), sum_to(-(g * difference), t.shape)]


def _huber_loss(reduction: str, x: Node, t: Node, delta: Node) -> Node:
    return reduced(call("huber", x - t, delta), reduction)


def _smooth_l1_loss(reduction: str, x: Node, t: Node, beta: Node) -> Node:
    return reduced(call("huber", x - t, beta) / beta, reduction)


def _of_probabilities(reduction: str, p: Node, t: Node, *, weight: Node | None = None) -> Node:
    loss = call("log_loss", p, t)
    return reduced(loss if weight is None else loss * weight, reduction)


def _of_logits(reduction: str, x: Node, t: Node, *, weight: Node | None = None, pos_weight: Node | None = None) -> Node:
    loss = call("logistic_loss", x, t)
    if pos_weight is not None:
        loss = pos_weight * t * call("softplus", -x) + (1 - t) * call("softplus", x)
    return reduced(loss if weight is None else loss * weight, reduction)


# Of classes, along axis 1, or along the only axis

IGNORED = -100  # PyTorch's default


def class_axis(scores: Node) -> int:
    """Return the axis of the classes."""
    return min(1, len(scores.shape) - 1)


def _cross_entropy(
    ignored: int | None, reduction: str, x: Node, t: Node, *, label_smoothing: Node, weight: Node | None = None
) -> Node:
    axis = class_axis(x)
    scores = softmax("log_softmax", x, axis)
    if t.shape != x.shape:
        return _of_classes(scores, t, weight, ignored, reduction, label_smoothing)
    likely = t * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    return reduced(-reduce("sum", likely * _weighted(scores, weight), (axis,)), reduction)


def _nll_loss(ignored: int | None, reduction: str, x: Node, t: Node, *, weight: Node | None = None) -> Node:
    return _of_classes(x, t, weight, ignored, reduction, const(0))


def _of_classes(
    scores: Node, target: Node, weight: Node | None, ignored: int | None, reduction: str, smoothing: Node
) -> Node:
    """Return the loss of log-probabilities whose targets are numbers of classes; none is ignored where that is None."""
    axis = class_axis(scores)
    chosen = _chosen(scores, target, ignored)
    weighted = _weighted(scores, weight)
    # Without a batch, and where a target is ignored, it is 0, not -0.
    loss = 0 - chosen(weighted) if ignored is not None or not axis else -chosen(weighted)
    if not is_const(smoothing, 0):
        even = -reduce("sum", weighted, (axis,)) / scores.shape[axis]
        even = even if ignored is None else where(equal(target, ignored), 0, even)
        loss = (1 - smoothing) * loss + smoothing * even
    # Formulas have an ignored target as a constant alone.
    is_known = ignored is None or (ignored not in target.values and (target.is_constant or target.dtype in FLOATING))
    if weight is None and is_known:
        return reduced(loss, reduction)
    return reduced(loss, reduction, chosen(_weighted(const(1, scores.shape, scores.dtype), weight)))


def _weighted(scores: Node, weight: Node | None) -> Node:
    """Return the scores times the weights of their classes."""
    if weight is None:
        return scores
    return scores * reshape(weight, weight.shape + (1,) * (len(scores.shape) - class_axis(scores) - 1))


def _chosen(scores: Node, target: Node, ignored: int | None) -> Callable[[Node], Node]:
    """Return a function of arrays of that shape: their elements at the targets' classes, 0 for ignored targets."""
    axis = class_axis(scores)
    if isinstance(target.value, int) and not target.shape:
        k = target.value
        return lambda x: const(0) if k == ignored else index(x, (k,))
    count = scores.shape[axis]
    classes = const(tuple(range(count)), (count, *(1,) * (len(scores.shape) - axis - 1)))
    wanted = reshape(target, (*target.shape[:axis], 1, *target.shape[axis:]))
    mask = equal(wanted, classes)
    if ignored is not None and ignored in range(count):
        mask = mask & compare("ne", wanted, const(ignored))

    def take(x: Node) -> Node:
        return reduce("sum", where(mask, x, const(0, (), x.dtype)), (axis,))

    if target.is_constant or target.dtype not in FLOATING:
        return take
    # A target that is not a class can only be seen when there are numbers: its loss is nan.
    known = corner(equal(take(const(1, scores.shape)), 0), const(math.nan), const(0))
    return lambda x: take(x) + known


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
    "mse_loss": defined(_mse_loss, "reduction", pullback=_mse_pullback),
    "l1_loss": defined(lambda reduction, x, t: reduced(call("abs", x - t), reduction), "reduction"),
    "huber_loss": defined(_huber_loss, "reduction", options={"delta": 1}),
    "smooth_l1_loss": defined(_smooth_l1_loss, "reduction", options={"beta": 1}),
    "binary_cross_entropy": defined(_of_probabilities, "given", "reduction", options={"weight": None}),
    "binary_cross_entropy_with_logits": defined(
        _of_logits, "given", "reduction", options={"weight": None, "pos_weight": None}
    ),
    "nll_loss": defined(_nll_loss, "given", "ignore_index", "reduction", options={"weight": None}, indices=(1,)),
    "cross_entropy": defined(
        _cross_entropy,
        "given",
        "ignore_index",
        "reduction",
        options={"weight": None, "label_smoothing": 0},
        indices=(1,),
    ),
}
