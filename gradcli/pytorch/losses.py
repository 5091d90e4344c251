"""Losses: of the difference between numbers, of probabilities, of classes, and of pairs of vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.graph.construct import equal, log_softmax, reduce, reshape
from gradcli.graph.construct import where as choose
from gradcli.graph.node import Node, cast, compare, const
from gradcli.pytorch.calls import called, exact, vocabulary_call
from gradcli.pytorch.dtypes import WORDS, result_dtype
from gradcli.pytorch.gradnames import grad_name
from gradcli.pytorch.operators import where
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, of_array
from gradcli.vocabulary import FUNCTIONS

_DIFFERENT = (
    "Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect results due "
    "to broadcasting. Please ensure they have the same size."
)


def reduction_of(size_average: Any, reduce_: Any, reduction: str) -> str:
    """Return how a loss of many samples becomes one, from the arguments of today or of old.

    Errors: `ValueError` for a way that is none.
    """
    if size_average is not None or reduce_ is not None:
        found = "none" if reduce_ is False else "mean" if size_average in (None, True) else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
            UserWarning,
            stacklevel=4,
        )
        return found
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            UserWarning,
            stacklevel=4,
        )
        return "mean"
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


# Of the difference between numbers


def _regression(name: str, *own: str) -> Callable[..., Tensor]:
    """Return a loss that has settings of its own, which stand behind `reduction`, or in front of all old arguments."""

    def loss(
        input: Tensor,
        target: Tensor,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        **more: Any,
    ) -> Tensor:
        if isinstance(size_average, str):  # huber_loss(input, target, reduction, delta)
            reduction, size_average, more = size_average, None, {**dict(zip(own, [reduce], strict=False)), **more}
            reduce = None
        how = reduction_of(size_average, reduce, reduction)
        if input.shape != target.shape:
            warnings.warn(_DIFFERENT.format(target.shape, input.shape), UserWarning, stacklevel=3)
        dtype = result_dtype((input, target)).name
        settings = {k: const(exact(v)) for k, v in more.items()}
        if dtype == "bool":
            raise NotImplementedError(f"\"{name.replace('_loss', '_cpu')}\" not implemented for 'Bool'")

        def build(x: Node, y: Node) -> Node:
            return FUNCTIONS[name](cast(x, dtype), cast(y, dtype), reduction=how, **settings)

        named = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": "AbsBackward0"}[how]
        grad = named if name == "l1_loss" else grad_name(name)
        return apply(name, build, (input, target), (how, tuple(more.items())), grad)

    loss.__name__ = name
    return loss


mse_loss, l1_loss = _regression("mse_loss"), _regression("l1_loss")
huber_loss, smooth_l1_loss = _regression("huber_loss", "delta"), _regression("smooth_l1_loss", "beta")


# Of probabilities


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    how = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target._a.dtype != input._a.dtype:
        found, wanted = WORDS[target.dtype.name], WORDS[input.dtype.name]
        raise RuntimeError(f"Found dtype {found} but expected {wanted}")
    if ((input._a < 0) | (input._a > 1)).any():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return vocabulary_call("binary_cross_entropy", FUNCTIONS["binary_cross_entropy"], (input, target, weight, how), {})


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    how = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    name = "binary_cross_entropy_with_logits"
    dtype = result_dtype((input, target)).name

    def build(x: Node, y: Node, *more: Node) -> Node:
        own = iter(more)
        weights = [None if w is None else next(own) for w in (weight, pos_weight)]
        return FUNCTIONS[name](cast(x, dtype), cast(y, dtype), weights[0], how, weights[1])

    operands = [x for x in (input, target, weight, pos_weight) if x is not None]
    return apply(name, build, operands, (how, weight is None, pos_weight is None, dtype))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    if reduction == "mean":
        warnings.warn(_SUPPORT, UserWarning, stacklevel=2)
    x: Any = input
    y: Any = target
    loss = y.exp() * (y - x) if log_target else y.xlogy(y) - y * x
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]  # type: ignore[no-any-return]
    return _one(loss, reduction_of(size_average, reduce, reduction))


_SUPPORT = (
    "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
    "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
    "'batchmean' in the next major release."
)


def _one(loss: Any, how: str) -> Any:
    return loss.mean() if how == "mean" else loss.sum() if how == "sum" else loss


# What PyTorch composes itself: a line a loss


def _composed(function: Callable[..., Any], **defaults: Any) -> Callable[..., Tensor]:
    def loss(*args: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", **own: Any) -> Tensor:
        count = function.__code__.co_argcount - len(defaults)
        given = defaults | dict(zip(defaults, args[count:], strict=False)) | own
        return _one(function(*args[:count], **given), reduction_of(size_average, reduce, reduction))

    return loss


def _gaussian(input: Any, target: Any, var: Any, full: bool, eps: float) -> Any:
    spread = var.clamp(min=eps)
    loss = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    return loss + 0.5 * np.log(2 * np.pi) if full else loss


def _hinge(input: Any, target: Any, margin: float) -> Any:
    far = where(target.ne(1), (margin - input).clamp_min(0), 0.0)
    return far + where(target.ne(-1), input, 0.0)


def _cosine(input1: Any, input2: Any, target: Any, margin: float) -> Any:
    eps = 1e-12
    products = (input1 * input2).sum(-1)
    cosine = products / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    near = where(target.eq(1), 1 - cosine, 0.0)
    return near + where(target.eq(-1), (cosine - margin).clamp_min(0), 0.0)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    return called((x1 - x2 + eps).norm(p, -1, keepdim), "NormBackward1")  # type: ignore[no-any-return]


def _triplet(anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool) -> Any:
    near, far = (pairwise_distance(anchor, x, p, eps) for x in (positive, negative))
    far = far.minimum(pairwise_distance(positive, negative, p, eps)) if swap else far  # type: ignore[attr-defined]
    return (margin + near - far).clamp_min(0)  # type: ignore[attr-defined]


def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float) -> Any:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * np.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return loss


poisson_nll_loss = _composed(_poisson, log_input=True, full=False, eps=1e-8)
gaussian_nll_loss = _composed(_gaussian, full=False, eps=1e-6)
hinge_embedding_loss = _composed(_hinge, margin=1.0)
margin_ranking_loss = _composed(lambda a, b, target, margin: (-target * (a - b) + margin).clamp_min(0), margin=0.0)
_soft_margin = _composed(lambda input, target: (1 + (-target * input).exp()).log())
cosine_embedding_loss = _composed(_cosine, margin=0.0)
triplet_margin_loss = _composed(_triplet, margin=1.0, p=2.0, eps=1e-6, swap=False)
multilabel_soft_margin_loss = _composed(
    lambda input, target: -(target * _logsigmoid(input) + (1 - target) * _logsigmoid(-input)).sum(-1) / input.shape[-1]
)


def soft_margin_loss(*args: Any, **kwargs: Any) -> Tensor:
    return called(_soft_margin(*args, **kwargs), "SoftMarginLossBackward0")  # type: ignore[no-any-return]


def _logsigmoid(x: Any) -> Any:
    return vocabulary_call("logsigmoid", FUNCTIONS["logsigmoid"], (x,), {})


# Of classes


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    how = reduction_of(size_average, reduce, reduction)
    if target.shape == input.shape and target._a.dtype.kind == "f":
        return _of_probabilities(input, target, weight, how, label_smoothing)
    axis = 1 if input.dim() > 1 else 0
    scores = vocabulary_call("log_softmax", FUNCTIONS["log_softmax"], (input, axis), {})
    hard = _of_classes(scores, target, weight, ignore_index, how)
    if not label_smoothing:
        return hard
    even = _even(scores, target, weight, ignore_index, how)
    return hard * (1 - label_smoothing) + even * (label_smoothing / scores.shape[axis])  # type: ignore[no-any-return]


def _of_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, how: str, smoothing: float) -> Tensor:
    axis = min(1, input.dim() - 1)
    classes = input.shape[axis]
    even, rest = const(exact(smoothing / classes)), const(exact(1 - smoothing))
    samples = max(1, input.numel() // classes)

    def build(x: Node, y: Node, *own: Node) -> Node:
        likely = y * rest + even if smoothing else y
        products = log_softmax(x, axis) * likely
        for w in own:
            products = products * reshape(w, (*w.shape, *(1,) * (len(x.shape) - axis - 1)))
        if how == "none":
            return -reduce("sum", products, (axis,))
        total = -reduce("sum", products, tuple(range(len(x.shape))))
        return total / const(samples) if how == "mean" else total

    given = (input, target, weight) if weight is not None else (input, target)
    name = "DivBackward1" if how == "mean" else "NegBackward0"
    return apply("cross_entropy_soft", build, given, (how, smoothing), name)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    return _of_classes(input, target, weight, ignore_index, reduction_of(size_average, reduce, reduction))


def _even(scores: Any, target: Any, weight: Any, ignored: int, how: str) -> Any:
    """Return the loss of targets that are all classes alike."""
    axis = min(1, scores.dim() - 1)
    own = scores if weight is None else scores * weight.view(-1, *(1,) * (scores.dim() - axis - 1))
    loss = (-own.sum(axis)).masked_fill(target.eq(ignored), 0.0)
    if how != "mean":
        return _one(loss, how)
    kept = target.ne(ignored)
    shares = kept.to(scores.dtype) if weight is None else weight[where(kept, target, 0)] * kept
    return loss.sum() / shares.sum()


def _of_classes(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int, how: str) -> Tensor:
    """Return the loss of logarithms of probabilities: those of the targets' classes, weighted and averaged."""
    axis = min(1, scores.dim() - 1)
    count = scores.shape[axis]
    own = target._a[..., 0]
    _check_classes(scores, target, ignored)
    kept = own != ignored
    complete = bool(kept.all())
    share = kept.astype(scores._a.dtype)
    if weight is not None:
        share = share * weight._a[np.where(kept, own, 0), 0]
    total = exact(float(share.sum()))
    classes = const(tuple(range(count)), (count, *(1,) * (scores.dim() - axis - 1)), "int64")

    def build(x: Node, t: Node, *shares: Node) -> Node:
        wanted = reshape(t, (*t.shape[:axis], 1, *t.shape[axis:]))
        of_target = equal(wanted, classes)
        if not complete and ignored in range(count):
            of_target = of_target & compare("ne", wanted, const(ignored))
        chosen = reduce("sum", choose(of_target, x, const(0)), (axis,))
        for w in shares:
            chosen = w * chosen
        loss = -chosen if complete else 0 - chosen  # 0, not -0, where a target is ignored
        axes = tuple(range(len(loss.shape)))
        if how == "mean" and complete and not shares:
            return reduce("mean", loss, axes) if axes else loss
        summed = reduce("sum", loss, axes) if axes and how != "none" else loss
        return summed / const(total) if how == "mean" else summed

    name = "NllLossBackward0" if scores.dim() <= 2 else "NllLoss2DBackward0" if how != "none" else "ViewBackward0"
    given = (scores, target) if weight is None else (scores, target, of_array(share.reshape(own.shape)))
    return apply("nll_loss", build, given, (how, total, axis, complete, ignored), name)


def _check_classes(scores: Tensor, target: Tensor, ignored: int) -> None:
    """Refuse targets that are no classes, in PyTorch's words."""
    if target._a.dtype.kind == "f":
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {WORDS[target.dtype.name]}")
    count = scores.shape[min(1, scores.dim() - 1)]
    own = target._a[..., 0]
    if scores.dim() < 3 and own.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if scores.dim() > 1 and own.shape[:1] != scores.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({scores.shape[0]}) to match target batch_size "
            f"({own.shape[0] if own.ndim else 1})."
        )
    bad = (own != ignored) & ((own < 0) | (own >= count))
    if bad.any():
        raise IndexError(f"Target {own[bad].reshape(-1)[0]} is out of bounds.")
