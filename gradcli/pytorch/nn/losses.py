"""Losses: of the difference between numbers, of probabilities, of classes, and of pairs of vectors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from gradcli.graph.construct import call
from gradcli.graph.node import Node, cast, const
from gradcli.pytorch.calls import called, check_numbers, exact, named
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.functions import fact, grad_name
from gradcli.pytorch.limits import check_limits
from gradcli.pytorch.messages import raise_if, torch_error, warn
from gradcli.pytorch.nn.table import taken
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.operations.operators import where
from gradcli.pytorch.record import apply
from gradcli.pytorch.signatures import signature
from gradcli.pytorch.tensor import Tensor, of_array
from gradcli.vocabulary import FUNCTIONS
from gradcli.vocabulary.losses import IGNORED, at_classes, reduced


def reduction_of(size_average: Any, reduce_: Any, reduction: str) -> str:
    """Return how a loss of many samples becomes one, from the arguments of today or of old.

    Errors: `ValueError` for a way that is none.
    """
    if size_average is not None or reduce_ is not None:
        whole, single = (flag is None or bool(flag) for flag in (size_average, reduce_))
        result = "mean" if whole and single else "sum" if single else "none"
        warn("old reduction", result)
        return result
    if reduction == "elementwise_mean":
        warn("oldest reduction")
        return "mean"
    raise_if(reduction not in ("mean", "sum", "none"), "unknown reduction", reduction)
    return reduction


def _reducing(also: str = "", inner: str = "") -> Callable[[Callable[..., Any]], Callable[..., Tensor]]:
    """Return a decorator that gives a loss the parameters of its reduction, if its module has them.

    What takes `how` is told it; of all others, which return the losses of the samples, they become one here.
    `inner` is PyTorch's function in C++, which tells what is no tensor.
    """

    def register(loss: Callable[..., Any]) -> Callable[..., Tensor]:
        parameters = inspect.signature(loss).parameters
        names = [n for n in parameters if n != "how"]
        operands = [n for n in names if parameters[n].default is parameters[n].empty]
        positional = dict.fromkeys((*operands, *taken(loss.__name__), *names))

        @wraps(loss)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            arguments = dict(zip(positional, args, strict=False)) | kwargs
            old = arguments.pop("size_average", None), arguments.pop("reduce", None)
            reduction = arguments.pop("reduction", "mean")
            how = reduction if reduction == also else reduction_of(*old, reduction)
            check_limits(loss.__name__, arguments)
            try:
                return loss(**arguments, how=how) if "how" in parameters else _one(loss(**arguments), how)
            except AttributeError:
                if inner:
                    signature(inner).check_tensors(inner, [arguments[x] for x in operands])
                raise

        return call

    return register


def _one(loss: Any, how: str) -> Any:
    return loss.mean() if how == "mean" else loss.sum() if how == "sum" else loss


# Of the difference between numbers


@_reducing()
def mse_loss(input: Tensor, target: Tensor, how: str, weight: Tensor | None = None) -> Tensor:
    return _compared("mse_loss", input, target, how, weight)


@_reducing()
def l1_loss(input: Tensor, target: Tensor, how: str, weight: Tensor | None = None) -> Tensor:
    return _compared("l1_loss", input, target, how, weight)


@_reducing()
def huber_loss(input: Tensor, target: Tensor, how: str, delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    return _compared("huber_loss", input, target, how, weight, delta=delta)


@_reducing()
def smooth_l1_loss(input: Tensor, target: Tensor, how: str, beta: float = 1.0) -> Tensor:
    if not beta:
        return _compared("l1_loss", input, target, how, None)
    return _compared("smooth_l1_loss", input, target, how, None, beta=beta)


def _compared(name: str, input: Any, target: Any, how: str, weight: Tensor | None, **more: float) -> Tensor:
    """Return the loss of the vocabulary, weighted as PyTorch weights it."""
    if target.size() != input.size():
        warn("size of the target", target.shape, input.shape)
        input, target = broadcast_tensors(input, target)
    if weight is not None:
        loss = _compared(name, input, target, "none", None, **more)
        raise_if(weight.shape != loss.shape, "size of weights")
        loss = loss * weight
        return loss.sum() / weight.sum() if how == "mean" and name != "huber_loss" else _one(loss, how)
    kind = result_dtype((input, target))
    check_numbers(name, kind)
    if how == "mean" and not kind.is_floating_point:
        return (input - target).mean()

    def build(x: Node, y: Node) -> Node:
        settings = {k: const(exact(v)) for k, v in more.items()}
        return FUNCTIONS[name](cast(x, kind.name), cast(y, kind.name), reduction=how, **settings)

    named = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": "AbsBackward0"}[how]
    grad = grad_name(name) if fact("composed", name) is None else named
    return apply(name, build, (input, target), (how, tuple(more.items())), grad)


# Of probabilities


@_reducing()
def binary_cross_entropy(input: Tensor, target: Tensor, how: str, weight: Tensor | None = None) -> Tensor:
    raise_if(target.size() != input.size(), "size of the target, an error", target.shape, input.shape)
    raise_if(target._a.dtype != input._a.dtype, "dtype of a target", target.dtype.word, input.dtype.word)
    for what, array in (("input", input._a), ("target", target._a)):
        raise_if(((array < 0) | (array > 1)).any(), "no probabilities", what)
    return named("binary_cross_entropy", input, target, weight, how)


@_reducing()
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, how: str, weight: Tensor | None = None, pos_weight: Tensor | None = None
) -> Tensor:
    raise_if(target.size() != input.size(), "size of the target of logits", target.shape, input.shape)
    name = "binary_cross_entropy_with_logits"
    check_numbers(name, input.dtype)
    raise_if(target._a.dtype.kind != "f", "dtype of what is written", "Float", target.dtype.word)
    dtype = target.dtype.name

    def build(x: Node, y: Node, *more: Node) -> Node:
        operands = iter(more)
        weights = [None if w is None else next(operands) for w in (weight, pos_weight)]
        return FUNCTIONS[name](cast(x, dtype), cast(y, dtype), weights[0], how, weights[1])

    operands = [x for x in (input, target, weight, pos_weight) if x is not None]
    return apply(name, build, operands, (how, weight is None, pos_weight is None, dtype))


@_reducing(also="batchmean", inner="kl_div")
def kl_div(input: Any, target: Any, how: str, log_target: bool = False) -> Tensor:
    if how == "mean":
        warn("mean of a divergence")
    raise_if(input._a.dtype.kind != "f" or target._a.dtype.kind != "f", "integers in a divergence")
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if how != "batchmean":
        return _one(loss, how)
    return loss.sum() / input.shape[0] if input.shape else loss.sum()


# What PyTorch composes itself


@_reducing()
def poisson_nll_loss(input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * np.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return loss


@_reducing()
def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6) -> Any:
    raise_if((var._a < 0).any(), "negative variance")
    spread = var.clamp(min=eps)
    loss = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    return loss + 0.5 * np.log(2 * np.pi) if full else loss


@_reducing()
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0) -> Any:
    far = where(target.ne(1), (margin - input).clamp_min(0), 0.0)
    return far + where(target.ne(-1), input, 0.0)


@_reducing()
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0) -> Any:
    return (-target * (input1 - input2) + margin).clamp_min(0)


@_reducing()
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0) -> Any:
    eps = 1e-12
    products = (input1 * input2).sum(-1)
    cosine = products / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    near = where(target.eq(1), 1 - cosine, 0.0)
    return near + where(target.eq(-1), (cosine - margin).clamp_min(0), 0.0)


@_reducing()
def soft_margin_loss(input: Any, target: Any, how: str) -> Any:
    return called(_one((-target * input).exp().log1p(), how), "SoftMarginLossBackward0")


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return called((x1 - x2 + eps).norm(p, -1, keepdim), "NormBackward1")


@_reducing()
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False,
) -> Any:  # fmt: skip
    near, far = (pairwise_distance(anchor, x, p, eps) for x in (positive, negative))
    far = far.minimum(pairwise_distance(positive, negative, p, eps)) if swap else far
    return (margin + near - far).clamp_min(0)


# Of classes


@_reducing(inner="cross_entropy_loss")
def cross_entropy(
    input: Tensor, target: Tensor, how: str, weight: Any = None, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    if target.shape == input.shape:
        if target._a.dtype.kind == "f":
            return _of_probabilities(input, target, weight, how, label_smoothing)
        raise torch_error("dtype of probabilities", target.dtype.word)
    axis = 1 if input.dim() > 1 else 0
    scores = named("log_softmax", input, axis)
    hard = _of_classes(scores, target, weight, ignore_index, how)
    if not label_smoothing:
        return hard
    even = _even(scores, target, weight, ignore_index, how)
    return hard * (1 - label_smoothing) + even * (label_smoothing / scores.shape[axis])


def _of_probabilities(input: Any, target: Any, weight: Any, how: str, smoothing: float) -> Any:
    axis = min(1, input.dim() - 1)
    classes = input.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(1, classes)
    loss = _weighted(named("log_softmax", input, axis) * target, weight)
    if how == "none":
        return -loss.sum(axis)
    if how == "mean" and not input.numel():
        return -loss.sum().fill_(np.nan)
    whole = -loss.sum()
    samples = input.numel() // max(1, classes)
    return called(whole / samples, "DivBackward1") if how == "mean" else whole


@_reducing(inner="nll_loss_nd")
def nll_loss(input: Tensor, target: Tensor, how: str, weight: Any = None, ignore_index: int = -100) -> Tensor:
    return _of_classes(input, target, weight, ignore_index, how)


@_reducing()
def multi_margin_loss(
    input: Any, target: Any, how: str, p: int = 1, margin: float = 1.0, weight: Any = None
) -> Any:  # fmt: skip
    """Return by how much less than a margin the score of the class is above those of the others."""
    rows, classes = (input, target.reshape(-1, 1)) if input.dim() > 1 else (input.unsqueeze(0), target.reshape(1, 1))
    gaps = (margin - rows.gather(1, classes) + rows).clamp_min(0).pow(p)
    gaps = gaps if weight is None else gaps * weight[classes]
    losses = gaps.scatter(1, classes, 0.0).sum(1) / rows.shape[1]
    return called(_one(losses if input.dim() > 1 else losses[0], how), "MultiMarginLossBackward0")


@_reducing()
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None) -> Any:
    """Return the binary cross entropies of several labels, averaged."""
    losses = -(target * named("logsigmoid", input) + (1 - target) * named("logsigmoid", -input))
    return (losses if weight is None else losses * weight).sum(-1) / input.shape[-1]


def _weighted(scores: Any, weight: Any) -> Any:
    """Return the scores times the weights of their classes."""
    return scores if weight is None else scores * weight.view(-1, *(1,) * (scores.dim() - 2))


def _even(scores: Any, target: Any, weight: Any, ignored: int, how: str) -> Any:
    """Return the loss of targets that are classes."""
    loss = (-_weighted(scores, weight).sum(min(1, scores.dim() - 1))).masked_fill(target.eq(ignored), 0.0)
    if how != "mean":
        return _one(loss, how)
    kept = target.ne(ignored)
    shares = kept.to(scores.dtype) if weight is None else weight[where(kept, target, 0)] * kept
    return loss.sum() / shares.sum()


def _of_classes(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int, how: str) -> Tensor:
    """Return the loss of logarithms of probabilities: those of the targets' classes, weighted and averaged."""
    _check_classes(scores, target, weight, ignored)
    if scores.dim() == target.dim() == 1:
        target = target[0]
    classes = target._a[..., 0]
    kept = classes != ignored
    complete = bool(kept.all())
    share = kept.astype(scores._a.dtype)
    if weight is not None:
        share = share * weight._a[np.where(kept, classes, 0), 0]
    total = exact(float(share.sum()))

    def build(x: Node, t: Node, *shares: Node) -> Node:
        chosen = at_classes(x, t, IGNORED if complete else ignored)(x)
        for w in shares:
            chosen = w * chosen
        # 0, not -0, where a target is ignored, and of one sample without a batch
        loss = -chosen if complete and scores.dim() > 1 else 0 - chosen
        if how == "mean" and (shares or not complete):
            whole = reduced(loss, "sum")  # no gradient flows where no sample counts
            return whole / const(total) if total else call("detach", whole) * const(np.nan) + whole
        return reduced(loss, how)

    flat = scores.dim() not in (2, 4) and how == "none"
    name = "NllLossBackward0" if scores.dim() <= 2 else "ViewBackward0" if flat else "NllLoss2DBackward0"
    operands = (scores, target) if weight is None else (scores, target, of_array(share.reshape(classes.shape)))
    return apply("nll_loss", build, operands, (how, total, complete, ignored), name)


