"""Names of losses, with PyTorch's signatures: definitions in simpler operations.

A loss is the mean over all samples, their sum with `reduction='sum'`, or that of each with `reduction='none'`.
"""

from __future__ import annotations

from gradcli.errors import InputError
from gradcli.graph.calls import call_of, call_with
from gradcli.graph.construct import without
from gradcli.graph.node import Exact, Node, const, is_const
from gradcli.graph.operations.losses import IGNORED, class_axis
from gradcli.vocabulary.register import named

_ZERO, _ONE = const(0), const(1)


def _reduction(reduction: str) -> str:
    """Return how the losses of samples become one.

    Errors: `InputError` for a way that is none.
    """
    if reduction not in ("mean", "sum", "none"):
        raise InputError(
            "a `reduction` is 'mean', 'sum' or 'none'", hint="for example `mse_loss(x, t, reduction='sum')`"
        )
    return reduction


# Of numbers


@named("mse_loss", methods=())
def _mse_loss(input: Node, target: Node, reduction: str = "mean") -> Node:
    return call_of("mse_loss", (_reduction(reduction),), input, target)


@named("l1_loss", methods=())
def _l1_loss(input: Node, target: Node, reduction: str = "mean") -> Node:
    return call_of("l1_loss", (_reduction(reduction),), input, target)


@named("huber_loss", methods=())
def _huber_loss(input: Node, target: Node, reduction: str = "mean", delta: Node = _ONE) -> Node:
    _positive("delta", delta)
    return call_of("huber_loss", (_reduction(reduction),), input, target, delta)


@named("smooth_l1_loss", methods=())
def _smooth_l1_loss(input: Node, target: Node, reduction: str = "mean", beta: Node = _ONE) -> Node:
    if is_const(beta, 0):
        return _l1_loss(input, target, reduction)
    _positive("beta", beta)
    return call_of("smooth_l1_loss", (_reduction(reduction),), input, target, beta)


def _positive(name: str, node: Node) -> None:
    if isinstance(node.value, Exact) and node.value <= 0:
        raise InputError(f"`{name}` is positive")


# Of probabilities


@named("binary_cross_entropy", methods=())
def _binary_cross_entropy(input: Node, target: Node, weight: Node | None = None, reduction: str = "mean") -> Node:
    return call_with("binary_cross_entropy", (_reduction(reduction),), (input, target), weight=weight)


@named("binary_cross_entropy_with_logits", methods=())
def _binary_cross_entropy_with_logits(
    input: Node, target: Node, weight: Node | None = None, reduction: str = "mean", pos_weight: Node | None = None
) -> Node:
    name = "binary_cross_entropy_with_logits"
    return call_with(name, (_reduction(reduction),), (input, target), weight=weight, pos_weight=pos_weight)


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
    if isinstance(label_smoothing.value, Exact) and not 0 <= label_smoothing.value <= 1:
        raise InputError("`label_smoothing` must be a number from 0 to 1")
    if not input.shape or target.shape != input.shape:
        _check_classes(input, target, ignore_index)
    _check_weight(input, weight)
    settings = ignore_index, _reduction(reduction)
    return call_with("cross_entropy", settings, (input, target), weight=weight, label_smoothing=label_smoothing)


@named("nll_loss", methods=())
def _nll_loss(
    input: Node, target: Node, weight: Node | None = None, ignore_index: int = IGNORED, reduction: str = "mean"
) -> Node:
    _check_classes(input, target, ignore_index)
    _check_weight(input, weight)
    return call_with("nll_loss", (ignore_index, _reduction(reduction)), (input, target), weight=weight)


def _check_weight(scores: Node, weight: Node | None) -> None:
    """Check that there are as many weights as classes.

    Errors: `InputError`.
    """
    axis = class_axis(scores)
    if weight is not None and weight.shape != scores.shape[axis : axis + 1]:
        raise InputError(f"{scores.shape[axis]} classes have as many weights, not the shape {weight.shape}")


def _check_classes(scores: Node, target: Node, ignored: int) -> None:
    """Check that targets are classes, as far as they are known.

    Errors: `InputError`.
    """
    if not scores.shape:
        raise InputError("a number has no classes", hint="scores have the shape (classes,) or (samples, classes, …)")
    axis = class_axis(scores)
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
