"""Names of losses, with PyTorch's signatures: definitions in simpler operations.

A loss is the mean over all samples, their sum with `reduction='sum'`, or that of each with `reduction='none'`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gradcli.errors import InputError
from gradcli.graph.construct import axes_of, call, corner, equal, index, reduce, reshape, softmax, where, without
from gradcli.graph.node import Exact, Node, compare, const, is_const
from gradcli.vocabulary.register import named

_ZERO, _ONE = const(0), const(1)
IGNORED = -100  # PyTorch's default


def reduced(loss: Node, reduction: str, weight: Node | None = None) -> Node:
    """Return the losses of all samples as one, or as they are; with weights of the samples, their weighted mean."""
    if reduction not in ("mean", "sum", "none"):
        raise InputError(
            "a `reduction` is 'mean', 'sum' or 'none'", hint="for example `mse_loss(x, t, reduction='sum')`"
        )
    if reduction == "mean" and weight is not None:
        return reduced(loss, "sum") / reduced(weight, "sum")
    return loss if reduction == "none" or not loss.shape else reduce(reduction, loss, axes_of(None, len(loss.shape)))


# Of numbers


@named("mse_loss", methods=())
def _mse_loss(input: Node, target: Node, reduction: str = "mean") -> Node:
    return reduced((input - target) ** 2, reduction)


@named("l1_loss", methods=())
def _l1_loss(input: Node, target: Node, reduction: str = "mean") -> Node:
    return reduced(call("abs", input - target), reduction)


@named("huber_loss", methods=())
def _huber_loss(input: Node, target: Node, reduction: str = "mean", delta: Node = _ONE) -> Node:
    _positive("delta", delta)
    return reduced(call("huber", input - target, delta), reduction)


@named("smooth_l1_loss", methods=())
def _smooth_l1_loss(input: Node, target: Node, reduction: str = "mean", beta: Node = _ONE) -> Node:
    if is_const(beta, 0):
        return _l1_loss(input, target, reduction)
    _positive("beta", beta)
    return reduced(call("huber", input - target, beta) / beta, reduction)


def _positive(name: str, node: Node) -> None:
    if isinstance(node.value, Exact) and node.value <= 0:
        raise InputError(f"`{name}` is positive")


# Of probabilities


@named("binary_cross_entropy", methods=())
def _binary_cross_entropy(input: Node, target: Node, weight: Node | None = None, reduction: str = "mean") -> Node:
    loss = call("log_loss", input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


@named("binary_cross_entropy_with_logits", methods=())
def _binary_cross_entropy_with_logits(
    input: Node,
    target: Node,
    weight: Node | None = None,
    reduction: str = "mean",
    pos_weight: Node | None = None,
) -> Node:
    if pos_weight is None:
        loss = call("logistic_loss", input, target)
    else:
        loss = pos_weight * target * call("softplus", -input) + (1 - target) * call("softplus", input)
    return reduced(loss if weight is None else loss * weight, reduction)


# Of classes, along axis 1, or along the only axis


@named("cross_entropy", methods=())
def _cross_entropy(
    input: Node,
    target: Node,
    weight: Node | None = None,
    ignore_index: int = IGNORED,
    reduction: str = "mean",
    label_smoothing: Node = _ZERO,
) -> Node:
    axis = _class_axis(input)
    scores = softmax("log_softmax", input, axis)
    if isinstance(label_smoothing.value, Exact) and not 0 <= label_smoothing.value <= 1:
        raise InputError("`label_smoothing` must be a number from 0 to 1")
    if target.shape != input.shape:
        return _of_classes(scores, target, weight, ignore_index, reduction, label_smoothing)
    likely = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    loss = -reduce("sum", likely * _weighted(scores, weight), (axis,))
    return reduced(loss, reduction)


@named("nll_loss", methods=())
def _nll_loss(
    input: Node, target: Node, weight: Node | None = None, ignore_index: int = IGNORED, reduction: str = "mean"
) -> Node:
    return _of_classes(input, target, weight, ignore_index, reduction, _ZERO)


def _of_classes(scores: Node, target: Node, weight: Node | None, ignored: int, reduction: str, smoothing: Node) -> Node:
    """Return the loss of log-probabilities whose targets are numbers of classes."""
    axis = _class_axis(scores)
    _check_classes(scores, target, ignored)
    chosen = _chosen(scores, target, ignored)
    weighted = _weighted(scores, weight)
    loss = -chosen(weighted)
    if not is_const(smoothing, 0):
        even = -reduce("sum", weighted, (axis,)) / scores.shape[axis]
        loss = (1 - smoothing) * loss + smoothing * where(equal(target, ignored), 0, even)
    if weight is None and ignored not in target.values:
        return reduced(loss, reduction)
    return reduced(loss, reduction, chosen(_weighted(const(1, scores.shape), weight)))


def _class_axis(scores: Node) -> int:
    if not scores.shape:
        raise InputError("a number has no classes", hint="scores have the shape (classes,) or (samples, classes, …)")
    return min(1, len(scores.shape) - 1)


def _weighted(scores: Node, weight: Node | None) -> Node:
    """Return the scores times the weights of their classes."""
    if weight is None:
        return scores
    axis = _class_axis(scores)
    if weight.shape != scores.shape[axis : axis + 1]:
        raise InputError(f"{scores.shape[axis]} classes have as many weights, not the shape {weight.shape}")
    return scores * reshape(weight, weight.shape + (1,) * (len(scores.shape) - axis - 1))


def _check_classes(scores: Node, target: Node, ignored: int) -> None:
    """Check that targets are classes, as far as they are known.

    Errors: `InputError`.
    """
    axis = _class_axis(scores)
    wanted, count = without(scores.shape, (axis,)), scores.shape[axis]
    if target.shape != wanted:
        raise InputError(
            f"targets of shape {target.shape} do not fit scores of shape {scores.shape}",
            hint=f"the numbers of the classes have shape {wanted}, probabilities that of the scores",
        )
    if type(ignored) is not int or (ignored != IGNORED and not target.is_constant):
        raise InputError("`ignore_index` is an integer among the targets", hint="they are typed as a list then")
    for value in target.values:
        if value != ignored and value not in range(count):
            raise InputError(f"there is no class {value} among {count}", hint=f"they are counted from 0 to {count - 1}")


def at_classes(scores: Node, target: Node, ignored: int) -> Callable[[Node], Node]:
    """Return a function of arrays of the scores' shape: their elements at the targets' classes, 0 where there is none.

    >>> from gradcli.graph.node import leaf
    >>> at_classes(leaf((3, 2)), const((0, 1, 1), (3,)), -100)(leaf((3, 2))).shape
    (3,)
    """
    axis = _class_axis(scores)
    classes = const(tuple(range(scores.shape[axis])), (scores.shape[axis], *(1,) * (len(scores.shape) - axis - 1)))
    wanted = reshape(target, (*target.shape[:axis], 1, *target.shape[axis:]))
    mask = equal(wanted, classes)
    if ignored in range(scores.shape[axis]):
        mask = mask & compare("ne", wanted, const(ignored))
    return lambda x: reduce("sum", where(mask, x, 0), (axis,))


def _chosen(scores: Node, target: Node, ignored: int) -> Callable[[Node], Node]:
    """Return a function of arrays of that shape: their elements at the targets' classes, 0 for ignored targets."""
    if isinstance(target.value, int) and not target.shape:
        k = target.value
        return lambda x: _ZERO if k == ignored else index(x, (k,))
    take = at_classes(scores, target, ignored)
    if target.is_constant:
        return take
    # A target that is not a class can only be seen when there are numbers: its loss is nan.
    known = corner(equal(take(const(1, scores.shape)), 0), const(math.nan), _ZERO)
    return lambda x: take(x) + known