def _check_classes(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> None:
    """Check that targets are classes, in PyTorch's order and with its messages."""
    shape, classes = list(scores.shape), target._a[..., 0]
    rank, sizes, expected = len(shape), list(classes.shape), [*shape[:1], *shape[2:]]
    raise_if(not rank, "scores without an axis")
    count = shape[min(1, rank - 1)]
    raise_if(rank > 1 and sizes[:1] != shape[:1], "size of the batch", shape[0], sizes[0] if sizes else 0)
    raise_if(rank < 3 and len(sizes) > 1, "several targets")
    if weight is not None and weight.shape != (count,):
        raise torch_error(
            "weights of classes" if rank < 3 else "weights of classes in places", count, list(weight.shape)
        )
    raise_if(rank == 4 and len(sizes) != 3, "targets in places", len(sizes))
    raise_if(rank in (3, 5) and sizes != expected, "size of targets", expected, sizes)
    raise_if(classes.dtype not in (np.int64, np.uint8), "dtype of targets", target.dtype.word)
    raise_if(rank == 1 and sizes not in ([], [1]), "size of a single target", classes.size)
    raise_if(rank == 4 and sizes != expected, "size of targets in places", shape, sizes)
    bad = (classes != ignored) & ((classes < 0) | (classes >= count))
    if bad.any():
        raise torch_error("class out of bounds", classes[bad].reshape(-1)[0])
